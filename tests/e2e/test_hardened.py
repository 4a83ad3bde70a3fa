"""profcol under packaging/seccomp.json: it receives over both protocols, sends with every exporter, resolves names and
obeys SIGTERM.

Here a forbidden system call kills the process (tests/oracle/confined.py), so none goes unnoticed.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest
import urllib.request

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, client, make, pyroscope, server, testing

CONFINED = str(pathlib.Path(os.environ["PROFCOL_SOURCE"]) / "tests" / "oracle" / "confined.py")
SPAN, TRACE = "0102030405060708", "0102030405060708090a0b0c0d0e0f10"

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "localhost:@grpc@"}
      http: {endpoint: "localhost:@http@"}
processors:
  spanjoin: {samples: {wait: 200ms}}
  batch: {timeout: 50ms}
exporters:
  otlp_grpc: {endpoint: "localhost:GRPC_PORT", tls: {insecure: true}}
  otlp_http: {endpoint: "http://localhost:HTTP_PORT", compression: zstd}
  pyroscope: {endpoint: "http://localhost:PUSH_PORT"}
  file: {path: "@dir@/traces.json"}
  debug: {verbosity: detailed}
extensions:
  pprof: {endpoint: "localhost:@pprof@", mutex_profile_fraction: 1}
service:
  extensions: [pprof]
  pipelines:
    traces: {receivers: [otlp], processors: [spanjoin, batch], exporters: [otlp_grpc, otlp_http, file, debug]}
    profiles: {receivers: [otlp], processors: [spanjoin, batch], exporters: [pyroscope, debug]}
"""


def port_of(address):
    """Return the port of HOST:PORT."""
    return address.rpartition(":")[2]


def samples():
    """Return a request with one sample of the span."""
    builder = make.ProfilesBuilder()
    builder.profile.time_unix_nano = int(time.time()) * 10**9
    builder.sample(stack=builder.stack("leaf", "root"), values=[7], link=(SPAN, TRACE))
    return builder.request


@unittest.skipIf(os.environ.get("PROFCOL_SANITIZER"), "a sanitizer makes system calls of its own")
class HardenedTest(unittest.TestCase):
    """See the module."""

    def test_all_that_it_does_is_allowed(self):
        with backend.Backend("grpc") as grpc, backend.Backend("http") as http, pyroscope.Pyroscope() as push:
            config = (CONFIG.replace("GRPC_PORT", port_of(grpc.address)).replace("HTTP_PORT", port_of(http.address))
                      .replace("PUSH_PORT", port_of(push.address)))
            with server.Profcol(config, binary=CONFINED) as profcol:
                for protocol in "grpc", "http":
                    spans = make.traces([{"span_id": SPAN, "trace_id": TRACE, "name": protocol}])
                    for message in spans, samples():
                        answer = client.export(protocol, profcol.address(protocol), message)
                        self.assertTrue(client.succeeded(answer), answer)
                for one in grpc, http, push:
                    one.wait(1)
                self.assertGreater(profcol.metric("otelcol_receiver_accepted_spans"), 0)
                for profile in "profile?seconds=1", "heap", "mutex":
                    with urllib.request.urlopen(f"{profcol.url('pprof')}/debug/pprof/{profile}", timeout=60) as answer:
                        self.assertEqual(answer.read(2), b"\x1f\x8b")
            self.assertEqual(push.problems, [])

    def test_anything_else_is_not(self):
        """A forbidden call kills the process; otherwise the test above could not fail."""
        forbidden = "import os; os.chroot('/')"
        ended = subprocess.run([CONFINED, "-c", forbidden], check=False,
                               env={**os.environ, "PROFCOL": sys.executable}, capture_output=True)
        self.assertEqual(ended.returncode, -signal.SIGSYS, ended.stderr)


if __name__ == "__main__":
    testing.main()
