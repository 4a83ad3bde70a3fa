"""The processor probabilistic_sampler beside the Collector: run.sh samplers [--ids N] [--seed N]

profcol and a Collector with the same settings get the same random spans; both must pass on the same requests, with the same tracestates. Each mode
gets N trace ids, and every settings N / 5 spans with random tracestates and priorities. Exit code 1: they differ. $PROFCOL and $OTELCOL are the
binaries.
"""

import argparse
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

MODES = [{"sampling_percentage": 50}, {"sampling_percentage": 10, "mode": "equalizing"}, {"sampling_percentage": 33.3, "mode": "proportional"}]
OTHERS = [
    {"sampling_percentage": 10, "hash_seed": 22}, {"sampling_percentage": 33.3, "fail_closed": False}, {"sampling_percentage": 0.006},
    {"sampling_percentage": 0}, {"sampling_percentage": 0, "fail_closed": False}, {"sampling_percentage": 100}, {"sampling_percentage": 250, "mode": "equalizing"},
    {"sampling_percentage": 99.9, "mode": "equalizing", "fail_closed": False}, {"sampling_percentage": 1, "mode": "equalizing", "sampling_precision": 14},
    {"sampling_percentage": 0.001, "mode": "equalizing", "sampling_precision": 1}, {"sampling_percentage": 60, "mode": "proportional", "sampling_precision": 2, "fail_closed": False},
    {"sampling_percentage": 2e-15, "mode": "proportional"}, {"sampling_percentage": 99.9, "mode": "proportional", "sampling_precision": 14},
]
SETTINGS = MODES + OTHERS
SPANS = 1000    # of a request


def config(ports, target):
    numbers = range(len(SETTINGS))
    return json.dumps({
        "receivers": {f"otlp/{i}": {"protocols": {"grpc": {"endpoint": f"127.0.0.1:{ports[i]}"}}} for i in numbers},
        "processors": {f"probabilistic_sampler/{i}": SETTINGS[i] for i in numbers},
        "exporters": {"otlp_grpc": {"endpoint": target.address, "tls": {"insecure": True}, "sending_queue": {"enabled": False}, "retry_on_failure": {"enabled": False}}},
        "service": {"telemetry": {"metrics": {"level": "none"}, "logs": {"level": "error"}},
                    "pipelines": {f"traces/{i}": {"receivers": [f"otlp/{i}"], "processors": [f"probabilistic_sampler/{i}"], "exporters": ["otlp_grpc"]} for i in numbers}},
    })


# ---- requests ----

def hex_digits(chance, count):
    return "".join(chance.choice("0123456789abcdef") for _ in range(count))


def random_member(chance):
    """A member of `ot`, mostly valid."""
    return chance.choice([
        lambda: "rv:" + hex_digits(chance, 14), lambda: "rv:f" + hex_digits(chance, 13), lambda: "th:" + hex_digits(chance, chance.randrange(1, 15)), lambda: "th:8", lambda: "th:0",
        lambda: "th:C00", lambda: "k:v", lambda: "k:", lambda: "RV:1", lambda: "rv:" + hex_digits(chance, 13), lambda: "th:" + hex_digits(chance, 15), lambda: "th:", lambda: "", lambda: "th",
        lambda: "rv:" + hex_digits(chance, 14).upper(), lambda: "a1:" + "x" * chance.choice([1, 230, 251, 252, 253]), lambda: "th:-8", lambda: "th:+8", lambda: "th:0x8", lambda: "th:8_0",
    ])()


def random_state(chance):
    """A tracestate, mostly valid."""
    members = []
    for _ in range(chance.choice([0, 1, 1, 2, 3, 30, 31, 32]) if chance.random() < 0.2 else chance.randrange(3)):
        members.append(chance.choice(["a=b", " vendor=x y\t", "t@s=1", "1t@s=2", "t@1=2", "A=b", "=b", "a=", "", "a", "a=b=c", "a=\u00e9", "k" * chance.choice([256, 257]) + "=v", "k@" + "s" * chance.choice([14, 15]) + "=v",
                                      "t" * chance.choice([241, 242]) + "@s=v", "a=" + "v" * chance.choice([255, 256, 257]), "_a=b", "a_-*/=b", "a=b ;"] if chance.random() < 0.2 else ["a=b", "vendor=x", " t@s=1"]))
    for _ in range(chance.choice([0, 1, 1, 1, 2])):
        members.insert(chance.randrange(len(members) + 1), "ot=" + ";".join(random_member(chance) for _ in range(chance.randrange(1, 4))))
    return ",".join(members)


def set_priority(chance, value):
    chance.choice([
        lambda: setattr(value, "int_value", chance.choice([-1, 0, 1, 2])), lambda: setattr(value, "double_value", chance.choice([-0.5, 0.0, 0.5, float("nan"), float("inf")])),
        lambda: setattr(value, "string_value", chance.choice(["0", "1", "-1", "0.0", "1e3", "", " 1", "x", "inf", "NaN", "0x1p-2", "0x1", "1e999", "1e-999", "1_0", "+1", ".5", "0x_1p1", "infinity", "1 "])),
        lambda: setattr(value, "bool_value", True),
    ])()


def add_span(chance, spans, plain):
    span = spans.add(trace_id=chance.randbytes(16), span_id=chance.randbytes(8), name="s")
    if plain:
        return
    if chance.random() < 0.05:
        span.trace_id = chance.choice([bytes(16), b"", bytes(9) + chance.randbytes(7)])
    if chance.random() < 0.8:
        span.trace_state = random_state(chance)
    if chance.random() < 0.2:
        span.attributes.add(key="other").value.int_value = 0
        for _ in range(chance.choice([1, 1, 2])):
            set_priority(chance, span.attributes.add(key="sampling.priority").value)


def random_request(chance, plain):
    request = trace_service_pb2.ExportTraceServiceRequest()
    left = SPANS
    while left > 0:
        group = request.resource_spans.add()
        group.resource.attributes.add(key="service.name").value.string_value = chance.choice("ab")
        for _ in range(chance.randrange(3)):
            scope = group.scope_spans.add(schema_url="https://example.com")
            scope.scope.name = "lib"
            count = min(left, chance.choice([0, 1, 2, 400]))
            for _ in range(count):
                add_span(chance, scope.spans, plain)
            left -= count
    return request


# ---- results ----

def run(command, requests):
    """Return what arrived of each request, by settings."""
    with tempfile.TemporaryDirectory() as name, backend.Backend("grpc") as target:
        ports = [server.free_port() for _ in SETTINGS]
        path = pathlib.Path(name, "config.yaml")
        path.write_text(config(ports, target), encoding="utf-8")
        with open(pathlib.Path(name, "log"), "w+", encoding="utf-8") as log:
            process = subprocess.Popen([*command, "--config", str(path)], stdout=log, stderr=log)
            try:
                while not all(server.accepts(port) for port in ports):
                    if process.poll() is not None:
                        log.seek(0)
                        sys.exit(log.read())
                    time.sleep(0.1)
                return [[send(request, port, target) for request in requests[i]] for i, port in enumerate(ports)]
            finally:
                process.terminate()
                process.wait()


def send(request, port, target):
    """What was kept has arrived when the request is answered: there is no queue."""
    before = len(target.requests)
    status = client.status(client.export("grpc", f"127.0.0.1:{port}", request))
    return status.code, [canonical(received.message()) for received in target.requests[before:]]


def canonical(message):
    """The Collector writes no id whose bytes are all zero, but an empty status."""
    for span in (s for g in message.resource_spans for c in g.scope_spans for s in c.spans):
        if not any(span.trace_id):
            span.trace_id = b""
        span.status.SetInParent()
    return message.SerializeToString(deterministic=True)


def spans_of(result):
    messages = [trace_service_pb2.ExportTraceServiceRequest.FromString(data) for data in result[1]]
    return [(s.trace_id.hex(), s.span_id.hex(), s.trace_state) for m in messages for g in m.resource_spans for c in g.scope_spans for s in c.spans]


def report(settings, request, ours, theirs):
    sent = {s.span_id.hex(): s for g in request.resource_spans for c in g.scope_spans for s in c.spans}
    print(f"{settings}\nprofcol {ours[0]}, the Collector {theirs[0]}")
    for title, spans in (("only profcol", set(spans_of(ours)) - set(spans_of(theirs))), ("only the Collector", set(spans_of(theirs)) - set(spans_of(ours)))):
        for span in sorted(spans)[:3]:
            print(f"{title}: {span}\n  of {sent[span[1]]}")
    if spans_of(ours) == spans_of(theirs):
        print("the same spans, but not the same requests")


def main():
    parser = argparse.ArgumentParser(prog="samplers", description=__doc__.splitlines()[0])
    parser.add_argument("--ids", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    plain = [random_request(chance, True) for _ in range(options.ids // SPANS)]
    other = [random_request(chance, False) for _ in range(options.ids // 5 // SPANS)]
    requests = [plain + other] * len(MODES) + [other + plain[:5]] * len(OTHERS)
    ours, theirs = run([os.environ["PROFCOL"]], requests), run([os.environ["OTELCOL"]], requests)
    different = 0
    for i, settings in enumerate(SETTINGS):
        pairs = list(zip(requests[i], ours[i], theirs[i]))
        bad = [pair for pair in pairs if pair[1] != pair[2]]
        different += len(bad)
        print(f"{settings}: {len(pairs) * SPANS} spans, {sum(len(spans_of(t)) for _, _, t in pairs)} kept; {len(bad)} requests differ")
        for request, mine, other_one in bad[:1]:
            report(settings, request, mine, other_one)
    sys.exit(1 if different else 0)


main()
