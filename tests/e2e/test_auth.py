"""Extensions basicauth, bearertokenauth and headers_setter: who may send, and what is sent with it."""
import base64
import json
import os
import pathlib
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import grpc

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, certificates, client, connections, make, outputs, pyroscope, server, testing
from tests.oracle.background import Background

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc

# The password of every user is "secret".
USERS = {
    "plain": "secret",
    "apr1": "$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/",
    "md5": "$1$abcdefgh$cHJi5PXp/ki/ktXzqlk6I1",
    "sha256": "$5$rounds=1000$abcdefgh$XIppta5rT8zJUu4vAOKQXrwq9uY4Ijlz6VjyOmkx5i4",
    "bcrypt": "$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW",
    "sha": "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=",
    "ssha": "{SSHA}gVK8WC9YyFT1gMsQHTGCgT3sSv5zYWx0",
    "slow": "$2y$12$abcdefghijklmnopqrstuuT1Iwu6o8Wx7BoOyIMHfgVJq6JO/IJhW",
}
INLINE = "\\n".join(f"{name}:{hash_}".replace("$", "$$") for name, hash_ in USERS.items())
# The receivers that share core/pipeline/server_settings.c, and the exporter that shows what came.
CONFIG = f"""
extensions:
  basicauth: {{htpasswd: {{inline: "{INLINE}"}}}}
  bearertokenauth: {{tokens: [topsecret-1, topsecret-2], scheme: Token, header: X-Key}}
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: "127.0.0.1:@grpc@", auth: {{authenticator: basicauth}}}}
      http: {{endpoint: "127.0.0.1:@http@", auth: {{authenticator: basicauth, request_params: [authorization]}}}}
  otlp/token:
    protocols:
      grpc: {{endpoint: "127.0.0.1:@token_grpc@", auth: {{authenticator: bearertokenauth}}}}
      http: {{endpoint: "127.0.0.1:@token_http@", auth: {{authenticator: bearertokenauth}}}}
  pyroscope: {{endpoint: "127.0.0.1:@pyroscope@", auth: {{authenticator: basicauth}}}}
  pprof: {{push: {{endpoint: "127.0.0.1:@pprof@", auth: {{authenticator: basicauth}}}}}}
processors:
  resource: {{attributes: [{{key: user, from_context: auth.username, action: upsert}}, {{key: raw, from_context: auth.raw, action: upsert}}]}}
exporters:
  file: {{path: "@dir@/traces.json"}}
  nop:
service:
  extensions: [basicauth, bearertokenauth]
  pipelines:
    traces: {{receivers: [otlp, otlp/token], processors: [resource], exporters: [file]}}
    profiles: {{receivers: [otlp, pyroscope, pprof], exporters: [nop]}}
"""


def span():
    """A request of one span."""
    return make.traces([{"span_id": "00000000000000a1"}])


def basic(name, password="secret"):
    """The header of Basic authentication."""
    return ("authorization", "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode())


def attributes(path):
    """The attributes of the resources in a file of OTLP JSON."""
    out = []
    for record in outputs.records(path, "json"):
        for resource in json.loads(record).get("resourceSpans", []):
            pairs = resource.get("resource", {}).get("attributes", [])
            out.append({pair["key"]: pair["value"].get("stringValue") for pair in pairs})
    return out


class Server(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.profcol = server.Profcol(CONFIG).start()

    @classmethod
    def tearDownClass(cls):
        cls.profcol.stop()
        text = cls.profcol.output() + cls.profcol.log()
        assert "topsecret" not in text and "secret" not in text, text

    def export(self, protocol, *headers, name=None, message=None, **options):
        """A request to a listener; its name is the protocol's if not given."""
        return client.export(protocol, self.profcol.address(name or protocol), message or span(), headers=headers, **options)

    def refused(self, answer, text, code=16):
        """Asserts that the answer is a refusal with the text."""
        self.assertFalse(client.succeeded(answer))
        self.assertEqual(client.status(answer).code, code)
        self.assertIn(text, client.status(answer).message)
        if answer.grpc_status is None:
            self.assertEqual(answer.status, {16: 401, 14: 503}[code])

    def test_each_hash(self):
        for name in USERS:
            for protocol in ("grpc", "http"):
                with self.subTest(name, protocol=protocol):
                    if name != "slow":
                        self.refused(self.export(protocol, basic(name, "wrong")), "invalid credentials")
                    for _ in range(2):  # hashed, and remembered
                        self.assertTrue(client.succeeded(self.export(protocol, basic(name))))
                    self.refused(self.export(protocol, basic(name, "wrong")), "invalid credentials")
                    self.refused(self.export(protocol, basic(name, "")), "invalid credentials")

    def test_missing_and_malformed(self):
        for protocol in ("grpc", "http"):
            for headers, text in (((), "no basic auth provided"),
                                  ((("authorization", ""),), "no basic auth provided"),
                                  ((("authorization", "Bearer x"),), "invalid authorization scheme prefix"),
                                  ((("authorization", "Basic !"),), "invalid authorization format"),
                                  ((("authorization", "Basic YWI="),), "invalid authorization format"),
                                  ((basic("nobody"),), "invalid credentials"),
                                  ((basic("plain", "s" * 2000),), "invalid credentials"),
                                  ((basic("apr1", "s\0"),), "invalid credentials"),
                                  ((basic("nobody"), basic("plain")), "invalid credentials")):
                with self.subTest(text, protocol=protocol):
                    self.refused(self.export(protocol, *headers), text)
            self.assertTrue(client.succeeded(self.export(protocol, basic("plain"), basic("nobody"))), "the first counts")

    def test_challenge_and_paths(self):
        for path in (client.TRACES, "/", "/v1/nothing"):
            answer = client.post(self.profcol.address("http"), path, b"", content_type=client.JSON)
            self.assertEqual((answer.status, answer.header("www-authenticate")), (401, 'Basic realm="profcol"'))
            self.assertEqual(client.status(answer), client.Status(16, "no basic auth provided"))
        answer = client.post(self.profcol.address("http"), "/v1/nothing", b"", headers=[basic("plain")])
        self.assertEqual(answer.status, 404)
        answer = client.call(self.profcol.address("grpc"), "/unknown.Service/Method")
        self.assertEqual(answer.grpc_status, 12)

    def test_query(self):
        value = urllib.request.quote(basic("plain")[1])
        for path, fine in ((f"{client.TRACES}?authorization={value}", True),
                           (f"{client.TRACES}?a=b&authorization={value}&authorization=x", True),
                           (f"{client.TRACES}?authorization=Basic+YWI%3D", False), (f"{client.TRACES}?authorization=%", False)):
            for headers in ([], [basic("nobody")]):
                answer = client.post(self.profcol.address("http"), path, span().SerializeToString(), headers=headers)
                self.assertEqual(answer.status, 200 if fine else 401, path)

    def test_body_is_not_read(self):
        """The answer comes after the head, long before the body would be complete."""
        head = client.http1_head("POST", client.TRACES, "localhost", [("Content-Type", client.PROTOBUF), ("Content-Length", "20000000")])
        for headers in (b"", b"Authorization: " + basic("nobody")[1].encode() + b"\r\n"):
            with connections.connect(self.profcol.address("http")) as socket:
                socket.sendall(head[:-2] + headers + b"\r\n")
                self.assertTrue(socket.recv(100).startswith(b"HTTP/1.1 401 "))

    def test_slow_hash_and_a_body_that_never_comes(self):
        head = client.http1_head("POST", client.TRACES, "localhost",
                                 [("Content-Type", client.PROTOBUF), ("Content-Length", "20000000"), basic("slow", "x")])
        with server.Profcol(CONFIG) as profcol:
            with connections.connect(profcol.address("http")) as socket:
                socket.sendall(head + b"x" * 1000)
                self.assertTrue(socket.recv(100).startswith(b"HTTP/1.1 401 "))
            with connections.connect(profcol.address("http")) as socket:
                socket.sendall(head + b"x")  # gone before its password is checked
            self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), span(), headers=[basic("plain")])))

    def test_many_wrong_passwords(self):
        """Passwords that cost a hash wait in a queue, of which one client has a small part; others are served meanwhile."""
        with server.Profcol(CONFIG) as profcol:
            sockets = []
            for number in range(40):
                body = span().SerializeToString()
                head = client.http1_head("POST", client.TRACES, "localhost", [
                    ("Content-Type", client.PROTOBUF), ("Content-Length", str(len(body))), basic("slow", str(number))])
                sockets.append(connections.connect(profcol.address("http")))
                sockets[-1].sendall(head + body)
            self.assertTrue(client.succeeded(client.export("http", profcol.address("http"), span(), headers=[basic("plain")])))
            statuses = [socket.recv(12).decode() for socket in sockets]
            for socket in sockets:
                socket.close()
            self.assertEqual(set(statuses), {"HTTP/1.1 401", "HTTP/1.1 503"})
            self.assertEqual(profcol.metric("profcol_server_unauthenticated_requests"), 40)
            self.assertTrue(client.succeeded(client.export("http", profcol.address("http"), span(), headers=[basic("slow")])))

    def test_same_password_at_once(self):
        """A crowd with the right password costs one hash, and all are served."""
        with server.Profcol(CONFIG) as profcol:
            calls = [Background(client.export, "grpc", profcol.address("grpc"), span(), headers=[basic("slow")]) for _ in range(30)]
            self.assertEqual([client.succeeded(call.result()) for call in calls], [True] * 30)

    def test_stop_while_a_password_is_checked(self):
        with server.Profcol(CONFIG) as profcol:
            sockets = [connections.connect(profcol.address("http")) for _ in range(4)]
            for number, socket in enumerate(sockets):
                socket.sendall(client.http1_head("POST", client.TRACES, "localhost", [
                    ("Content-Type", client.PROTOBUF), ("Content-Length", "1"), basic("slow", str(number))]))
            profcol.stop()
            for socket in sockets:
                socket.close()

    def test_tokens(self):
        for protocol in ("grpc", "http"):
            name = "token_" + protocol
            for value in ("Token topsecret-1", "Token topsecret-2"):
                self.assertTrue(client.succeeded(self.export(protocol, ("x-key", value), name=name)))
            for headers, text in (((), "missing or empty authorization header: X-Key"),
                                  ((("x-key", ""),), "missing or empty authorization header: X-Key"),
                                  ((("x-key", "topsecret-1"),), "provided authorization does not match"),
                                  ((("x-key", "Token topsecret-"),), "provided authorization does not match"),
                                  ((("x-key", "Token topsecret-12"),), "provided authorization does not match"),
                                  ((("x-key", "token topsecret-1"),), "provided authorization does not match")):
                self.refused(self.export(protocol, *headers, name=name), text)

    def test_pyroscope(self):
        address = self.profcol.address("pyroscope")
        for path, content_type in (("/ingest?name=app&from=1&until=2&format=folded", "text/plain"), ("/nothing", "text/plain"),
                                   ("/push.v1.PusherService/Push", "application/json"), (client.PROFILES, client.PROTOBUF)):
            answer = client.post(address, path, b"{}", content_type=content_type)
            self.assertEqual((answer.status, answer.header("www-authenticate")), (401, 'Basic realm="profcol"'), path)
        answer = client.post(address, "/ingest?name=app&from=1&until=2&format=folded", b"main;f 3\n", content_type="text/plain",
                             headers=[basic("bcrypt")])
        self.assertEqual(answer.status, 200, answer.body)
        answer = client.post(address, "/push.v1.PusherService/Push", b"{}", content_type="application/json", headers=[basic("apr1")])
        self.assertEqual(answer.status, 200, answer.body)
        for path in ("/push.v1.PusherService/Push", client.PROFILES_SERVICE):
            answer = client.call(address, path, b"")
            self.assertEqual((answer.grpc_status, answer.grpc_message), (16, "no basic auth provided"))

    def test_pprof(self):
        answer = client.post(self.profcol.address("pprof"), "/v1/pprof", b"", content_type=None)
        self.assertEqual((answer.status, answer.body), (401, b"no basic auth provided"))

    def test_http2(self):
        body = span().SerializeToString()
        for protocol, path in (("http", client.TRACES),):
            answer = client.post_h2c(self.profcol.address(protocol), path, body)
            self.assertEqual((answer.status, answer.header("www-authenticate")), (401, 'Basic realm="profcol"'))
            answer = client.post_h2c(self.profcol.address(protocol), path, body, headers=[basic("md5")])
            self.assertEqual(answer.status, 200)

    def test_identity(self):
        """A header cannot pass for an attribute of the client, and include_metadata is not needed."""
        with server.Profcol(CONFIG) as profcol:
            for name in ("plain", "bcrypt"):
                answer = client.export("http", profcol.address("http"), span(), headers=[basic(name), ("auth.username", "x")])
                self.assertTrue(client.succeeded(answer))
            answer = client.export("http", profcol.address("token_http"), span(),
                                   headers=[("x-key", "Token topsecret-1"), ("auth.username", "x"), ("username", "x")])
            self.assertTrue(client.succeeded(answer))
            found = attributes(profcol.directory / "traces.json")
        raw = [basic(name)[1].removeprefix("Basic ") for name in ("plain", "bcrypt")]
        self.assertEqual([(each.get("user"), each.get("raw")) for each in found],
                         [("plain", raw[0]), ("bcrypt", raw[1]), (None, None)])

    def test_print_config(self):
        text = subprocess.run([os.environ["PROFCOL"], "print-config", "--config", str(self.profcol.config_path)],
                              capture_output=True, text=True, check=True).stdout
        self.assertIn("bearertokenauth", text)
        self.assertNotIn("topsecret", text)
        self.assertNotIn("secret", text.replace("[REDACTED]", ""))


class Files(unittest.TestCase):
    def test_what_is_not_enabled_is_not_looked_for(self):
        config = """
        extensions: {bearertokenauth: {token: t}}
        receivers: {otlp: {protocols: {grpc: {enabled: false, auth: {authenticator: nobody}},
                                       http: {endpoint: "127.0.0.1:@http@", auth: {enabled: false, authenticator: nobody}}}}}
        exporters: {nop: , otlp_http: {endpoint: "http://127.0.0.1:1", auth: {authenticator: nobody}}}
        service: {pipelines: {traces: {receivers: [otlp], exporters: [nop]}}}
        """
        with server.Profcol(config) as profcol:
            self.assertTrue(client.succeeded(client.export("http", profcol.address("http"), span())))

    def test_users_of_a_file(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "users"
            path.write_text("# comment\na:one\nb:two\n")
            config = CONFIG.replace(f'inline: "{INLINE}"', f'file: "{path}", inline: "b:inline"')
            with server.Profcol(config) as profcol:
                for name, password, fine in (("a", "one", True), ("b", "inline", True), ("b", "two", False)):
                    answer = client.export("grpc", profcol.address("grpc"), span(), headers=[basic(name, password)])
                    self.assertEqual(client.succeeded(answer), fine)
            for text, error in (("a:$y$x$y", "line 1: hashes of the kind \\$y\\$ are not supported"), (None, "No such file")):
                path.unlink()
                if text:
                    path.write_text(text)
                with self.assertRaisesRegex(server.Failed, error):
                    server.Profcol(config).start()
                path.write_text("")

    def test_changed_token(self):
        """A link that is replaced, as Kubernetes does, and a file that is written anew; for server and client."""
        with tempfile.TemporaryDirectory() as directory, backend.Backend("http") as target:
            path = pathlib.Path(directory) / "token"
            for number in (1, 2):
                (pathlib.Path(directory) / str(number)).write_text(f"token-{number} a comment\n  other-{number}\n\n")
            path.symlink_to("1")
            config = f"""
            extensions: {{bearertokenauth: {{filename: "{path}"}}}}
            receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:@http@", auth: {{authenticator: bearertokenauth}}}}}}}}}}
            exporters: {{otlp_http: {{endpoint: "{target.url}", auth: {{authenticator: bearertokenauth}}, sending_queue: {{enabled: false}}}}}}
            service: {{extensions: [bearertokenauth], pipelines: {{traces: {{receivers: [otlp], exporters: [otlp_http]}}}}}}
            """
            with server.Profcol(config) as profcol:
                def accepts(token):
                    answer = client.export("http", profcol.address("http"), span(), headers=[("authorization", f"Bearer {token}")])
                    return client.succeeded(answer)
                def sent():
                    return target.of()[-1].header("authorization")
                self.assertEqual([accepts(token) for token in ("token-1", "other-1", "token-2", "a", "")], [True, True] + [False] * 3)
                self.assertEqual(sent(), "Bearer token-1")
                (pathlib.Path(directory) / "next").symlink_to("2")
                os.replace(pathlib.Path(directory) / "next", path)
                server.wait_until(lambda: accepts("token-2"))
                server.wait_until(lambda: accepts("token-2") and sent() == "Bearer token-2")
                server.wait_until(lambda: not accepts("token-1"))
                (pathlib.Path(directory) / "2").write_text("token-3\n")
                server.wait_until(lambda: accepts("token-3"))
                (pathlib.Path(directory) / "2").write_text("\n")
                profcol.wait_for_log("There is no token in the changed file; its last tokens stay in use")
                self.assertEqual([accepts("token-3"), accepts("#")], [True, False])
                path.unlink()
                profcol.wait_for_log("its last contents stay in use")
                self.assertTrue(accepts("token-3"))


EXPORTER = """
extensions:
  basicauth: {{client_auth: {{username: me, password_file: "{directory}/password"}}}}
  headers_setter:
    additional_auth: basicauth
    headers:
      - {{key: X-Scope-OrgID, from_context: X-Tenant, default_value: nobody, action: upsert}}
      - {{key: X-User, from_attribute: username, action: insert}}
      - {{key: X-Old, value: new, action: update}}
      - {{key: X-New, value: new, action: update}}
      - {{key: X-There, value: new, action: insert}}
      - {{key: X-Gone, action: delete}}
      - {{key: X-File, value_file: "{directory}/value"}}
  basicauth/server: {{htpasswd: {{inline: "me:secret"}}}}
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: "127.0.0.1:@grpc@", include_metadata: true, auth: {{authenticator: basicauth/server}}}}
exporters:
  {exporter}:
    {settings}
    auth: {{authenticator: headers_setter}}
    headers: {{X-Old: old, X-There: old, X-Gone: old}}
    sending_queue: {{batch: {{flush_timeout: 200ms, min_size: 1000}}}}
    retry_on_failure: {{initial_interval: 10ms}}
service:
  extensions: [basicauth, headers_setter, basicauth/server]
  pipelines:
    {signal}: {{receivers: [otlp], exporters: [{exporter}]}}
"""


def sample():
    """A request of one sample."""
    message = make.profiles([{"values": [1]}], resource={"service.name": "app"})
    for profile in message.resource_profiles[0].scope_profiles[0].profiles:
        profile.time_unix_nano = time.time_ns()
    return message


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._directory = tempfile.TemporaryDirectory()
        cls.directory = pathlib.Path(cls._directory.name)
        cls.made = certificates.Certificates(cls.directory)
        (cls.directory / "password").write_text("secret\n")
        (cls.directory / "value").write_text("of a file\n")

    @classmethod
    def tearDownClass(cls):
        cls._directory.cleanup()

    def config(self, exporter, settings, signal="traces"):
        """The configuration with one exporter."""
        return EXPORTER.format(directory=self.directory, exporter=exporter, settings=settings, signal=signal)

    def check(self, received, tenant):
        """Asserts the headers of a request."""
        wanted = {"authorization": basic("me")[1], "x-scope-orgid": tenant, "x-user": "me", "x-old": "new",
                  "x-new": None, "x-there": "old", "x-gone": None, "x-file": "of a file"}
        self.assertEqual({name: received.header(name) for name in wanted}, wanted)
        for name in wanted:
            self.assertLessEqual(len([1 for key, _ in received.headers if key == name]), 1, name)

    def test_headers(self):
        for exporter, kind in (("otlp_grpc", "grpc"), ("otlp_http", "http")):
            with self.subTest(exporter), backend.Backend(kind, tls=self.made.server) as target:
                endpoint = f"https://{target.address}" if kind == "http" else target.address
                settings = f'endpoint: "{endpoint}"\n    tls: {{ca_file: {self.made.ca}}}'
                target.answers.append(backend.Answer(status=503) if kind == "http" else backend.Answer(grpc_status=14))
                with server.Profcol(self.config(exporter, settings)) as profcol:
                    for tenant in ("a", "b", "a", None):
                        headers = [basic("me")] + ([("x-tenant", tenant)] if tenant else [])
                        answer = client.export("grpc", profcol.address("grpc"), span(), headers=headers)
                        self.assertTrue(client.succeeded(answer))
                    target.wait_for_items("traces", 4)
                accepted = target.accepted("traces")
                self.assertEqual({received.header("x-scope-orgid") for received in accepted}, {"a", "b", "nobody"})
                for received in accepted:
                    self.check(received, received.header("x-scope-orgid"))

    def test_two_tenants_in_one_request(self):
        with backend.Backend("http") as target:
            with server.Profcol(self.config("otlp_http", f'endpoint: "{target.url}"'), expect_exit=None) as profcol:
                answer = client.export("grpc", profcol.address("grpc"), span(),
                                       headers=[basic("me"), ("x-tenant", "a"), ("x-tenant", "b")])
                self.assertTrue(client.succeeded(answer))
                profcol.wait_for_log("several headers X-Tenant")
                server.wait_until(lambda: profcol.metric("otelcol_exporter_send_failed_spans", exporter="otlp_http") == 1, what="the loss")
            self.assertEqual(target.of(), [])

    def test_two_tenants_in_one_upload(self):
        with pyroscope.Pyroscope() as target:
            config = self.config("pyroscope", f'endpoint: "{target.url}"', "profiles")
            with server.Profcol(config) as profcol:
                answer = client.export("grpc", profcol.address("grpc"), sample(),
                                       headers=[basic("me"), ("x-tenant", "a"), ("x-tenant", "b")])
                self.assertTrue(client.succeeded(answer))
                profcol.wait_for_log("several headers X-Tenant")
            self.assertEqual(target.of(), [])

    def test_changed_password(self):
        path = self.directory / "password"
        with backend.Backend("http") as target:
            with server.Profcol(self.config("otlp_http", f'endpoint: "{target.url}"')) as profcol:
                def sent():
                    count = len(target.of())
                    client.export("grpc", profcol.address("grpc"), span(), headers=[basic("me")])
                    target.wait(count + 1)
                    return target.of()[-1].header("authorization")
                self.assertEqual(sent(), basic("me")[1])
                path.write_text("  other \n")
                try:
                    server.wait_until(lambda: sent() == basic("me", "other")[1])
                finally:
                    path.write_text("secret\n")

    def test_pyroscope(self):
        with pyroscope.Pyroscope() as target:
            config = self.config("pyroscope", f'endpoint: "{target.url}"\n    tenant: configured', "profiles")
            target.answers.append(target.refusal("later", 503, "unavailable"))
            with server.Profcol(config) as profcol:
                for tenant in ("a", "b"):
                    answer = client.export("grpc", profcol.address("grpc"), sample(),
                                           headers=[basic("me"), ("x-tenant", tenant)])
                    self.assertTrue(client.succeeded(answer), client.status(answer))
                target.wait_for(lambda: len(target.accepted()) >= 2)
            self.assertEqual({received.header("x-scope-orgid") for received in target.accepted()}, {"a", "b"})
            for received in target.of():
                self.check(received, received.header("x-scope-orgid"))


class Tls(unittest.TestCase):
    def test_over_tls(self):
        """gRPC's own client and HTTP/1.1 over TLS."""
        with tempfile.TemporaryDirectory() as directory:
            made = certificates.Certificates(directory)
            tls = f"tls: {{cert_file: {made.server[0]}, key_file: {made.server[1]}}}"
            config = CONFIG.replace('@grpc@",', f'@grpc@", {tls},').replace('@http@",', f'@http@", {tls},')
            with server.Profcol(config) as profcol:
                ca = pathlib.Path(made.ca).read_bytes()
                with grpc.secure_channel(profcol.address("grpc"), grpc.ssl_channel_credentials(ca)) as channel:
                    stub = trace_service_pb2_grpc.TraceServiceStub(channel)
                    stub.Export(span(), timeout=20, metadata=[basic("bcrypt")])
                    with self.assertRaises(grpc.RpcError) as raised:
                        stub.Export(span(), timeout=20)
                    self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
                context = ssl.create_default_context(cafile=made.ca)
                for headers, wanted in ((dict([basic("bcrypt")]), 200), ({}, 401)):
                    request = urllib.request.Request(f"https://{profcol.address('http')}{client.TRACES}", span().SerializeToString(),
                                                     {"content-type": client.PROTOBUF, **headers})
                    try:
                        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
                            status = answer.status
                    except urllib.error.HTTPError as error:
                        with error:
                            status = error.code
                    self.assertEqual(status, wanted)


if __name__ == "__main__":
    testing.main()
