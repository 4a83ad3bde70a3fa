"""Periodic readers: profcol pushes its own metrics as OTLP."""
import os
import pathlib
import sys
import tempfile
import threading
import unittest

from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import certificates, client, make, server, testing
from tests.oracle.backend import Answer, Backend

CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}, http: {endpoint: "127.0.0.1:@http@"}}}}
processors: {resource: {attributes: [{key: a, value: b, action: upsert}]}}
exporters: {otlp_http: {endpoint: "URL", compression: none, retry_on_failure: {enabled: false}}, debug: {}}
service:
  telemetry:
    resource: {service.name: mine, color: blue}
    metrics:
      level: LEVEL
      readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: @metrics@}}}}READERS]
  pipelines: {traces: {receivers: [otlp], processors: [resource], exporters: [otlp_http, debug]}}
"""
HOUR = 3600000
FAILS = "Cannot push profcol's own metrics. Will try again after interval."
WORKS = "Pushing profcol's own metrics works again"
SPANS = [make.traces([{"span_id": f"00000000000000a{number}"} for number in range(3)])]


def reader(url, interval=HOUR, protocol="http/protobuf", more="", timeout=30000):
    """Return a reader that pushes there."""
    return (f"{{periodic: {{interval: {interval}, timeout: {timeout}, exporter: {{otlp: "
            f"{{protocol: {protocol}, endpoint: \"{url}\"{more}}}}}}}}}")


def started(*readers, level="normal", url="http://127.0.0.1:1", **more):
    """Return a profcol with these periodic readers."""
    config = CONFIG.replace("READERS", "".join(", " + each for each in readers)).replace("LEVEL", level).replace("URL", url)
    return server.Profcol(config, listen=("grpc", "http", "metrics"), **more)


def pushed(request):
    """Return ({attribute of the resource}, {metric: metric message}) of a request."""
    (group,) = metrics_service_pb2.ExportMetricsServiceRequest.FromString(request.payload).resource_metrics
    resource = {pair.key: pair.value.string_value for pair in group.resource.attributes}
    return resource, {metric.name: metric for scope in group.scope_metrics for metric in scope.metrics}


def points(metric):
    """Return {sorted attributes: data point}."""
    data = getattr(metric, metric.WhichOneof("data"))

    def value(pair):
        return getattr(pair.value, pair.value.WhichOneof("value"))

    return {tuple(sorted((pair.key, value(pair)) for pair in point.attributes)): point for point in data.data_points}


class Overlaps(Backend):
    """A backend that counts requests that wait for an answer at the same time."""

    def __init__(self, **options):
        self.most = self.now = 0
        self.lock = threading.Lock()
        super().__init__(**options)

    def on_request(self, received):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        answer = super().on_request(received)
        with self.lock:
            self.now -= 1
        return answer


class Push(unittest.TestCase):
    def send(self, profcol):
        for request in SPANS:
            self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), request)))

    def test_each_protocol_pushes_each_interval(self):
        for kind, protocol, more in (("http", "http/protobuf", ""), ("http", "http/protobuf", ", compression: gzip"),
                                     ("grpc", "grpc", ""), ("grpc", "grpc", ", compression: gzip")):
            with self.subTest(protocol + more), Backend(kind) as backend:
                with started(reader(backend.url, 100, protocol, more)):
                    requests = backend.wait(3, "metrics")
                resource, metrics = pushed(requests[2])
                self.assertEqual((resource["service.name"], resource["color"]), ("mine", "blue"))
                self.assertEqual(metrics["otelcol_process_uptime"].unit, "s")
                times = [next(iter(points(pushed(each)[1]["otelcol_process_uptime"]).values())) for each in requests]
                self.assertEqual(len({point.start_time_unix_nano for point in times}), 1)
                self.assertLess(times[0].time_unix_nano, times[1].time_unix_nano)
                self.assertLess(times[0].as_double, times[1].as_double)

    def test_the_last_push_has_the_final_values(self):
        with Backend() as backend:
            with started(reader(backend.url + "/own/path?a=b")) as profcol:
                self.send(profcol)
            (request,) = backend.of()
        self.assertEqual(request.path, "/own/path")
        _, metrics = pushed(request)
        accepted = points(metrics["otelcol_receiver_accepted_spans"])
        self.assertEqual(accepted[("receiver", "otlp"), ("transport", "grpc")].as_int, 3)
        self.assertEqual(accepted[("receiver", "otlp"), ("transport", "http")].as_int, 0)
        self.assertEqual(points(metrics["otelcol_processor_incoming_items"]).keys(),
                         {(("otel.signal", "traces"), ("processor", "resource"))})

    def test_deltas_have_each_count_once(self):
        answers = [Answer(), Answer(status=503), Answer()]
        with Backend() as backend:
            backend.answers.extend(answers)
            with started(reader(backend.url, 300, more=", temporality_preference: delta"), level="detailed") as profcol:
                for number in range(1, 5):
                    self.send(profcol)
                    backend.wait(number, "metrics")
            requests = backend.of("metrics")
        spans, ends = [], []
        for request in requests:
            _, metrics = pushed(request)
            uptime = metrics["otelcol_process_uptime"].sum
            self.assertEqual(uptime.aggregation_temporality, 1)
            ends.append((uptime.data_points[0].start_time_unix_nano, uptime.data_points[0].time_unix_nano))
            name = "otelcol_receiver_accepted_spans"
            spans.append(sum(point.as_int for point in metrics[name].sum.data_points) if name in metrics else 0)
        # The second push failed, so the third has its counts, too, and its start time.
        self.assertEqual(sum(spans) - spans[1], 4 * len(SPANS) * 3)
        self.assertGreaterEqual(spans[2], spans[1])
        self.assertEqual(ends[2][0], ends[1][0])
        self.assertEqual([start for start, _ in ends[3:]], [end for _, end in ends[2:-1]])

    def test_headers(self):
        more = ", headers: [{name: X-One, value: a}], headers_list: \"x-one=b,x-two=c%20d\""
        with Backend() as backend:
            with started(reader(backend.url, more=more)):
                pass
            (request,) = backend.of("metrics")
        self.assertEqual(request.path, client.METRICS)
        self.assertEqual((request.header("x-one"), request.header("x-two")), ("a", "c d"))
        self.assertEqual(request.header("content-type"), "application/x-protobuf")

    def test_tls(self):
        with tempfile.TemporaryDirectory() as directory:
            made = certificates.Certificates(pathlib.Path(directory))
            for kind, protocol in (("http", "http/protobuf"), ("grpc", "grpc")):
                with self.subTest(kind), Backend(kind, tls=made.server) as backend:
                    url = f"https://{backend.address}"
                    with started(reader(url, protocol=protocol, more=f", certificate: \"{made.ca}\""),
                                 reader(url, protocol=protocol, more=f", certificate: \"{made.other_ca}\"")):
                        pass
                    self.assertEqual(len(backend.of("metrics")), 1)

    def test_a_dead_backend_costs_no_data_and_two_lines(self):
        port = server.free_port()
        with Backend() as sink:
            with started(reader(f"http://127.0.0.1:{port}", 100), url=sink.url) as profcol:
                server.wait_until(lambda: profcol.metric("profcol_telemetry_pushes", result="failed") >= 3, what="failures")
                self.send(profcol)
                sink.wait(1, "traces")
                with Backend(port=port) as again:
                    again.wait(2, "metrics")
                    profcol.wait_for_log(WORKS)
                    self.assertEqual(profcol.log().count(FAILS), 1)
                    self.assertEqual(profcol.log().count(WORKS), 1)
                    server.wait_until(lambda: profcol.metric("profcol_telemetry_pushes", result="ok") >= 2, what="successes")
                    profcol.stop()

    def test_a_slow_backend_gets_one_request_at_a_time(self):
        with Overlaps(default=Answer(delay=0.5)) as backend:
            with started(reader(backend.url, 20)) as profcol:
                backend.wait(2, "metrics")
                self.send(profcol)
                self.assertEqual(backend.most, 1)   # at its end, profcol gives up a request and pushes once more

    def test_a_silent_backend_does_not_stop_the_end(self):
        with Backend(default=Answer(delay=20)) as backend:
            with started(reader(backend.url, timeout=300)) as profcol:
                profcol.stop(timeout=15)
                self.assertIn(FAILS, profcol.log())
            self.assertEqual(len(backend.of("metrics")), 1)

    def test_detailed_measures_outgoing_requests_and_processors(self):
        with Backend() as sink, Backend() as backend:
            with started(reader(backend.url), level="detailed", url=sink.url) as profcol:
                self.send(profcol)
                sink.wait(1, "traces")
                route = {"http_request_method": "POST", "http_response_status_code": "200", "server_address": "127.0.0.1",
                         "server_port": str(sink.port), "url_scheme": "http", "network_protocol_version": "1.1"}
                count = lambda: profcol.metric("http_client_request_duration_count", **route)
                server.wait_until(lambda: count() == 1, what="answer")
                self.assertEqual(profcol.metric("http_client_request_body_size_sum", **route),
                                 len(sink.of("traces")[0].body))
                self.assertEqual(profcol.metric("otelcol_processor_internal_duration_count", processor="resource",
                                                otel_signal="traces"), 1)
            (request,) = backend.of("metrics")
        _, metrics = pushed(request)
        duration = metrics["http.client.request.duration"]
        ((attributes, point),) = points(duration).items()
        self.assertEqual((duration.unit, point.count, dict(attributes)["http.response.status_code"]), ("s", 1, 200))
        self.assertEqual(len(point.bucket_counts), len(point.explicit_bounds) + 1)
        self.assertEqual(sum(point.bucket_counts), 1)

    def test_failures_of_outgoing_requests_are_measured(self):
        with Backend("grpc", default=Answer(grpc_status=8)) as full:
            config = CONFIG.replace("otlp_http: {endpoint: \"URL\", compression: none",
                                    f"otlp_grpc: {{endpoint: \"{full.address}\", tls: {{insecure: true}}")
            config = config.replace("otlp_http", "otlp_grpc").replace("READERS", "").replace("LEVEL", "detailed")
            with server.Profcol(config, listen=("grpc", "http", "metrics"), expect_exit=None) as profcol:
                self.send(profcol)
                labels = {"rpc_method": client.TRACE_SERVICE.strip("/"), "rpc_system_name": "grpc",
                          "rpc_response_status_code": "RESOURCE_EXHAUSTED"}
                server.wait_until(lambda: profcol.metric("rpc_client_call_duration_count", **labels), what="answer")
        with started(level="detailed") as profcol:
            self.send(profcol)
            server.wait_until(lambda: profcol.metric("http_client_request_duration_count", error_type="net.OpError",
                                                     server_port="1"), what="failure")
            failure = {"exporter": "otlp_http", "error_type": "_OTHER", "error_permanent": "false"}
            server.wait_until(lambda: profcol.metric("otelcol_exporter_send_failed_spans", **failure) == 3, what="lost spans")


if __name__ == "__main__":
    testing.main()
