"""Reloads in which one listener of a receiver changes: connections of the others, and the requests on them, go on."""

import base64
import os
import pathlib
import socket
import ssl
import sys
import tempfile
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, certificates, client, connections, outputs, pipelines, server, testing
from tests.oracle.reloading import Reloading

GRPC, HTTP = "grpc: {endpoint: \"127.0.0.1:@grpc@\"", "http: {endpoint: \"127.0.0.1:@http@\""
CONFIG = """# a free port for a listener that moves: @other@
receivers:
  otlp:
    protocols:
      GRPC}
      HTTP}
exporters: {file: {path: "@dir@/out"}}
service: {pipelines: {traces: {receivers: [otlp], exporters: [file]}}}
""".replace("GRPC", GRPC).replace("HTTP", HTTP)
OTHER_GRPC = CONFIG.replace(GRPC, GRPC + ", max_recv_msg_size_mib: 5")
OTHER_HTTP = CONFIG.replace(HTTP, HTTP + ', cors: {allowed_origins: ["*"]}')
NO_HTTP = CONFIG.replace(HTTP + "}", "")
# What the listener http may change into while grpc goes on.
HTTP_CHANGES = {
    "cors": OTHER_HTTP,
    "another address": CONFIG.replace("@http@", "@other@"),
    "no listener": NO_HTTP,
    "another path": CONFIG.replace(HTTP, HTTP + ", traces_url_path: /spans"),
}
AUTH = CONFIG.replace("\nreceivers:", '\nextensions: {basicauth: {htpasswd: {inline: "one:PASSWORD"}}}\nreceivers:').replace(
    "service: {", "service: {extensions: [basicauth], ").replace(HTTP, HTTP + ", auth: {authenticator: basicauth}")
WAITING = CONFIG.replace('exporters: {file: {path: "@dir@/out"}}', "exporters: {otlp_http: {EXPORTER}}").replace("[file]", "[otlp_http]")
TLS = CONFIG.replace(HTTP, HTTP + ", tls: {cert_file: FILES/server.pem, key_file: FILES/server.key, reload_interval: 10ms}").replace(
    GRPC, GRPC + ", max_recv_msg_size_mib: SIZE")


class Listeners(unittest.TestCase):
    def start(self, text, *listen, more=()):
        """Start it, and count what is sent."""
        self.sent = 0
        return self.enterContext(Reloading(text, arguments=["--workers", "2", *more], listen=[*(listen or ("grpc", "http")), "metrics"]))

    def open(self, kind, address):
        connection = kind(address)
        self.addCleanup(connection.close)
        return connection

    def send(self, protocol, address, connection, **options):
        answer = client.export(protocol, address, pipelines.span(self.sent), connection=connection, **options)
        self.assertTrue(client.succeeded(answer), answer)
        self.assertTrue(connection.open)    # no GOAWAY, no Connection: close
        self.sent += 1

    def everything_arrived(self, profcol):
        profcol.stop()
        self.assertEqual(pipelines.names_in(outputs.forms(profcol.directory / "out", "traces")),
                         pipelines.expected_names(range(self.sent)))

    def test_grpc_goes_on_while_http_changes(self):
        profcol = self.start(CONFIG)
        address = profcol.address("grpc")
        grpc = self.open(connections.Http2, address)
        self.send("grpc", address, grpc)
        for what, text in HTTP_CHANGES.items():
            with self.subTest(what):
                for changed in (text, CONFIG):
                    profcol.reload(changed)
                    self.send("grpc", address, grpc)
                    profcol.wait_until_drained()
                    self.send("grpc", address, grpc)
        self.assertEqual(profcol.metric("profcol_server_connections", server="receiver otlp"), 1)
        self.everything_arrived(profcol)

    def test_http_goes_on_while_grpc_changes(self):
        profcol = self.start(CONFIG)
        address = profcol.address("http")
        http1, http2 = self.open(connections.Http1, address), self.open(connections.Http2, address)
        limit = server.wait_until(lambda: profcol.metric("profcol_server_connections_limit", server="receiver otlp"),
                                  what="the listeners have begun")
        for text in (OTHER_GRPC, CONFIG, CONFIG.replace("@grpc@", "@other@"), CONFIG):
            self.send("http", address, http1)
            profcol.reload(text)
            self.send("http", address, http1)
            answer = client.post_h2c(address, client.TRACES, pipelines.span(self.sent).SerializeToString(), connection=http2)
            self.assertTrue(client.succeeded(answer) and http2.open)
            self.sent += 1
            profcol.wait_until_drained()
        self.assertEqual(profcol.metric("profcol_server_connections_limit", server="receiver otlp"), limit)
        self.assertEqual(profcol.metric("otelcol_receiver_accepted_spans", receiver="otlp", transport="http"), self.sent)
        self.everything_arrived(profcol)

    def test_settings_that_are_not_the_listeners(self):
        """The new path counts for new requests of an old connection."""
        profcol = self.start(CONFIG)
        address = profcol.address("http")
        http = self.open(connections.Http1, address)
        self.send("http", address, http)
        profcol.reload(CONFIG.replace(HTTP, HTTP + ", traces_url_path: /spans"))
        data = pipelines.span(self.sent).SerializeToString()
        self.assertEqual(client.post(address, client.TRACES, data, connection=http).status, 404)
        self.assertEqual(client.post(address, "/spans", data, connection=http).status, 200)
        self.assertTrue(http.open)
        self.sent += 1
        profcol.wait_until_drained()
        self.everything_arrived(profcol)

    def test_the_listener_that_changes_still_ends_gracefully(self):
        profcol = self.start(CONFIG)
        http, grpc = self.open(connections.Http1, profcol.address("http")), self.open(connections.Http2, profcol.address("grpc"))
        profcol.reload(OTHER_HTTP)
        answer = client.export("http", profcol.address("http"), pipelines.span(0), connection=http)
        self.assertTrue(client.succeeded(answer) and not http.open)
        profcol.reload(OTHER_HTTP.replace(GRPC, GRPC + ", max_recv_msg_size_mib: 5"))
        profcol.wait_until_drained()
        answer = client.export("grpc", profcol.address("grpc"), pipelines.span(1))
        self.assertTrue(client.succeeded(answer))
        with self.assertRaises(ConnectionError):
            client.export("grpc", profcol.address("grpc"), pipelines.span(1), connection=grpc)

    def test_a_body_that_arrives_during_the_reload(self):
        """The receiver that has accepted the head answers, by its own settings."""
        profcol = self.start(CONFIG)
        address = profcol.address("http")
        first, second = (self.open(connections.Http1, address) for _ in range(2))
        data = pipelines.span(0).SerializeToString()
        fields = (("Content-Type", client.PROTOBUF), ("Content-Length", str(len(data))))
        head = client.http1_head("POST", client.TRACES, address, fields)
        first.socket.sendall(head + data[:5])
        self.send_span_elsewhere(address)
        profcol.reload(CONFIG.replace(HTTP, HTTP + ", traces_url_path: /spans"))
        self.assertEqual(profcol.metric("profcol_config_retired_components"), 1)
        self.assertEqual(client.post(address, client.TRACES, data, connection=second).status, 404)
        self.assertEqual(first.request(data[5:]).status, 200)
        profcol.wait_until_drained()
        self.assertEqual(client.post(address, "/spans", pipelines.span(2).SerializeToString(), connection=first).status, 200)
        self.sent = 3
        self.everything_arrived(profcol)

    def send_span_elsewhere(self, address):
        """Send span 1 over a connection of its own, after which the bytes sent before have been read."""
        self.assertTrue(client.succeeded(client.export("http", address, pipelines.span(1))))

    def test_requests_that_wait_for_their_answer(self):
        """Over several reloads. Each is answered once, over its connection; a process that ends waits for them, too."""
        exporter = 'endpoint: "TARGET", sending_queue: {enabled: false}'
        with pipelines.Held() as target:
            text = WAITING.replace("EXPORTER", exporter.replace("TARGET", target.url))
            profcol = self.start(text)
            address = profcol.address("grpc")
            grpc = self.open(connections.Http2, address)
            target.hold()
            streams = []
            for number, change in enumerate(("", ', cors: {allowed_origins: ["*"]}', "", ", max_request_body_size: 1000000")):
                body = connections.grpc_frame(pipelines.span(number).SerializeToString())
                streams.append(grpc.start(client.grpc_fields(address), body))
                target.wait(number + 1)
                if number:
                    profcol.reload(text.replace(HTTP, HTTP + change))
            self.assertEqual(profcol.metric("profcol_config_retired_components"), 3)
            target.release()
            for stream in streams:
                self.assertTrue(client.succeeded(grpc.finish(stream)))
            self.assertTrue(grpc.open)
            profcol.wait_until_drained()
            self.assertEqual(pipelines.names(target), pipelines.expected_names(range(4)))
            target.hold()
            stream = grpc.start(client.grpc_fields(address), connections.grpc_frame(pipelines.span(4).SerializeToString()))
            target.wait(5)
            profcol.reload(text)
            profcol.process.terminate()
            profcol.wait_for_log("Starting shutdown")
            target.release()
            self.assertTrue(client.succeeded(grpc.finish(stream)))
            self.assertEqual(profcol.stop(), 0)

    def test_the_end_gives_up_a_request_of_a_former_receiver(self):
        with pipelines.Held() as target:
            text = WAITING.replace("EXPORTER", f'endpoint: "{target.url}", sending_queue: {{enabled: false}}')
            profcol = self.start(text, more=("--drain-timeout", "100ms"))
            grpc = self.open(connections.Http2, profcol.address("grpc"))
            target.hold()
            grpc.start(client.grpc_fields(profcol.address("grpc")), connections.grpc_frame(pipelines.span(0).SerializeToString()))
            target.wait(1)
            profcol.reload(text.replace(HTTP, HTTP + ", max_request_body_size: 1000000"))
            profcol.process.terminate()
            self.assertEqual(profcol.process.wait(30), 0)   # nothing was acknowledged

    def test_a_client_that_leaves_during_the_reload(self):
        with pipelines.Held() as target:
            text = WAITING.replace("EXPORTER", f'endpoint: "{target.url}", sending_queue: {{enabled: false}}')
            profcol = self.start(text)
            grpc = self.open(connections.Http2, profcol.address("grpc"))
            target.hold()
            grpc.start(client.grpc_fields(profcol.address("grpc")), connections.grpc_frame(pipelines.span(0).SerializeToString()))
            target.wait(1)
            profcol.reload(text.replace(HTTP, HTTP + ", max_request_body_size: 1000000"))
            grpc.close()
            server.wait_until(lambda: profcol.metric("profcol_server_connections", server="receiver otlp") == 0, what="the end")
            target.release()
            profcol.wait_until_drained()

    def test_a_reload_that_fails_changes_nothing(self):
        """The unchanged listener was about to be passed on when the other one could not be bound."""
        taken = self.enterContext(socket.socket())
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        profcol = self.start(CONFIG)
        both = client.Both(profcol)
        self.addCleanup(both.close)
        for name, other in (("grpc", "http"), ("http", "grpc")):
            profcol.reload(CONFIG.replace(f"@{name}@", str(port)), "failed")
            for protocol in ("grpc", "http"):
                self.send(protocol, profcol.address(protocol), both.connections[protocol])
            profcol.reload(CONFIG.replace(f"@{name}@", "@other@"))
            profcol.reload(CONFIG)
            profcol.wait_until_drained()
            self.send(other, profcol.address(other), both.connections[other])
            both.connections[name].close()
            both.connections[name] = (connections.Http2 if name == "grpc" else connections.Http1)(profcol.address(name))
        self.everything_arrived(profcol)

    def test_an_authenticator_that_is_replaced(self):
        """Only the listener that uses it is replaced, too."""
        profcol = self.start(AUTH.replace("PASSWORD", "first"))
        address = profcol.address("grpc")
        grpc, http = self.open(connections.Http2, address), self.open(connections.Http1, profcol.address("http"))

        def post(connection, password):
            return client.post(profcol.address("http"), client.TRACES, pipelines.span(self.sent).SerializeToString(), connection=connection,
                               headers=[("Authorization", "Basic " + base64.b64encode(f"one:{password}".encode()).decode())]).status

        self.assertEqual(post(http, "first"), 200)
        self.sent += 1
        profcol.reload(AUTH.replace("PASSWORD", "second"))
        self.send("grpc", address, grpc)
        self.assertEqual(post(None, "first"), 401)
        self.assertEqual(post(None, "second"), 200)
        self.sent += 1
        profcol.wait_until_drained()
        http = self.open(connections.Http1, profcol.address("http"))
        profcol.reload(AUTH.replace("PASSWORD", "second").replace(GRPC, GRPC + ", max_recv_msg_size_mib: 5"))
        profcol.wait_until_drained()
        self.assertEqual(post(http, "first"), 401)      # the authenticator goes on, and with it the listener
        self.assertEqual(post(http, "second"), 200)
        self.assertTrue(http.open)
        self.sent += 1
        self.everything_arrived(profcol)

    def test_tls(self):
        """The files are read again as before, although the configuration that named them first is gone."""
        files = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        made = certificates.Certificates(files)
        text = TLS.replace("FILES", str(files))
        profcol = self.start(text.replace("SIZE", "4"))
        context = ssl.create_default_context(cafile=made.ca)

        def connect():
            connection = self.open(connections.Http1, profcol.address("http"))
            connection.socket = context.wrap_socket(connection.socket, server_hostname="127.0.0.1")
            connection.reader = connection.socket.makefile("rb")
            return connection

        old = connect()
        for size in (5, 6, 7):
            profcol.reload(text.replace("SIZE", str(size)))
            profcol.wait_until_drained()
            self.send("http", profcol.address("http"), old)
            self.send("http", profcol.address("http"), connect())
        self.everything_arrived(profcol)

    def test_cors_and_headers_of_a_configuration_that_is_gone(self):
        text = CONFIG.replace(HTTP, HTTP + ', cors: {allowed_origins: ["https://*.example.com"]}, response_headers: {x-site: one}').replace(
            GRPC, GRPC + ", max_recv_msg_size_mib: SIZE")
        profcol = self.start(text.replace("SIZE", "4"))
        http = self.open(connections.Http1, profcol.address("http"))
        for size in (5, 6, 7):
            profcol.reload(text.replace("SIZE", str(size)))
            profcol.wait_until_drained()
            answer = client.post(profcol.address("http"), client.TRACES, headers=[("Origin", "https://a.example.com")], connection=http)
            self.assertEqual((answer.status, answer.header("x-site"), answer.header("access-control-allow-origin")),
                             (200, "one", "https://a.example.com"))
            self.assertTrue(http.open)

    def test_unix_socket(self):
        text = CONFIG.replace('"127.0.0.1:@http@"', '"@dir@/socket", transport: unix')
        profcol = self.start(text, "grpc")
        path = profcol.directory / "socket"
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.settimeout(30)
            for size in (5, 6):
                profcol.reload(text.replace(GRPC, GRPC + f", max_recv_msg_size_mib: {size}"))
                profcol.wait_until_drained()
                connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                answer = connection.recv(4096)
                self.assertTrue(answer.startswith(b"HTTP/1.1 404"), answer)
                self.assertNotIn(b"close", answer.lower())
                self.assertTrue(path.exists())
        profcol.stop()
        self.assertFalse(path.exists())


class OtherReceivers(unittest.TestCase):
    """Receivers with one listener, whose other settings change."""

    def test_pyroscope(self):
        text = """
receivers: {pyroscope: {endpoint: "127.0.0.1:@pyroscope@", service_name_header: NAME}}
exporters: {file: {path: "@dir@/out"}}
service: {pipelines: {profiles: {receivers: [pyroscope], exporters: [file]}}}
"""
        with Reloading(text.replace("NAME", "one"), arguments=["--workers", "2"]) as profcol:
            connection = connections.Http1(profcol.address("pyroscope"))
            self.addCleanup(connection.close)
            for name in ("one", "two", "three"):
                profcol.reload(text.replace("NAME", name), "unchanged" if name == "one" else "applied")
                answer = client.post(profcol.address("pyroscope"), "/v1development/profiles", pipelines.sample(1).SerializeToString(),
                                     headers=[(name, f"service {name}") for name in ("one", "two", "three")], connection=connection)
                self.assertEqual((answer.status, connection.open), (200, True))
            profcol.wait_until_drained()
            profcol.stop()
            written = (profcol.directory / "out").read_text()
            for name in ("one", "two", "three"):
                self.assertEqual(written.count(f'"service {name}"'), 1)

    def test_pprof_push(self):
        text = """
receivers: {pprof: {push: {endpoint: "127.0.0.1:@push@", labels: {service_name: NAME}}}}
exporters: {file: {path: "@dir@/out"}}
service: {pipelines: {profiles: {receivers: [pprof], exporters: [file]}}}
"""
        recorded = next((pathlib.Path(os.environ["PROFCOL_SOURCE"]) / "tests" / "data" / "pprof").glob("*heap*")).read_bytes()
        with Reloading(text.replace("NAME", "one"), arguments=["--workers", "2"]) as profcol:
            connection = connections.Http1(profcol.address("push"))
            self.addCleanup(connection.close)
            for name in ("two", "three"):
                profcol.reload(text.replace("NAME", name))
                answer = client.post(profcol.address("push"), "/v1/pprof", recorded, connection=connection)
                self.assertEqual((answer.status, connection.open), (204, True))
            profcol.wait_until_drained()
            profcol.reload(text.replace("NAME", "four").replace("labels", "max_request_body_size: 10000000, labels"))
            answer = client.post(profcol.address("push"), "/v1/pprof", recorded, connection=connection)
            self.assertEqual((answer.status, connection.open), (204, False))
            profcol.wait_until_drained()
            profcol.stop()
            written = (profcol.directory / "out").read_text()
            for name, count in (("two", 1), ("three", 2), ("four", 0)):     # the last one ended a connection of the former listener
                self.assertEqual(written.count(f'"stringValue":"{name}"'), count)


if __name__ == "__main__":
    testing.main()
