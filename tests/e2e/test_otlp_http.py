"""The answers of the OTLP receiver over HTTP to valid, invalid and hostile requests. The cases are the Collector's
behaviour, with two deliberate differences: the answer to a body above the limit is 413, as OTLP says, and cleartext
HTTP/2 is served on the same listener as HTTP/1.1.
"""

import json
import os
import sys
import unittest
import zlib

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import canonical, client, connections, decode, make, server, testing
from tests.oracle.wire import put_bytes as field

SPAN, TRACE = "00000000000000a1", "0" * 30 + "c3"
ONE_SPAN = make.traces([{"span_id": SPAN, "trace_id": TRACE, "name": "GET /"}])
ONE_SAMPLE = make.profiles([{"values": [5], "attributes": {"thread.name": "main"}}])
TRACES = ONE_SPAN.SerializeToString()
PROFILES = ONE_SAMPLE.SerializeToString()
PROTOBUF_OK, JSON_OK = b"\x0a\x00", {"partialSuccess": {}}
ENCODINGS = ("gzip", "zstd", "zlib", "deflate", "snappy", "x-snappy-framed", "lz4")
BOMB_BYTES = 96 << 20
# An allocator keeps freed memory. A sanitizer keeps much more, so its memory is not checked.
RSS_GROWTH_MAX = 72 << 20

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:@grpc@"}
      http:
        endpoint: "127.0.0.1:@http@"
        response_headers: {X-Answered-By: profcol}
  otlp/small:
    protocols:
      http: {endpoint: "127.0.0.1:@small@", max_request_body_size: 65536, traces_url_path: spans/here}
  otlp/plain:
    protocols:
      http: {endpoint: "127.0.0.1:@plain@", compression_algorithms: ["", gzip]}
exporters: {nop: }
service:
  pipelines:
    traces: {receivers: [otlp, otlp/small], exporters: [nop]}
    traces/only: {receivers: [otlp/plain], exporters: [nop]}
    profiles: {receivers: [otlp, otlp/small], exporters: [nop]}
"""


def nested_value(depth, kind):
    """Return an encoded AnyValue of nested arrays or kvlists, built without recursion."""
    data = b"\x0a\x01x"
    for _ in range(depth):
        if kind == "array":
            data = field(5, field(1, data))
        else:
            data = field(6, field(1, field(2, data)))
    return data


def traces_with_value(value):
    """Return a request whose resource has one attribute with this encoded AnyValue."""
    pair = field(1, b"k") + field(2, value)
    return field(1, field(1, field(1, pair)) + field(2, field(2, field(2, bytes.fromhex(SPAN)))))


def json_traces(**span):
    """Return a JSON request of one span with these fields."""
    fields = {"traceId": TRACE, "spanId": SPAN, "name": "GET /", **span}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [fields]}]}]}


class HttpTest(unittest.TestCase):
    """One process serves all cases; none may affect the next."""

    @classmethod
    def setUpClass(cls):
        cls.profcol = server.Profcol(CONFIG, arguments=["--workers", "2"]).start()
        cls.address = cls.profcol.address("http")

    @classmethod
    def tearDownClass(cls):
        cls.profcol.__exit__(None, None, None)

    def accepted(self, signal="traces", receiver="otlp"):
        """Return the counter of accepted items."""
        name = "spans" if signal == "traces" else "profile_samples"
        return self.profcol.metric(f"otelcol_receiver_accepted_{name}", receiver=receiver, transport="http") or 0

    def post(self, path, body=b"", **options):
        return client.post(options.pop("address", self.address), path, body, **options)

    def check_refused(self, answer, status, code, text=None):
        """Check for a refusal whose body is a google.rpc.Status."""
        self.assertEqual(answer.status, status, answer.body[:300])
        found = client.status(answer)
        self.assertEqual(found.code, code)
        if text:
            self.assertIn(text, found.message)
        self.assertTrue(found.message)
        return found

    def check_text(self, answer, status, content_type, text):
        """Check for a refusal in plain text, with the words of the Collector's HTTP server."""
        self.assertEqual((answer.status, answer.header("content-type"), answer.body.decode()),
                         (status, content_type, text))

    # --- success

    def test_success(self):
        for signal, data, message in (("traces", TRACES, ONE_SPAN), ("profiles", PROFILES, ONE_SAMPLE)):
            path = client.PATH[signal]
            as_json = canonical.encode_json(message).encode()
            before = self.accepted(signal)
            answer = self.post(path, data)
            self.assertEqual((answer.status, answer.header("content-type"), answer.body),
                             (200, "application/x-protobuf", PROTOBUF_OK))
            self.assertEqual(answer.header("x-answered-by"), "profcol")
            for content_type in ("application/json", "application/json; charset=utf-8", "Application/JSON"):
                answer = self.post(path, as_json, content_type=content_type)
                self.assertEqual((answer.status, answer.header("content-type"), json.loads(answer.body)),
                                 (200, "application/json", JSON_OK))
            self.assertEqual(self.accepted(signal), before + 4)

    def test_nothing_in_it_is_fine_and_not_counted(self):
        before = self.accepted(), self.accepted("profiles")
        for path in (client.TRACES, client.PROFILES):
            self.assertEqual(self.post(path, b"").status, 200)
            for text in (b"{}", b"null", b" {} "):
                answer = self.post(path, text, content_type=client.JSON)
                self.assertEqual((answer.status, json.loads(answer.body)), (200, JSON_OK), text)
        self.assertEqual(self.post(client.TRACES, make.traces([]).SerializeToString()).status, 200)
        self.assertEqual(self.post(client.PROFILES, make.profiles([]).SerializeToString()).status, 200)
        self.assertEqual((self.accepted(), self.accepted("profiles")), before)

    def test_encodings(self):
        for encoding in ENCODINGS:
            with self.subTest(encoding):
                body = decode.compress(TRACES, encoding)
                self.assertEqual(self.post(client.TRACES, body, encoding=encoding).status, 200)
        framed = decode.compress(TRACES, "x-snappy-framed")
        self.assertEqual(self.post(client.TRACES, framed, encoding="snappy").status, 200, "told by its first bytes")

    def test_every_way_to_frame_a_body(self):
        connection = connections.Http1(self.address)
        head = client.http1_head("POST", client.TRACES, self.address, [
            ("content-type", client.PROTOBUF), ("transfer-encoding", "chunked")])
        half = len(TRACES) // 2
        chunks = b"".join(b"%X;ext=1\r\n%s\r\n" % (len(part), part) for part in (TRACES[:half], TRACES[half:]))
        self.assertEqual(connection.request(head, chunks + b"0\r\nTrailer: x\r\n\r\n").status, 200)
        self.assertEqual(client.post(self.address, client.TRACES, TRACES, connection=connection).status, 200)
        connection.close()

    def test_expect_100_continue(self):
        before = self.accepted()
        connection = connections.Http1(self.address)
        answer = client.post(self.address, client.TRACES, TRACES, expect=True, connection=connection)
        self.assertEqual(answer.status, 200)
        connection.close()
        # A request that is refused because of its head gets the refusal before its body is requested.
        big = b"\0" * 70_000
        for address, path, status in ((self.address, "/nowhere", 404), (self.profcol.address("small"), "/spans/here", 413)):
            answer = client.post(address, path, big, expect=True)
            self.assertEqual(answer.status, status)
        self.assertEqual(self.accepted(), before + 1)

    def test_cleartext_http2_on_the_same_listener(self):
        before = self.accepted()
        both = connections.Http2(self.address)
        old = connections.Http1(self.address)
        for _ in range(3):
            answer = client.post_h2c(self.address, client.TRACES, TRACES, connection=both)
            self.assertEqual((answer.status, answer.body), (200, PROTOBUF_OK))
            self.assertEqual(client.post(self.address, client.TRACES, TRACES, connection=old).status, 200)
        answer = client.post_h2c(self.address, client.TRACES, b"\xff", connection=both)
        self.check_refused(answer, 400, 3)
        answer = client.post_h2c(self.address, client.TRACES, method="GET", connection=both)
        self.assertEqual(answer.status, 405)
        both.close()
        old.close()
        self.assertEqual(self.accepted(), before + 6)

    # --- refusals by the head

    def test_methods(self):
        text = "405 method not allowed, supported: [POST]"
        for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS"):
            for content_type in (client.PROTOBUF, None):
                answer = self.post(client.TRACES, method=method, content_type=content_type)
                self.check_text(answer, 405, "text/plain", text)
        connection = connections.connect(self.address)
        connection.sendall(client.http1_head("HEAD", client.TRACES, self.address, [("Connection", "close")]))
        answer = connection.makefile("rb").read()
        connection.close()
        self.assertTrue(answer.startswith(b"HTTP/1.1 405 "), answer)
        self.assertTrue(answer.endswith(b"\r\n\r\n"), answer)

    def test_media_types(self):
        text = "415 unsupported media type, supported: [application/json, application/x-protobuf]"
        for content_type in (None, "", "text/plain", "application/protobuf", "application/x-protobufs", "application/jsonx"):
            with self.subTest(content_type):
                self.check_text(self.post(client.TRACES, TRACES, content_type=content_type), 415, "text/plain", text)

    def test_paths(self):
        for path in ("/", "/v1/traces/", "/v1/profiles", "/v1/metrics", "/v1/logs", "/V1/traces"):
            with self.subTest(path):
                self.check_text(self.post(path, TRACES), 404, "text/plain; charset=utf-8", "404 page not found\n")
        self.assertEqual(self.post("/v1/traces?a=b", TRACES).status, 200)
        small = self.profcol.address("small")
        self.assertEqual(self.post("/spans/here", TRACES, address=small).status, 200)
        self.assertEqual(self.post(client.TRACES, TRACES, address=small).status, 404)
        plain = self.profcol.address("plain")
        self.assertEqual(self.post(client.TRACES, TRACES, address=plain).status, 200)
        self.assertEqual(self.post(client.PROFILES, PROFILES, address=plain).status, 404, "in no pipeline of profiles")

    def test_unclean_paths_are_redirected(self):
        before = self.accepted()
        for path, location in (("//v1/traces", client.TRACES), ("/v1/./traces?a=b", "/v1/traces?a=b"), ("//nowhere", "/nowhere")):
            for send in (client.post, client.post_h2c):
                with self.subTest(path, send=send.__name__):
                    answer = send(self.address, path, TRACES)
                    self.assertEqual((answer.status, answer.header("location"), answer.body), (307, location, b""))
        self.assertEqual(self.accepted(), before)

    def test_a_connection_survives_refusals(self):
        before = self.accepted()
        connection = connections.Http1(self.address)
        for path, kwargs, status in (("/nowhere", {}, 404), (client.TRACES, {"content_type": "text/plain"}, 415),
                                     (client.TRACES, {"headers": [("Content-Encoding", "br")]}, 400),
                                     (client.TRACES, {"method": "PUT"}, 405), (client.TRACES, {}, 200)):
            answer = client.post(self.address, path, TRACES, connection=connection, **kwargs)
            self.assertEqual((answer.status, answer.header("connection")), (status, None))
        connection.close()
        self.assertEqual(self.accepted(), before + 1)

    def test_profiles_version(self):
        name = "otlp-profiles-development-version"
        for values, fine in (((), True), (("1",), True), (("01",), False), (("1,1",), False), (("",), False),
                             (("2",), False), (("1", "1"), False), (("v1",), False)):
            for message in (PROFILES, b"\xff not decoded"):
                with self.subTest(values=values, message=message[:1]):
                    answer = self.post(client.PROFILES, message, headers=[(name, value) for value in values])
                    if fine:
                        self.assertEqual(answer.status, 200 if message is PROFILES else 400)
                    else:
                        self.check_refused(answer, 400, 3, f"invalid or unsupported {name}")
        self.assertEqual(self.post(client.TRACES, TRACES, headers=[(name, "7")]).status, 200, "says nothing of traces")
        answer = self.post(client.PROFILES, b"{}", content_type=client.JSON, headers=[(name, "2")])
        self.check_refused(answer, 400, 3)
        self.assertEqual(answer.header("content-type"), "application/json")

    # --- refusals by the body

    def test_malformed(self):
        for body in (b"\xff", b"\x0a\xff", b"\x0a\x7f1", b"\x0b", b"\0" * 9, TRACES[:-1], TRACES + b"\x0a"):
            with self.subTest(body[-12:]):
                self.check_refused(self.post(client.TRACES, body), 400, 3)
        for text in (b"", b" ", b"{", b"[]", b'"x"', b"1", b'{"resourceSpans":1}', b'{"resourceSpans":[1]}', b"{'a':1}",
                     b'\xef\xbb{}', b'{"resourceSpans":[{"resource":{"attributes":[{"key":"\xff"}]}}]}'):
            with self.subTest(text):
                answer = self.post(client.TRACES, text, content_type=client.JSON)
                self.check_refused(answer, 400, 3)
                self.assertEqual(answer.header("content-type"), "application/json")

    def test_unknown_encodings(self):
        for encoding in ("br", "identity", "gzip, gzip", "x"):
            with self.subTest(encoding):
                answer = self.post(client.TRACES, TRACES, encoding=encoding)
                self.check_refused(answer, 400, 3, f"unsupported Content-Encoding: {encoding}")
        plain = self.profcol.address("plain")
        self.assertEqual(self.post(client.TRACES, decode.compress(TRACES, "gzip"), address=plain, encoding="gzip").status, 200)
        answer = self.post(client.TRACES, decode.compress(TRACES, "zstd"), address=plain, encoding="zstd")
        self.check_refused(answer, 400, 3, "unsupported Content-Encoding: zstd")

    def test_corrupt_compression(self):
        for encoding in ENCODINGS:
            good = decode.compress(TRACES * 40, encoding)
            flipped = bytearray(good)
            flipped[len(good) // 2] ^= 0x55
            for what, body in (("noise", os.urandom(200)), ("cut", good[:-3]), ("empty", b""),
                               ("flipped", bytes(flipped))):
                with self.subTest(encoding, what=what):
                    answer = self.post(client.TRACES, body, encoding=encoding)
                    if what == "empty" and answer.status == 200:
                        continue    # in some formats, an empty stream is valid
                    self.check_refused(answer, 400, 3)
        packer = zlib.compressobj(wbits=-15)
        raw = packer.compress(TRACES) + packer.flush()
        self.check_refused(self.post(client.TRACES, raw, encoding="deflate"), 400, 3)

    def test_too_large(self):
        small, path, big = self.profcol.address("small"), "/spans/here", b"\0" * 65_537
        self.check_refused(self.post(path, big, address=small), 413, 3, "request body too large")
        answer = self.post(path, b" " * 65_537, address=small, content_type=client.JSON)
        self.check_refused(answer, 413, 3)
        self.assertEqual(answer.header("content-type"), "application/json")
        for encoding in ENCODINGS:
            with self.subTest(encoding):
                body = decode.compress(big, encoding)
                self.check_refused(self.post(path, body, address=small, encoding=encoding), 413, 3)
        head = client.http1_head("POST", path, small, [("content-type", client.PROTOBUF), ("transfer-encoding", "chunked")])
        connection = connections.Http1(small)
        try:
            answer = connection.request(head, b"%x\r\n%s\r\n0\r\n\r\n" % (len(big), big))
            self.check_refused(answer, 413, 3)
        finally:
            connection.close()
        # The body has exactly the maximum size.
        filler = TRACES + field(99, b"\0" * (65_536 - len(TRACES) - 5))
        self.assertEqual(len(filler), 65_536)
        self.assertEqual(self.post(path, filler, address=small).status, 200)

    def test_bombs(self):
        self.post(client.TRACES, TRACES)
        before = self.profcol.rss_bytes()
        for encoding in ENCODINGS:
            body = decode.compress(b"\0" * BOMB_BYTES, encoding)
            with self.subTest(encoding, size=len(body)):
                answers = [self.post(client.TRACES, body, encoding=encoding) for _ in range(2)]
                for answer in answers:
                    self.check_refused(answer, 413, 3)
        if not os.environ.get("PROFCOL_SANITIZER"):
            self.assertLess(self.profcol.rss_bytes() - before, RSS_GROWTH_MAX)
        self.assertEqual(self.post(client.TRACES, TRACES).status, 200)

    def test_too_dense(self):
        filler = lambda size: TRACES + field(99, b"\0" * (size - len(TRACES) - 5))
        self.assertEqual(self.post(client.TRACES, decode.compress(filler(1 << 20), "zstd"), encoding="zstd").status, 200)
        answer = self.post(client.TRACES, decode.compress(filler(3 << 20), "zstd"), encoding="zstd")
        self.check_refused(answer, 413, 3, "1032 times the compressed size")
        # A ratio that deflate can reach is never refused.
        self.assertEqual(self.post(client.TRACES, decode.compress(filler(3 << 20), "gzip"), encoding="gzip").status, 200)

    def test_depth_bombs(self):
        for kind in ("array", "kvlist"):
            self.assertEqual(self.post(client.TRACES, traces_with_value(nested_value(20, kind))).status, 200)
            for depth in (100, 5_000, 50_000):
                with self.subTest(kind, depth=depth):
                    answer = self.post(client.TRACES, traces_with_value(nested_value(depth, kind)))
                    self.check_refused(answer, 400, 3)
        groups = b"\x0b" * 100_000
        self.check_refused(self.post(client.TRACES, groups), 400, 3)
        for depth in (120, 5_000, 1_000_000):
            for opening, closing in (("[", "]"), ('{"a":', "}")):
                middle = "1" if opening != "[" else ""
                text = opening * depth + middle + closing * depth
                for body in (f'{{"unknown":{text}}}', text, opening * depth):
                    with self.subTest(json=opening, depth=depth, body=body[:12]):
                        answer = self.post(client.TRACES, body.encode(), content_type=client.JSON)
                        self.check_refused(answer, 400, 3)
            value = '{"arrayValue":{"values":[' * depth + "{}" + "]}}" * depth
            body = f'{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"k","value":{value}}}]}}}}]}}'
            if len(body) < 15_000_000:
                self.check_refused(self.post(client.TRACES, body.encode(), content_type=client.JSON), 400, 3)

    def test_many_empty_messages(self):
        """Each message has two bytes, but would be an object in memory."""
        before = self.profcol.rss_bytes()
        spans = field(1, field(2, b"\x12\x00" * 1_500_000))
        self.check_refused(self.post(client.TRACES, spans), 400, 3)
        self.assertIn(self.post(client.TRACES, b"\x0a\x00" * 4_000_000).status, (200, 400))
        if not os.environ.get("PROFCOL_SANITIZER"):
            self.assertLess(self.profcol.rss_bytes() - before, RSS_GROWTH_MAX)

    def test_bad_ids(self):
        for name, value, text in (("trace_id", b"\1" * 15, "trace_id"), ("trace_id", b"\1" * 17, "trace_id"),
                                  ("span_id", b"\1" * 7, "span_id"), ("span_id", b"\1" * 16, "span_id"),
                                  ("parent_span_id", b"\1", "parent_span_id")):
            message = make.traces([{"span_id": SPAN, "trace_id": TRACE}] * 3)
            setattr(message.resource_spans[0].scope_spans[0].spans[2], name, value)
            found = self.check_refused(self.post(client.TRACES, message.SerializeToString()), 400, 3, text)
            self.assertIn("resource_spans[0].scope_spans[0].spans[2]", found.message)
        message = make.profiles([{"values": [5]}])
        message.resource_profiles[0].scope_profiles[0].profiles[0].profile_id = b"\1" * 8
        self.check_refused(self.post(client.PROFILES, message.SerializeToString()), 400, 3, "profile_id")
        message = make.profiles([{"values": [5], "link": (SPAN, TRACE)}])
        message.dictionary.link_table[1].span_id = b"\1" * 9
        self.check_refused(self.post(client.PROFILES, message.SerializeToString()), 400, 3, "link_table[1].span_id")
        for key, value in (("traceId", TRACE[1:]), ("traceId", "x" * 32), ("spanId", SPAN + "0"), ("spanId", 7)):
            body = json.dumps(json_traces(**{key: value})).encode()
            self.check_refused(self.post(client.TRACES, body, content_type=client.JSON), 400, 3, key)

    def test_indices_out_of_range(self):
        """Test each index of the profiles dictionary and of samples. The answer names the field."""
        place = "resource_profiles[0].scope_profiles[0].profiles[0]"

        def sample(message):
            return message.resource_profiles[0].scope_profiles[0].profiles[0].samples[0]

        def profile(message):
            return message.resource_profiles[0].scope_profiles[0].profiles[0]

        cases = [
            (lambda m: setattr(sample(m), "link_index", 9), f"{place}.samples[0].link_index"),
            (lambda m: setattr(sample(m), "stack_index", 9), f"{place}.samples[0].stack_index"),
            (lambda m: setattr(sample(m), "stack_index", -1), f"{place}.samples[0].stack_index"),
            (lambda m: sample(m).attribute_indices.append(2**31 - 1), f"{place}.samples[0].attribute_indices"),
            (lambda m: profile(m).attribute_indices.append(99), f"{place}.attribute_indices"),
            (lambda m: setattr(profile(m).sample_type, "type_strindex", 999), f"{place}.sample_type.type_strindex"),
            (lambda m: setattr(profile(m).period_type, "unit_strindex", 999), f"{place}.period_type.unit_strindex"),
            (lambda m: setattr(m.dictionary.attribute_table[1], "key_strindex", 999), "attribute_table[1].key_strindex"),
            (lambda m: setattr(m.dictionary.function_table[1], "name_strindex", 999), "function_table[1].name_strindex"),
            (lambda m: setattr(m.dictionary.location_table[1], "mapping_index", 9), "location_table[1].mapping_index"),
            (lambda m: setattr(m.dictionary.location_table[1].lines[0], "function_index", 9),
             "location_table[1].lines[0].function_index"),
            (lambda m: m.dictionary.stack_table[1].location_indices.append(9), "stack_table[1].location_indices"),
        ]
        for change, text in cases:
            with self.subTest(text):
                builder = make.ProfilesBuilder()
                builder.sample(stack=builder.stack("leaf", "root"), values=[5], attributes={"thread.name": "main"})
                message = builder.request
                data = message.SerializeToString()
                self.assertEqual(self.post(client.PROFILES, data).status, 200)
                change(message)
                self.check_refused(self.post(client.PROFILES, message.SerializeToString()), 400, 3, text)
                answer = self.post(client.PROFILES, canonical.encode_json(message).encode(), content_type=client.JSON)
                self.check_refused(answer, 400, 3)

    # --- JSON

    def test_json_leniency(self):
        fine = [
            json_traces(), json_traces(traceId=TRACE.upper(), spanId=SPAN.upper()), json_traces(parentSpanId=""),
            json_traces(kind=2), json_traces(kind="SPAN_KIND_SERVER"), json_traces(startTimeUnixNano="1700000000000000000"),
            json_traces(startTimeUnixNano=1700000000000000000), json_traces(unknown={"deep": [1, {"er": None}]}),
            json_traces(attributes=[{"key": "a", "value": {"intValue": "7"}}, {"key": "b", "value": {"bytesValue": "AAE="}}]),
            {"resource_spans": [{"scope_spans": [{"spans": [{"trace_id": TRACE, "span_id": SPAN}]}]}]},
        ]
        before = self.accepted()
        for tree in fine:
            with self.subTest(tree=tree):
                answer = self.post(client.TRACES, json.dumps(tree).encode(), content_type=client.JSON)
                self.assertEqual((answer.status, json.loads(answer.body)), (200, JSON_OK))
        answer = self.post(client.TRACES, json.dumps(json_traces()).encode() + b" trailing", content_type=client.JSON)
        self.assertEqual(answer.status, 200)
        self.assertEqual(self.accepted(), before + len(fine) + 1)
        for tree in (json_traces(startTimeUnixNano=5.5), json_traces(startTimeUnixNano="12abc"), json_traces(name=7),
                     json_traces(startTimeUnixNano=-1), json_traces(kind="SPAN_KIND_NONSENSE"), json_traces(attributes={}),
                     json_traces(startTimeUnixNano="18446744073709551616")):
            with self.subTest(tree=tree):
                answer = self.post(client.TRACES, json.dumps(tree).encode(), content_type=client.JSON)
                self.check_refused(answer, 400, 3)

    # --- the connection survives

    def test_a_bad_request_does_not_hurt_the_next(self):
        before = self.accepted()
        connection = connections.Http1(self.address)
        for _ in range(3):
            for body, options in ((b"\xff", {}), (b"{", {"content_type": client.JSON}), (TRACES, {"encoding": "gzip"})):
                answer = client.post(self.address, client.TRACES, body, connection=connection, **options)
                self.assertEqual(answer.status, 400)
                if not connection.open:
                    connection = connections.Http1(self.address)
            answer = client.post(self.address, client.TRACES, TRACES, connection=connection)
            self.assertEqual(answer.status, 200)
        connection.close()
        self.assertEqual(self.accepted(), before + 3)
        self.assertGreater(self.profcol.metric("profcol_receiver_invalid_requests", transport="http"), 0)

    def test_requests_behind_each_other(self):
        """Pipelined requests are answered in order, once each."""
        before = self.accepted()
        head = client.http1_head("POST", client.TRACES, self.address, [
            ("content-type", client.PROTOBUF), ("content-length", str(len(TRACES)))])
        connection = connections.Http1(self.address)
        connection.socket.sendall((head + TRACES) * 5)
        answers = [connection.request(b"") for _ in range(5)]
        connection.close()
        self.assertEqual([answer.status for answer in answers], [200] * 5)
        self.assertEqual(self.accepted(), before + 5)

    def test_framing_that_smuggles(self):
        """Framing that two parsers could understand differently is refused, and the connection is closed."""
        host = f"Host: {self.address}\r\nContent-Type: {client.PROTOBUF}\r\n"
        start = f"POST {client.TRACES} HTTP/1.1\r\n{host}"
        for what, raw in (
                ("length and chunks", start + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
                ("two lengths", start + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc"),
                ("bad length", start + "Content-Length: -1\r\n\r\n"),
                ("bad length", start + "Content-Length: 3x\r\n\r\nabc"),
                ("bad chunk", start + "Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
                ("unknown coding", start + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
                ("folded header", start + "X: a\r\n b\r\nContent-Length: 0\r\n\r\n"),
                ("space before colon", start + "X : a\r\nContent-Length: 0\r\n\r\n"),
                ("no host", f"POST {client.TRACES} HTTP/1.1\r\nContent-Length: 0\r\n\r\n"),
                ("no version", f"POST {client.TRACES}\r\n\r\n"),
                ("not HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + "\0" * 40 + "\r\n\r\n")):
            with self.subTest(what, raw=raw[:200]):
                connection = connections.connect(self.address)
                connection.sendall(raw.encode("latin-1"))
                try:
                    answer = connection.makefile("rb").read()
                except ConnectionResetError:
                    answer = b""
                connection.close()
                if answer:
                    self.assertRegex(answer, rb"^HTTP/1\.[01] (400|411|501|505) ")
        self.assertEqual(self.post(client.TRACES, TRACES).status, 200)

    def test_heads_that_are_too_large(self):
        for headers in ([("X-Long", "a" * 40_000)], [(f"x-{n}", "a") for n in range(200)]):
            try:
                answer = self.post(client.TRACES, TRACES, headers=headers)
                self.assertIn(answer.status, (400, 431))
            except (ConnectionResetError, BrokenPipeError):
                pass
        try:
            self.assertIn(self.post("/" + "a" * 40_000, TRACES).status, (400, 404, 414, 431))
        except (ConnectionResetError, BrokenPipeError):
            pass
        self.assertEqual(self.post(client.TRACES, TRACES).status, 200)


if __name__ == "__main__":
    testing.main()
