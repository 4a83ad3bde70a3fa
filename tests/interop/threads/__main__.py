"""A live Java program with OpenTelemetry's agent and Pyroscope's profiler -> profcol, joined by thread and time only.

    python tests/interop/threads [--seconds N] [--work DIRECTORY]

A proxy takes the profiler's recordings. It passes them on as they are to one profcol, and without everything that names a
span to another one, which gets the spans. What the first one's samples name is the truth about those of the second.
"""
import collections
import http.server
import os
import pathlib
import sys
import threading

ROOT = pathlib.Path(os.environ["PROFCOL_SOURCE"])
sys.path[:0] = [str(ROOT / "tests/interop"), str(ROOT)]

import thread_runs  # noqa: E402
from tests.oracle import decode, server, spanless, uploads  # noqa: E402

PLAIN = """
receivers:
  pyroscope: {endpoint: "127.0.0.1:@pyroscope@"}
exporters:
  file/profiles: {path: "@dir@/profiles.proto", format: proto}
service:
  pipelines:
    profiles: {receivers: [pyroscope], exporters: [file/profiles]}
"""


class Proxy(http.server.BaseHTTPRequestHandler):
    """Passes a recording on to both processes."""

    protocol_version = "HTTP/1.1"
    named = unnamed = None    # addresses
    recordings = 0

    def body(self):
        """Return the body, which may come in chunks."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"]))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def do_POST(self):  # pylint: disable=invalid-name
        """Handle an upload."""
        body = self.body()
        meta = {"path": self.path, "headers": list(self.headers.items())}
        capture = decode.Capture("live", "java", "profiles", "http", "", "", body, body, meta)
        status = spanless.post_recording(self.named, capture, uploads.form_files(capture))
        spanless.post_recording(self.unnamed, capture, spanless.without_spans(uploads.form_files(capture)))
        Proxy.recordings += 1
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Be quiet."""


def run(options):
    """Run the program; return what left the profcol that joins, and the profiles with names of spans."""
    with server.Profcol(PLAIN) as named, server.Profcol(thread_runs.configuration()) as unnamed:
        Proxy.named, Proxy.unnamed = named.address("pyroscope"), unnamed.address("pyroscope")
        proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        thread_runs.run_profiled("threads", options, unnamed.address("grpc"), f"127.0.0.1:{proxy.server_address[1]}")
        joined = thread_runs.finish(unnamed)
        named.stop()
        proxy.shutdown()
        return joined, thread_runs.requests_of(named, "profiles")


def names_spans(message):
    """Return whether samples of a recording name spans."""
    return len(message.dictionary.link_table) > 1


def after_first_spans(named, unnamed):
    """Leave out the first recordings, up to the first one that names spans: it usually comes before the program's first
    spans, so that it is not known yet that they name their threads."""
    first = next((number for number, message in enumerate(named) if names_spans(message)), len(named))
    print(f"{first + 1} recordings before, and when, the first spans ran are left out")
    times = {profile.time_unix_nano for message in named[first + 1:] for resource in message.resource_profiles
             for scope in resource.scope_profiles for profile in scope.profiles}
    kept = [message for message in unnamed
            if message.resource_profiles[0].scope_profiles[0].profiles[0].time_unix_nano in times]
    return named[first + 1:], kept


def main():
    """Entry point."""
    options = thread_runs.parser_of(__doc__, "threads").parse_args()
    thread_runs.build_java(options.work)
    left, named = run(options)
    roots = spanless.roots_of(left.traces)
    named, unnamed = after_first_spans(named, left.profiles)
    truth, joined = (spanless.totals(messages, roots) for messages in (named, unnamed))
    is_good = spanless.sums(truth) == spanless.sums(joined)
    print(f"{len(roots)} spans, {Proxy.recordings} recordings, totals {'equal' if is_good else 'DIFFER'}, {left.counts}")
    shares = collections.defaultdict(lambda: [0, 0, 0])
    for key in truth:
        values = spanless.compare({key: truth[key]}, {key: joined.get(key, {})})
        shares[key[:2]] = [a + b for a, b in zip(shares[key[:2]], values)]
    for metric, (known, right, wrong) in sorted(shares.items()):
        if known:
            print(f"{' '.join(metric)}: of {known} whose span is known, {right / known:.2%} joined to it, {wrong / known:.2%} to another one")
            is_good = is_good and right / known >= 0.98 and wrong / known <= 0.01
    sys.exit(0 if is_good and shares else 1)


if __name__ == "__main__":
    main()
