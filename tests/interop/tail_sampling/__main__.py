"""The processor tail_sampling beside the Collector: run.sh tail_sampling [--traces N] [--seed N]

profcol and a Collector with the same policies get the same random traces, each in several requests; both must send on the same spans of the same
traces. Each policy has N traces of its own. What may differ is in LISTED, with its reason, and only in the traces that it names. Policies with rates are
in RATES: which traces pass depends on the order of the decisions, which is random in the Collector, so the number of their spans is compared. Exit code 1:
they differ. $PROFCOL and $OTELCOL are the binaries.
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
from opentelemetry.proto.trace.v1 import trace_pb2  # noqa: E402

from tests.oracle import backend, client, server  # noqa: E402

WAIT = 4      # decision_wait in seconds: longer than sending takes
SPANS = 400   # of a request


def policy(kind, settings=None, name="p"):
    return {"name": name, "type": kind, **({kind: settings} if settings is not None else {})}


def status(code):
    return policy("status_code", {"status_codes": [code]}, "s-" + code)


ALL = policy("always_sample", name="all")
ROUTE = {"key": "http.route", "values": ["/a", "/b"]}
HUGE = {"spans_per_second": 100000000}
CASES = {
    "always_sample": [ALL],
    "latency": [policy("latency", {"threshold_ms": 200})],
    "latency_upper": [policy("latency", {"threshold_ms": 200, "upper_threshold_ms": 600})],
    "status_error": [status("ERROR")],
    "status_ok_unset": [policy("status_code", {"status_codes": ["OK", "UNSET"]})],
    "numeric": [policy("numeric_attribute", {"key": "http.status", "min_value": 400, "max_value": 499})],
    "numeric_min": [policy("numeric_attribute", {"key": "http.status", "min_value": 500})],
    "numeric_inverted": [policy("numeric_attribute", {"key": "http.status", "min_value": 200, "max_value": 399, "invert_match": True})],
    "string": [policy("string_attribute", ROUTE)],
    "string_resource": [policy("string_attribute", {"key": "service.name", "values": ["shop"]})],
    "string_regex": [policy("string_attribute", {"key": "http.route", "values": ["^/[ab]$", "c+"], "enabled_regex_matching": True})],
    "string_inverted": [policy("string_attribute", {**ROUTE, "invert_match": True})],
    "boolean": [policy("boolean_attribute", {"key": "retried", "value": True})],
    "boolean_false": [policy("boolean_attribute", {"key": "retried", "value": False})],
    "boolean_inverted": [policy("boolean_attribute", {"key": "retried", "value": True, "invert_match": True})],
    **{f"probabilistic_{percent}": [policy("probabilistic", {"sampling_percentage": percent})] for percent in (0, 0.1, 1, 10, 33.3, 50, 66.6, 99.9, 100)},
    "probabilistic_salt": [policy("probabilistic", {"sampling_percentage": 25, "hash_salt": "abc"})],
    "span_count": [policy("span_count", {"min_spans": 4})],
    "span_count_max": [policy("span_count", {"min_spans": 2, "max_spans": 5})],
    "trace_state": [policy("trace_state", {"key": "vendor", "values": ["x", "y"]})],
    "trace_flags": [policy("trace_flags")],
    "ottl_span": [policy("ottl_condition", {"error_mode": "ignore", "span": ['attributes["http.status"] == 503', 'name == "rare"']})],
    "ottl_event": [policy("ottl_condition", {"error_mode": "ignore", "spanevent": ['name == "exception" and attributes["level"] > 2']})],
    "rate_limiting": [policy("rate_limiting", {**HUGE, "burst_capacity": 100000000})],
    "rate_too_small": [policy("and", {"and_sub_policy": [policy("span_count", {"min_spans": 6}), policy("rate_limiting", {"spans_per_second": 1, "burst_capacity": 5}, "r")]})],
    "bytes_limiting": [policy("bytes_limiting", {"bytes_per_second": 1000000000})],
    "and": [policy("and", {"and_sub_policy": [status("ERROR"), policy("latency", {"threshold_ms": 100}, "l")]})],
    "and_not": [policy("and", {"and_sub_policy": [status("ERROR"), policy("not", {"not_sub_policy": policy("string_attribute", ROUTE, "r")}, "n")]})],
    "not": [policy("not", {"not_sub_policy": status("ERROR")})],
    "drop": [ALL, policy("drop", {"drop_sub_policy": [policy("string_attribute", ROUTE, "r")]}, "d")],
    "drop_and": [status("ERROR"), policy("drop", {"drop_sub_policy": [policy("string_attribute", ROUTE, "r"), policy("not", {"not_sub_policy": policy("trace_flags", name="f")}, "n")]}, "d")],
    "inverted_beside_all": [ALL, policy("string_attribute", {**ROUTE, "invert_match": True}, "i")],
    "composite": [policy("composite", {"max_total_spans_per_second": 100000000, "policy_order": ["s-ERROR", "rest"], "composite_sub_policy": [status("ERROR"), policy("probabilistic", {"sampling_percentage": 20}, "rest")],
                                       "rate_allocation": [{"policy": "s-ERROR", "percent": 50}, {"policy": "rest", "percent": 25}]})],
    "composite_share": [policy("composite", {"max_total_spans_per_second": 100000000, "composite_sub_policy": [
        policy("and", {"and_sub_policy": [status("ERROR"), policy("span_count", {"min_spans": 2}, "c")]}, "few"), policy("latency", {"threshold_ms": 300}, "slow")],
        "rate_allocation": [{"policy": "few", "percent": 0}, {"policy": "slow", "percent": 50}]})],
    "several": [policy("latency", {"threshold_ms": 500}, "l"), status("ERROR"), policy("probabilistic", {"sampling_percentage": 5}, "some")],
}
# Each case: whether a trace may be decided differently, and why.
LISTED = {"latency_upper": (lambda trace: trace.duration_ms() > 600, "the Collector decides after each span, in the order of their arrival")}


# Policies with rates. 1,000 traces of 5 spans arrive in one request, so that one tick of the Collector decides about all of them: a bucket gives its burst
# and what the rate adds meanwhile, for at most RATE_SECONDS; a window of composite gives its share, and once more if a second ends meanwhile.
RATED_TRACES, RATED_SPANS, RATE_SECONDS = 1000, 5, 0.5
RATES = {
    "rate_limiting_burst": ([policy("rate_limiting", {"spans_per_second": 20, "burst_capacity": 1000})], 1000, 1000 + 20 * RATE_SECONDS),
    "rate_limiting_default": ([policy("rate_limiting", {"spans_per_second": 500})], 1000, 1000 + 500 * RATE_SECONDS),
    "rate_limiting_of_matches": ([policy("and", {"and_sub_policy": [status("ERROR"), policy("rate_limiting", {"spans_per_second": 20, "burst_capacity": 300}, "r")]})], 300, 300 + 20 * RATE_SECONDS),
    "rate_limiting_beside": ([policy("rate_limiting", {"spans_per_second": 20, "burst_capacity": 300}), policy("probabilistic", {"sampling_percentage": 0}, "none")], 300, 300 + 20 * RATE_SECONDS),
    "bytes_limiting_burst": ([policy("bytes_limiting", {"bytes_per_second": 1000, "burst_capacity": 100000})], None, None),
    "bytes_limiting_default": ([policy("bytes_limiting", {"bytes_per_second": 50000})], None, None),
    "composite_total": ([policy("composite", {"max_total_spans_per_second": 500, "composite_sub_policy": [ALL], "rate_allocation": [{"policy": "all", "percent": 100}]})], 500, 2 * 500),
    "composite_shares": ([policy("composite", {"max_total_spans_per_second": 1000, "composite_sub_policy": [status("ERROR"), ALL],
                                               "rate_allocation": [{"policy": "s-ERROR", "percent": 50}, {"policy": "all", "percent": 25}]})], 750, 2 * 750),
}
BYTES_PART = 0.1  # both count a trace's bytes a little differently: with or without the headers of its messages


def policies():
    return {**CASES, **{name: rate[0] for name, rate in RATES.items()}}


def config(ports, target):
    names = list(policies())
    return json.dumps({
        "receivers": {f"otlp/{name}": {"protocols": {"grpc": {"endpoint": f"127.0.0.1:{ports[name]}"}}} for name in names},
        "processors": {f"tail_sampling/{name}": {"decision_wait": f"{WAIT}s", "policies": policies()[name]} for name in names},
        "exporters": {"otlp_grpc": {"endpoint": target.address, "tls": {"insecure": True}, "sending_queue": {"queue_size": 1000000}, "retry_on_failure": {"enabled": False}}},
        "service": {"telemetry": {"metrics": {"level": "none"}, "logs": {"level": "error"}},
                    "pipelines": {f"traces/{name}": {"receivers": [f"otlp/{name}"], "processors": [f"tail_sampling/{name}"], "exporters": ["otlp_grpc"]} for name in names}},
    })


# ---- traces ----

class Trace:
    """One trace, and its spans with the service of each."""

    def __init__(self, chance, count=None):
        self.id = chance.randbytes(16)
        self.spans = [(chance.choice(["shop", "cart", "mail"]), self.random_span(chance, i)) for i in range(count or chance.choice([1, 1, 2, 3, 4, 5, 8]))]

    def random_span(self, chance, index):
        start = 1_000_000_000_000_000_000 + chance.randrange(300) * 1_000_000
        span = trace_pb2.Span(trace_id=self.id, span_id=chance.randbytes(8), name=chance.choice(["get", "put", "get", "rare"] if chance.random() < 0.05 else ["get", "put"]),
                                                 start_time_unix_nano=start, end_time_unix_nano=start + int(chance.expovariate(1 / 80) * 1_000_000))
        if index:
            span.parent_span_id = chance.randbytes(8)
        span.status.code = chance.choice([0] * 12 + [1] * 3 + [2])
        span.flags = chance.choice([0, 0, 0, 1, 256, 257])
        span.trace_state = chance.choice(["", "", "a=b", "vendor=x", "a=b,vendor=y", "vendor=z", "vendor=x,not valid"])
        for key, kind, value in [("http.route", "string_value", chance.choice(["/a", "/b", "/ccc", "/d", ""])), ("http.status", "int_value", chance.choice([200, 204, 302, 404, 500, 503])),
                                 ("retried", "bool_value", chance.random() < 0.3)]:
            if chance.random() < 0.4:
                setattr(span.attributes.add(key=key).value, kind, value)
        for _ in range(chance.choice([0, 0, 0, 1, 2])):
            event = span.events.add(name=chance.choice(["exception", "log"]))
            event.attributes.add(key="level").value.int_value = chance.randrange(5)
        return span

    def duration_ms(self):
        return (max(s.end_time_unix_nano for _, s in self.spans) - min(s.start_time_unix_nano for _, s in self.spans)) // 1_000_000


def requests_of(chance, traces, spans=SPANS):
    """Return requests with the spans of all traces: those of one are not far from each other, in several resources and scopes."""
    order = sorted(((i + chance.random() * 60, service, span) for i, trace in enumerate(traces) for service, span in trace.spans), key=lambda item: item[0])
    requests = []
    for at in range(0, len(order), spans):
        request, groups = trace_service_pb2.ExportTraceServiceRequest(), {}
        for _, service, span in order[at:at + spans]:
            if service not in groups:
                groups[service] = request.resource_spans.add()
                groups[service].resource.attributes.add(key="service.name").value.string_value = service
                groups[service].scope_spans.add().scope.name = "lib"
            groups[service].scope_spans[0].spans.append(span)
        requests.append(request)
    return requests


# ---- results ----

def wait_for_rest(target):
    """Wait until nothing more arrives."""
    deadline, count, since = time.monotonic() + 120, -1, time.monotonic()
    while time.monotonic() < deadline and (time.monotonic() - since < WAIT + 3):
        if len(target.requests) != count:
            count, since = len(target.requests), time.monotonic()
        time.sleep(0.2)


def run(command, requests):
    """Return the spans that arrived of each trace, sorted, and the number of requests."""
    with tempfile.TemporaryDirectory() as name, backend.Backend("grpc") as target:
        ports = {case: server.free_port() for case in policies()}
        path = pathlib.Path(name, "config.json")
        path.write_text(config(ports, target), encoding="utf-8")
        with open(pathlib.Path(name, "log"), "w+", encoding="utf-8") as log:
            process = subprocess.Popen([*command, "--config", str(path)], stdout=log, stderr=log)
            try:
                while not all(server.accepts(port) for port in ports.values()):
                    if process.poll() is not None:
                        log.seek(0)
                        sys.exit(log.read())
                    time.sleep(0.1)
                for case, port in ports.items():
                    for request in requests[case]:
                        answer = client.export("grpc", f"127.0.0.1:{port}", request)
                        if not client.succeeded(answer):
                            sys.exit(f"{command[0]}: {case}: {client.status(answer)}")
                wait_for_rest(target)
            finally:
                process.terminate()
                process.wait()
        spans = collections.defaultdict(list)
        for received in target.requests:
            for group in received.message().resource_spans:
                for scope in group.scope_spans:
                    for span in scope.spans:
                        spans[span.trace_id].append((span.span_id, group.resource.SerializeToString(deterministic=True), scope.scope.name, canonical(span)))
        return {trace: sorted(found) for trace, found in spans.items()}, len(target.requests)


def canonical(span):
    """The Collector writes an empty status."""
    span.status.SetInParent()
    return span.SerializeToString(deterministic=True)


def compare(case, traces, ours, theirs):
    """Return the traces that differ and are not listed, and the number of those that are."""
    may_differ = LISTED.get(case, (lambda _: False, ""))[0]
    differ = [trace for trace in traces if ours.get(trace.id, []) != theirs.get(trace.id, [])]
    bad = [trace for trace in differ if not may_differ(trace)]
    return bad, len(differ) - len(bad)


def compare_rates(case, traces, ours, theirs):
    """Print how many spans both sent, and return whether that is within what the rate allows and traces left whole."""
    sent = [sum(len(found.get(trace.id, [])) for trace in traces) for found in (ours, theirs)]
    whole = all(len(ours.get(trace.id, [])) in (0, RATED_SPANS) for trace in traces)
    least, most = RATES[case][1:]
    if least is None:
        least, most = sent[1] * (1 - BYTES_PART), sent[1] * (1 + BYTES_PART)
    fine = whole and all(least - RATED_SPANS < number <= most for number in sent)
    print(f"{case}: {len(traces)} traces of {RATED_SPANS} spans, profcol sent {sent[0]} spans, the Collector {sent[1]}, expected {least:.0f} to {most:.0f}{'' if fine else ': WRONG'}")
    return fine


def main():
    parser = argparse.ArgumentParser(prog="tail_sampling", description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    traces = {case: [Trace(chance) for _ in range(options.traces)] for case in CASES}
    rated = {case: [Trace(chance, RATED_SPANS) for _ in range(RATED_TRACES)] for case in RATES}
    requests = {case: requests_of(chance, traces[case]) for case in CASES}
    requests |= {case: requests_of(chance, rated[case], RATED_TRACES * RATED_SPANS) for case in RATES}
    (ours, sent), (theirs, theirs_sent) = run([os.environ["PROFCOL"]], requests), run([os.environ["OTELCOL"]], requests)
    failures = 0
    for case, all_traces in traces.items():
        bad, listed = compare(case, all_traces, ours, theirs)
        failures += len(bad)
        kept = sum(trace.id in ours for trace in all_traces)
        reason = f", {listed} listed: {LISTED[case][1]}" if listed else ""
        print(f"{case}: {len(all_traces)} traces, {kept} sampled; {len(bad)} differ{reason}")
        for trace in bad[:2]:
            print(f"  {trace.id.hex()}: profcol sent {len(ours.get(trace.id, []))}, the Collector {len(theirs.get(trace.id, []))} of {len(trace.spans)} spans")
    failures += sum(not compare_rates(case, all_traces, ours, theirs) for case, all_traces in rated.items())
    print(f"{len(CASES)} policies, {sum(map(len, traces.values()))} traces; profcol sent {sent} requests, the Collector {theirs_sent}")
    sys.exit(1 if failures else 0)


main()
