"""A live Java program with OpenTelemetry's agent and Pyroscope's profiler, which names the local root -> profcol with `attribute_children`.

    python tests/interop/children [--seconds N] [--event EVENT] [--without-threads] [--work DIRECTORY]

Each kind of span does its work in a function of its own, so what samples have on their stacks is the truth about the span that
they should name. --without-threads: only what the profiler names goes on, nothing is joined by thread.
"""
import collections
import os
import pathlib
import sys

ROOT = pathlib.Path(os.environ["PROFCOL_SOURCE"])
sys.path[:0] = [str(ROOT / "tests/interop"), str(ROOT)]

import thread_runs  # noqa: E402
from tests.oracle import server, stack_kinds  # noqa: E402

# The innermost of these functions on a stack tells the span.
SPANS = {"acceptOrder": "a local root", "loadItems": "load", "readRow": "query", "renderPage": "render", "sendMail": "mail",
         "findPrice": "price", "countStock": "stock"}
SETTINGS = "window: 10m, attribute_children: true, samples: {by_thread: BY_THREAD}, spans: {wait: 30s}"


def run(options):
    """Run the program; return what left profcol."""
    settings = SETTINGS.replace("BY_THREAD", "false" if options.without_threads else "true")
    with server.Profcol(thread_runs.configuration(settings)) as profcol:
        thread_runs.run_profiled("children", options, profcol.address("grpc"), profcol.address("pyroscope"), options.event)
        return thread_runs.finish(profcol, "to_children")


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
    parser = thread_runs.parser_of(__doc__, "children")
    parser.add_argument("--event", default="itimer", help="cpu, itimer or wall")
    parser.add_argument("--without-threads", action="store_true")
    options = parser.parse_args()
    thread_runs.build_java(options.work, "tests/interop/children/App.java")
    left = run(options)
    spans, samples = spans_of(left.traces), list(samples_of(left.profiles))
    print(f"{len(spans)} spans, {left.counts}")
    shares = collections.defaultdict(collections.Counter)
    for kind, function, span_id, value in (sample for sample in samples if sample[1]):
        name = spans[span_id][0] if span_id in spans else "no span"
        is_right = name == SPANS[function]
        shares[kind, SPANS[function]]["right" if is_right else "the root" if name == "a local root" else name] += value
    is_good = check_costs(spans, samples)
    for (kind, name), share in sorted(shares.items()):
        print(f"{kind} in {name}: {sum(share.values())}, {thread_runs.shares_text(share)}")
    children = sum((share for (kind, name), share in shares.items() if kind == "cpu" and name != "a local root"), collections.Counter())
    known = sum(children.values()) - (children["no span"] + children["the root"] if options.without_threads else 0)
    print(f"CPU time in children: {children['right'] / sum(children.values()):.2%} has its own span")
    sys.exit(0 if is_good and known and children["right"] / known >= 0.98 else 1)


if __name__ == "__main__":
    main()
