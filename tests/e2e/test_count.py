"""The connector count between pipelines: what it emits, and what becomes of the traces when its metrics are refused."""

import collections
import os
import sys
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, client, make, server, testing

CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}}
processors: {batch: {timeout: 20ms}}
exporters:
  otlp_grpc/data: {endpoint: "DATA", tls: {insecure: true}}
  otlp_grpc/counts: {endpoint: "COUNTS", tls: {insecure: true}, QUEUE}
connectors:
  count:
    spans: {spans: {attributes: [{key: http.route}, {key: service.name, default_value: none}]}}
    samples: {samples: {attributes: [{key: thread, default_value: none}]}}
service:
  pipelines:
    traces: {receivers: [otlp], PROCESSORS exporters: [EXPORTERS]}
    profiles: {receivers: [otlp], exporters: [count]}
    metrics: {receivers: [count], exporters: [otlp_grpc/counts]}
"""
NO_QUEUE = "sending_queue: {enabled: false}, retry_on_failure: {enabled: false}"


def config(data, counts, queue="sending_queue: {}", exporters="count, otlp_grpc/data", processors=""):
    """Return YAML with one backend for the traces and one for the counts."""
    text = CONFIG.replace("DATA", data.address).replace("COUNTS", counts.address).replace("QUEUE", queue)
    return text.replace("EXPORTERS", exporters).replace("PROCESSORS", processors and f"processors: [{processors}],")


def counted(target, metric):
    """Return the sums of all data points of a metric, by the texts of their attributes."""
    sums = collections.Counter()
    for request in target.accepted("metrics"):
        for group in request.message().resource_metrics:
            for scope in group.scope_metrics:
                for found in (m for m in scope.metrics if m.name == metric):
                    for point in found.sum.data_points:
                        sums[tuple(a.value.string_value for a in point.attributes)] += point.as_int
    return sums


def spans(number, count=1):
    """Return a request of a service; its spans alternate between two routes."""
    return make.traces([{"span_id": f"{number:08x}{i + 1:08x}", "attributes": {"http.route": f"/{i % 2}"}} for i in range(count)],
                       resource={"service.name": f"service {number}"})


class Count(unittest.TestCase):
    def export(self, process, request):
        return client.export("grpc", process.address("grpc"), request)

    def test_counts_arrive_beside_the_traces(self):
        with backend.Backend("grpc") as data, backend.Backend("grpc") as counts, server.Profcol(config(data, counts)) as process:
            for number in range(3):
                self.assertTrue(client.succeeded(self.export(process, spans(number, 5))))
            wanted = {(f"/{i % 2}", f"service {n}"): 3 - i for n in range(3) for i in range(2)}
            server.wait_until(lambda: counted(counts, "spans") == wanted, what="all counts")
            server.wait_until(lambda: len(data.accepted("traces")) == 3, what="the traces")
            server.wait_until(lambda: process.metric("otelcol_exporter_sent_metric_points", exporter="otlp_grpc/counts") == 6, what="the sent points")

    def test_samples(self):
        request = make.profiles([{"values": [1], "attributes": {"thread": name}} for name in "abab"] + [{"values": [1]}])
        with backend.Backend("grpc") as data, backend.Backend("grpc") as counts, server.Profcol(config(data, counts)) as process:
            self.assertTrue(client.succeeded(self.export(process, request)))
            server.wait_until(lambda: counted(counts, "samples") == {("a",): 2, ("b",): 2, ("none",): 1}, what="all counts")
            self.assertEqual(counted(counts, "profile.count"), {(): 1})

    def test_a_refusal_reaches_the_client(self):
        """Nobody has accepted anything: the traces have no other exporter."""
        away = backend.Answer(grpc_status=3, message="bad")
        with backend.Backend("grpc") as data, backend.Backend("grpc", default=away) as counts:
            with server.Profcol(config(data, counts, NO_QUEUE, "count")) as process:
                answer = self.export(process, spans(1))
                self.assertEqual((answer.grpc_status, client.status(answer).message), (3, "bad"))

    def test_a_refusal_does_not_touch_the_other_branch(self):
        """The traces arrive, and the client is told success; the lost counts are counted, as spans."""
        away = backend.Answer(grpc_status=3, message="bad")
        with backend.Backend("grpc") as data, backend.Backend("grpc", default=away) as counts:
            with server.Profcol(config(data, counts, NO_QUEUE)) as process:
                self.assertTrue(client.succeeded(self.export(process, spans(1, 4))))
                server.wait_until(lambda: len(data.accepted("traces")) == 1, what="the traces")
                server.wait_until(lambda: process.metric("profcol_branch_lost_spans", to="connector count") == 4, what="the loss")

    def test_acknowledged_traces_are_counted_later(self):
        """batch has acknowledged them; the counts are refused three times, and then accepted once."""
        busy = backend.Answer(grpc_status=14, message="busy")
        with backend.Backend("grpc") as data, backend.Backend("grpc") as counts:
            counts.answers.extend([busy] * 3)
            with server.Profcol(config(data, counts, NO_QUEUE, "count", "batch")) as process:
                self.assertTrue(client.succeeded(self.export(process, spans(1, 4))))
                server.wait_until(lambda: counted(counts, "spans").total() == 4, what="the counts")
            self.assertEqual((counted(counts, "spans").total(), len(counts.requests)), (4, 4))

    def test_the_end_loses_nothing(self):
        with backend.Backend("grpc") as data, backend.Backend("grpc") as counts:
            text = config(data, counts, processors="batch").replace("timeout: 20ms", "timeout: 1h")
            with server.Profcol(text) as process:
                for number in range(10):
                    self.assertTrue(client.succeeded(self.export(process, spans(number, 2))))
            self.assertEqual(counted(counts, "spans").total(), 20)


if __name__ == "__main__":
    testing.main()
