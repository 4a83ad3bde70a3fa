"""The exporters otlp_grpc and otlp_http with backends that answer correctly, wrongly, late or not at all; and TLS on
both sides."""

import http.client
import os
import ssl
import sys
import tempfile
import unittest

import grpc

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc

from tests.oracle import backend, canonical, certificates, client, connections, make, server, testing
from tests.oracle.pipelines import Held

SPAN, TRACE = "00000000000000a1", "0" * 30 + "c3"
RETRY = "retry_on_failure: {initial_interval: 50ms, max_interval: 200ms}"
INSECURE = "tls: {insecure: true}"

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:@grpc@"RECEIVER}
      http: {endpoint: "127.0.0.1:@http@"RECEIVER}
exporters:
  EXPORTER
service:
  pipelines:
    traces: {receivers: [otlp], exporters: [NAME]}
    profiles: {receivers: [otlp], exporters: [NAME]}
"""


def config(name, *settings, receiver=""):
    """Return YAML with one exporter."""
    text = CONFIG.replace("EXPORTER", f"{name}: {{{', '.join(settings)}}}").replace("NAME", name)
    return text.replace("RECEIVER", f", {receiver}" if receiver else "")


def to(target, name, *settings, **options):
    """Return YAML with one exporter for this backend, without TLS."""
    if name == "otlp_grpc":
        return config(name, f'endpoint: "{target.address}"', INSECURE, *settings, **options)
    return config(name, f'endpoint: "{target.url}"', *settings, **options)


def span(number=0):
    """Return a request with one span."""
    return make.traces([{"span_id": f"{number + 1:016x}", "trace_id": TRACE, "name": f"span {number}"}])


PROFILE = make.profiles([{"values": [5], "attributes": {"thread.name": "main"}},
                         {"values": [7, 8], "timestamps": [3, 4], "link": (SPAN, TRACE)}])


def send(profcol, *messages):
    """Send over gRPC; everything must be accepted."""
    for message in messages:
        answer = client.export("grpc", profcol.address("grpc"), message)
        if not client.succeeded(answer):
            raise AssertionError(client.status(answer))


def wait_sent(profcol, name, count):
    """Wait until profcol has the answer for `count` spans. The backend has them a moment earlier."""
    server.wait_until(lambda: profcol.metric("otelcol_exporter_sent_spans", exporter=name) == count, 20, f"{count} spans sent")


class ExporterTest(unittest.TestCase):
    """Requests at a backend, and the handling of its answers."""

    KINDS = (("otlp_grpc", "grpc"), ("otlp_http", "http"), ("otlp_grpc", "h2"))

    def test_compressions(self):
        for name, kind, encodings in (
                ("otlp_grpc", "h2", ("gzip", "snappy", "zstd", "none", "")),
                ("otlp_grpc", "grpc", ("gzip", "none")),
                ("otlp_http", "http", ("gzip", "zlib", "deflate", "snappy", "x-snappy-framed", "zstd", "lz4", "none"))):
            header = "content-encoding" if name == "otlp_http" else "grpc-encoding"
            for encoding in encodings:
                with self.subTest(name, backend=kind, encoding=encoding), backend.Backend(kind) as target:
                    with server.Profcol(to(target, name, f'compression: "{encoding}"')) as profcol:
                        send(profcol, span(), PROFILE)
                        target.wait(2)
                    self.assertEqual(target.forms("traces"), [canonical.canonical(span())])
                    self.assertEqual(target.forms("profiles"), [canonical.canonical(PROFILE)])
                    for request in target.of():
                        if kind != "grpc":    # gRPC's own server does not provide it
                            want = None if encoding in ("none", "") else encoding
                            self.assertEqual(request.header(header) or None, want)

    def test_json(self):
        with backend.Backend("http") as target:
            with server.Profcol(to(target, "otlp_http", "encoding: json")) as profcol:
                send(profcol, span(), PROFILE)
                target.wait(2)
            self.assertEqual({request.content for request in target.of()}, {"json"})
            self.assertEqual(target.forms("traces"), [canonical.canonical(span())])
            self.assertEqual(target.forms("profiles"), [canonical.canonical(PROFILE)])

    def test_headers(self):
        for name, kind in self.KINDS:
            with self.subTest(name, backend=kind), backend.Backend(kind) as target:
                headers = ("headers: {X-One: 1, x-scope-orgid: tenant, otlp-profiles-development-version: 7, "
                           'Authorization: "Api-Token ${env:PROFCOL_UNSET}", x-blanks: " b  "}')
                with server.Profcol(to(target, name, headers)) as profcol:
                    send(profcol, span(), PROFILE)
                    target.wait(2)
                for request in target.of():
                    self.assertEqual((request.header("x-one"), request.header("x-scope-orgid")), ("1", "tenant"))
                    self.assertEqual((request.header("authorization"), request.header("x-blanks")), ("Api-Token", "b"))
                    self.assertRegex(request.header("user-agent"), r"(?i)profcol/\d")
                versions = [value for key, value in target.of("profiles")[0].headers
                            if key == "otlp-profiles-development-version"]
                self.assertEqual(versions, ["1"], "not the user's")

    def test_urls(self):
        with backend.Backend("http") as target:
            for settings, paths in (
                    ([f'endpoint: "{target.url}"'], ["/v1/traces", "/v1development/profiles"]),
                    ([f'endpoint: "{target.url}/"'], ["/v1/traces", "/v1development/profiles"]),
                    ([f'endpoint: "{target.url}/otlp"'], ["/otlp/v1/traces", "/otlp/v1development/profiles"]),
                    ([f'endpoint: "{target.url}/otlp/"'], ["/otlp/v1/traces", "/otlp/v1development/profiles"]),
                    ([f'endpoint: "{target.url}/otlp"', f'traces_endpoint: "{target.url}/only/here"'],
                     ["/only/here", "/otlp/v1development/profiles"]),
                    ([f'traces_endpoint: "{target.url}/t"', f'profiles_endpoint: "{target.url}/p?x=1"'], ["/t", "/p"])):
                with self.subTest(settings):
                    target.requests.clear()
                    with server.Profcol(config("otlp_http", *settings)) as profcol:
                        send(profcol, span(), PROFILE)
                        target.wait(2)
                    self.assertEqual(sorted(request.path for request in target.of()), sorted(paths))

    def test_retries(self):
        """A retryable request is sent again until the backend accepts it once."""
        failures = {
            "grpc": [backend.Answer(grpc_status=code) for code in (1, 4, 10, 11, 14, 15)]
                    + [backend.Answer(grpc_status=8, retry_after=0.05), backend.Answer(drop=True)],
            "h2": [backend.Answer(grpc_status=14), backend.Answer(reset=7), backend.Answer(drop=True), backend.Answer(reset=2)],
            "http": [backend.Answer(status=status) for status in (429, 502, 503, 504)] + [backend.Answer(drop=True)],
        }
        for name, kind in self.KINDS:
            with self.subTest(name, backend=kind), backend.Backend(kind) as target:
                target.answers.extend(failures[kind])
                with server.Profcol(to(target, name, RETRY)) as profcol:
                    send(profcol, span())
                    target.wait(1)
                    self.assertEqual(len(target.of()), len(failures[kind]) + 1)
                    wait_sent(profcol, name, 1)
                    self.assertFalse(profcol.metric("otelcol_exporter_send_failed_spans", exporter=name))
                self.assertEqual(target.forms("traces"), [canonical.canonical(span())])
                self.assertEqual(len(target.of()), len(failures[kind]) + 1)

    def test_permanent_errors(self):
        """There is one attempt; then the loss is counted and logged."""
        for name, kind, answers in (
                ("otlp_grpc", "grpc", [backend.Answer(grpc_status=code, message="no") for code in (2, 3, 5, 6, 7, 8, 9, 12, 13, 16)]),
                ("otlp_http", "http", [backend.Answer(status=status, message="no") for status in (400, 401, 403, 404, 413, 500, 301)])):
            with self.subTest(name), backend.Backend(kind) as target:
                target.answers.extend(answers)
                with server.Profcol(to(target, name, RETRY, "sending_queue: {num_consumers: 1}"), arguments=["--workers", "1"]) as profcol:
                    send(profcol, *(span(number) for number in range(len(answers) + 1)))
                    target.wait(1)
                    self.assertEqual(len(target.of()), len(answers) + 1)
                    self.assertEqual(profcol.metric("otelcol_exporter_send_failed_spans", exporter=name), len(answers))
                    self.assertRegex(profcol.log(), r"(?i)dropping data")
                self.assertEqual(target.forms("traces"), [canonical.canonical(span(len(answers)))])

    def test_a_delay_that_the_backend_asks_for(self):
        for name, kind, answer in (("otlp_grpc", "grpc", backend.Answer(grpc_status=14, retry_after=1)),
                                   ("otlp_grpc", "h2", backend.Answer(grpc_status=8, retry_after=1)),
                                   ("otlp_http", "http", backend.Answer(status=503, retry_after=1)),
                                   ("otlp_http", "http", backend.Answer(status=429, retry_after=1))):
            with self.subTest(name, answer=answer), backend.Backend(kind) as target:
                target.answers.append(answer)
                with server.Profcol(to(target, name, RETRY)) as profcol:
                    send(profcol, span())
                    target.wait(1)
                first, second = target.of()
                self.assertGreater(second.time - first.time, 0.95)

    def test_a_timeout_is_an_attempt(self):
        for name, kind in self.KINDS:
            with self.subTest(name, backend=kind), backend.Backend(kind) as target:
                target.answers.append(backend.Answer(delay=3))      # which would be success
                with server.Profcol(to(target, name, "timeout: 300ms", RETRY)) as profcol:
                    send(profcol, span())
                    target.wait_for(lambda: len(target.of()) >= 2, what="a second attempt")
                    wait_sent(profcol, name, 1)

    def test_giving_up(self):
        for name, kind, default in (("otlp_grpc", "grpc", backend.Answer(grpc_status=14)),
                                    ("otlp_http", "http", backend.Answer(status=503))):
            with self.subTest(name), backend.Backend(kind, default=default) as target:
                retry = "retry_on_failure: {initial_interval: 50ms, max_interval: 100ms, max_elapsed_time: 1s}"
                with server.Profcol(to(target, name, retry)) as profcol:
                    send(profcol, span())
                    server.wait_until(lambda: profcol.metric("otelcol_exporter_send_failed_spans", exporter=name) == 1,
                                      what="the loss to be counted")
                    self.assertRegex(profcol.log(), r"(?i)no more retries left")
                self.assertGreater(len(target.of()), 1, "it was tried again")

    def test_partial_success_is_said_and_not_sent_again(self):
        partial = b"\x0a\x0b\x08\x05\x12\x07too old"    # rejected_spans 5, error_message
        for name, kind in self.KINDS[:2]:
            with self.subTest(name), backend.Backend(kind, default=backend.Answer(body=partial)) as target:
                with server.Profcol(to(target, name, RETRY)) as profcol:
                    send(profcol, span())
                    profcol.wait_for_log(r"(?i)partial success.*too old|too old.*partial success")
                    wait_sent(profcol, name, 1)
                self.assertEqual(len(target.of()), 1)

    def test_answers_that_make_no_sense(self):
        """A 2xx whose body does not parse is permanent; nothing crashes."""
        for name, kind, body in (("otlp_http", "http", b"\xff\xff"), ("otlp_grpc", "grpc", b"\xff\xff"),
                                 ("otlp_http", "http", b"x" * 300_000)):
            with self.subTest(name, size=len(body)), backend.Backend(kind) as target:
                target.answers.append(backend.Answer(body=body))
                with server.Profcol(to(target, name, RETRY)) as profcol:
                    send(profcol, span(0), span(1))
                    target.wait(2)
                    server.wait_until(lambda: (profcol.metric("otelcol_exporter_sent_spans", exporter=name) or 0) +
                                      (profcol.metric("otelcol_exporter_send_failed_spans", exporter=name) or 0) == 2,
                                      what="both to be settled")
                self.assertEqual(len(target.of()), 2)

    def test_a_backend_that_comes_back(self):
        for name, kind in self.KINDS:
            with self.subTest(name, backend=kind):
                first = backend.Backend(kind)
                port = first.port
                with server.Profcol(to(first, name, RETRY)) as profcol:
                    send(profcol, span(0))
                    first.wait(1)
                    wait_sent(profcol, name, 1)
                    first.stop()
                    send(profcol, span(1))
                    with backend.Backend(kind, port=port) as second:
                        second.wait(1)
                        send(profcol, span(2))
                        second.wait(2)
                        wait_sent(profcol, name, 3)
                        self.assertEqual(sorted(canonical.digest(form) for form in second.forms("traces")),
                                         sorted(canonical.digest(canonical.canonical(span(n))) for n in (1, 2)))

    def test_a_backend_that_starts_later(self):
        for name, kind in self.KINDS:
            with self.subTest(name, backend=kind):
                gone = backend.Backend(kind)
                gone.stop()
                with server.Profcol(to(gone, name, RETRY)) as profcol:
                    send(profcol, span())
                    profcol.wait_for_log(r"(?i)retry")
                    with backend.Backend(kind, port=gone.port) as target:
                        target.wait(1)
                        wait_sent(profcol, name, 1)
                        wait_sent(profcol, name, 1)    # the answer has arrived, too

    def test_connections_are_kept(self):
        for name, kind in self.KINDS:
            with self.subTest(name, backend=kind), backend.Backend(kind) as target:
                with server.Profcol(to(target, name), arguments=["--workers", "1"]) as profcol:
                    for number in range(10):
                        send(profcol, span(number))
                        target.wait(number + 1)
                        wait_sent(profcol, name, number + 1)   # the answer has arrived: the connection is free
                self.assertEqual(len({request.peer for request in target.of()}), 1)

    def test_metrics_of_the_queue(self):
        with Held("http") as target:
            settings = "sending_queue: {queue_size: 50, num_consumers: 1}", "timeout: 60s"
            with server.Profcol(to(target, "otlp_http", *settings), arguments=["--workers", "1"]) as profcol:
                target.hold()
                send(profcol, *(span(number) for number in range(5)))
                labels = {"exporter": "otlp_http", "data_type": "traces"}
                self.assertEqual(profcol.metric("otelcol_exporter_queue_capacity", **labels), 50)
                target.wait_for(lambda: target.of(), what="the first request")
                # Four wait. The one being sent may count or not: versions of the Collector differ.
                self.assertIn(profcol.metric("otelcol_exporter_queue_size", **labels), (4, 5))
                self.assertEqual(profcol.metric("otelcol_exporter_in_flight_requests", **labels), 1)
                target.release()
                target.wait(5)
                server.wait_until(lambda: profcol.metric("otelcol_exporter_queue_size", **labels) == 0, what="an empty queue")
                server.wait_until(lambda: profcol.metric("otelcol_exporter_sent_spans", exporter="otlp_http") == 5, what="the metric")
                send(profcol, PROFILE)
                target.wait(1, "profiles")
                server.wait_until(lambda: profcol.metric("otelcol_exporter_sent_profile_samples", exporter="otlp_http") == 2,
                                  what="the metric")

    def test_batching_in_the_queue(self):
        """Many requests are merged into few, none above max_size, and nothing is lost."""
        settings = "sending_queue: {batch: {flush_timeout: 100ms, min_size: 4, max_size: 6}}"
        for name, kind in self.KINDS:
            with self.subTest(name, backend=kind), backend.Backend(kind) as target:
                with server.Profcol(to(target, name, settings), arguments=["--workers", "1"]) as profcol:
                    for number in range(20):
                        send(profcol, span(number), PROFILE)
                    target.wait_for_items("traces", 20)
                    target.wait_for_items("profiles", 40)
                    server.wait_until(lambda: profcol.metric("otelcol_exporter_sent_profile_samples", exporter=name) == 40,
                                      what="the metric")
                self.assertLess(len(target.of("traces")), 20)
                self.assertLess(len(target.of("profiles")), 20)

    def test_large_requests(self):
        message = make.traces([{"span_id": f"{n + 1:016x}", "trace_id": TRACE, "name": os.urandom(600).hex()} for n in range(2_000)])
        for name, kind in self.KINDS:
            with self.subTest(name, backend=kind), backend.Backend(kind) as target:
                with server.Profcol(to(target, name, "compression: none")) as profcol:
                    answer = client.export("grpc", profcol.address("grpc"), message)
                    self.assertTrue(client.succeeded(answer))
                    target.wait(1)
                self.assertEqual(target.forms("traces"), [canonical.canonical(message)])

    def test_old_names(self):
        for name, kind in (("otlp", "grpc"), ("otlphttp", "http")):
            with self.subTest(name), backend.Backend(kind) as target:
                endpoint = f'endpoint: "{target.url if kind == "http" else target.address}"'
                text = config(f"{name}/x", endpoint, *([INSECURE] if kind == "grpc" else []))
                with server.Profcol(text) as profcol:
                    send(profcol, span())
                    target.wait(1)
                    server.wait_until(lambda: profcol.metric("otelcol_exporter_sent_spans", exporter=f"{name}/x") == 1,
                                      what="the metric under the name as written")
                    self.assertRegex(profcol.log(), rf"(?i)\"?{name}\"?.*deprecated|deprecated.*{name}")


class TlsTest(unittest.TestCase):
    """Receivers and exporters with certificates made for this run."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.made = certificates.Certificates(cls.directory.name)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def receiver(self, *more):
        """TLS settings of a receiver."""
        certificate, key = self.made.server
        return "tls: {" + ", ".join([f"cert_file: {certificate}", f"key_file: {key}", *more]) + "}"

    def context(self, ca=None, own=None, alpn=("http/1.1",)):
        """Return a TLS context of a client."""
        context = ssl.create_default_context(cafile=ca or self.made.ca)
        if own:
            context.load_cert_chain(*own)
        context.set_alpn_protocols(list(alpn))
        return context

    def post(self, profcol, context):
        """Send one HTTPS request. Return the status."""
        connection = http.client.HTTPSConnection("127.0.0.1", profcol.ports["http"], context=context, timeout=20)
        try:
            connection.request("POST", client.TRACES, span().SerializeToString(), {"Content-Type": client.PROTOBUF})
            return connection.getresponse().status
        finally:
            connection.close()

    def export(self, profcol, own=None, ca=None):
        """Make one call with gRPC's own client."""
        def read(path):
            with open(path, "rb") as file:
                return file.read()

        credentials = grpc.ssl_channel_credentials(
            read(ca or self.made.ca), *((read(own[1]), read(own[0])) if own else ()))
        with grpc.secure_channel(profcol.address("grpc"), credentials) as channel:
            return trace_service_pb2_grpc.TraceServiceStub(channel).Export(span(), timeout=20)

    def test_receiver(self):
        with server.Profcol(config("nop", receiver=self.receiver())) as profcol:
            self.assertEqual(self.post(profcol, self.context()), 200)
            self.export(profcol)
            with self.assertRaises(ssl.SSLError):
                self.post(profcol, self.context(self.made.other_ca))
            # Neither cleartext nor random bytes affect the next client.
            for text in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(400), b"\x16\x03\x01\xff\xff"):
                connection = connections.connect(profcol.address("http"))
                connection.sendall(text)
                connection.close()
            self.assertEqual(self.post(profcol, self.context()), 200)
            self.assertEqual(profcol.metric("otelcol_receiver_accepted_spans", receiver="otlp"), 3)

    def test_versions(self):
        with server.Profcol(config("nop", receiver=self.receiver('min_version: "1.3"'))) as profcol:
            self.assertEqual(self.post(profcol, self.context()), 200)
            old = self.context()
            old.maximum_version = ssl.TLSVersion.TLSv1_2
            with self.assertRaises((ssl.SSLError, ConnectionResetError)):
                self.post(profcol, old)

    def test_receiver_with_client_certificates(self):
        settings = self.receiver(f"client_ca_file: {self.made.ca}")
        with server.Profcol(config("nop", receiver=settings)) as profcol:
            self.assertEqual(self.post(profcol, self.context(own=self.made.client)), 200)
            self.export(profcol, own=self.made.client)
            with self.assertRaises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
                self.post(profcol, self.context())
            with self.assertRaises(grpc.RpcError):
                self.export(profcol)
            self.assertEqual(profcol.metric("otelcol_receiver_accepted_spans", receiver="otlp"), 2)

    def test_exporter(self):
        for name, kind in (("otlp_grpc", "grpc"), ("otlp_http", "http")):
            with backend.Backend(kind, tls=self.made.server) as target:
                endpoint = f'endpoint: "https://{target.address}"' if kind == "http" else f'endpoint: "{target.address}"'
                by_name = endpoint.replace("127.0.0.1", "localhost")
                for what, settings, fine in (
                        ("by its CA", (endpoint, f"tls: {{ca_file: {self.made.ca}}}"), True),
                        ("by its name", (by_name, f"tls: {{ca_file: {self.made.ca}}}"), True),
                        ("unchecked", (endpoint, "tls: {insecure_skip_verify: true}"), True),
                        ("another CA", (endpoint, f"tls: {{ca_file: {self.made.other_ca}}}"), False),
                        ("the system's CAs", (endpoint,), False),
                        ("another name", (endpoint, f"tls: {{ca_file: {self.made.ca}, server_name_override: example.com}}"), False),
                        ("its other name", (endpoint, f"tls: {{ca_file: {self.made.ca}, server_name_override: localhost}}"), True)):
                    with self.subTest(name, what=what):
                        target.requests.clear()
                        settings += ("sending_queue: {enabled: false}", "retry_on_failure: {enabled: false}")
                        with server.Profcol(config(name, *settings)) as profcol:
                            answer = client.export("grpc", profcol.address("grpc"), span())
                            if fine:
                                self.assertTrue(client.succeeded(answer), client.status(answer))
                                self.assertEqual(target.forms("traces"), [canonical.canonical(span())])
                            else:
                                self.assertEqual(client.status(answer).code, 14, "a certificate may be put right")
                                self.assertRegex(client.status(answer).message, r"(?i)certificate|tls|verif")
                                self.assertEqual(target.of(), [])

    def test_large_requests(self):
        """Requests larger than a socket's buffer, over HTTP/2 with ALPN and over HTTP/1.1."""
        message = make.traces([{"span_id": f"{n + 1:016x}", "trace_id": TRACE, "name": os.urandom(600).hex()} for n in range(2_000)])
        with tempfile.TemporaryDirectory() as directory:
            out = os.path.join(directory, "out.json")
            with server.Profcol(config("file", f"path: {out}", receiver=self.receiver())) as second:
                trust = f"tls: {{ca_file: {self.made.ca}}}", "compression: none", "sending_queue: {enabled: false}"
                to_http = f'endpoint: "https://{second.address("http")}"'
                for name, settings in (("otlp_grpc", (f'endpoint: "{second.address("grpc")}"',)),
                                       ("otlp_http", (to_http,)),
                                       ("otlp_http", (to_http, "force_attempt_http2: false"))):
                    with self.subTest(name, settings=settings):
                        with server.Profcol(config(name, *settings, *trust)) as first:
                            for _ in range(3):
                                answer = client.export("grpc", first.address("grpc"), message)
                                self.assertTrue(client.succeeded(answer), client.status(answer))
                self.assertEqual(second.metric("otelcol_receiver_accepted_spans", receiver="otlp"), 18_000)

    def test_profcol_to_profcol_with_client_certificates(self):
        certificate, key = self.made.client
        with tempfile.TemporaryDirectory() as directory:
            out = os.path.join(directory, "out.json")
            receiver = self.receiver(f"client_ca_file: {self.made.ca}")
            text = config("file", f"path: {out}", receiver=receiver)
            with server.Profcol(text) as second:
                own = f"cert_file: {certificate}, key_file: {key}"
                for name, endpoint in (("otlp_grpc", second.address("grpc")), ("otlp_http", "https://" + second.address("http"))):
                    for identity, fine in ((own, True), ("", False)):
                        with self.subTest(name, fine=fine):
                            tls = f"tls: {{ca_file: {self.made.ca}, {identity}}}"
                            settings = (f'endpoint: "{endpoint}"', tls, "sending_queue: {enabled: false}",
                                        "retry_on_failure: {enabled: false}")
                            with server.Profcol(config(name, *settings)) as first:
                                for message in (span(), PROFILE):
                                    answer = client.export("http", first.address("http"), message)
                                    self.assertEqual(client.succeeded(answer), fine, answer)
                self.assertEqual(second.metric("otelcol_receiver_accepted_spans", receiver="otlp"), 2)
                self.assertEqual(second.metric("otelcol_receiver_accepted_profile_samples", receiver="otlp"), 4)


if __name__ == "__main__":
    testing.main()
