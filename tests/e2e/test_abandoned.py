"""A request whose client has given up is not delivered: the client sends it again, so the backend would get it twice.

A client gives up by its deadline (grpc-timeout), by a reset of the stream, or by the end of the connection. With no
queue and no backend, nothing has accepted the data yet. A client that only ended its side of the connection still waits
for its answer.
"""

import os
import pathlib
import socket
import struct
import sys
import unittest

import grpc

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, client, connections, make, server, testing
from tests.oracle.background import Background
from tests.oracle.pipelines import Held, names_in, span

INTERNAL, DEADLINE_EXCEEDED, UNIMPLEMENTED, UNAVAILABLE = 13, 4, 12, 14
AWAY = backend.Answer(status=503, grpc_status=UNAVAILABLE, message="away")
NOWHERE = "/nowhere.Service/Method"
FRESH = 99                              # the span of a client that waits
PPROF = pathlib.Path(os.environ["PROFCOL_SOURCE"], "tests", "data", "pprof", "go-goroutine.pb.gz")

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:@grpc@"}
      http: {endpoint: "127.0.0.1:@http@"}
  pyroscope: {endpoint: "127.0.0.1:@pyroscope@"}
  pprof: {push: {endpoint: "127.0.0.1:@pprof@"}}
exporters:
  otlp_grpc:
    endpoint: "TARGET"
    tls: {insecure: true}
    retry_on_failure: {initial_interval: 50ms, max_interval: 100ms}
    QUEUE
service:
  pipelines:
    traces: {receivers: [otlp], exporters: [otlp_grpc]}
    profiles: {receivers: [otlp, pyroscope, pprof], exporters: [otlp_grpc]}
"""
NO_QUEUE = "sending_queue: {enabled: false}"
WAITING_QUEUE = "sending_queue: {wait_for_result: true}"


def profcol(target, queue=NO_QUEUE):
    """Return a process that delivers to a backend."""
    return server.Profcol(CONFIG.replace("TARGET", target.address).replace("QUEUE", queue), arguments=["--workers", "1"])


def span_bytes(number):
    """Return a request with that span as bytes."""
    return span(number).SerializeToString()


def names(requests):
    """Return the sorted names of the spans of these requests."""
    return names_in(request.form() for request in requests)


def post_head(path, body, content_type=client.PROTOBUF, version="1.1"):
    """Return the head of an HTTP/1 request as bytes."""
    return (f"POST {path} HTTP/{version}\r\nHost: a\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
            .encode() + body)


def read_all(connection):
    """Return all bytes until the end of the connection."""
    out = b""
    while part := connection.recv(65536):
        out += part
    return out


def profiles_of(message):
    """Return all profiles of a request."""
    return [profile for resource in message.resource_profiles for scope in resource.scope_profiles
            for profile in scope.profiles]


def close_hard(connection):
    """Close a socket with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class AbandonedTest(unittest.TestCase):
    """Tests with an exporter without a queue, and a backend that is down at first."""

    def wait_for_attempts(self, target, count):
        """Wait until `count` requests were tried once each."""
        target.wait_for(lambda: len(set(names(target.of()))) >= count, what="attempts")

    def wait_until_closed(self, process, count):
        """Wait until profcol has noticed the end of `count` connections."""
        server.wait_until(lambda: (process.metric("profcol_server_connections_closed", reason="reset") or 0) >= count,
                          what="connections that broke")

    def check_nothing_arrives(self, target, process, count, counter="otelcol_receiver_refused_spans"):
        """Check that profcol stops sending abandoned requests, and that the backend then gets only requests with
        waiting clients. The backend comes back last, because an attempt that began before its client gave up may still
        reach it.
        """
        server.wait_until(lambda: process.metric(counter) == count, what="the end of what was given up")
        target.default = backend.Answer()
        answer = client.export("grpc", process.address("grpc"), span(FRESH))
        self.assertTrue(client.succeeded(answer), answer)
        self.assertEqual(names(target.accepted("traces")), [f"span {FRESH}"])
        self.assertEqual(target.accepted("profiles"), [])
        self.assertEqual(process.metric("otelcol_receiver_accepted_spans", transport="grpc"), 1)

    def test_timed_out_calls(self):
        for queue in (NO_QUEUE, WAITING_QUEUE):
            with self.subTest(queue), backend.Backend("grpc", default=AWAY) as target, profcol(target, queue) as process:
                calls = [Background(client.export, "grpc", process.address("grpc"), span(number), headers=[("grpc-timeout", "1S")])
                         for number in range(3)]
                for call in calls:
                    answer = call.result()
                    self.assertEqual((answer.status, answer.grpc_status, answer.grpc_message),
                                     (200, DEADLINE_EXCEEDED, "context deadline exceeded"))
                self.wait_for_attempts(target, 3)
                self.check_nothing_arrives(target, process, 3)

    def test_timed_out_calls_of_a_real_client(self):
        with backend.Backend("grpc", default=AWAY) as target, profcol(target) as process:
            with grpc.insecure_channel(process.address("grpc")) as channel:
                grpc.channel_ready_future(channel).result(30 * server.PATIENCE)    # to connect is not part of the calls' time
                export = channel.unary_unary(client.TRACE_SERVICE)
                for call in [export.future(span_bytes(number), timeout=1) for number in range(3)]:
                    self.assertEqual(call.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
                with self.assertRaises(grpc.RpcError) as caught:    # sent after the resets
                    channel.unary_unary(NOWHERE)(b"")
                self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
            self.check_nothing_arrives(target, process, 3)

    def test_reset_streams(self):
        with backend.Backend("grpc", default=AWAY) as target, profcol(target) as process:
            address = process.address("grpc")
            connection = connections.Http2(address)
            streams = [connection.start(client.grpc_fields(address), connections.grpc_frame(span_bytes(number)))
                       for number in range(3)]
            self.wait_for_attempts(target, 3)
            for stream in streams:
                connection.h2.reset_stream(stream, error_code=8)
            answer = client.call(address, NOWHERE, connection=connection)   # sent after the resets
            self.assertEqual(answer.grpc_status, UNIMPLEMENTED)
            self.check_nothing_arrives(target, process, 3)
            connection.close()

    def test_closed_connections(self):
        """Close HTTP/1.1 and HTTP/2 connections with a FIN, like programs that time out, and with a RST."""
        for protocol in ("http", "grpc"):
            for close in (socket.socket.close, close_hard):
                with self.subTest(protocol, close=close.__name__), backend.Backend("grpc", default=AWAY) as target, \
                        profcol(target) as process:
                    open_ones = [self.open_request(protocol, process.address(protocol), number) for number in range(3)]
                    self.wait_for_attempts(target, 3)
                    for connection in open_ones:
                        close(connection)
                    self.wait_until_closed(process, 3)
                    self.check_nothing_arrives(target, process, 3)

    def open_request(self, protocol, address, number):
        """Return a socket on which a request waits for its answer."""
        if protocol == "grpc":
            connection = connections.Http2(address)
            connection.start(client.grpc_fields(address), connections.grpc_frame(span_bytes(number)))
            return connection.socket
        connection = connections.connect(address)
        connection.sendall(post_head(client.TRACES, span_bytes(number)))
        return connection

    def wait_for_more_attempts(self, target):
        """Wait for some more attempts at the same requests."""
        seen = len(target.of())
        target.wait_for(lambda: len(target.of()) > seen + 2, what="more attempts")

    def test_half_closed_connection(self):
        """A client that has only ended its side gets its answer, however long that takes."""
        with backend.Backend("grpc", default=AWAY) as target, profcol(target) as process, \
                connections.connect(process.address("http")) as connection:
            connection.sendall(post_head(client.TRACES, span_bytes(1)))
            self.wait_for_attempts(target, 1)
            connection.shutdown(socket.SHUT_WR)
            self.wait_for_more_attempts(target)
            target.default = backend.Answer()
            answer = read_all(connection)
            self.assertTrue(answer.startswith(b"HTTP/1.1 200 OK\r\n"), answer)
            self.assertEqual(names(target.accepted()), ["span 1"])

    def test_half_closed_behind_further_requests(self):
        """The end of input follows a request that is not read before the first one is answered."""
        with backend.Backend("grpc", default=AWAY) as target, profcol(target) as process, \
                connections.connect(process.address("http")) as connection:
            large = make.traces([{"span_id": f"{3:016x}", "trace_id": f"{1:032x}", "name": "x" * 100_000}])
            connection.sendall(post_head(client.TRACES, span_bytes(1)))
            self.wait_for_attempts(target, 1)
            second = post_head(client.TRACES, large.SerializeToString())
            connection.sendall(second[:20_000])    # more than is read while the first one waits
            self.wait_for_more_attempts(target)
            connection.sendall(second[20_000:])
            connection.shutdown(socket.SHUT_WR)
            self.wait_for_more_attempts(target)
            target.default = backend.Answer()
            self.assertEqual(read_all(connection).count(b"HTTP/1.1 200 OK\r\n"), 2)
            self.assertEqual(len(names(target.accepted())), 2)

    def test_half_closed_connection_of_http_2(self):
        with backend.Backend("grpc", default=AWAY) as target, profcol(target) as process:
            address = process.address("grpc")
            connection = connections.Http2(address)
            stream = connection.start(client.grpc_fields(address), connections.grpc_frame(span_bytes(1)))
            self.wait_for_attempts(target, 1)
            connection.socket.shutdown(socket.SHUT_WR)
            connection._flush = lambda: None    # it sends no more
            self.wait_for_more_attempts(target)
            target.default = backend.Answer()
            answer = connection.finish(stream)
            self.assertTrue(client.succeeded(answer), answer)
            self.assertEqual(read_all(connection.socket), b"")
            self.assertEqual(names(target.accepted()), ["span 1"])
            connection.close()

    def test_half_closed_connection_of_http_1_0(self):
        with backend.Backend("grpc", default=AWAY) as target, profcol(target) as process, \
                connections.connect(process.address("http")) as connection:
            connection.sendall(post_head(client.TRACES, span_bytes(1), version="1.0"))
            self.wait_for_attempts(target, 1)
            connection.shutdown(socket.SHUT_WR)
            target.default = backend.Answer()
            self.assertTrue(read_all(connection).startswith(b"HTTP/1.1 200 OK\r\n"))
            self.assertEqual(names(target.accepted()), ["span 1"])

    def test_other_receivers(self):
        """Post to the ports of the receivers pyroscope and pprof."""
        folded = "/ingest?name=app&from=1700000000&until=1700000010&format=folded"
        cases = [("pyroscope", post_head(folded, b"main;work 3\nmain;rest 4\n", "text/plain"), 2),
                 ("pprof", post_head("/v1/pprof", PPROF.read_bytes(), "application/octet-stream"), None)]
        for name, request, samples in cases:
            with self.subTest(name), backend.Backend("grpc", default=AWAY) as target, profcol(target) as process:
                for _ in range(3):
                    with connections.connect(process.address(name)) as connection:
                        known = len(target.of())
                        connection.sendall(request)
                        target.wait_for(lambda known=known: len(target.of()) > known, what="an attempt")
                self.wait_until_closed(process, 3)
                samples = samples or sum(len(profile.samples) for profile in profiles_of(target.of()[0].message()))
                self.check_nothing_arrives(target, process, 3 * samples, "otelcol_receiver_refused_profile_samples")

    def test_blocked_requests(self):
        """A request that waits for room in a full queue is not accepted yet."""
        queue = "sending_queue: {queue_size: 1, num_consumers: 1, block_on_overflow: true}"
        with backend.Backend("grpc", default=AWAY) as target, profcol(target, queue) as process:
            self.assertTrue(client.succeeded(client.export("grpc", process.address("grpc"), span(0))))
            for number in range(1, 4):
                answer = client.export("grpc", process.address("grpc"), span(number), headers=[("grpc-timeout", "100m")])
                self.assertEqual(answer.grpc_status, DEADLINE_EXCEEDED)
            target.default = backend.Answer()
            answer = client.export("grpc", process.address("grpc"), span(FRESH))
            self.assertTrue(client.succeeded(answer), answer)
            target.wait_for(lambda: len(target.accepted()) >= 2, what="what was taken")
            server.wait_until(lambda: process.metric("otelcol_receiver_refused_spans") == 3, what="what was given up")
            self.assertEqual(names(target.accepted()), ["span 0", f"span {FRESH}"])


class TakenTest(unittest.TestCase):
    """A request that was accepted is delivered, even if its client leaves."""

    def test_a_queue_has_it(self):
        """A deadline of the client does not matter, because the answer was sent long before."""
        queue = "sending_queue: {queue_size: 100}"
        with backend.Backend("grpc", default=AWAY) as target, profcol(target, queue) as process:
            for number in range(3):
                answer = client.export("grpc", process.address("grpc"), span(number), headers=[("grpc-timeout", "10S")])
                self.assertTrue(client.succeeded(answer), answer)
            self.assertEqual(process.metric("otelcol_receiver_accepted_spans"), 3)
            target.default = backend.Answer()
            target.wait_for_items("traces", 3)
            self.assertEqual(names(target.accepted()), ["span 0", "span 1", "span 2"])

    def test_the_backend_has_it(self):
        """A running attempt is not aborted at the deadline, because the backend may have the data."""
        with Held("grpc") as target, profcol(target) as process:
            target.hold()
            answer = client.export("grpc", process.address("grpc"), span(1), headers=[("grpc-timeout", "1S")])
            self.assertEqual(answer.grpc_status, DEADLINE_EXCEEDED)
            target.release()
            server.wait_until(lambda: process.metric("otelcol_receiver_accepted_spans") == 1, what="the backend's answer")
            self.assertEqual(len(target.of()), 1)


class TimeoutSyntaxTest(unittest.TestCase):
    """Compare parsing of grpc-timeout with gRPC-Go."""

    def test_syntax(self):
        cases = [
            (["1H"], 0, ""), (["99999999H"], 0, ""), (["00000005S"], 0, ""), (["1n", "1H"], 0, ""),
            (["0S"], DEADLINE_EXCEEDED, "context deadline exceeded"),
            ([""], INTERNAL, 'malformed grpc-timeout: transport: timeout string is too short: ""'),
            (["5"], INTERNAL, 'malformed grpc-timeout: transport: timeout string is too short: "5"'),
            (["100"], INTERNAL, 'malformed grpc-timeout: transport: timeout unit is not recognized: "100"'),
            (["123456789S"], INTERNAL, 'malformed grpc-timeout: transport: timeout string is too long: "123456789S"'),
            (["1 S"], INTERNAL, 'malformed grpc-timeout: strconv.ParseUint: parsing "1 ": invalid syntax'),
            (["+1S"], INTERNAL, 'malformed grpc-timeout: strconv.ParseUint: parsing "+1": invalid syntax'),
            (["1H", "1"], INTERNAL, 'malformed grpc-timeout: transport: timeout string is too short: "1"'),
        ]
        with backend.Backend("grpc") as target, profcol(target) as process:
            for values, code, message in cases:
                with self.subTest(values=values):
                    answer = client.export("grpc", process.address("grpc"), span(1),
                                           headers=[("grpc-timeout", value) for value in values])
                    self.assertEqual((answer.status, answer.grpc_status, answer.grpc_message),
                                     (400 if code == INTERNAL else 200, code, message))
            self.assertEqual(len(target.of()), sum(code == 0 for _, code, _ in cases))


if __name__ == "__main__":
    testing.main()
