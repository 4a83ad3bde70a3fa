"""Settings of listeners, seen by clients: CORS, response headers, Unix sockets, keepalive."""

import os
import signal
import socket
import stat
import sys
import time
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import client, connections, make, server, testing

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc:
        endpoint: "127.0.0.1:@grpc@"
        keepalive: {enforcement_policy: {min_time: 10m, permit_without_stream: true}}
      http:
        endpoint: "127.0.0.1:@http@"
        cors:
          allowed_origins: ["https://*.example.com", "http://localhost:8080"]
          allowed_headers: [X-Api-Key, Content-Type]
          exposed_headers: [x-request-id]
          max_age: 7200
        response_headers: {X-Served-By: "profcol ", Content-Type: text/fancy}
  otlp/unix:
    protocols:
      grpc: {transport: unix, endpoint: "@dir@/grpc.sock"}
      http: {transport: unix, endpoint: "@dir@/http.sock"}
  pyroscope: {endpoint: "127.0.0.1:@pyroscope@", cors: {allowed_origins: ["*"]}}
exporters: {nop: }
service:
  pipelines:
    traces: {receivers: [otlp, otlp/unix], exporters: [nop]}
    profiles: {receivers: [otlp, pyroscope], exporters: [nop]}
"""
MESSAGE = make.traces([{"span_id": "00000000000000a1"}])
TRACES = MESSAGE.SerializeToString()
ORIGIN = "https://app.example.com"
ALLOW = "access-control-allow-"


def cors(answer):
    """The headers of CORS in an answer."""
    names = ((key.lower(), value) for key, value in answer.headers)
    return {key: value for key, value in names if key.startswith("access-control-") or key == "vary"}


def preflight(address, path, origin=ORIGIN, headers="content-type,x-api-key", send=client.post, **options):
    """What a browser asks before its request."""
    fields = [("origin", origin), ("access-control-request-method", "POST"), ("access-control-request-headers", headers)]
    return send(address, path, method="OPTIONS", content_type=None if send is client.post else "text/plain", headers=fields, **options)


class UnixConnections:
    """Makes connections.connect use a Unix socket, whatever the address."""

    def __init__(self, path):
        self.path = str(path)

    def __enter__(self):
        self.connect = connections.connect
        connections.connect = self._connect

    def __exit__(self, *_):
        connections.connect = self.connect

    def _connect(self, _address, timeout=30, _source=None):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(timeout)
        connection.connect(self.path)
        return connection


class ServerSettings(unittest.TestCase):
    """One process for all."""

    @classmethod
    def setUpClass(cls):
        cls.profcol = server.Profcol(CONFIG).start()
        cls.http = cls.profcol.address("http")

    @classmethod
    def tearDownClass(cls):
        cls.profcol.stop()

    def test_preflight(self):
        expected = {"vary": "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
                    ALLOW + "origin": ORIGIN, ALLOW + "credentials": "true", ALLOW + "methods": "POST",
                    ALLOW + "headers": "content-type,x-api-key", "access-control-max-age": "7200"}
        for send in (client.post, client.post_h2c):
            for path in (client.TRACES, "/nowhere"):
                with self.subTest(path, send=send.__name__):
                    answer = preflight(self.http, path, send=send)
                    self.assertEqual((answer.status, answer.body, cors(answer)), (204, b"", expected))
        vary = {"vary": expected["vary"]}
        for origin, headers in (("https://evil.org", "content-type"), (ORIGIN, "x-other"), (ORIGIN, "x-api-key,content-type"), ("", "")):
            with self.subTest(origin, headers=headers):
                answer = preflight(self.http, client.TRACES, origin, headers)
                self.assertEqual((answer.status, cors(answer)), (204, vary))

    def test_requests_of_pages(self):
        shown = {"vary": "Origin", ALLOW + "origin": ORIGIN, ALLOW + "credentials": "true",
                 "access-control-expose-headers": "X-Request-Id"}
        for send in (client.post, client.post_h2c):
            for path, body, status in ((client.TRACES, TRACES, 200), (client.TRACES, b"\xff", 400), ("/nowhere", b"", 404)):
                with self.subTest(path, status=status, send=send.__name__):
                    answer = send(self.http, path, body, headers=[("origin", ORIGIN)])
                    self.assertEqual((answer.status, cors(answer)), (status, shown))
            answer = send(self.http, client.TRACES, TRACES, headers=[("origin", "https://evil.org")])
            self.assertEqual((answer.status, cors(answer)), (200, {"vary": "Origin"}), "the browser refuses, not the server")
        self.assertEqual(client.post(self.http, client.TRACES, method="OPTIONS").status, 405, "no preflight")
        answer = client.post(self.profcol.address("pyroscope"), "/nowhere", headers=[("origin", "https://any.where")])
        self.assertEqual(answer.header(ALLOW + "origin"), "*")

    def test_preflight_floods(self):
        """Neither many nor large questions cost memory or lose other clients their turn."""
        before = self.profcol.rss_bytes()
        long = "https://" + "a" * 12_000 + ".example.com"
        connection = connections.Http1(self.http)
        for origin, headers in ((long, "content-type"), (ORIGIN, "," * 12_000), (ORIGIN, "x-api-key," * 1_000), ("*" * 12_000, "*")):
            for _ in range(200):
                self.assertEqual(preflight(self.http, "/", origin, headers, connection=connection).status, 204)
        connection.close()
        flood = connections.connect(self.http)
        request = client.http1_head("OPTIONS", "/", self.http, [("origin", long), ("access-control-request-method", "POST")])
        flood.settimeout(1)
        try:
            for _ in range(1000):   # and read nothing
                flood.sendall(request)
        except (TimeoutError, ConnectionError):
            pass
        self.assertEqual(client.post(self.http, client.TRACES, TRACES).status, 200)
        flood.close()
        self.assertLess(self.profcol.rss_bytes(), before + (64 << 20))

    def test_response_headers(self):
        for send in (client.post, client.post_h2c):
            for path, status, content in ((client.TRACES, 200, client.PROTOBUF), ("/nowhere", 404, "text/plain; charset=utf-8")):
                answer = send(self.http, path, TRACES)
                self.assertEqual((answer.status, answer.header("x-served-by")), (status, "profcol"))
                self.assertEqual([value for key, value in answer.headers if key.lower() == "content-type"], [content])

    def test_unix_sockets(self):
        for protocol in ("grpc", "http"):
            path = self.profcol.directory / f"{protocol}.sock"
            self.assertTrue(stat.S_ISSOCK(os.stat(path).st_mode))
            with UnixConnections(path):
                self.assertTrue(client.succeeded(client.export(protocol, "localhost", MESSAGE)))

    def test_too_many_pings(self):
        connection = connections.connect(self.profcol.address("grpc"))
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
        connection.sendall(4 * b"\0\0\x08\6\0\0\0\0\0pingpong")
        received = b""
        while part := connection.recv(65536):
            received += part
        connection.close()
        self.assertTrue(received.endswith(b"\0\0\x16\7\0\0\0\0\0" + b"\0\0\0\0" + b"\0\0\0\x0b" + b"too_many_pings"), received)
        # It counts when the client has closed its side, too.
        server.wait_until(lambda: self.profcol.metric("profcol_server_connections_closed", server="receiver otlp", reason="too_many_pings") == 1,
                          what="the count")

    def test_signals_that_end_nothing(self):
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE):
            self.profcol.signal(number)
        self.assertEqual(client.post(self.http, client.TRACES, TRACES).status, 200)


class IdleListeners(unittest.TestCase):
    """Time limits begin with the request, however long the process slept before it."""

    def test_a_request_in_two_parts_after_a_pause(self):
        with server.Profcol(CONFIG) as profcol:
            connection = connections.Http2(profcol.address("grpc"))
            headers = client.grpc_fields("a", ("grpc-timeout", "10S"))
            time.sleep(5.5)    # longer than profcol waits for the first bytes of a body
            stream = connection.start(headers, connections.grpc_frame(TRACES), pause=0.05)
            self.assertEqual(connection.finish(stream).grpc_status, 0)
            connection.close()


class UnixFiles(unittest.TestCase):
    """What becomes of socket files."""

    def test_files_left_behind_are_replaced(self):
        with server.Profcol(CONFIG) as profcol:
            path = profcol.directory / "http.sock"
            profcol.kill()
            self.assertTrue(path.exists())
            profcol.start()
            with UnixConnections(path):
                self.assertEqual(client.post("localhost", client.TRACES, TRACES).status, 200)
            profcol.stop()
            self.assertFalse(path.exists())


if __name__ == "__main__":
    testing.main()
