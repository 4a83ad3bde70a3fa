"""Nothing blocks the loop: while a worker reads the most expensive request that is allowed, it serves others and
notices SIGTERM.

The tests check an order: a number of answers to others, or the close of the listener, come before the answer to the
expensive request. A sanitizer slows everything down equally.
"""

import gzip
import json
import os
import select
import signal
import socket
import struct
import sys
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import client, connections, make, server, testing

DEADLINE_EXCEEDED = 4
# max_request_body_size is 20 MiB; with a sanitizer, a fifth of it costs as much.
BODY_BYTES = (4 if os.environ.get("PROFCOL_SANITIZER") else 20) * 1024 * 1024 - 1024
MESSAGE_BYTES = 4 * 1024 * 1024 - 1024   # max_recv_msg_size_mib is 4
MANY = 100
SMALL_UNFOLDED_BYTES = 2_000_000          # more than the loop decompresses itself, less than a job reads
OTHERS = 50
PATTERN_KEYS = 500                       # of 60 bytes: 0.8 s
PATIENCE = 600                           # seconds; a sanitizer on a busy machine is slow
LINES = "/ingest?name=app&format=lines&from=1700000000&until=1700000010"

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:@grpc@"}
      http: {endpoint: "127.0.0.1:@http@"}
  pyroscope: {endpoint: "127.0.0.1:@pyroscope@"}
  pprof: {push: {endpoint: "127.0.0.1:@pprof@"}}
exporters:
  nop: {}
service:
  pipelines:
    traces: {receivers: [otlp], exporters: [nop]}
    profiles: {receivers: [otlp, pyroscope, pprof], exporters: [nop]}
"""

# Exporters that print each request as text.
TEXTS = {
    "file": "file: {path: @dir@/out.json}",
    "file, compressed": "file: {path: @dir@/out.json, compression: zstd}",
    "debug": "debug: {verbosity: detailed, use_internal_logger: false, output_paths: [@dir@/out.txt]}",
}

JOIN = """
receivers:
  otlp: {protocols: {http: {endpoint: "127.0.0.1:@http@"}}}
processors:
  spanjoin: {samples: {wait: 0s}}
  batch: {timeout: 0s, send_batch_size: 1, send_batch_max_size: 100, max_held_mib: 256}
exporters:
  nop: {}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [spanjoin, batch], exporters: [nop]}
    profiles: {receivers: [otlp], processors: [spanjoin], exporters: [nop]}
"""
# With the keys of its requests, the pattern needs as many steps as a match may take.
PATTERN = """
receivers:
  otlp: {protocols: {http: {endpoint: "127.0.0.1:@http@"}}}
processors:
  resource: {attributes: [{pattern: "(a+)+$", action: hash}]}
exporters:
  nop: {}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [resource], exporters: [nop]}
"""
ATTEMPTS = 20


def profcol(*arguments, config=CONFIG, exporter="nop: {}"):
    """Return a process with one worker."""
    name = exporter.split(":")[0]
    config = config.replace("nop: {}", exporter).replace("exporters: [nop]", f"exporters: [{name}]")
    return server.Profcol(config, arguments=["--workers", "1", *arguments])


def empty_blocks(size):
    """Return gzip of no data, in as many deflate blocks as fit: 90 bits each, for which the decoder has to build its
    tables."""
    bits = "".join(f"{value:0{count}b}"[::-1] for value, count in (
        (0, 1), (2, 2), (0, 5), (0, 5), (14, 4),                # not the last; dynamic; 257 and 1 codes; 18 lengths follow
        *((int(symbol in (18, 1)), 3) for symbol in (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1)),
        (1, 1), (127, 7), (1, 1), (107, 7), (0, 1), (0, 1),     # 138 and 118 unused codes, the end of block, a distance
        (0, 1)))                                                # the end of block
    assert len(bits) == 90
    eight = int((bits * 8)[::-1], 2).to_bytes(90, "little")
    head = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    tail = b"\x03\0" + struct.pack("<II", 0, 0)
    return head + eight * ((size - len(head) - len(tail)) // 90) + tail


def field(number, payload):
    """Return a bytes field of a protobuf message."""
    size = len(payload)
    length = b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + payload


def pprof(size):
    """Return a profile of one sample, with an unused string of `size` bytes."""
    return b"\x0a\x04\x08\x01\x10\x02" + b"\x12\x02\x10\x01" + b"".join(
        field(6, text) for text in (b"", b"cpu", b"nanoseconds", b"x" * size))


def small_spans(size):
    """Return a request of `size` bytes whose spans have only ids, and the number of spans."""
    count = size // 30 - 1
    trace = field(1, (7).to_bytes(16, "big"))
    spans = b"".join(field(2, trace + field(2, number.to_bytes(8, "big"))) for number in range(1, count + 1))
    return field(1, field(2, spans)), count


def post_head(path, size, *more):
    """Return the head of an HTTP/1.1 request."""
    lines = [f"POST {path} HTTP/1.1", "Host: a", f"Content-Length: {size}", *more]
    return "".join(line + "\r\n" for line in lines).encode() + b"\r\n"


DEAR = {
    "reading": (lambda size: b"a\n" * (size // 2), ()),
    "reading of a packed part": (lambda size: gzip.compress(b"a\n" * (size // 2)), ()),
    "decompression": (empty_blocks, ("Content-Encoding: gzip",)),
}


def upload(process, kind, size=BODY_BYTES):
    """Send the whole expensive request. Return its connection."""
    build, headers = DEAR[kind]
    body = build(size)
    connection = connections.connect(process.address("pyroscope"), timeout=PATIENCE)
    connection.sendall(post_head(LINES, len(body), *headers) + body)
    return connection


def traces_of_dear_text(size):
    """Return an OTLP request that is read quickly but is expensive to print: a span whose name consists of control
    characters."""
    return field(1, field(2, field(2, field(1, b"\1" * 16) + field(2, b"\1" * 8) + field(5, b"\1" * size))))


def upload_traces(process):
    """Send traces that are expensive to print. Return the connection."""
    body = traces_of_dear_text(BODY_BYTES - 1024)
    connection = connections.connect(process.address("http"), timeout=PATIENCE)
    connection.sendall(post_head("/v1/traces", len(body), f"Content-Type: {client.PROTOBUF}") + body)
    return connection


def is_answered(connection):
    """Return whether bytes can be read."""
    return bool(select.select([connection], [], [], 0)[0])


def status_of(connection):
    """Wait for the answer. Return its status."""
    return int(connection.recv(65536).split(b" ")[1])


def close_hard(connection):
    """Close a socket with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class JoinTest(unittest.TestCase):
    """20 MiB of small spans through spanjoin and batch."""

    @classmethod
    def setUpClass(cls):
        cls.body, cls.spans = small_spans(BODY_BYTES)

    def upload(self, process):
        """Send all of it. Return the connection."""
        connection = connections.connect(process.address("http"), timeout=PATIENCE)
        connection.sendall(post_head(client.TRACES, len(self.body), f"Content-Type: {client.PROTOBUF}") + self.body)
        return connection

    def is_seen_in_the_join(self, process, dear):
        """Return whether, before the request was answered, the metrics showed spans in the index and others got
        answers."""
        while not process.metric("profcol_spanjoin_entries"):
            if is_answered(dear):
                return False
        other = connections.Http1(process.address("http"), timeout=PATIENCE)
        head = post_head(client.TRACES, 0, f"Content-Type: {client.PROTOBUF}")
        answers = 0
        while answers < OTHERS and not is_answered(dear):
            self.assertEqual(other.request(head).status, 200)
            answers += 1
        other.close()
        return answers == OTHERS and not is_answered(dear)

    def check_all_is_sent(self, process):
        """Check that `batch` sends every span, in requests of 100."""
        server.wait_until(lambda: process.metric("otelcol_processor_batch_batch_send_size_sum") == self.spans,
                          timeout=PATIENCE, what="the spans behind batch")
        self.assertGreaterEqual(process.metric("otelcol_processor_batch_batch_send_size_count"), self.spans / 100)

    def until_seen(self, check):
        """Run `check` with a request that is in the join. The speed of the machine decides whether the test looks in
        time, so it tries several times."""
        for _ in range(ATTEMPTS):
            with profcol("--drain-timeout", "10m", config=JOIN) as process, self.upload(process) as dear:
                if self.is_seen_in_the_join(process, dear):
                    check(process, dear)
                    return
        self.fail("nobody was served while the request was in the join")

    def test_others_are_served_meanwhile(self):
        def check(process, dear):
            self.assertEqual(status_of(dear), 200)
            self.check_all_is_sent(process)

        self.until_seen(check)

    def test_sigterm_meanwhile(self):
        def check(process, dear):
            process.signal(signal.SIGTERM)
            process.wait_for_log("Starting shutdown", timeout=PATIENCE)
            self.assertEqual(status_of(dear), 200)
            process.stop(timeout=PATIENCE)   # the exit code says whether acknowledged data was lost

        self.until_seen(check)

    def test_stop_meanwhile(self):
        with profcol("--drain-timeout", "1ms", config=JOIN) as process, self.upload(process):
            process.stop(timeout=PATIENCE)

    def test_a_client_that_leaves_meanwhile(self):
        with profcol(config=JOIN) as process:
            for _ in range(3):
                close_hard(self.upload(process))
            server.wait_until(lambda: process.metric("profcol_budget_used_bytes") < 1 << 20,
                              timeout=PATIENCE, what="the memory of what was given up")


class LoopTest(unittest.TestCase):
    """There is one worker, so whatever blocks its loop blocks everything."""

    def check_others(self, process, dear, count=OTHERS):
        """Check that others get their answers first."""
        other = connections.Http1(process.address("http"), timeout=PATIENCE)
        for _ in range(count):
            head = post_head("/v1/traces", 0, f"Content-Type: {client.PROTOBUF}")
            self.assertEqual(other.request(head).status, 200)
            self.assertFalse(is_answered(dear), "the dear request was answered first")
        other.close()

    def check_sigterm(self, process, dear):
        """Check that the listener closes first, and that the request is still answered."""
        process.signal(signal.SIGTERM)
        process.wait_for_log("Starting shutdown", timeout=PATIENCE)
        server.wait_until(lambda: not server.accepts(process.ports["pyroscope"]), timeout=PATIENCE, what="the closed listener")
        self.assertFalse(is_answered(dear), "the dear request was answered first")
        self.assertEqual(status_of(dear), 200)
        process.stop(timeout=PATIENCE)

    def test_others_and_sigterm_are_served_meanwhile(self):
        for kind in DEAR:
            with self.subTest(kind), profcol("--drain-timeout", "10m") as process, upload(process, kind) as dear:
                self.check_others(process, dear)
                self.check_sigterm(process, dear)

    def are_passed(self, process, head, body):
        """Send many requests whose last bytes arrive together, then one more. Return whether it was answered before all
        of them were."""
        other = connections.Http1(process.address("http"), timeout=PATIENCE)
        nothing = post_head(client.TRACES, 0, f"Content-Type: {client.PROTOBUF}")
        self.assertEqual(other.request(nothing).status, 200)
        many = [connections.connect(process.address("http"), timeout=PATIENCE) for _ in range(MANY)]
        for connection in many:
            connection.sendall(head + body[:-1])
        for connection in many:
            connection.sendall(body[-1:])
        self.assertEqual(other.request(nothing).status, 200)
        answered = sum(is_answered(connection) for connection in many)
        other.close()
        for connection in many:
            self.assertIn(status_of(connection), (200, 503))   # a request without memory gets "try later"
            connection.close()
        return answered < MANY

    def test_many_small_bodies_that_unfold(self):
        body = gzip.compress(field(15, bytes(SMALL_UNFOLDED_BYTES)))
        head = post_head(client.TRACES, len(body), f"Content-Type: {client.PROTOBUF}", "Content-Encoding: gzip")
        with profcol() as process:
            # The speed of the machine matters: if the loop decompresses them itself, one attempt in twenty passes.
            passed = sum(self.are_passed(process, head, body) for _ in range(ATTEMPTS))
            self.assertGreater(passed, ATTEMPTS / 4, "all of them went first")

    def test_stop_before_it_is_done(self):
        for kind in DEAR:
            with self.subTest(kind), profcol("--drain-timeout", "1ms") as process, upload(process, kind, BODY_BYTES // 4):
                process.stop(timeout=PATIENCE)

    def test_text_of_exporters(self):
        """Others are served while an exporter prints a request, and SIGTERM waits for it."""
        for name, exporter in TEXTS.items():
            with self.subTest(name), profcol("--drain-timeout", "10m", exporter=exporter) as process, \
                    upload_traces(process) as first, upload_traces(process) as dear:
                # More than fit in the time that reading takes, so that the text is printed meanwhile.
                self.check_others(process, dear, 4 * OTHERS)
                process.signal(signal.SIGTERM)
                self.assertEqual((status_of(first), status_of(dear)), (200, 200))
                process.stop(timeout=PATIENCE)

    def upload_keys(self, process):
        """A connection on which traces were sent whose resource is expensive to edit."""
        keys = [field(1, field(1, b"a" * 60 + f"b{number}".encode())) for number in range(PATTERN_KEYS)]
        body = field(1, field(1, b"".join(keys)) + field(2, field(2, field(2, b"\1" * 8))))
        connection = connections.connect(process.address("http"), timeout=PATIENCE)
        connection.sendall(post_head("/v1/traces", len(body), f"Content-Type: {client.PROTOBUF}") + body)
        return connection

    def test_patterns_of_a_processor(self):
        """Others are served while a job edits a request, which a drain waits for."""
        with profcol("--drain-timeout", "10m", config=PATTERN) as process, \
                self.upload_keys(process) as first, self.upload_keys(process) as second:
            self.check_others(process, first)
            process.signal(signal.SIGTERM)
            process.wait_for_log("Starting shutdown", timeout=PATIENCE)
            self.assertFalse(is_answered(first), "the dear request was answered first")
            self.assertEqual((status_of(first), status_of(second)), (200, 200))
            process.stop(timeout=PATIENCE)

    def test_patterns_are_not_done_at_the_stop(self):
        with profcol("--drain-timeout", "1ms", config=PATTERN) as process, \
                self.upload_keys(process), self.upload_keys(process):
            process.stop(timeout=PATIENCE)

    def test_text_is_not_done_at_the_stop(self):
        for name, exporter in TEXTS.items():
            with self.subTest(name), profcol("--drain-timeout", "1ms", exporter=exporter) as process, \
                    upload_traces(process), upload_traces(process):
                process.stop(timeout=PATIENCE)

    def test_clients_that_leave(self):
        """There are more requests than jobs that run at once: some have begun when their clients leave, some never
        begin."""
        for kind in DEAR:
            with self.subTest(kind), profcol() as process:
                uploads = [upload(process, kind, BODY_BYTES // 2) for _ in range(4)]
                for connection in uploads:
                    close_hard(connection)
                server.wait_until(
                    lambda process=process: (process.metric("profcol_server_connections_closed", reason="reset") or 0) == 4,
                    timeout=PATIENCE, what="connections that broke")
                server.wait_until(lambda process=process: process.metric("profcol_budget_used_bytes") < 1 << 20,
                                  timeout=PATIENCE, what="the memory of what was given up")
                # The first one may have finished before its client left.
                self.assertLess(process.metric("otelcol_receiver_accepted_profile_samples", transport="http") or 0, 4)

    def test_deadline_passes_meanwhile(self):
        body = connections.grpc_frame(empty_blocks(MESSAGE_BYTES), compressed=True)
        with profcol() as process:
            other = connections.Http2(process.address("grpc"), timeout=PATIENCE)
            for timeout in ("1m", "60m", "100m"):
                answer = other.request(
                    [(":method", "POST"), (":scheme", "http"), (":path", client.TRACE_SERVICE), (":authority", "a"),
                     ("content-type", "application/grpc"), ("te", "trailers"), ("grpc-encoding", "gzip"),
                     ("grpc-timeout", timeout)], body)
                self.assertEqual(answer.grpc_status, DEADLINE_EXCEEDED)
            other.close()

    def test_large_requests_of_every_kind(self):
        """Requests that a job reads are processed like those that the loop reads, also by exporters that print them."""
        for name, exporter in {"nop": "nop: {}", **TEXTS}.items():
            with self.subTest(name), profcol(exporter=exporter) as process:
                self.check_large_requests(process)

    def check_large_requests(self, process):
        """Send large requests, valid and refused ones, over every protocol."""
        traces = make.traces([{"span_id": f"{1:016x}", "trace_id": f"{1:032x}", "name": "x" * 3_000_000}])
        profiles = make.profiles([{"values": [1], "attributes": {"key": "x" * 3_000_000}}])
        span = {"spanId": f"{1:016x}", "traceId": f"{1:032x}", "name": "x" * 400_000}
        json_traces = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
        labels = field(1, field(1, b"__name__") + field(2, b"process_cpu"))
        push = field(1, labels + field(2, field(1, pprof(400_000))))
        bad = b"\x0a" * 400_000
        for protocol in ("grpc", "http"):
            for request in (traces, profiles):
                answer = client.export(protocol, process.address(protocol), request)
                self.assertTrue(client.succeeded(answer), (protocol, answer))
        answer = client.post(process.address("http"), "/v1/traces", json_traces, content_type="application/json")
        self.assertEqual(answer.status, 200, answer)
        for name, path, body, content_type, status, refused in (
                ("pprof", "/v1/pprof", pprof(400_000), "application/octet-stream", 204, 400),
                ("pyroscope", "/ingest?name=a&format=pprof", pprof(400_000), "application/octet-stream", 200, 422),
                ("pyroscope", "/push.v1.PusherService/Push", push, "application/proto", 200, 400)):
            with self.subTest(path):
                answer = client.post(process.address(name), path, body, content_type=content_type)
                self.assertEqual(answer.status, status, answer)
                answer = client.post(process.address(name), path, bad, content_type=content_type)
                self.assertEqual(answer.status, refused, answer)
        self.assertEqual(process.metric("otelcol_receiver_accepted_spans"), 3)
        self.assertEqual(process.metric("otelcol_receiver_accepted_profile_samples"), 5)
        self.assertEqual(process.metric("profcol_receiver_invalid_requests"), 3)

    def test_turns_are_measured(self):
        with profcol() as process:
            count = process.metric("profcol_loop_lag_seconds_count")
            client.post(process.address("http"), "/v1/traces")
            self.assertGreater(process.metric("profcol_loop_lag_seconds_count"), count)


if __name__ == "__main__":
    testing.main()
