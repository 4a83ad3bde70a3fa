"""Metrics and logs are passed on unchanged, over every protocol and through every component that accepts them."""

import os
import pathlib
import sys
import tempfile
import unittest

from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, canonical, client, decode, make, server, testing
from tests.oracle.pipelines import config, grpc_exporter, http_exporter

NO_QUEUE = "sending_queue: {enabled: false}"
ITEMS = {"metrics": "metric_points", "logs": "log_records"}


def metrics(*services, points=1):
    """Return a request with a resource for each service; the points are of all five kinds in turn."""
    request = metrics_service_pb2.ExportMetricsServiceRequest()
    for service in services:
        group = request.resource_metrics.add(schema_url="https://example.org/1")
        make.set_attributes(group.resource, {"service.name": service})
        scope = group.scope_metrics.add()
        scope.scope.name = "meter"
        for number in range(points):
            metric = scope.metrics.add(name=f"m{number}", unit="By", description="ä")
            kind = ("gauge", "sum", "histogram", "exponential_histogram", "summary")[number % 5]
            point = getattr(metric, kind).data_points.add(time_unix_nano=2**63 + number, start_time_unix_nano=1)
            make.set_attributes(point, {"route": "/a", "code": 200})
            if kind == "gauge":
                point.as_double = 0.0
                point.exemplars.add(as_int=-3, span_id=b"12345678", trace_id=b"1234567812345678")
            elif kind == "sum":
                point.as_int = -number
                metric.sum.is_monotonic = True
                metric.sum.aggregation_temporality = 2
            elif kind == "histogram":
                point.bucket_counts.extend([1, 2**63, 3])
                point.explicit_bounds.extend([0.5, 1e300])
                point.sum = 0.0
            elif kind == "exponential_histogram":
                point.scale = -3
                point.positive.offset = -2
                point.positive.bucket_counts.extend([1, 2**40])
                point.zero_threshold = 1e-9
            else:
                point.quantile_values.add(quantile=0.99, value=float("inf"))
    return request


def logs(*services, records=1):
    """Return a request with a resource for each service."""
    request = logs_service_pb2.ExportLogsServiceRequest()
    for service in services:
        group = request.resource_logs.add()
        make.set_attributes(group.resource, {"service.name": service})
        scope = group.scope_logs.add()
        for number in range(records):
            record = scope.log_records.add(time_unix_nano=number + 1, severity_number=9, severity_text="INFO",
                                           trace_id=b"1234567812345678", span_id=b"12345678", flags=1, event_name="e")
            record.body.string_value = f"line {number}"
            make.set_attributes(record, {"k": 1.5})
    return request


REQUESTS = {"metrics": metrics, "logs": logs}


def pipelines(*exporters):
    """Return one pipeline of each relayed signal."""
    return {signal: exporters for signal in REQUESTS}


class RelayedTest(unittest.TestCase):
    """Each test covers both signals."""

    def check_arrived(self, target, signal, messages):
        """Check that exactly these requests arrived, byte by byte."""
        target.wait(len(messages), signal)
        self.assertCountEqual([request.message().SerializeToString(deterministic=True) for request in target.accepted(signal)],
                              [message.SerializeToString(deterministic=True) for message in messages])

    def test_every_way(self):
        """Tests gRPC, HTTP and JSON, on input and on output."""
        exporters = {"otlp_grpc": grpc_exporter, "otlp_http": http_exporter,
                     "otlp_http/json": lambda target: http_exporter(target, "encoding: json", "compression: none")}
        for exporter, settings in exporters.items():
            kind = "grpc" if exporter == "otlp_grpc" else "http"
            with backend.Backend(kind) as target, \
                    server.Profcol(config({exporter: settings(target)}, pipelines=pipelines(exporter))) as process:
                for signal, request in REQUESTS.items():
                    with self.subTest(exporter, signal=signal):
                        message = request("a", "b", **{"points" if signal == "metrics" else "records": 7})
                        for protocol in ("grpc", "http"):
                            self.assertTrue(client.succeeded(client.export(protocol, process.address(protocol), message)))
                        answer = client.post(process.address("http"), client.PATH[signal],
                                             canonical.encode_json(message).encode(), content_type=client.JSON)
                        self.assertEqual((answer.status, answer.body), (200, b'{"partialSuccess":{}}'))
                        self.check_arrived(target, signal, [message] * 3)
                        self.assertEqual(process.metric(f"otelcol_receiver_accepted_{ITEMS[signal]}", transport="http"), 28)
                        server.wait_until(lambda signal=signal: process.metric(f"otelcol_exporter_sent_{ITEMS[signal]}") == 42,
                                          what="the count of what was sent")

    def test_recordings(self):
        """Relays requests that SDKs sent to a Collector."""
        captures = [capture for name in sorted(decode.CAPTURES.iterdir()) for capture in decode.in_directory(name)
                    if capture.signal in REQUESTS]
        self.assertGreater(len(captures), 0)
        with backend.Backend("grpc") as target, \
                server.Profcol(config({"otlp_grpc": grpc_exporter(target)}, pipelines=pipelines("otlp_grpc"))) as process:
            for capture in captures:
                answer = client.post(process.address("http"), client.PATH[capture.signal], capture.payload,
                                     content_type=client.JSON if capture.content == "json" else client.PROTOBUF)
                self.assertEqual(answer.status, 200, capture.name)
            for signal in REQUESTS:
                sent = [canonical.decode(c.payload, c.signal, c.content) for c in captures if c.signal == signal]
                self.check_arrived(target, signal, sent)

    def test_empty_and_invalid_requests(self):
        with backend.Backend("grpc") as target, \
                server.Profcol(config({"otlp_grpc": grpc_exporter(target)}, pipelines=pipelines("otlp_grpc"))) as process:
            for signal in REQUESTS:
                address = process.address("http")
                self.assertEqual(client.post(address, client.PATH[signal], b"").status, 200)
                answer = client.post(address, client.PATH[signal], b"\x0a\x05")
                self.assertEqual(answer.status, 400)
                self.assertIn(f"resource_{signal}[0]: 5 bytes do not fit", client.status(answer).message)
                answer = client.call(process.address("grpc"), client.METHOD[signal], b"\x0a\x05")
                self.assertEqual(answer.grpc_status, 3)
            self.assertEqual(target.requests, [])

    def test_batch_merges_and_cuts_between_resources(self):
        """With 100 items per resource and at most 250 per request, each request has two resources. A resource of 400 is
        not split."""
        processors = {"batch": "send_batch_size: 200, send_batch_max_size: 250, timeout: 100ms"}
        with backend.Backend("grpc") as target, \
                server.Profcol(config({"otlp_grpc": grpc_exporter(target)}, processors, pipelines("otlp_grpc"))) as process:
            for signal, request in REQUESTS.items():
                count = "points" if signal == "metrics" else "records"
                many, wide = request(*"abcdefg", **{count: 100}), request("w", **{count: 400})
                for message in (many, wide):
                    self.assertTrue(client.succeeded(client.export("grpc", process.address("grpc"), message)))
                server.wait_until(lambda: process.metric(f"otelcol_exporter_sent_{ITEMS[signal]}") == 1100, what="all items")
                groups = [list(getattr(received.message(), f"resource_{signal}")) for received in target.accepted(signal)]
                self.assertCountEqual([group.SerializeToString() for arrived in groups for group in arrived],
                                      [group.SerializeToString() for message in (many, wide)
                                       for group in getattr(message, f"resource_{signal}")])
                self.assertLessEqual(max(len(arrived) for arrived in groups), 2)
                self.assertIn([getattr(wide, f"resource_{signal}")[0]], groups)
            self.assertIn("larger than send_batch_max_size", process.log())

    def test_resource_and_fan_out(self):
        processors = {"memory_limiter": "check_interval: 1s, limit_mib: 400", "resource": "attributes: [{key: env, value: prod, action: upsert}]"}
        with backend.Backend("grpc") as first, backend.Backend("http") as second:
            exporters = {"otlp_grpc": grpc_exporter(first), "otlp_http": http_exporter(second)}
            with server.Profcol(config(exporters, processors, pipelines(*exporters))) as process:
                for signal, request in REQUESTS.items():
                    message = request("a")
                    self.assertTrue(client.succeeded(client.export("http", process.address("http"), message)))
                    make.set_attributes(getattr(message, f"resource_{signal}")[0].resource, {"env": "prod"})
                    self.check_arrived(first, signal, [message])
                    self.check_arrived(second, signal, [message])

    def test_a_dead_backend_of_metrics_leaves_the_logs_alone(self):
        with backend.Backend("grpc", default=backend.Answer(grpc_status=14)) as dead, backend.Backend("grpc") as alive:
            exporters = {"otlp_grpc/dead": grpc_exporter(dead, "sending_queue: {queue_size: 1}"), "otlp_grpc": grpc_exporter(alive)}
            ways = {"metrics": ["otlp_grpc/dead"], "logs": ["otlp_grpc"]}
            with server.Profcol(config(exporters, pipelines=ways), arguments=["--drain-timeout", "1s"], expect_exit=1) as process:
                for _ in range(5):
                    client.export("grpc", process.address("grpc"), metrics("a"))
                    self.assertTrue(client.succeeded(client.export("grpc", process.address("grpc"), logs("a"))))
                self.check_arrived(alive, "logs", [logs("a")] * 5)

    def test_own_paths_and_endpoints(self):
        text = config({"otlp_http": ""}, pipelines=pipelines("otlp_http"))
        text = text.replace(' http: {', ' http: {metrics_url_path: /m, logs_url_path: l, ')
        with backend.Backend("http") as target:
            text = text.replace("otlp_http: {}", f'otlp_http: {{metrics_endpoint: "{target.url}/om", logs_endpoint: "{target.url}/ol"}}')
            with server.Profcol(text) as process:
                for path, wanted, request in (("/m", "/om", metrics("a")), ("/l", "/ol", logs("a"))):
                    self.assertEqual(client.post(process.address("http"), path, request.SerializeToString()).status, 200)
                    target.wait_for(lambda wanted=wanted: [r for r in target.of() if r.path == wanted], what=wanted)
                self.assertEqual(client.post(process.address("http"), "/v1/metrics", b"").status, 404)

    def test_file_and_debug(self):
        with tempfile.TemporaryDirectory() as folder:
            exporters = {"file": f"path: {folder}/out.jsonl", "debug": "verbosity: detailed", "nop": ""}
            with server.Profcol(config(exporters, pipelines=pipelines(*exporters))) as process:
                for signal, request in REQUESTS.items():
                    self.assertTrue(client.succeeded(client.export("grpc", process.address("grpc"), request("a"))))
                server.wait_until(lambda: "line 0" in process.log(), what="the debug output")
                text = process.log()
            self.assertIn('"resource metrics": 1, "data points": 1}', text)
            self.assertIn('"resource logs": 1, "log records": 1}', text)
            lines = pathlib.Path(folder, "out.jsonl").read_text().splitlines()
            self.assertEqual([canonical.decode(lines[0], "metrics", "json"), canonical.decode(lines[1], "logs", "json")],
                             [metrics("a"), logs("a")])


if __name__ == "__main__":
    testing.main()
