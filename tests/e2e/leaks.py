"""Called by leaks.sh: see there."""

import os
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, canonical, client, decode, replay, server

DEFAULT = ["ebpf-profiler-obi-links", "python-http-json", "pprof-to-otlp"]
CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:@grpc@", max_recv_msg_size_mib: 64}
      http: {endpoint: "127.0.0.1:@http@"}
processors:
  spanjoin: {samples: {wait: 300ms}}
  resource: {attributes: [{key: a, value: b, action: insert}]}
  batch: {timeout: 100ms}
exporters:
  debug: {verbosity: detailed}
  file: {path: "@dir@/out.json"}
  otlp_grpc: {endpoint: "GRPC", tls: {insecure: true}, retry_on_failure: {initial_interval: 100ms}}
  otlp_http: {endpoint: "HTTP", encoding: json, retry_on_failure: {initial_interval: 100ms}}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [spanjoin, resource, batch], exporters: [debug, file, otlp_grpc, otlp_http]}
    profiles: {receivers: [otlp], processors: [spanjoin, resource, batch], exporters: [debug, file, otlp_grpc, otlp_http]}
"""


def main():
    """Entry point."""
    names = sys.argv[1:] or DEFAULT
    captures = [c for name in names for c in decode.in_directory(decode.CAPTURES / name) if c.signal in canonical.OPENED]
    with tempfile.TemporaryDirectory() as directory, backend.Backend("grpc") as one, backend.Backend("http") as two:
        one.answers.append(backend.Answer(grpc_status=14))
        two.answers.extend([backend.Answer(status=503), backend.Answer(status=400), backend.Answer(drop=True)])
        wrapper, report = pathlib.Path(directory, "profcol"), pathlib.Path(directory, "valgrind")
        binary = pathlib.Path(os.environ["PROFCOL_BINARY"]).resolve()
        wrapper.write_text("#!/bin/sh\nexec valgrind --leak-check=full --show-leak-kinds=definite,indirect,possible "
                           f'--errors-for-leak-kinds=definite,indirect --error-exitcode=99 --log-file={report} {binary} "$@"\n')
        wrapper.chmod(0o755)
        text = CONFIG.replace("GRPC", one.address).replace("HTTP", two.url)
        with server.Profcol(text, binary=str(wrapper), start_timeout=120, expect_exit=None) as profcol:
            results = replay.send(captures, grpc=profcol.address("grpc"), http=profcol.address("http"), timeout=120)
            for body in (b"\xff", b"\x0a\x7f"):
                client.post(profcol.address("http"), client.TRACES, body)
                client.post(profcol.address("http"), client.TRACES, body, content_type=client.JSON)
                client.call(profcol.address("grpc"), client.PROFILES_SERVICE, body, flag=1, headers=[("grpc-encoding", "gzip")])
            problems = [f"{result.capture.name}: {result.problem()}" for result in results if not result.ok]
            code = profcol.stop(timeout=180)
        text = report.read_text()
    print(text if code == 99 else "\n".join(line for line in text.splitlines() if re.search(r"lost|reachable|ERROR SUMMARY", line)))
    print(f"{len(results)} requests, {len(problems)} refused, exit code {code}")
    print("\n".join(problems))
    sys.exit(1 if problems or code else 0)


if __name__ == "__main__":
    main()
