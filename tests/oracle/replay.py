"""Sends recorded requests again, with the recorded protocol and framing.

    python -m tests.oracle.replay --grpc HOST:PORT --http HOST:PORT [--speed 1] [--shift-to-now] [CAPTURE_DIRECTORY...]

HTTP/1.1 requests repeat their header lines in order and case, their chunks and their `Expect`; HTTP/2 requests repeat
their header fields; gRPC messages are compressed as recorded. Each recorded connection is one connection. Only the host
changes, and with shift_to_now the timestamps (and the lengths of compressed bodies).
"""

import argparse
import dataclasses
import pathlib
import re
import sys
import time

from examples import play
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from . import canonical, connections, decode
from .background import Background

RESPONSE = {
    "traces": trace_service_pb2.ExportTraceServiceResponse,
    "profiles": profiles_service_pb2.ExportProfilesServiceResponse,
}
REJECTED = {"traces": "rejected_spans", "profiles": "rejected_profiles"}
FILE_HEADERS = [["Host", ""], ["User-Agent", "profcol-tests"]]
JSON_TIME = re.compile(rb'("(?:startTimeUnixNano|endTimeUnixNano|timeUnixNano)"\s*:\s*"?)([1-9][0-9]*)')
JSON_TIMES = re.compile(rb'("timestampsUnixNano"\s*:\s*\[)([^\]]*)')
UNIMPLEMENTED = 12


@dataclasses.dataclass
class Result:
    """A request that was sent, and its answer. `sent_at` and `answered_at` are monotonic seconds."""

    capture: decode.Capture
    sent_at: float
    answered_at: float
    response: connections.Response | None
    error: Exception | None = None

    @property
    def status(self):
        """Return the HTTP status, or 0 without an answer."""
        return self.response.status if self.response else 0

    @property
    def ok(self):
        """Return whether the server accepted the whole request and said so in the right form."""
        return not self.problem()

    @property
    def unknown_service(self):
        """Return whether the server said, in the protocol's form, that it does not serve this signal."""
        if self.capture.transport == "grpc":
            return self.status == 200 and self.response.grpc_status == UNIMPLEMENTED
        return self.status == 404

    def problem(self):
        """Return why the request was not accepted, or ""."""
        if self.error:
            return f"{type(self.error).__name__}: {self.error}"
        response, grpc = self.response, self.capture.transport == "grpc"
        if response.reset is not None:
            return f"stream or connection reset, code {response.reset}"
        if response.status != 200:
            return f"HTTP {response.status} {response.body[:200]!r}"
        if grpc and response.grpc_status != 0:
            return f"grpc-status {response.grpc_status} {response.grpc_message}"
        want = self.content_type
        if not response.header("content-type", "").startswith(want):
            return f"content-type {response.header('content-type')!r}, expected {want}"
        try:
            message = self.message()
        except ValueError as error:
            return f"the answer does not parse: {error}"
        partial = message.partial_success
        rejected = getattr(partial, REJECTED[self.capture.signal])
        return f"{rejected} rejected: {partial.error_message}" if rejected else ""

    @property
    def content_type(self):
        """Return how the answer's content type must begin."""
        if self.capture.transport == "grpc":
            return "application/grpc"
        return "application/json" if self.capture.content == "json" else "application/x-protobuf"

    def message(self):
        """Return the response message; raise ValueError if it is invalid."""
        kind = RESPONSE[self.capture.signal]
        try:
            if self.capture.content == "json":
                return canonical.json_format.Parse(self.response.body, kind())
            body = self.response.body
            if self.capture.transport == "grpc":
                (flag, body), = self.response.messages()
                encoding = self.response.header("grpc-encoding", "identity") if flag else ""
                body = decode.decompress(body, encoding)
            return kind.FromString(body)
        except (canonical.json_format.ParseError, canonical.DecodeError) as error:
            raise ValueError(str(error)) from error


def send(captures, *, grpc=None, http=None, speed=0, shift_to_now=False, concurrent=False, timeout=30):
    """Send recorded requests to HOST:PORT addresses and return a Result for each, in their order.

    speed 0 sends without pauses, 1 at the recorded pace, 10 ten times faster. With `concurrent`, every recorded
    connection has its own thread, so a late answer on one does not delay the others; otherwise requests are sent one
    after another.
    """
    captures = [c for c in captures if (grpc if c.transport == "grpc" else http)]
    if shift_to_now:
        captures = shifted_to_now(captures)
    replay = _Replay(captures, grpc, http, speed, timeout)
    return replay.run(concurrent)


def shifted_to_now(captures, now_ns=None):
    """Return the requests with all timestamps shifted by the same amount, so that the newest is now."""
    latest = max((newest(c.payload, c.signal, c.content) for c in captures), default=0)
    delta = (now_ns or time.time_ns()) - latest if latest else 0
    return [shifted(c, delta) for c in captures]


def newest(payload, signal, content):
    """Return the latest timestamp in a request, or 0."""
    if signal not in play.TIMES_IN:
        return 0
    if content == "protobuf":
        return play.newest(payload, signal)
    numbers = [int(match[2]) for match in JSON_TIME.finditer(payload)]
    for match in JSON_TIMES.finditer(payload):
        numbers += map(int, re.findall(rb"[0-9]+", match[2]))
    return max(numbers, default=0)


def shifted(capture, delta_ns):
    """Return the capture with its timestamps shifted, compressed as before."""
    if capture.signal not in play.TIMES_IN:
        return capture
    if capture.content == "protobuf":
        payload = play.shifted(capture.payload, capture.signal, delta_ns)
    else:
        def move(match):
            return b"%d" % (int(match[0]) + delta_ns)

        payload = JSON_TIME.sub(lambda m: m[1] + b"%d" % (int(m[2]) + delta_ns), capture.payload)
        payload = JSON_TIMES.sub(lambda m: m[1] + re.sub(rb"[1-9][0-9]*", move, m[2]), payload)
    body = decode.compress(payload, capture.encoding, framed=capture.transport == "grpc")
    return dataclasses.replace(capture, payload=payload, body=body)


class _Replay:
    def __init__(self, captures, grpc, http, speed, timeout):
        self.captures = captures
        self.addresses = {"grpc": grpc, "http": http, "h2c": http, "file": http}
        self.speed = speed
        self.timeout = timeout
        self.results = [None] * len(captures)
        self.connections = {}
        arrivals = [c.arrival_ns for c in captures if c.arrival_ns]
        self.first = min(arrivals, default=0)
        self.start = time.monotonic()

    def run(self, concurrent):
        groups = {}
        for number, capture in enumerate(self.captures):
            key = (capture.client, capture.transport, capture.meta.get("conn")) if concurrent else None
            groups.setdefault(key, []).append(number)
        for sending in [Background(self._send_all, numbers) for numbers in groups.values()]:
            sending.result(None)
        for connection in self.connections.values():
            connection.close()
        return self.results

    def _send_all(self, numbers):
        for number in numbers:
            capture = self.captures[number]
            if self.speed and capture.arrival_ns:
                due = self.start + (capture.arrival_ns - self.first) / 1e9 / self.speed
                time.sleep(max(0, due - time.monotonic()))
            self.results[number] = self._send(capture)

    def _send(self, capture):
        sent_at = time.monotonic()
        response = error = None
        try:
            response = exchange(self._connection(capture), capture, self.addresses[capture.transport])
        except (OSError, ValueError) as problem:
            error = problem
            self._forget(capture)
        return Result(capture, sent_at, time.monotonic(), response, error)

    def _key(self, capture):
        return capture.client, capture.transport, capture.meta.get("conn")

    def _connection(self, capture):
        key = self._key(capture)
        if key in self.connections and self.connections[key].open:
            return self.connections[key]
        kind = connections.Http2 if capture.transport in ("grpc", "h2c") else connections.Http1
        self.connections[key] = kind(self.addresses[capture.transport], self.timeout)
        return self.connections[key]

    def _forget(self, capture):
        connection = self.connections.pop(self._key(capture), None)
        if connection:
            connection.close()


def exchange(connection, capture, address):
    """Send one request on an open connection of the right kind and return the Response."""
    if capture.transport in ("grpc", "h2c"):
        body = capture.body
        if capture.transport == "grpc":
            body = connections.grpc_frame(body, bool(capture.meta["grpc_compressed_flag"]))
        return connection.request(h2_headers(capture, address, len(body)), body)
    head, body = http1_request(capture, address)
    return connection.request(head, body, capture.meta.get("expect_100_continue", False))


def h2_headers(capture, address, length):
    """Return the recorded header fields, with another host and, if it changed, another length."""
    changed = {":authority": address, "content-length": str(length)}
    return [(name, changed.get(name, value)) for name, value in capture.meta["headers"]]


def http1_request(capture, address):
    """Return (head, framed body) as recorded, with another host and, if it changed, another length."""
    if capture.transport == "file":
        kind = "application/json" if capture.content == "json" else "application/x-protobuf"
        meta = {"method": "POST", "path": play.PATH[capture.signal], "body_len": len(capture.body),
                "headers": FILE_HEADERS + [["Content-Type", kind], ["Content-Length", ""]]}
    else:
        meta = capture.meta
    changed = {"host": address, "content-length": str(len(capture.body))}
    lines = [f"{meta['method']} {meta['path']} HTTP/1.1"]
    lines += [f"{name}: {changed.get(name.lower(), value)}" for name, value in meta["headers"]]
    head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
    return head, _chunked(capture) if meta.get("chunk_sizes") else capture.body


def _chunked(capture):
    """Return the body in the recorded chunks. If its length changed, the last chunks are adjusted."""
    body, out = capture.body, []
    sizes, lines = capture.meta["chunk_sizes"], capture.meta["chunk_size_lines"]
    as_recorded = sum(sizes) == len(body)
    for size, line in zip(sizes, lines):
        part, body = body[:size], body[size:]
        if part:
            out.append((line if as_recorded else f"{len(part):x}").encode() + b"\r\n" + part + b"\r\n")
    if body:
        out.append(f"{len(body):x}".encode() + b"\r\n" + body + b"\r\n")
    return b"".join(out) + b"0\r\n\r\n"


def main():
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grpc", metavar="HOST:PORT")
    parser.add_argument("--http", metavar="HOST:PORT")
    parser.add_argument("--speed", type=float, default=0, help="1: recorded pace, 10: ten times faster, 0: no pauses")
    parser.add_argument("--shift-to-now", action="store_true", help="move timestamps so that the newest is now")
    parser.add_argument("--concurrent", action="store_true", help="a thread for each recorded connection")
    parser.add_argument("directories", nargs="*", type=pathlib.Path, default=decode.clients())
    options = parser.parse_args()
    failures = 0
    for directory in options.directories:
        results = send(decode.in_directory(directory), grpc=options.grpc, http=options.http, speed=options.speed,
                       shift_to_now=options.shift_to_now, concurrent=options.concurrent)
        for result in results:
            known = result.capture.signal in RESPONSE
            good = result.ok if known else result.unknown_service
            failures += not good
            text = "ok" if good and known else "refused, as it should be" if good else \
                (result.problem() if known else f"HTTP {result.status}, not refused as unknown")
            print(f"{result.capture.name}  {result.capture.signal}  {text}")
    print("failures:", failures)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
