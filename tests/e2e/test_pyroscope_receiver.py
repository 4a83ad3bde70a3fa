"""The receiver pyroscope with a client that repeats requests of real SDKs, or sends its own. Recordings are replayed
with their header lines, chunks and frames. The output is compared, sample by sample, with what tests/oracle/uploads.py
reads in the recording.
"""

import base64
import gzip
import json
import os
import re
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, canonical, client, connections, decode, outputs, replay, server, testing, uploads

CONFIG = """
receivers:
  pyroscope: {endpoint: "127.0.0.1:@in@" MORE}
exporters:
  file: {path: "@dir@/out", format: proto}
service:
  pipelines:
    profiles: {receivers: [pyroscope], exporters: [file]}
"""
NAMED = decode.CAPTURES / "pprof-to-otlp" / "files" / "cpu.pb"
PUSH = "/push.v1.PusherService/Push"
QUERY = "/querier.v1.QuerierService/ProfileTypes"
PROTO, JSON = "application/proto", "application/json"


def profcol(more="", **options):
    """Return a process that writes its output to a file."""
    return server.Profcol(CONFIG.replace("MORE", more), arguments=["--workers", "1"], **options)


def written(process):
    """Return the requests in its file, as messages."""
    path = process.directory / "out"
    records = outputs.records(path, "proto") if path.exists() else []
    return [canonical.decode(record, "profiles") for record in records]


def samples_of(message):
    return sum(len(profile.samples) for resource in message.resource_profiles
               for scope in resource.scope_profiles for profile in scope.profiles)


def sent_and_closed(address, data):
    """Send this data and end the connection's output. Return the status line of the answer, or b"" for none."""
    with connections.connect(address) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(4096):
            answer += part
        return answer.split(b"\r\n")[0]


def difference(have, want):
    """Return some of the differences of two totals."""
    odd = [(key, want.get(key), have.get(key)) for key in want.keys() | have.keys() if want.get(key) != have.get(key)]
    return f"{len(odd)} of {len(want)} differ, (key, want, have): {odd[:3]}"


class ReplayTest(unittest.TestCase):
    """Requests of SDKs and tools."""

    def check_answer(self, result):
        """Check that the client would understand the answer as success."""
        self.assertIsNone(result.error)
        answer, kind = result.response, result.capture.header("content-type")
        self.assertEqual(answer.status, 200, answer.body)
        self.assertIsNone(answer.reset)
        if result.capture.transport == "grpc":
            self.assertEqual((answer.grpc_status, answer.messages()), (0, [(0, b"")]))
        elif kind.startswith("application/grpc-web"):
            self.assertTrue(answer.header("content-type").startswith("application/grpc-web"))
            self.assertEqual(answer.messages()[0], (0, b""))
            self.assertRegex(answer.messages()[1][1], rb"(?m)^grpc-status: 0\r$")
        elif result.capture.meta["kind"] == "pyroscope-push":
            self.assertEqual((answer.header("content-type"), answer.body), (kind, b"{}" if kind == JSON else b""))
        else:
            self.assertEqual(answer.body, b"")

    def test_recordings(self):
        for name in uploads.clients():
            with self.subTest(name), profcol() as process:
                captures = uploads.captures(name)
                results = replay.send(captures, grpc=process.address("in"), http=process.address("in"))
                for result in results:
                    with self.subTest(result.capture.name):
                        self.check_answer(result)
                messages = written(process)
                self.assertEqual(len(messages), len(captures))
                for capture, message in zip(captures, messages):
                    with self.subTest(capture.name):
                        self.check_totals(capture, message)
                self.assertEqual(process.metric("otelcol_receiver_accepted_profile_samples", receiver="pyroscope"),
                                 sum(map(samples_of, messages)))
                self.assertEqual(process.metric("otelcol_receiver_accepted_profile_samples", transport="grpc"),
                                 sum(samples_of(m) for c, m in zip(captures, messages) if c.transport == "grpc"))

    def check_totals(self, capture, message):
        have = uploads.totals_of_otlp(message)
        if uploads.is_jfr(capture):
            self.assertEqual(list(uploads.jfr_lines(have)), uploads.jfr_expected(capture))
            return
        want = uploads.totals_of(capture)
        self.assertTrue(want)
        if want != have:
            self.fail(difference(have, want))

    def test_cut_uploads(self):
        """Folded text and lines have no end mark. So a truncated request is refused whole, whatever it contains."""
        texts = [capture for capture in uploads.captures("curl") if len(capture.body) < 100]
        self.assertEqual(len(texts), 2)
        with profcol() as process:
            address = process.address("in")
            for count, capture in enumerate(texts):
                head, body = replay.http1_request(capture, address)
                chunked = re.sub(rb"(?i)content-length: [0-9]+", b"Transfer-Encoding: chunked", head)
                halves = b"".join(b"%x\r\n%s\r\n" % (len(half), half) for half in (body[:9], body[9:])) + b"0\r\n\r\n"
                for whole in (head + body, chunked + halves):
                    for size in range(1, len(whole)):
                        status = sent_and_closed(address, whole[:size])
                        self.assertEqual(status, b"", whole[:size])
                    self.assertEqual(sent_and_closed(address, whole), b"HTTP/1.1 200 OK")
                self.assertEqual(len(written(process)), 2 * (count + 1))

    def test_resources(self):
        """Labels that do not belong to samples."""
        with profcol() as process:
            captures = uploads.captures("go-grpc")[:1] + uploads.captures("rust-grpc")[:1]
            replay.send(captures, http=process.address("in"))
            go, rust = written(process)
            have = {pair.key: pair.value.string_value for pair in go.resource_profiles[0].resource.attributes}
            self.assertEqual(have, {
                "service.name": "cap-go", "__session_id__": "77e425ea48b3919f", "hostname": "cap", "region": "eu-1",
                "process.runtime.name": "go", "process.runtime.version": "go1.26.8", "pyroscope_spy": "gospy"})
            scope = go.resource_profiles[0].scope_profiles[0].scope
            self.assertEqual((scope.name, scope.version), ("com.grafana.pyroscope/godeltaprof", "v0.1.11"))
            self.assertEqual(rust.resource_profiles[0].scope_profiles[0].scope.name, "com.grafana.pyroscope/rust")



def field(number, payload):
    """Return a field of protobuf; a number becomes a varint."""
    if isinstance(payload, int):
        return bytes([number << 3, payload])
    return bytes([number << 3 | 2]) + len(payload).to_bytes(1, "big") + payload


PPROF = (field(1, field(1, 1) + field(2, 2)) + field(2, field(1, b"\x01") + field(2, b"\x07"))
         + field(4, field(1, 1) + field(4, field(1, 1))) + field(5, field(1, 1) + field(2, 3))
         + b"".join(field(6, text) for text in (b"", b"cpu", b"nanoseconds", b"main")))
LABELS = {"__name__": "process_cpu", "service_name": "shop"}


def push_of(labels=None, *pprofs):
    """Return a PushRequest with one series of small pprofs."""
    pairs = (LABELS if labels is None else labels).items()
    series = b"".join(field(1, field(1, name.encode()) + field(2, value.encode())) for name, value in pairs)
    series += b"".join(field(2, field(1, pprof)) for pprof in pprofs or (PPROF,))
    return b"\x0a" + (bytes([len(series)]) if len(series) < 128 else bytes([len(series) & 127 | 128, len(series) >> 7])) + series


class AnswerTest(unittest.TestCase):
    """Requests of our own."""

    @classmethod
    def setUpClass(cls):
        cls.process = profcol(", max_request_body_size: 100000").start()
        cls.address = cls.process.address("in")

    @classmethod
    def tearDownClass(cls):
        cls.process.stop()
        cls.process.__exit__(None, None, None)

    def ingest(self, query="name=shop&format=pprof", body=PPROF, path="/ingest", content_type="application/octet-stream", **options):
        return client.post(self.address, f"{path}?{query}", body, content_type=content_type, **options)

    def push(self, body, content_type=PROTO, **options):
        return client.post(self.address, PUSH, body, content_type=content_type, **options)

    def check_refused(self, answer, status, code, text):
        self.assertEqual((answer.status, answer.header("content-type")), (status, JSON), answer.body)
        said = json.loads(answer.body)
        self.assertEqual(said["code"], code)
        self.assertIn(text, said["message"])

    def check_taken(self, answer):
        self.assertEqual((answer.status, answer.body), (200, b""))

    def test_ingest_takes(self):
        before = len(written(self.process))
        self.check_taken(self.ingest())
        self.check_taken(self.ingest(path="/pyroscope/ingest"))
        self.check_taken(self.ingest(body=gzip.compress(PPROF)))
        self.check_taken(self.ingest(body=gzip.compress(PPROF), encoding="gzip"))
        self.check_taken(self.ingest(body=gzip.compress(gzip.compress(PPROF)), encoding="gzip"))
        self.check_taken(self.ingest(expect=True))
        self.check_taken(client.post_h2c(self.address, "/ingest?name=shop&format=pprof", PPROF, content_type="x/y"))
        self.check_taken(self.ingest(content_type=None))
        messages = written(self.process)[before:]
        self.assertEqual(len(messages), 8)
        self.assertTrue(all(m == messages[0] or samples_of(m) == 1 for m in messages))

    def test_ingest_takes_nothing_as_nothing(self):
        before = len(written(self.process))
        self.check_taken(self.ingest(body=b""))
        self.check_taken(self.ingest("name=shop", body=b""))
        self.assertEqual(len(written(self.process)), before)

    def test_ingest_refuses(self):
        for query, text in (("", "name: the application name is missing"), ("name=a{b", "name: a label without a value"),
                            ("name=a&from=soon", 'from: "soon" is not a time'), ("name=%zz", "name: broken percent-encoding")):
            with self.subTest(query):
                self.check_refused(self.ingest(query), 400, "invalid_argument", text)
        self.check_refused(self.ingest(body=b"no pprof"), 422, "invalid_argument", "pprof: ")
        self.check_refused(self.ingest("name=a&format=jfr", b"no jfr"), 422, "invalid_argument", "jfr: ")
        self.check_refused(self.ingest("name=a", b"no count"), 422, "invalid_argument", "folded: ")
        self.check_refused(self.ingest(body=gzip.compress(PPROF)[:-1]), 422, "invalid_argument", "")
        form = "multipart/form-data; boundary=b"
        self.check_refused(self.ingest("name=a", b"--c--", content_type=form), 422, "invalid_argument", "form: ")
        self.check_refused(self.ingest(encoding="br"), 400, "invalid_argument", "br")

    def test_too_large(self):
        self.check_refused(self.ingest("name=a", b"x" * 100001), 413, "invalid_argument", "too large")
        bomb = gzip.compress(b"x" * 100001)
        self.check_refused(self.ingest("name=a", bomb, encoding="gzip"), 413, "invalid_argument", "too large")
        self.check_refused(self.ingest("name=a", bomb), 413, "failed_precondition", "more than 100000 bytes")
        push = b"\x0a" + (lambda s: len(s).to_bytes(1, "big") if len(s) < 128 else bytes([len(s) & 127 | 128, len(s) >> 7]))(
            inner := field(1, field(1, b"__name__") + field(2, b"cpu")) + b"\x12" + bytes([(len(bomb) + 3) & 127 | 128, (len(bomb) + 3) >> 7])
            + b"\x0a" + bytes([len(bomb) & 127 | 128, len(bomb) >> 7]) + bomb) + inner
        self.check_refused(self.push(push), 400, "failed_precondition", "more than 100000 bytes")

    def test_methods_and_paths(self):
        self.assertEqual(self.ingest(path="/other").status, 404)
        self.assertEqual(self.ingest(method="GET").status, 405)
        self.assertEqual(self.ingest(method="GET").header("allow"), "POST")
        self.assertEqual(client.post(self.address, PUSH, b"", method="PUT", content_type=PROTO).status, 405)
        for kind in ("application/x-protobuf", "text/plain", "application/grpc", "application/grpc-web-text", None):
            answer = self.push(push_of(), kind)
            self.assertEqual(answer.status, 415, kind)
            self.assertIn("application/proto", answer.header("accept-post"))

    def test_queries_are_told_where_to_go(self):
        where = "answers no queries: in Grafana's data source, use the address of Pyroscope itself"
        for kind in (PROTO, "application/json", None):
            answer = client.post(self.address, QUERY, b"", content_type=kind)
            self.assertEqual((answer.status, answer.header("content-type")), (501, "application/json"), kind)
            self.assertEqual(json.loads(answer.body)["code"], "unimplemented")
            self.assertIn(where, json.loads(answer.body)["message"])
        for path in ("/", "/pyroscope/render?query=cpu", "/api/v1/labels", "/a.b/", "/a.b/c/d", "/a/b"):
            answer = client.post(self.address, path, b"", method="GET", content_type=None)
            self.assertEqual((answer.status, answer.header("content-type")), (404, "text/plain; charset=utf-8"), path)
            self.assertIn(where, answer.body.decode())
        answer = client.call(self.address, QUERY, b"")
        self.assertEqual(answer.grpc_status, 12)
        self.assertIn(where, answer.grpc_message)
        answer = client.post(self.address, QUERY, b"", content_type="application/grpc-web+proto")
        self.assertEqual(answer.status, 200)
        self.assertIn(b"grpc-status: 12\r\n", answer.body)

    def test_connect(self):
        self.assertEqual(self.push(push_of()).status, 200)
        self.assertEqual(self.push(push_of(), "application/proto; charset=utf-8").status, 200)
        self.assertEqual(self.push(gzip.compress(push_of()), encoding="gzip").status, 200)
        self.assertEqual(self.push(push_of(None, gzip.compress(PPROF, mtime=0))).status, 200)
        version = ("Connect-Protocol-Version", "1")
        self.assertEqual(self.push(b"", headers=[version]).status, 200)
        self.check_refused(self.push(b"", headers=[(version[0], "2")]), 400, "invalid_argument", "connect-protocol-version")
        self.check_refused(self.push(b"\x0a\x7f"), 400, "invalid_argument", "series[0]: broken protobuf")
        self.check_refused(self.push(push_of(None, PPROF, b"no")), 400, "invalid_argument",
                           "series[0] (process_cpu of shop).samples[1].raw_profile: ")

    def test_connect_json(self):
        tree = {"series": [{"labels": [{"name": key, "value": value} for key, value in LABELS.items()],
                            "samples": [{"rawProfile": base64.b64encode(PPROF).decode(), "ID": "some id"}]}]}
        answer = self.push(json.dumps(tree).encode(), JSON)
        self.assertEqual((answer.status, answer.body), (200, b"{}"))
        self.check_refused(self.push(b'{"series":', JSON), 400, "invalid_argument", "")
        self.check_refused(self.push(b'{"series":[{"labels":5}]}', JSON), 400, "invalid_argument", "series[0].labels")

    def test_grpc(self):
        answer = client.call(self.address, PUSH, push_of())
        self.assertEqual((answer.grpc_status, answer.messages()), (0, [(0, b"")]))
        answer = client.call(self.address, PUSH, gzip.compress(push_of()), flag=1, headers=[("grpc-encoding", "gzip")])
        self.assertEqual(answer.grpc_status, 0)
        answer = client.call(self.address, PUSH, push_of({"service_name": "shop"}))
        self.assertEqual((answer.grpc_status, answer.grpc_message), (3, "series[0]: the label __name__ is missing"))
        self.assertEqual(client.call(self.address, "/push.v1.PusherService/Pull", b"").grpc_status, 12)
        self.assertEqual(client.call(self.address, "/ingest", b"").grpc_status, 12)

    def grpc_web(self, body, **options):
        """Return the frames of the answer."""
        answer = self.push(body, "application/grpc-web+proto", **options)
        self.assertEqual((answer.status, answer.header("content-type")), (200, "application/grpc-web+proto"))
        return answer.messages()

    def test_grpc_web(self):
        framed = b"\0" + len(push_of()).to_bytes(4, "big") + push_of()
        message, (flag, trailers) = self.grpc_web(framed)
        self.assertEqual((message, flag), ((0, b""), 0x80))
        self.assertIn(b"grpc-status: 0\r\n", trailers)
        packed = gzip.compress(push_of())
        self.assertEqual(len(self.grpc_web(b"\1" + len(packed).to_bytes(4, "big") + packed, headers=[("grpc-encoding", "gzip")])), 2)
        for body, status in ((b"\0\0\0\0\2\x0a\x7f", 3), (framed[:-1], 3), (b"\1" + framed[1:], 3), (b"x" * 100001, 8)):
            (flag, trailers), = self.grpc_web(body)
            self.assertEqual(flag, 0x80)
            self.assertIn(f"grpc-status: {status}\r\ngrpc-message: ".encode(), trailers)

    def test_refusals_are_counted(self):
        def count():
            return self.process.metric("profcol_receiver_invalid_requests", receiver="pyroscope", transport="http")

        before = count()
        self.ingest(body=b"no pprof")
        self.push(b"\x0a\x7f")
        self.ingest("name=a{b")
        self.assertEqual(count(), before + 3)


BACKEND_CONFIG = """
receivers:
  pyroscope: {endpoint: "127.0.0.1:@in@"}
exporters:
  otlp_grpc: {endpoint: "BACKEND", tls: {insecure: true}, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}
service:
  pipelines:
    profiles: {receivers: [pyroscope], exporters: [otlp_grpc]}
"""


class VerdictTest(unittest.TestCase):
    """The answer is the verdict on the upload, in a form that each client understands."""

    CASES = (
        # grpc status, retry_after -> ingest, Connect (status, code), Retry-After, gRPC
        (0, None, (200, None), (200, None), None, 0),
        (8, 2, (429, "resource_exhausted"), (429, "resource_exhausted"), "2", 8),
        (14, 3, (503, "unavailable"), (503, "unavailable"), "3", 14),
        (14, None, (503, "unavailable"), (503, "unavailable"), None, 14),
        (4, None, (503, "unavailable"), (503, "unavailable"), None, 4),
        (8, None, (413, "failed_precondition"), (400, "failed_precondition"), None, 8),
        (3, None, (422, "invalid_argument"), (400, "invalid_argument"), None, 3),
        (13, None, (422, "failed_precondition"), (400, "failed_precondition"), None, 13),
        (12, None, (422, "failed_precondition"), (400, "failed_precondition"), None, 12),
        (16, None, (401, "unauthenticated"), (401, "unauthenticated"), None, 16),
        (7, None, (403, "permission_denied"), (403, "permission_denied"), None, 7),
    )

    def test_verdicts(self):
        with backend.Backend("grpc") as target, server.Profcol(BACKEND_CONFIG.replace("BACKEND", target.address)) as process:
            address = process.address("in")
            for status, retry_after, ingest, connect, header, grpc in self.CASES:
                with self.subTest(status=status, retry_after=retry_after):
                    target.default = backend.Answer(grpc_status=status, message="because", retry_after=retry_after)
                    answer = client.post(address, "/ingest?name=shop&format=pprof", PPROF)
                    self.check(answer, ingest, header)
                    self.check(client.post(address, PUSH, push_of(), content_type=PROTO), connect, header)
                    self.assertEqual(client.call(address, PUSH, push_of()).grpc_status, grpc)
            refused = process.metric("otelcol_receiver_refused_profile_samples", receiver="pyroscope", transport="http")
            self.assertEqual(refused, 2 * (len(self.CASES) - 1))

    def check(self, answer, expected, retry_after):
        status, code = expected
        self.assertEqual(answer.status, status, answer.body)
        self.assertEqual(answer.header("retry-after"), retry_after)
        if code:
            self.assertEqual(json.loads(answer.body)["code"], code)


TENANT_CONFIG = """
receivers:
  pyroscope: {endpoint: "127.0.0.1:@in@", include_metadata: true, service_name_header: X-Service, default_service_name: nobody}
processors:
  resource: {attributes: [{key: tenant, action: upsert, from_context: metadata.x-scope-orgid}]}
exporters:
  file: {path: "@dir@/out", format: proto}
service:
  pipelines:
    profiles: {receivers: [pyroscope], processors: [resource], exporters: [file]}
"""


class SettingsTest(unittest.TestCase):
    """Effects of the configuration."""

    def test_headers(self):
        """The tenant is passed on even without the other headers."""
        for config in (TENANT_CONFIG, TENANT_CONFIG.replace("include_metadata: true, ", "")):
            with server.Profcol(config) as process:
                for headers in ([("X-Scope-OrgID", "team-a"), ("x-service", "shop")], []):
                    client.post(process.address("in"), PUSH, push_of({"__name__": "cpu"}), content_type=PROTO, headers=headers)
                named, unnamed = ({pair.key: pair.value.string_value for pair in message.resource_profiles[0].resource.attributes}
                                  for message in written(process))
                self.assertEqual(named, {"service.name": "shop", "tenant": "team-a"})
                self.assertEqual(unnamed, {"service.name": "nobody"})

    def test_otlp(self):
        """Pyroscope accepts OTLP too, and the Java agent may send it without naming its service."""
        with server.Profcol(TENANT_CONFIG) as process:
            address = process.address("in")
            captures = [c for c in decode.in_directory(decode.CAPTURES / "java-http-otlp-profiles") if c.signal == "profiles"]
            for result in replay.send(captures, http=address):
                self.assertEqual(result.problem(), "")
            messages = written(process)
            self.assertEqual(len(messages), len(captures))
            for capture, message in zip(captures, messages):
                attributes = message.resource_profiles[0].resource.attributes
                self.assertEqual([(pair.key, pair.value.string_value) for pair in attributes], [("service.name", "nobody")])
                message.resource_profiles[0].ClearField("resource")
                self.assertEqual(canonical.difference(canonical.canonical(message), canonical.of(capture)), "")
            self.check_names(address, process)

    def check_names(self, address, process):
        """Check that a named service keeps its name, and that an unnamed one gets the name in the header."""
        before = len(written(process))
        message = canonical.decode(decode.load(NAMED).payload, "profiles")
        named = [pair.value.string_value for pair in message.resource_profiles[0].resource.attributes if pair.key == "service.name"]
        self.assertTrue(named)
        message.resource_profiles.add().CopyFrom(message.resource_profiles[0])
        message.resource_profiles[1].ClearField("resource")
        answer = client.call(address, client.PROFILES_SERVICE, message.SerializeToString(), headers=[("x-service", "shop")])
        self.assertEqual(answer.grpc_status, 0)
        json_answer = client.post(address, client.PROFILES, canonical.encode_json(message).encode(), content_type=JSON)
        self.assertEqual((json_answer.status, json_answer.body), (200, b'{"partialSuccess":{}}'))
        for found, default in zip(written(process)[before:], ("shop", "nobody")):
            names = [[pair.value.string_value for pair in resource.resource.attributes if pair.key == "service.name"]
                     for resource in found.resource_profiles]
            self.assertEqual(names, [named, [default]])
        nameless = client.post(address, client.PROFILES, message.SerializeToString(), headers=[("x-service", "caf\xe9")])
        self.assertEqual(nameless.status, 200)
        self.assertIn("nobody", str(written(process)[-1].resource_profiles[1].resource), "a name that is no UTF-8 is none")
        refused = client.post(address, client.PROFILES, b"\x0a\x7f")
        self.assertEqual((refused.status, client.status(refused).code), (400, 3))
        self.assertEqual(client.post(address, client.PROFILES, b"", content_type="text/plain").status, 415)

    def test_a_taken_port_is_explained(self):
        with profcol() as process:
            other = process.directory / "other.yaml"
            other.write_text(process.config_path.read_text())
            result = subprocess.run([process.binary, "--config", str(other), "--set", "service.telemetry.metrics.level=none"], capture_output=True, text=True, timeout=60)
            self.assertNotEqual(result.returncode, 0)
            self.assertRegex(result.stderr, rf"127\.0\.0\.1:{process.ports['in']}: Address already in use; if Pyroscope")


if __name__ == "__main__":
    testing.main()
