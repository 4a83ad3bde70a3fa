"""A live Java program with OpenTelemetry's agent and Pyroscope's profiler, which names the local root -> profcol with `attribute_children`.

    python tests/interop/children [--seconds N] [--event EVENT] [--without-threads] [--work DIRECTORY]

Each kind of span does its work in a function of its own, so what samples have on their stacks is the truth about the span that
they should name. --without-threads: only what the profiler names goes on, nothing is joined by thread.
"""
import argparse
import collections
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(os.environ["PROFCOL_SOURCE"])
sys.path[:0] = [str(ROOT / "tests/interop"), str(ROOT)]

from tests.oracle import server, stack_kinds  # noqa: E402
from thread_runs import AGENT, CLASSES, EXTENSION, build_java, counts_of, requests_of  # noqa: E402

# The innermost of these functions on a stack tells the span.
SPANS = {"acceptOrder": "a local root", "loadItems": "load", "readRow": "query", "renderPage": "render", "sendMail": "mail",
         "findPrice": "price", "countStock": "stock"}
CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}
  pyroscope: {endpoint: "127.0.0.1:@pyroscope@"}
processors:
  spanjoin: {window: 10m, attribute_children: true, samples: {by_thread: BY_THREAD}, spans: {wait: 30s}}
exporters:
  file/traces: {path: "@dir@/traces.proto", format: proto}
  file/profiles: {path: "@dir@/profiles.proto", format: proto}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [spanjoin], exporters: [file/traces]}
    profiles: {receivers: [pyroscope], processors: [spanjoin], exporters: [file/profiles]}
"""


def run(work, options):
    """Run the program; return the requests that left, and what the join counts."""
    with server.Profcol(CONFIG.replace("BY_THREAD", "false" if options.without_threads else "true")) as profcol:
        environment = {**os.environ, "OTEL_SERVICE_NAME": "children", "PYROSCOPE_APPLICATION_NAME": "children",
                       "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{profcol.address('grpc')}", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
                       "OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none", "PYROSCOPE_PROFILER_EVENT": options.event,
                       "PYROSCOPE_PROFILER_ALLOC": "512k", "PYROSCOPE_PROFILER_LOCK": "1ms",
                       "PYROSCOPE_SERVER_ADDRESS": f"http://{profcol.address('pyroscope')}"}
        subprocess.run(["java", f"-javaagent:{AGENT}", f"-Dotel.javaagent.extensions={EXTENSION}", "-cp", CLASSES, "App",
                        str(options.seconds)], cwd=work, env=environment, check=True)
        server.wait_until(lambda: not profcol.metric("profcol_spanjoin_held_requests"), timeout=60, what="requests to leave")
        counts = {**counts_of(profcol), "to children": profcol.metric("profcol_spanjoin_samples_to_children")}
        profcol.stop()
        return requests_of(profcol, "traces"), requests_of(profcol, "profiles"), counts


def spans_of(traces):
    """Return {span id: (name, attributes)}; local roots have one name."""
    spans = {}
    for span in (s for message in traces for resource in message.resource_spans for scope in resource.scope_spans for s in scope.spans):
        name = span.name if span.name in SPANS.values() else "a local root" if "/" in span.name else span.name
        spans[span.span_id] = (name, {pair.key: pair.value for pair in span.attributes})
    return spans


def samples_of(profiles):
    """Return (type, function of SPANS or None, span id of the Link, value) of each sample, and check that none has a time."""
    for message in profiles:
        dictionary = message.dictionary
        for profile in (p for resource in message.resource_profiles for scope in resource.scope_profiles for p in scope.profiles):
            kind = dictionary.string_table[profile.sample_type.type_strindex]
            for sample in profile.samples:
                assert not sample.timestamps_unix_nano
                function = next((name for name, _ in stack_kinds.frames_of(sample, dictionary) if name in SPANS), None)
                yield kind, function, dictionary.link_table[sample.link_index].span_id, sum(sample.values)


def check_costs(spans, samples):
    """Print for how many children with CPU time it is that of the samples that name them; return whether it is for all.

    A local root says the time of its children, too.
    """
    linked = collections.Counter()
    for kind, _, span_id, value in samples:
        linked[span_id] += value if kind == "cpu" else 0
    costs = {span_id: attributes["profile.cpu_ns"].int_value for span_id, (name, attributes) in spans.items()
             if name != "a local root" and "profile.cpu_ns" in attributes and "profile.complete" not in attributes}
    equal = sum(linked[span_id] == cost for span_id, cost in costs.items())
    print(f"{equal} of {len(costs)} children with CPU time say what the samples that name them have")
    return equal == len(costs) > 0


def main():
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--event", default="itimer", help="cpu, itimer or wall")
    parser.add_argument("--without-threads", action="store_true")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/interop/children")
    options = parser.parse_args()
    build_java(options.work, "tests/interop/children/App.java")
    traces, profiles, counts = run(options.work, options)
    spans, samples = spans_of(traces), list(samples_of(profiles))
    print(f"{len(spans)} spans, {counts}")
    shares = collections.defaultdict(collections.Counter)
    for kind, function, span_id, value in (sample for sample in samples if sample[1]):
        name = spans[span_id][0] if span_id in spans else "no span"
        is_right = name == SPANS[function]
        shares[kind, SPANS[function]]["right" if is_right else "the root" if name == "a local root" else name] += value
    is_good = check_costs(spans, samples)
    for (kind, name), share in sorted(shares.items()):
        total = sum(share.values())
        print(f"{kind} in {name}: {total}, " + ", ".join(f"{part} {value / total:.2%}" for part, value in share.most_common()))
    children = sum((share for (kind, name), share in shares.items() if kind == "cpu" and name != "a local root"), collections.Counter())
    known = sum(children.values()) - (children["no span"] + children["the root"] if options.without_threads else 0)
    print(f"CPU time in children: {children['right'] / sum(children.values()):.2%} has its own span")
    sys.exit(0 if is_good and known and children["right"] / known >= 0.98 else 1)


if __name__ == "__main__":
    main()
