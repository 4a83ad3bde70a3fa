"""The answers of the OTLP receiver over gRPC: byte by byte on the connection, and to gRPC's own client."""

import os
import sys
import unittest

import grpc
import h2.errors

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from tests.oracle import client, connections, decode, make, server, testing

SPAN, TRACE = "00000000000000a1", "0" * 30 + "c3"
ONE_SPAN = make.traces([{"span_id": SPAN, "trace_id": TRACE, "name": "GET /"}])
TRACES = ONE_SPAN.SerializeToString()
PROFILES = make.profiles([{"values": [5], "attributes": {"thread.name": "main"}}]).SerializeToString()
SUCCESS = b"\x0a\x00"
ENCODINGS = ("gzip", "zstd", "snappy")
BOMB_BYTES = 64 << 20
RSS_GROWTH_MAX = 48 << 20
INVALID, UNIMPLEMENTED, INTERNAL, EXHAUSTED = 3, 12, 13, 8

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:@grpc@"}
      http: {endpoint: "127.0.0.1:@http@"}
  otlp/traces:
    protocols:
      grpc: {endpoint: "127.0.0.1:@traces@", max_recv_msg_size_mib: 1}
exporters: {nop: }
service:
  pipelines:
    traces: {receivers: [otlp, otlp/traces], exporters: [nop]}
    profiles: {receivers: [otlp], exporters: [nop]}
"""


def gzip_flag(encoding):
    """Return the header that names a compression."""
    return [("grpc-encoding", encoding)]


class GrpcTest(unittest.TestCase):
    """One process serves all cases; none may affect the next."""

    @classmethod
    def setUpClass(cls):
        cls.profcol = server.Profcol(CONFIG, arguments=["--workers", "2"]).start()
        cls.address = cls.profcol.address("grpc")

    @classmethod
    def tearDownClass(cls):
        cls.profcol.__exit__(None, None, None)

    def accepted(self, signal="traces"):
        """Return the counter of accepted items."""
        name = "spans" if signal == "traces" else "profile_samples"
        return self.profcol.metric(f"otelcol_receiver_accepted_{name}", receiver="otlp", transport="grpc") or 0

    def call(self, method=client.TRACE_SERVICE, message=TRACES, **options):
        return client.call(options.pop("address", self.address), method, message, **options)

    def check_ok(self, answer):
        """Check for status OK and an empty response message."""
        self.assertEqual((answer.status, answer.reset, answer.grpc_status), (200, None, 0), answer)
        self.assertTrue(answer.header("content-type").startswith("application/grpc"))
        self.assertEqual(answer.messages(), [(0, SUCCESS)])

    def check_refused(self, answer, code, text=""):
        """Check for a gRPC status of refusal, without a message."""
        self.assertEqual(answer.status, 200, answer)
        self.assertIn(answer.reset, (None, h2.errors.ErrorCodes.NO_ERROR), answer)     # a reset says: do not send the rest
        self.assertEqual(answer.grpc_status, code, answer.grpc_message)
        self.assertTrue(answer.header("content-type").startswith("application/grpc"))
        self.assertEqual(answer.body, b"")
        self.assertTrue(answer.grpc_message)
        self.assertIn(text, answer.grpc_message)
        return client.status(answer)

    # --- success

    def test_success(self):
        for signal, method, message in (("traces", client.TRACE_SERVICE, TRACES),
                                        ("profiles", client.PROFILES_SERVICE, PROFILES)):
            before = self.accepted(signal)
            for content_type in ("application/grpc", "application/grpc+proto", "application/grpc;x=y"):
                self.check_ok(self.call(method, message, content_type=content_type))
            for encoding in ENCODINGS:
                packed = decode.compress(message, encoding, framed=True)
                self.check_ok(self.call(method, packed, flag=1, headers=gzip_flag(encoding)))
            self.assertEqual(self.accepted(signal), before + 6)

    def test_nothing_in_it_is_fine_and_not_counted(self):
        before = self.accepted()
        for method in (client.TRACE_SERVICE, client.PROFILES_SERVICE):
            self.check_ok(self.call(method, b""))
        self.check_ok(self.call(message=make.traces([]).SerializeToString()))
        self.assertEqual(self.accepted(), before)

    def test_a_client_library(self):
        before = self.accepted()
        for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
            with grpc.insecure_channel(self.address, compression=compression) as channel:
                stub = trace_service_pb2_grpc.TraceServiceStub(channel)
                calls = [stub.Export.future(ONE_SPAN, timeout=20) for _ in range(50)]
                for one in calls:
                    self.assertEqual(one.result(), trace_service_pb2.ExportTraceServiceResponse(
                        partial_success=trace_service_pb2.ExportTracePartialSuccess()))
                with self.assertRaises(grpc.RpcError) as caught:
                    bad = make.traces([{"span_id": SPAN + "00", "trace_id": TRACE}])
                    stub.Export(bad, timeout=20)
                self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
                self.assertIn("spans[0].span_id", caught.exception.details())
        self.assertEqual(self.accepted(), before + 100)

    def test_calls_at_the_same_time_on_one_connection(self):
        before = self.accepted()
        connection = connections.Http2(self.address)
        headers = client.grpc_fields("x")
        streams = [connection.start(headers, connections.grpc_frame(TRACES)) for _ in range(40)]
        for stream in streams:
            self.check_ok(connection.finish(stream))
        connection.close()
        self.assertEqual(self.accepted(), before + 40)

    # --- refusals

    def test_unknown_services_and_methods(self):
        for method, text in (("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
                              "unknown service opentelemetry.proto.collector.metrics.v1.MetricsService"),
                             ("/opentelemetry.proto.collector.logs.v1.LogsService/Export", "unknown service"),
                             ("/grpc.health.v1.Health/Check", "unknown service grpc.health.v1.Health"),
                             (client.TRACE_SERVICE[:-6] + "Import", "unknown method Import for service"),
                             (client.TRACE_SERVICE + "s", "unknown method Exports for service"),
                             ("/", ""), ("/x", ""), ("/x/", ""), ("//", "")):
            with self.subTest(method):
                self.check_refused(self.call(method), UNIMPLEMENTED, text)
        answer = self.call(client.PROFILES_SERVICE, PROFILES, address=self.profcol.address("traces"))
        self.check_refused(answer, UNIMPLEMENTED, "unknown service")

    def test_unknown_encodings(self):
        for encoding in ("deflate", "br", "lz4"):
            with self.subTest(encoding):
                answer = self.call(message=decode.compress(TRACES, "gzip"), flag=1, headers=gzip_flag(encoding))
                self.check_refused(answer, UNIMPLEMENTED,
                                   f'grpc: Decompressor is not installed for grpc-encoding "{encoding}"')

    def test_the_compressed_flag(self):
        # An encoding may be named but not used.
        for encoding in (*ENCODINGS, "identity"):
            self.check_ok(self.call(flag=0, headers=gzip_flag(encoding)))
        for headers in ([], gzip_flag("identity")):
            self.check_refused(self.call(flag=1, headers=headers), INTERNAL, "compressed flag set with identity or empty encoding")
        for flag in (2, 128, 255):
            framed = bytes([flag]) + connections.grpc_frame(TRACES)[1:]
            self.check_refused(self.call(framed=framed), INTERNAL)

    def test_framing(self):
        good = connections.grpc_frame(TRACES)
        for what, framed in (("no message", b""), ("half a prefix", good[:3]), ("half a message", good[:-4]),
                             ("more than one", good * 2), ("more than it says", good + b"x")):
            with self.subTest(what):
                self.check_refused(self.call(framed=framed), INTERNAL)

    def test_malformed(self):
        for message in (b"\xff", b"\x0a\xff", b"\x0b", TRACES[:-1]):
            with self.subTest(message[-8:]):
                self.assertIn(self.call(message=message).grpc_status, (INVALID, INTERNAL))
        found = self.check_refused(self.call(client.PROFILES_SERVICE, make.profiles(
            [{"values": [5], "link": (SPAN, TRACE)}]).SerializeToString().replace(b"\x12\x08" + bytes.fromhex(SPAN),
                                                                                b"\x1a\x08" + bytes.fromhex(SPAN))
                                             + b"\xff"), INVALID)
        self.assertTrue(found.message)

    def test_places_are_named(self):
        message = make.profiles([{"values": [5]}])
        profile = message.resource_profiles[0].scope_profiles[0].profiles[0]
        profile.samples[0].link_index = 9
        self.check_refused(self.call(client.PROFILES_SERVICE, message.SerializeToString()), INVALID,
                           "resource_profiles[0].scope_profiles[0].profiles[0].samples[0].link_index")
        message = make.traces([{"span_id": SPAN, "trace_id": TRACE}] * 2)
        message.resource_spans[0].scope_spans[0].spans[1].trace_id = b"\1" * 15
        self.check_refused(self.call(message=message.SerializeToString()), INVALID,
                           "resource_spans[0].scope_spans[0].spans[1].trace_id")

    def test_messages_that_are_not_ascii(self):
        """grpc-message is percent-encoded, so the header is valid for every request."""
        answer = self.call("/weird.\u00e9\u20ac%41.Service/Export")
        self.check_refused(answer, UNIMPLEMENTED, "weird.")
        self.assertTrue(answer.trailer("grpc-message").isascii())

    def test_profiles_version(self):
        name = "otlp-profiles-development-version"
        for values, fine in (((), True), (("1",), True), (("01",), False), (("1,1",), False), (("",), False),
                             (("2",), False), (("1", "1"), False)):
            with self.subTest(values):
                answer = self.call(client.PROFILES_SERVICE, PROFILES, headers=[(name, value) for value in values])
                if fine:
                    self.check_ok(answer)
                else:
                    self.check_refused(answer, INVALID, f"invalid or unsupported {name}")
        self.check_ok(self.call(headers=[(name, "2")]))

    def test_too_large(self):
        small, limit = self.profcol.address("traces"), 1 << 20
        answer = self.call(message=b"\0" * (limit + 1), address=small)
        found = self.check_refused(answer, EXHAUSTED, f"grpc: received message larger than max ({limit + 1} vs. {limit})")
        self.assertIsNone(found.retry_after, "sending it again would not help")
        for encoding in ENCODINGS:
            packed = decode.compress(b"\0" * (limit + 1), encoding, framed=True)
            answer = self.call(message=packed, flag=1, headers=gzip_flag(encoding), address=small)
            found = self.check_refused(answer, EXHAUSTED, "larger than max")
            self.assertIsNone(found.retry_after)
        # An announced length alone costs nothing.
        self.check_refused(self.call(framed=b"\0\xff\xff\xff\xff" + b"x" * 100), EXHAUSTED)

    def test_bombs(self):
        self.check_ok(self.call())
        before = self.profcol.rss_bytes()
        for encoding in ENCODINGS:
            packed = decode.compress(b"\0" * BOMB_BYTES, encoding, framed=True)
            with self.subTest(encoding, size=len(packed)):
                for _ in range(3):
                    answer = self.call(message=packed, flag=1, headers=gzip_flag(encoding))
                    self.check_refused(answer, EXHAUSTED)
        if not os.environ.get("PROFCOL_SANITIZER"):
            self.assertLess(self.profcol.rss_bytes() - before, RSS_GROWTH_MAX)

    def test_too_dense(self):
        packed = decode.compress(b"\0" * (3 << 20), "zstd", framed=True)
        answer = self.call(message=packed, flag=1, headers=gzip_flag("zstd"))
        found = self.check_refused(answer, EXHAUSTED, "1032 times the compressed size")
        self.assertIsNone(found.retry_after, "sending it again would not help")

    def test_corrupt_compression(self):
        for encoding in ENCODINGS:
            good = decode.compress(TRACES * 30, encoding, framed=True)
            for what, packed in (("noise", os.urandom(200)), ("cut", good[:-3]), ("empty", b"")):
                with self.subTest(encoding, what=what):
                    answer = self.call(message=packed, flag=1, headers=gzip_flag(encoding))
                    if what == "empty" and answer.grpc_status == 0:
                        continue
                    self.check_refused(answer, INTERNAL)

    # --- the connection survives

    def test_a_bad_call_does_not_hurt_the_next(self):
        before = self.accepted()
        connection = connections.Http2(self.address)
        for _ in range(5):
            for options in ({"message": b"\xff"}, {"flag": 1}, {"method": "/x/y"}, {"framed": b"\0\0"}):
                answer = self.call(connection=connection, **options)
                self.assertNotEqual(answer.grpc_status, 0)
            self.check_ok(self.call(connection=connection))
        connection.close()
        self.assertEqual(self.accepted(), before + 5)
        self.assertGreater(self.profcol.metric("profcol_receiver_invalid_requests", transport="grpc"), 0)

    def test_what_is_not_grpc(self):
        """Plain HTTP at the gRPC listener and gRPC at the plain one get an answer and do no harm."""
        try:
            answer = client.post(self.address, client.TRACES, TRACES)
            self.assertIn(answer.status, (400, 404, 415))
        except OSError:
            pass
        self.assertEqual(client.post_h2c(self.address, client.TRACES, TRACES).status, 415)
        answer = self.call(address=self.profcol.address("http"))
        self.assertIn(answer.status, (404, 415))
        self.check_ok(self.call())

    def test_a_client_that_gives_up(self):
        connection = connections.Http2(self.address)
        headers = client.grpc_fields("x")
        for _ in range(20):
            stream = connection.h2.get_next_available_stream_id()
            connection.h2.send_headers(stream, headers)
            connection.h2.send_data(stream, connections.grpc_frame(TRACES)[:20])
            connection.h2.reset_stream(stream, 8)
        connection._flush()
        self.check_ok(self.call(connection=connection))
        connection.close()
        half = connections.Http2(self.address)
        stream = half.h2.get_next_available_stream_id()
        half.h2.send_headers(stream, headers)
        half._flush()
        half.close()
        self.check_ok(self.call())


if __name__ == "__main__":
    testing.main()
