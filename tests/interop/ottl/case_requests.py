"""The requests that statements work on: one that is written by hand, spans of the recorded requests, and random ones."""

import copy
import json
import pathlib

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from tests.oracle import canonical, decode

HERE = pathlib.Path(__file__).resolve().parent
EVENTS = [
    {"name": "e", "timeUnixNano": "1500000000", "droppedAttributesCount": 4, "attributes": [
        {"key": "exception.type", "value": {"stringValue": "java.io.IOException"}}, {"key": "n", "value": {"intValue": "3"}}]},
    {"name": "f"},
]
LINKS = [{"traceId": "f" * 32, "spanId": "e" * 16, "attributes": [{"key": "l", "value": {"boolValue": True}}]}]
RECORDED_MAX = 12


def written():
    """The request of request.json, with attributes in its events, and a link."""
    tree = json.loads((HERE / "request.json").read_text(encoding="utf-8"))
    span = tree["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    span["events"], span["links"] = EVENTS, LINKS
    return canonical.decode(json.dumps(tree).encode(), "traces", "json")


def recorded():
    """One span of each client that sent any, the one with the most attributes and events, in its resource and scope."""
    found = []
    for directory in decode.clients():
        best, size = None, -1
        for capture in decode.in_directory(directory):
            if capture.signal != "traces":
                continue
            for group in capture_groups(capture):
                for scope in group.scope_spans:
                    for span in scope.spans:
                        if 5 * len(span.events) + len(span.attributes) > size:
                            best, size = alone(group, scope, span), 5 * len(span.events) + len(span.attributes)
        if best:
            found.append(best)
    return found[:RECORDED_MAX]


def capture_groups(capture):
    return canonical.decode(capture.payload, "traces", capture.content).resource_spans


def alone(group, scope, span):
    request = trace_service_pb2.ExportTraceServiceRequest()
    kept = request.resource_spans.add(resource=group.resource, schema_url=group.schema_url)
    kept.scope_spans.add(scope=scope.scope, schema_url=scope.schema_url).spans.append(span)
    return request


# ---- random requests ----

KEYS = ["a", "b", "k", "n", "s", "list", "map", "http.route", "user.id"]
TEXTS = ["", "x", "text", "GET /cart/12", "a,b;c=d", "Ärger ß", "日本", "5", "-7", "1.5", "true", "{\"a\": [1, 2.5, null, {\"b\": \"c\"}]}", "[1, \"x\"]", "2024-02-29T12:30:45Z",
         "camelCase_and-snake", "10.1.2.3", "https://u:p@h.example:8080/p/a.txt?q=1&r=%20#f", "0102", "a=1 b=2", "  blank  ", "line\nbreak", "1h30m", "$1 %s \\d", "<&>", "x" * 300]
NUMBERS = [0, 1, -1, 5, 42, 1000, 2**31, 2**53 + 1, 2**63 - 1, -2**63]
REALS = [0.0, 1.0, 1.5, -2.25, 1e21, 1e-7, 1e308, "Infinity", "NaN", 123456789.125]


def random_value(chance, depth=0, in_list=False):
    """Without lists in lists, which the Collector flattens to other keys."""
    kinds = ["string", "string", "string", "int", "double", "bool", "bytes", "none"] + (["map"] if depth < 2 else []) + (["list"] if depth < 2 and not in_list else [])
    kind = chance.choice(kinds)
    if kind == "string":
        return {"stringValue": chance.choice(TEXTS)}
    if kind == "int":
        return {"intValue": str(chance.choice(NUMBERS))}
    if kind == "double":
        return {"doubleValue": chance.choice(REALS)}
    if kind == "bool":
        return {"boolValue": chance.random() < 0.5}
    if kind == "bytes":
        return {"bytesValue": chance.choice(["", "AQL/", "AAAAAAAAAAA=", "AAECAwQFBgcICQoLDA0ODw=="])}
    if kind == "none":
        return {}
    if kind == "list":
        return {"arrayValue": {"values": [random_value(chance, depth + 1, True) for _ in range(chance.randrange(4))]}}
    return {"kvlistValue": {"values": random_attributes(chance, depth + 1)}}


def random_attributes(chance, depth=0):
    keys = chance.sample(KEYS, chance.randrange(len(KEYS) if depth == 0 else 4))
    return [{"key": key, "value": random_value(chance, depth)} for key in keys]


def random_request(chance):
    """A request with a span, two events and a link, whose attributes have the keys of KEYS."""
    span = {
        "name": chance.choice(TEXTS), "kind": chance.randrange(6), "startTimeUnixNano": str(chance.choice([0, 10**9, 1700000000123456789])),
        "endTimeUnixNano": str(chance.choice([10**9 + 5, 1700000003123456789])), "attributes": random_attributes(chance), "flags": chance.choice([0, 1, 257]),
        "traceState": chance.choice(["", "k=v", "a=1,b=2", "ot=th:8"]), "status": chance.choice([{}, {"code": 1}, {"code": 2, "message": "bad"}]),
        "events": [{"name": chance.choice(TEXTS), "timeUnixNano": "1500000000", "attributes": random_attributes(chance)} for _ in range(chance.randrange(3))],
        "links": copy.deepcopy(LINKS) if chance.random() < 0.5 else [], "droppedEventsCount": chance.choice([0, 3]),
    }
    request = json_format.ParseDict({"resourceSpans": [{
        "schemaUrl": chance.choice(["", "https://s/1"]), "resource": {"attributes": random_attributes(chance)},
        "scopeSpans": [{"scope": {"name": "lib", "version": chance.choice(["", "1.2"]), "attributes": random_attributes(chance)}, "spans": [span]}]}]},
        trace_service_pb2.ExportTraceServiceRequest())
    made = request.resource_spans[0].scope_spans[0].spans[0]
    made.trace_id, made.span_id = bytes(range(1, 17)), bytes(range(1, 9))
    made.parent_span_id = chance.choice([b"", bytes(range(8, 0, -1))])
    for link in made.links:
        link.trace_id, link.span_id = b"\xff" * 16, b"\xee" * 8
    return request
