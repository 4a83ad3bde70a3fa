"""The connector routing: which resources and spans arrive at which pipelines."""

import os
import sys
import unittest

from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, client, decode, make, server, testing

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@", include_metadata: true}}}
exporters:
  otlp_grpc/a: {endpoint: "AT_A", tls: {insecure: true}, retry_on_failure: {enabled: false}, QUEUE}
  otlp_grpc/b: {endpoint: "AT_B", tls: {insecure: true}, retry_on_failure: {enabled: false}, QUEUE}
  otlp_grpc/rest: {endpoint: "AT_REST", tls: {insecure: true}, retry_on_failure: {enabled: false}, QUEUE}
connectors:
  routing: TABLE
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    SIGNAL/in: {receivers: [otlp], exporters: [routing]}
    SIGNAL/a: {receivers: [routing], exporters: [otlp_grpc/a]}
    SIGNAL/b: {receivers: [routing], exporters: [otlp_grpc/b]}
    SIGNAL/rest: {receivers: [routing], exporters: [otlp_grpc/rest]}
"""
NO_QUEUE = "sending_queue: {enabled: false}"
REST = "default_pipelines: [SIGNAL/rest], "
TO_A, TO_B = "pipelines: [SIGNAL/a]", "pipelines: [SIGNAL/b]"


def traces(*groups):
    """Return a request with a resource for each (service, names of its spans); the kind of a span is its position."""
    request = trace_service_pb2.ExportTraceServiceRequest()
    for service, names in groups:
        group = request.resource_spans.add(schema_url="https://example.org")
        make.set_attributes(group.resource, {"service.name": service})
        for scope_name in ("one", "two"):
            scope = group.scope_spans.add()
            scope.scope.name = scope_name
            for number, name in enumerate(names):
                if number % 2 == (scope_name == "two"):
                    scope.spans.add(name=name, trace_id=bytes(15) + b"1", span_id=(number + 1).to_bytes(8, "big"), kind=number)
    return request


def metrics(*groups):
    """Return a request with a resource for each (service, names of its gauges)."""
    request = metrics_service_pb2.ExportMetricsServiceRequest()
    for service, names in groups:
        group = request.resource_metrics.add()
        make.set_attributes(group.resource, {"service.name": service})
        scope = group.scope_metrics.add()
        for name in names:
            scope.metrics.add(name=name).gauge.data_points.add(as_int=1)
    return request


def logs(*groups):
    """Return a request with a resource for each (service, event names of its records)."""
    request = logs_service_pb2.ExportLogsServiceRequest()
    for service, names in groups:
        group = request.resource_logs.add()
        make.set_attributes(group.resource, {"service.name": service})
        scope = group.scope_logs.add()
        for name in names:
            scope.log_records.add(event_name=name)
    return request


MAKE = {"traces": traces, "metrics": metrics, "logs": logs}


def items_of(signal, group):
    """Return the names of the items of a group."""
    if signal == "traces":
        return [span.name for scope in group.scope_spans for span in scope.spans]
    if signal == "metrics":
        return [metric.name for scope in group.scope_metrics for metric in scope.metrics]
    return [record.event_name for scope in group.scope_logs for record in scope.log_records]


def arrived(target, signal):
    """Return the sorted (service, names of its items) that arrived."""
    groups = []
    for request in target.accepted(signal):
        message = request.message()
        for group in getattr(message, {"traces": "resource_spans", "metrics": "resource_metrics", "logs": "resource_logs"}[signal]):
            service = next((a.value.string_value for a in group.resource.attributes if a.key == "service.name"), None)
            groups.append((service, tuple(sorted(items_of(signal, group)))))
    return sorted(groups)


SHOP, CART, LONE = ("shop", ("x", "y", "z")), ("cart", ("y", "z")), ("lone", ("w",))
EVERYTHING = [SHOP, CART, LONE]
EMPTY = ("none", ())

# What, signal, table, metadata, groups that are sent; what arrives at a, b, rest.
CASES = [
    ("a resource moves", "traces",
     REST + f"table: [{{condition: 'resource.attributes[\"service.name\"] == \"shop\"', {TO_A}}}]", {}, EVERYTHING,
     [SHOP], [], [CART, LONE]),
    ("the first route that matches counts", "traces",
     f"table: [{{condition: 'IsMatch(resource.attributes[\"service.name\"], \"^.h\")', {TO_A}}}, "
     f"{{context: resource, statement: 'route() where attributes[\"service.name\"] != nil', {TO_B}}}]", {}, EVERYTHING,
     [SHOP], [CART, LONE], []),
    ("copies go on", "traces",
     REST + f"table: [{{condition: 'resource.attributes[\"service.name\"] != \"lone\"', action: copy, {TO_A}}}, "
     f"{{condition: 'resource.attributes[\"service.name\"] == \"cart\"', {TO_B}}}]", {}, EVERYTHING,
     [SHOP, CART], [CART], [SHOP, LONE]),
    ("everything goes one way", "traces", REST + f"table: [{{context: resource, condition: 'true', {TO_A}}}]", {}, EVERYTHING,
     EVERYTHING, [], []),
    ("everything is copied", "traces",
     REST + f"table: [{{context: resource, condition: 'true', action: copy, {TO_A}}}, "
     f"{{context: resource, condition: 'not false', action: copy, {TO_B}}}]", {}, EVERYTHING,
     EVERYTHING, EVERYTHING, EVERYTHING),
    ("two pipelines get the same", "traces",
     REST + "table: [{condition: 'resource.attributes[\"service.name\"] == \"cart\"', pipelines: [SIGNAL/a, SIGNAL/b]}]", {}, EVERYTHING,
     [CART], [CART], [SHOP, LONE]),
    ("without a default the rest is dropped", "traces",
     f"table: [{{condition: 'resource.attributes[\"service.name\"] == \"cart\"', {TO_A}}}]", {}, EVERYTHING,
     [CART], [], []),
    ("paths without a context are of the resource", "traces",
     REST + f"table: [{{condition: 'attributes[\"service.name\"] == \"cart\"', {TO_A}}}]", {}, EVERYTHING,
     [CART], [], [SHOP, LONE]),
    ("spans move", "traces",
     REST + f"table: [{{condition: 'span.name == \"y\"', {TO_A}}}, {{context: span, condition: 'kind == SPAN_KIND_INTERNAL', {TO_B}}}]",
     {}, EVERYTHING,
     [("shop", ("y",)), ("cart", ("y",))], [("cart", ("z",))], [("shop", ("x", "z")), LONE]),
    ("spans are copied", "traces",
     REST + f"table: [{{condition: 'span.name == \"y\"', action: copy, {TO_A}}}, "
     f"{{condition: 'resource.attributes[\"service.name\"] == \"shop\"', {TO_B}}}]", {}, EVERYTHING,
     [("shop", ("y",)), ("cart", ("y",))], [SHOP], [CART, LONE]),
    ("a resource and then spans", "traces",
     REST + f"table: [{{condition: 'resource.attributes[\"service.name\"] == \"shop\"', {TO_A}}}, {{condition: 'span.name == \"y\"', {TO_B}}}]",
     {}, EVERYTHING,
     [SHOP], [("cart", ("y",))], [("cart", ("z",)), LONE]),
    ("a resource without spans moves", "traces",
     REST + f"table: [{{condition: 'resource.attributes[\"service.name\"] == \"none\"', {TO_A}}}]", {}, [EMPTY, SHOP],
     [EMPTY], [], [SHOP]),
    ("an error is no match", "traces",
     REST + f"table: [{{condition: 'resource.attributes[\"service.name\"] + 1 == 2', {TO_A}}}, "
     f"{{condition: 'resource.attributes[\"service.name\"] == \"cart\"', {TO_B}}}]", {}, EVERYTHING,
     [], [CART], [SHOP, LONE]),
    ("a header", "traces",
     REST + f"table: [{{context: request, condition: 'request[\"X-Tenant\"] == \"acme\"', {TO_A}}}]", {"x-tenant": "acme"}, EVERYTHING,
     EVERYTHING, [], []),
    ("another header", "traces",
     REST + f"table: [{{context: request, condition: 'request[\"X-Tenant\"] == \"acme\"', {TO_A}}}]", {"x-tenant": "x"}, EVERYTHING,
     [], [], EVERYTHING),
    ("not this header", "traces",
     REST + f"table: [{{context: request, condition: 'request[\"x-tenant\"] != \"acme\"', {TO_A}}}]", {"x-tenant": "x"}, EVERYTHING,
     EVERYTHING, [], []),
    ("no header", "traces",
     REST + f"table: [{{context: request, condition: 'request[\"x-tenant\"] != \"acme\"', {TO_A}}}]", {}, EVERYTHING,
     [], [], EVERYTHING),
    ("a header and then a resource", "traces",
     REST + f"table: [{{context: request, condition: 'request[\"x-tenant\"] == \"acme\"', action: copy, {TO_A}}}, "
     f"{{condition: 'resource.attributes[\"service.name\"] == \"shop\"', {TO_B}}}]", {"x-tenant": "acme"}, EVERYTHING,
     EVERYTHING, [SHOP], [CART, LONE]),
    ("metrics", "metrics",
     REST + f"table: [{{condition: 'resource.attributes[\"service.name\"] == \"shop\"', {TO_A}}}]", {}, EVERYTHING,
     [SHOP], [], [CART, LONE]),
    ("logs", "logs",
     REST + f"table: [{{condition: 'HasPrefix(resource.attributes[\"service.name\"], \"c\")', action: copy, {TO_A}}}]", {}, EVERYTHING,
     [CART], [], EVERYTHING),
]


def render(signal, table, targets, queue=NO_QUEUE):
    """Return YAML with this table."""
    text = CONFIG.replace("TABLE", "{" + table + "}").replace("QUEUE", queue).replace("SIGNAL", signal)
    for name, target in targets.items():
        text = text.replace(f"AT_{name}", target.address)
    return text


class RoutingTest(unittest.TestCase):
    """What is sent to one receiver and arrives at three backends."""

    def test_data_takes_its_routes(self):
        for what, signal, table, metadata, sent, *wanted in CASES:
            with self.subTest(what), backend.Backend("grpc") as a, backend.Backend("grpc") as b, backend.Backend("grpc") as rest:
                with server.Profcol(render(signal, table, {"A": a, "B": b, "REST": rest})) as process:
                    answer = client.export("grpc", process.address("grpc"), MAKE[signal](*sent), headers=list(metadata.items()))
                self.assertTrue(client.succeeded(answer))
                self.assertEqual([arrived(target, signal) for target in (a, b, rest)], [sorted(groups) for groups in wanted])

    def test_the_rest_of_a_message_stays(self):
        """Scopes, schema URLs and ids of spans that move are as they were."""
        table = REST + f"table: [{{condition: 'span.name == \"y\"', {TO_A}}}]"
        with backend.Backend("grpc") as a, backend.Backend("grpc") as rest:
            with server.Profcol(render("traces", table, {"A": a, "B": a, "REST": rest})) as process:
                client.export("grpc", process.address("grpc"), traces(SHOP, CART))
            (request,) = a.accepted("traces")
            groups = request.message().resource_spans
        self.assertEqual([(g.schema_url, [(s.scope.name, len(s.spans)) for s in g.scope_spans]) for g in groups],
                         [("https://example.org", [("two", 1)]), ("https://example.org", [("one", 1)])])
        self.assertEqual(groups[0].scope_spans[0].spans[0].span_id, bytes(7) + b"\x02")

    def test_profiles_take_only_what_they_need(self):
        """The dictionary of a part has no text of the others."""
        table = REST + f"table: [{{condition: 'resource.attributes[\"service.name\"] == \"shop\"', {TO_A}}}]"
        request = make.profiles([{"attributes": {"k": "shop_secret"}, "values": [1]}], resource={"service.name": "shop"})
        other = make.profiles([{"attributes": {"k": "cart_secret"}, "values": [2]}], resource={"service.name": "cart"})
        with backend.Backend("grpc") as a, backend.Backend("grpc") as rest:
            text = render("profiles", table, {"A": a, "B": a, "REST": rest})
            text = text.replace("exporters: [routing]", "processors: [batch], exporters: [routing]")
            text = text.replace("exporters:\n", "processors: {batch: {timeout: 300ms}}\nexporters:\n", 1)
            with server.Profcol(text) as process:
                for message in (request, other):
                    self.assertTrue(client.succeeded(client.export("grpc", process.address("grpc"), message)))
            for target, own, foreign in ((a, b"shop_secret", b"cart_secret"), (rest, b"cart_secret", b"shop_secret")):
                (received,) = target.accepted("profiles")
                data = received.message().SerializeToString()
                self.assertIn(own, data)
                self.assertNotIn(foreign, data)

    def test_a_refusal_of_one_part_reaches_the_client(self):
        """The other part arrived, and will arrive again when the client sends everything once more."""
        table = REST + f"table: [{{condition: 'resource.attributes[\"service.name\"] == \"shop\"', {TO_A}}}]"
        away = backend.Answer(grpc_status=3, message="bad")
        with backend.Backend("grpc") as a, backend.Backend("grpc", default=away) as rest:
            with server.Profcol(render("traces", table, {"A": a, "B": a, "REST": rest})) as process:
                answer = client.export("grpc", process.address("grpc"), traces(SHOP, CART))
                self.assertEqual((answer.grpc_status, client.status(answer).message), (3, "bad"))
            self.assertEqual(arrived(a, "traces"), [SHOP])

    def test_an_error_can_refuse_the_request(self):
        table = f"error_mode: propagate, {REST}table: [{{condition: 'resource.attributes[\"service.name\"] + 1 == 2', {TO_A}}}]"
        with backend.Backend("grpc") as a:
            with server.Profcol(render("traces", table, {"A": a, "B": a, "REST": a})) as process:
                answer = client.export("grpc", process.address("grpc"), traces(SHOP))
                self.assertEqual(answer.grpc_status, 14)
                self.assertIn("failed to eval condition", client.status(answer).message)
            self.assertEqual(a.accepted("traces"), [])

    def test_queues_drain_at_the_end(self):
        """Large requests are planned in jobs; nothing that was acknowledged is lost."""
        table = REST + f"table: [{{condition: 'span.name == \"y\"', {TO_A}}}]"
        large = [("shop", tuple("xyz"[n % 3] for n in range(30000)))]
        with backend.Backend("grpc") as a, backend.Backend("grpc") as rest:
            with server.Profcol(render("traces", table, {"A": a, "B": a, "REST": rest}, "sending_queue: {}")) as process:
                for _ in range(3):
                    self.assertTrue(client.succeeded(client.export("grpc", process.address("grpc"), traces(*large))))
            counts = [sum(len(names) for _, names in arrived(target, "traces")) for target in (a, rest)]
        self.assertEqual(counts, [30000, 60000])

    def test_what_no_route_takes_is_counted(self):
        table = f"table: [{{condition: 'span.name == \"y\"', {TO_A}}}]"
        with backend.Backend("grpc") as a:
            text = render("traces", table, {"A": a, "B": a, "REST": a}).replace("  telemetry: {metrics: {level: none}}\n", "")
            with server.Profcol(text) as process:
                client.export("grpc", process.address("grpc"), traces(SHOP))
                self.assertEqual(process.metric("profcol_routing_dropped_spans", connector="routing"), 2)


if __name__ == "__main__":
    testing.main()
