"""Conditions of the connector count beside the Collector: run.sh count [--requests N] [--seed N]

profcol and a Collector with the same metrics, attributes and conditions get the same random traces, one after the other; both must give the same
answer to each, and emit the same counts. Exit code 1: they differ. $PROFCOL and $OTELCOL are the binaries.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[3])]

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2  # noqa: E402

from tests.oracle import backend, client, server  # noqa: E402

# Conditions of metrics that count spans, events, or both. `1 / ...` fails for some items, which refuses the request.
OF_BOTH = [
    ["true"], ["false"], ['resource.attributes["service.name"] == "a"'], ['scope.name == "lib"', 'instrumentation_scope.version == "2"'],
    ['attributes["s"] == "x"'], ['attributes["i"] > 2'], ['attributes["i"] != nil', 'attributes["s"] == "y"'], ['IsMatch(name, "^[ab]")'],
    ['IsMatch(attributes["s"], "x|z")', "false"], ['span.kind == SPAN_KIND_SERVER'], ['span.status.code == STATUS_CODE_ERROR'],
    ['span.attributes["s"] == attributes["s"]'], ['resource.attributes["i"] == attributes["i"]'], ["dropped_attributes_count > 0"],
    ['Concat([span.name, name], "/") == "a/b"', 'Len(span.events) > 1 and name == "c"'], ['not (attributes["s"] == nil)'],
    ['span.end_time - span.start_time > Duration("5ns")'], ['attributes["d"] >= 1.5 or attributes["b"] == true'], ["attributes == {}"],
    ['IsList(attributes["list"]) and attributes["list"][0] == 1', 'IsMap(attributes["map"]) and attributes["map"]["k"] == "v"'], ['String(attributes["i"]) == "3"'], ['ToUpperCase(span.name) == "A"'],
]
OF_SPANS = [['kind == 2 and status.message == "bad"'], ["IsRootSpan()"], ['trace_state["k"] == "v"'], ["events != nil and Len(links) == 0"],
            ["start_time_unix_nano > 10", "flags == 1"], ['parent_span_id.string == "0000000000000000"']]
OF_EVENTS = [['spanevent.name == "a"'], ["time_unix_nano > 8"], ["time > span.start_time"], ['spanevent.attributes["s"] != span.attributes["s"]'],
             ["IsString(attributes[\"s\"]) and span.name != name"], ["Len(span.attributes) == Len(attributes)"]]
FAILING = ['1 / attributes["zero"] == 1', "false"]
ATTRIBUTES = [[], [], [{"key": "s"}], [{"key": "s", "default_value": "none"}, {"key": "service.name", "default_value": "unknown"}], [{"key": "i"}]]
NAMES = ["a", "b", "c", ""]


def section(conditions, name):
    """One metric for each list of conditions, with every form of attributes in turn."""
    return {f"{name}.{i}": {"conditions": texts, "attributes": ATTRIBUTES[i % len(ATTRIBUTES)]} for i, texts in enumerate(conditions)}


def settings():
    """The metrics. Those that may fail need an attribute that few items have."""
    failing = {"conditions": FAILING, "attributes": [{"key": "zero"}]}
    return {"spans": section(OF_BOTH + OF_SPANS, "spans") | {"spans.failing": failing},
            "spanevents": section(OF_BOTH + OF_EVENTS, "events") | {"events.failing": failing}}


def config(port, target):
    return f"""
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{otlp_grpc: {{endpoint: "{target.address}", tls: {{insecure: true}}, sending_queue: {{enabled: false}}, retry_on_failure: {{enabled: false}}}}}}
connectors: {{count: {json.dumps(settings())}}}
service:
  telemetry: {{metrics: {{level: none}}, logs: {{level: error}}}}
  pipelines: {{traces: {{receivers: [otlp], exporters: [count]}}, metrics: {{receivers: [count], exporters: [otlp_grpc]}}}}
"""


# ---- requests ----

def set_value(chance, value):
    kind = chance.choice("ssiiidbnlm")
    if kind == "s":
        value.string_value = chance.choice(["x", "y", "z", "xyz", ""])
    elif kind == "i":
        value.int_value = chance.choice([0, 1, 2, 3, 4, -1])
    elif kind == "d":
        value.double_value = chance.choice([0.5, 1.5, 3.0])
    elif kind == "b":
        value.bool_value = chance.random() < 0.5
    elif kind == "l":
        value.array_value.values.add().int_value = chance.choice([1, 2])
    elif kind == "m":
        entry = value.kvlist_value.values.add(key="k")
        entry.value.string_value = chance.choice("vw")


def add_attributes(chance, owner):
    for key in ["s", "i", "d", "b", "list", "map"]:
        if chance.random() < 0.4:
            entry = owner.attributes.add(key=key)
            if key == "s" and chance.random() < 0.8:
                entry.value.string_value = chance.choice("xyz")
            elif key == "i" and chance.random() < 0.8:
                entry.value.int_value = chance.choice([1, 2, 3, 4])
            else:
                set_value(chance, entry.value)
    if chance.random() < 0.01:
        owner.attributes.add(key="zero").value.int_value = chance.choice([0, 1])


def add_span(chance, spans):
    span = spans.add(name=chance.choice(NAMES), kind=chance.randrange(6), trace_id=bytes([1] * 16), span_id=bytes([2] * 8))
    span.start_time_unix_nano = chance.choice([1, 5, 20])
    span.end_time_unix_nano = span.start_time_unix_nano + chance.choice([0, 5, 6, 100])
    span.parent_span_id = chance.choice([b"", bytes([3] * 8)])
    span.trace_state, span.flags = chance.choice(["", "k=v", "a=b,k=w"]), chance.choice([0, 1])
    span.status.code, span.status.message = chance.randrange(3), chance.choice(["", "bad"])
    span.dropped_attributes_count = chance.choice([0, 0, 3])
    add_attributes(chance, span)
    for _ in range(chance.randrange(4)):
        event = span.events.add(name=chance.choice(NAMES), time_unix_nano=chance.choice([1, 6, 8, 9]), dropped_attributes_count=chance.choice([0, 2]))
        add_attributes(chance, event)


def random_request(chance):
    request = trace_service_pb2.ExportTraceServiceRequest()
    for _ in range(chance.randrange(1, 4)):
        group = request.resource_spans.add()
        if chance.random() < 0.8:
            group.resource.attributes.add(key="service.name").value.string_value = chance.choice("ab")
        add_attributes(chance, group.resource)
        for _ in range(chance.randrange(3)):
            scope = group.scope_spans.add()
            scope.scope.name, scope.scope.version = chance.choice(["lib", "other"]), chance.choice(["1", "2", ""])
            add_attributes(chance, scope.scope)
            for _ in range(chance.randrange(4)):
                add_span(chance, scope.spans)
    return request


# ---- results ----

def pairs_of(attributes):
    """Without a difference between an absent value and an empty one."""
    return tuple(sorted((a.key, a.value.SerializeToString()) for a in attributes))


def counts_of(received):
    """The data points of a request of metrics, in no order. Without a time, a point has that of the clock."""
    points = collections.Counter()
    for group in received.message().resource_metrics:
        resource = pairs_of(group.resource.attributes)
        for metric in (m for s in group.scope_metrics for m in s.metrics):
            for point in metric.sum.data_points:
                attributes = pairs_of(point.attributes)
                times = (point.start_time_unix_nano, point.time_unix_nano) if point.time_unix_nano < 10 ** 15 else None
                points[metric.name, resource, attributes, point.as_int, times, metric.sum.is_monotonic, metric.sum.aggregation_temporality] += 1
    return points


def run(command, requests):
    """Return (status, message, the counts) of each request."""
    with tempfile.TemporaryDirectory() as name, backend.Backend("grpc") as target:
        port = server.free_port()
        path = pathlib.Path(name, "config.yaml")
        path.write_text(config(port, target), encoding="utf-8")
        with open(pathlib.Path(name, "log"), "w+", encoding="utf-8") as log:
            process = subprocess.Popen([*command, "--config", str(path)], stdout=log, stderr=log)
            try:
                while not server.accepts(port):
                    if process.poll() is not None:
                        log.seek(0)
                        sys.exit(log.read())
                    time.sleep(0.1)
                return [send(request, port, target) for request in requests]
            finally:
                process.terminate()
                process.wait()


def send(request, port, target):
    """The counts have arrived when the request is answered: there is no queue. Without anything to count the Collector sends an empty request."""
    before = len(target.requests)
    status = client.status(client.export("grpc", f"127.0.0.1:{port}", request))
    points = collections.Counter()
    for received in target.requests[before:]:
        points += counts_of(received)
    return status.code, status.message, points


def main():
    parser = argparse.ArgumentParser(prog="count", description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    requests = [random_request(chance) for _ in range(options.requests)]
    ours, theirs = run([os.environ["PROFCOL"]], requests), run([os.environ["OTELCOL"]], requests)
    different = [i for i, pair in enumerate(zip(ours, theirs)) if (pair[0][0], pair[0][2]) != (pair[1][0], pair[1][2])]
    refused = sum(1 for result in theirs if result[0] != 0)
    print(f"{len(requests)} requests, {refused} refused, {sum(r[2].total() for r in theirs)} data points; {len(different)} differ")
    for i in different[:5]:
        print(f"request {i}: {requests[i]}\nprofcol {ours[i][:2]}, the Collector {theirs[i][:2]}")
        print(f"only profcol: {list((ours[i][2] - theirs[i][2]).items())[:5]}\nonly the Collector: {list((theirs[i][2] - ours[i][2]).items())[:5]}")
    sys.exit(1 if different else 0)


main()
