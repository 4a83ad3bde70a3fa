"""Attacks of hostile or broken clients on the whole process, while a good client must not be affected.

Other tests cover the limits of single parts; here requests pass a receiver and everything behind it.
"""

import concurrent.futures
import os
import random
import re
import socket
import ssl
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, canonical, certificates, client, connections, floods, make, outputs, server, testing
from tests.oracle.pipelines import InBackground
from tests.oracle.wire import put_bytes as field, put_varint as number

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:@grpc@", max_recv_msg_size_mib: 20}
      http: {endpoint: "127.0.0.1:@http@"}
processors:
  spanjoin: {max_spans: 20000, samples: {wait: 300ms}}
  batch/traces: {timeout: 100ms}
  batch/profiles: {timeout: 100ms}
exporters:
  otlp_http: {endpoint: "HTTP", compression: none}
  debug: {verbosity: basic}
  file/traces: {path: "@dir@/traces.proto", format: proto}
  file/profiles: {path: "@dir@/profiles.proto", format: proto}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [spanjoin, batch/traces], exporters: [otlp_http, debug, file/traces]}
    profiles: {receivers: [otlp], processors: [spanjoin, batch/profiles], exporters: [otlp_http, debug, file/profiles]}
"""
FLOODED = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:@grpc@"}
      http: {endpoint: "127.0.0.1:@http@"}
exporters: {nop: {}}
service:
  pipelines:
    traces: {receivers: [otlp], exporters: [nop]}
    profiles: {receivers: [otlp], exporters: [nop]}
"""
EXPORTING = """
receivers:
  otlp: {protocols: {http: {endpoint: "127.0.0.1:@http@"}}}
exporters:
  EXPORTER
    endpoint: "http://BACKEND"
    timeout: TIMEOUT
    compression: none
    retry_on_failure: {enabled: false}
    sending_queue: {enabled: false}
service:
  pipelines: {traces: {receivers: [otlp], exporters: [NAME]}}
"""
INVALID = 3
CPU_MAX = 1     # seconds for a flood; usual is a tenth of that
LONGER = "5m"   # than a flood lasts: a timeout of the exporter that does not end it
EXHAUSTED = 8
RANDOM = random.Random(11)


def nested(depth):
    """Return a span with an attribute of `depth` nested lists, with correct lengths."""
    parts, size = [], 0
    for _ in range(depth):
        for tag in (1, 5):
            parts.append(number(tag << 3 | 2) + number(size))
            size += len(parts[-1])
    value = b"".join(reversed(parts))
    return field(1, field(2, field(2, field(9, field(1, b"k") + field(2, value)))))


def spans(ids):
    """Return a request of spans that have only ids."""
    return field(1, field(2, b"".join(field(2, field(1, trace_id) + field(2, span_id)) for trace_id, span_id in ids)))


def samples(ids, *, attributes=False):
    """Return a request in which each sample names a different span, by a Link or by an attribute."""
    if attributes:
        rows = b"".join(field(6, b"\x08\x01" + field(2, field(1, span_id.hex().encode()))) for _, span_id in ids)
        own = [field(2, number(i + 1)) for i in range(len(ids))]
        tables = field(5, b"") + field(5, b"span_id") + field(6, b"") + rows
    else:
        rows = b"".join(field(4, field(1, trace_id) + field(2, span_id)) for trace_id, span_id in ids)
        own = [b"\x18" + number(i + 1) for i in range(len(ids))]
        tables = field(5, b"") + field(4, b"") + rows
    listed = b"".join(field(2, named + b"\x22\x01\x01") for named in own)
    return field(1, field(2, field(2, listed))) + field(2, tables)


def random_ids(count):
    """Return unique (trace id, span id) pairs."""
    return [(RANDOM.randbytes(16), RANDOM.randbytes(8)) for _ in range(count)]


class Good:
    """A client that sometimes sends a span and its sample, and expects success."""

    def __init__(self, test, profcol):
        self.test, self.sent, self.both = test, [], client.Both(profcol)

    def send(self):
        """Send one of each, over both protocols."""
        for protocol in self.both.connections:
            span_id, trace_id = f"{1 + len(self.sent):016x}", f"{1 + len(self.sent):032x}"
            builder = make.ProfilesBuilder()
            builder.sample(stack=builder.stack("leaf"), values=[1], link=(span_id, trace_id))
            for message in (make.traces([{"span_id": span_id, "trace_id": trace_id, "name": "good"}]), builder.request):
                answer = self.both.export(protocol, message)
                self.test.assertTrue(client.succeeded(answer), answer)
            self.sent.append(span_id)

    def close(self):
        """Close its connections."""
        self.both.close()


class AttacksTest(unittest.TestCase):
    """See the module."""

    def check_answer(self, answer, refused):
        """Check for success, or for the gRPC code of a refusal."""
        if refused:
            self.assertEqual(client.status(answer).code, refused)
        else:
            self.assertTrue(client.succeeded(answer), answer)

    def check_delivered(self, good, directory):
        """Check that each span and sample of the good client arrived once, and each sample joined."""
        messages = {signal: [canonical.decode(record, signal, "protobuf")
                             for record in outputs.records(directory / f"{signal}.proto", "proto")]
                    for signal in ("traces", "profiles")}
        mine = [span.span_id.hex() for message in messages["traces"] for resource in message.resource_spans
                for scope in resource.scope_spans for span in scope.spans if span.name == "good"]
        self.assertEqual(sorted(mine), good.sent)
        mine = []
        for message in messages["profiles"]:
            tables = message.dictionary
            links = [link.span_id.hex() for link in tables.link_table]
            names = {i for i, row in enumerate(tables.attribute_table) if row.value.string_value == "good"}
            for sample in (sample for resource in message.resource_profiles for scope in resource.scope_profiles
                           for profile in scope.profiles for sample in profile.samples):
                if names.intersection(sample.attribute_indices):
                    mine.append(links[sample.link_index])
        self.assertEqual(sorted(mine), good.sent)

    def test_requests_that_cost_more_than_they_weigh(self):
        attacks = [
            ("traces", "half a million empty spans", field(1, field(2, b"\x12\x00" * 500_000)), None),
            ("traces", "ten million empty spans", field(1, field(2, b"\x12\x00" * 10_000_000)), INVALID),
            ("traces", "empty resources", b"\x0a\x00" * 10_000_000, INVALID),
            ("profiles", "empty resources", b"\x0a\x00" * 10_000_000, INVALID),
            ("traces", "as deep as allowed", nested(45), None),
            ("traces", "too deep", nested(5000), INVALID),
            ("traces", "far too deep", nested(1_000_000), INVALID),
            ("traces", "groups", b"\x0b" * 1_000_000, INVALID),
            ("traces", "more spans than the index holds", spans(random_ids(50_000)), None),
            ("traces", "one span id in many traces", spans([(RANDOM.randbytes(16), b"same one") for _ in range(50_000)]), None),
            ("profiles", "a link for each sample", samples(random_ids(70_000)), None),
            ("profiles", "an attribute for each sample", samples(random_ids(70_000), attributes=True), None),
            ("profiles", "half a million samples", field(1, field(2, field(2, b"\x12\x03\x22\x01\x01" * 500_000))), None),
            ("profiles", "empty profiles", field(1, field(2, b"\x12\x00" * 8_000)), None),
            ("profiles", "more empty profiles", field(1, field(2, b"\x12\x00" * 100_000)), EXHAUSTED),
            ("profiles", "too many profiles", field(1, field(2, b"\x12\x00" * 5_000_000)), EXHAUSTED),
            ("traces", "too many scopes", field(1, b"\x12\x00" * 1_000_000), EXHAUSTED),
            ("profiles", "too many scopes", field(1, b"\x12\x00" * 1_000_000), EXHAUSTED),
        ]
        with backend.Backend("http") as behind:
            with server.Profcol(CONFIG.replace("HTTP", behind.url), arguments=["--workers", "2"]) as profcol:
                good = Good(self, profcol)
                for signal, what, body, refused in attacks:
                    with self.subTest(what):
                        answer = client.post(profcol.address("http"), client.PATH[signal], body)
                        self.check_answer(answer, refused)
                        if len(body) < 5_000_000:
                            self.check_answer(client.call(profcol.address("grpc"), client.METHOD[signal], body), refused)
                        good.send()
                good.close()
                self.assertEqual(profcol.stop(60), 0)
                self.check_delivered(good, profcol.directory)

    def is_served(self, profcol):
        """Return whether a client that connects now gets its answers."""
        late = Good(self, profcol)
        try:
            late.send()
        except ConnectionError:
            return False
        finally:
            late.close()
        return True

    def test_more_connections_than_descriptors(self):
        """Exporters, files and metrics have reserved descriptors, and existing connections stay open."""
        with backend.Backend("http") as behind:
            text = CONFIG.replace("HTTP", behind.url)
            with LimitedProfcol(text, descriptors=128) as profcol:
                good = Good(self, profcol)
                good.send()     # both of its connections are accepted
                crowd = []
                for i in range(200):
                    crowd.append(socket.create_connection(("127.0.0.1", profcol.ports["grpc" if i % 2 else "http"])))
                profcol.wait_for_log("Cannot accept a connection: the other descriptors are reserved")
                self.assertGreater(profcol.metric("profcol_server_connections"), 10)
                good.send()
                for signal in ("traces", "profiles"):
                    behind.wait_for_items(signal, len(good.both.connections) * 2)
                for connection in crowd:
                    connection.close()
                # Connections of the crowd in the kernel's queues are accepted first, and count until the server notices
                # that they are closed.
                server.wait_until(lambda: self.is_served(profcol), what="a new client is served")
                good.close()


class FloodsTest(unittest.TestCase):
    """Floods of frames that cost the receiver more than the sender."""

    def check(self, name, closed, cpu):
        """Check that the connection was closed before it cost much."""
        print(f"{name}: {cpu:.2f} s of CPU", flush=True)
        self.assertTrue(closed, f"{name}: still open")
        self.assertLess(cpu, CPU_MAX, name)

    def test_floods_of_clients(self):
        with server.Profcol(FLOODED, arguments=["--workers", "1"]) as profcol:
            good = Good(self, profcol)
            good.send()
            for protocol in ("grpc", "http"):
                for name, flood in floods.against_servers().items():
                    with self.subTest(name, protocol=protocol):
                        self.check(f"{protocol}, {name}", *floods.run(profcol.address(protocol), flood, profcol.process.pid))
                        good.send()
            good.close()

    def test_large_metadata_costs_its_own_stream(self):
        message = make.traces([{"span_id": "1" * 16, "trace_id": "1" * 32}]).SerializeToString()
        good, bad = ([("x-token", "v" * size * 1024)] for size in (12, 40))
        with server.Profcol(FLOODED) as profcol:
            for protocol in ("grpc", "http"):
                address = profcol.address(protocol)
                connection = connections.Http2(address)
                send = client.call if protocol == "grpc" else client.post_h2c
                where = client.METHOD["traces"] if protocol == "grpc" else client.PATH["traces"]
                for _ in range(5):
                    self.assertTrue(client.succeeded(send(address, where, message, headers=good, connection=connection)))
                    answer = send(address, where, message, headers=bad, connection=connection)
                    self.assertEqual((answer.status, answer.grpc_status), (200, 8) if protocol == "grpc" else (431, None))
                connection.close()
            self.assertTrue(client.succeeded(client.post(address, where, message, headers=good)))
            self.assertEqual(client.post(address, where, message, headers=bad).status, 431)

    def check_exporter(self, exporter, attacks, *, timeout=LONGER, wait=0.1):
        """Send requests to a backend that answers each with one of the floods, after `wait` seconds."""
        config = EXPORTING.replace("EXPORTER", f"{exporter}:").replace("NAME", exporter).replace("TIMEOUT", timeout)
        message = make.traces([{"span_id": "1" * 16, "trace_id": "1" * 32}])
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(20 * server.PATIENCE)
            config = config.replace("BACKEND", "127.0.0.1:%d" % listener.getsockname()[1])
            with server.Profcol(config, arguments=["--workers", "1"]) as profcol:
                for name, flood in attacks.items():
                    with self.subTest(name):
                        sender = InBackground("http", profcol.address("http"), message)
                        with listener.accept()[0] as connection:
                            time.sleep(wait)
                            before = floods.cpu_seconds(profcol.process.pid)
                            closed = floods.send(connection, flood)
                            cpu = floods.cpu_seconds(profcol.process.pid) - before
                        sender.result()
                        self.check(name, closed, cpu)

    def test_floods_of_backends(self):
        settings = floods.settings()
        for what, before, timeout, wait in [
                ("before the answer", settings, LONGER, 0.1),
                ("in the answer", settings + floods.answer(1), LONGER, 0.1),
                ("after the answer", settings + floods.answer(1, end=True), LONGER, 0.1),
                ("after the timeout", settings, "200ms", 0.5)]:
            attacks = {f"{what}, {name}": floods.Flood(before, repeat) for name, repeat in floods.against_clients().items()}
            self.check_exporter("otlp_grpc", attacks, timeout=timeout, wait=wait)

    def test_floods_of_http1_backends(self):
        attacks = {name: floods.Flood(*flood) for name, flood in floods.against_http1_clients().items()}
        self.check_exporter("otlp_http", attacks)


class MetricsHostTest(unittest.TestCase):
    """A web page whose host name resolves to this machine cannot read the metrics."""

    def test_host(self):
        with server.Profcol(FLOODED) as profcol:
            for host, expected in [("127.0.0.1:8888", 200), ("127.0.0.1", 200), ("localhost:8888", 200), ("LOCALHOST", 200),
                                   ("[::1]:8888", 200), ("attacker.example", 403), ("attacker.example:8888", 403),
                                   ("127.0.0.1.attacker.example", 403), ("localhost.attacker.example:80", 403), ("u@127.0.0.1", 400)]:
                with self.subTest(host):
                    connection = connections.Http1(profcol.address("metrics"))
                    answer = connection.request(client.http1_head("GET", "/metrics", host, []))
                    self.assertEqual(answer.status, expected)
                    connection.close()


class CrowdsTest(unittest.TestCase):
    """Many connections at once."""

    def test_tls_handshakes_at_once(self):
        """Each turn of the loop continues a few handshakes; all of them get their turn."""
        with tempfile.TemporaryDirectory() as directory:
            made = certificates.Certificates(directory)
            tls = f'http: {{tls: {{cert_file: "{made.server[0]}", key_file: "{made.server[1]}"}}, endpoint'
            with server.Profcol(FLOODED.replace("http: {endpoint", tls), arguments=["--workers", "1"]) as profcol:
                context = ssl.create_default_context(cafile=made.ca)
                plain = [connections.connect(profcol.address("http")) for _ in range(100)]
                with concurrent.futures.ThreadPoolExecutor(len(plain)) as pool:
                    crowd = list(pool.map(lambda one: context.wrap_socket(one, server_hostname="localhost"), plain))
                for connection in crowd:
                    connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                for connection in crowd:
                    self.assertTrue(connection.recv(4096).startswith(b"HTTP/1.1 404"))
                    connection.close()

    def test_a_full_listener_says_so(self):
        with server.Profcol(FLOODED.replace("http: {endpoint", "http: {max_connections: 3, endpoint")) as profcol:
            crowd = [connections.connect(profcol.address("http")) for _ in range(4)]
            profcol.wait_for_log(r'max_connections is reached: new clients wait.*"max_connections": 3')
            crowd[0].close()
            crowd[3].sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertTrue(crowd[3].recv(4096).startswith(b"HTTP/1.1 404"))
            for connection in crowd:
                connection.close()

    def test_failed_tls_handshakes_are_logged_in_sum(self):
        made = certificates.Certificates(self.enterContext(tempfile.TemporaryDirectory()))
        listener = f"tls: {{cert_file: {made.server[0]}, key_file: {made.server[1]}}}, endpoint"
        with server.Profcol(FLOODED.replace("http: {endpoint", "http: {" + listener), arguments=["--workers", "1"]) as profcol:
            with connections.connect(profcol.address("http")):
                pass                         # a probe: nothing to log
            for request in [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"] + 49 * [b"nonsense\r\n\r\n"]:
                with connections.connect(profcol.address("http")) as connection:
                    connection.sendall(request)
                    answer = connection.recv(4096)
                    self.assertEqual(answer.startswith(b"HTTP/1.0 400 Bad Request\r\n"), request.startswith(b"GET"))
            server.wait_until(lambda: profcol.metric("profcol_server_connections_closed", reason="tls_failed") >= 50,
                              what="connections are closed")
            profcol.wait_for_log(r'TLS handshakes of clients failed.*"tls: the client sent an HTTP request without TLS".*'
                                 r'"failed_handshakes": 1, "last_address": "127\.0\.0\.1"')
            self.assertLess(len(re.findall("handshakes of clients failed", profcol.log())), 5)

    def test_connections_of_one_address(self):
        limit = "max_connections_per_ip: 5, endpoint"
        with server.Profcol(FLOODED.replace("endpoint", limit)) as profcol:
            good = Good(self, profcol)
            good.send()
            crowd = [connections.connect(profcol.address("http")) for _ in range(50)]
            server.wait_until(lambda: profcol.metric("profcol_server_connections_closed", reason="per_ip") >= 40,
                              what="connections are closed")
            profcol.wait_for_log(r'max_connections_per_ip": 5.*127\.0\.0\.1')
            self.assertLess(len(re.findall("had reached max_connections_per_ip", profcol.log())), 5)
            for connection in crowd:
                connection.close()
            good.send()
            good.close()


class LimitedProfcol(server.Profcol):
    """A process with few file descriptors."""

    def __init__(self, config, *, descriptors, **options):
        super().__init__(config, **options)
        wrapper = self.directory / "limited"
        wrapper.write_text(f'#!/bin/sh\nulimit -n {descriptors}\nexec {self.binary} "$@"\n')
        wrapper.chmod(0o755)
        self.binary = str(wrapper)


if __name__ == "__main__":
    testing.main()
