"""Live Java and Python programs -> OpenTelemetry's eBPF profiler -> profcol, joined by thread and time only.

    python tests/interop/ebpf PROFILER [--seconds N] [--work DIRECTORY]

PROFILER is the profiler's program, which needs root. What its samples have on their stacks is the truth: each kind of span
runs a function of its own. A joined sample is right if its span is of that kind, and all its times are in the span. When
Python's interpreter lock changes hands, the profiler may show the stack of the thread that had it, so more seem to be wrong.
"""
import argparse
import collections
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(os.environ["PROFCOL_SOURCE"])
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(ROOT)]

from tests.oracle import server  # noqa: E402
from thread_runs import AGENT, CLASSES, build_java, counts_of, requests_of  # noqa: E402

KINDS = ("query", "search", "report", "cart")
SOURCES = {"App.java": "java", "ebpf/main.py": "python"}
SLACK_NS = 2_000_000    # between the clocks of a span and of the kernel
CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}, http: {endpoint: "127.0.0.1:@http@"}}}
processors:
  spanjoin: {window: 10m}
exporters:
  file/traces: {path: "@dir@/traces.proto", format: proto}
  file/profiles: {path: "@dir@/profiles.proto", format: proto}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [spanjoin], exporters: [file/traces]}
    profiles: {receivers: [otlp], processors: [spanjoin], exporters: [file/profiles]}
"""
Span = collections.namedtuple("Span", "service kind start end")


def build(work):
    """Fetch what the programs need, and compile the Java one."""
    build_java(work)
    if not (work / "venv").exists():
        subprocess.run([sys.executable, "-m", "venv", "venv"], cwd=work, check=True)
        subprocess.run(["venv/bin/pip", "install", "-q", "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"], cwd=work,
                       check=True)


def run(profiler, work, seconds):
    """Run the programs; return the requests that left profcol, and its counts."""
    with server.Profcol(CONFIG) as profcol:
        environment = {**os.environ, "OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none",
                       "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{profcol.address('http')}",
                       "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
        with open(work / "profiler.log", "w", encoding="utf-8") as log:
            profiling = subprocess.Popen([profiler, "-collection-agent", profcol.address("grpc"), "-disable-tls", "-reporter-interval",
                                          "5s", "-samples-per-second", "97"], stdout=log, stderr=log)
            server.wait_until(lambda: "Attached prctl monitor" in (work / "profiler.log").read_text(), timeout=120,
                              what="the profiler")
            programs = [subprocess.Popen(command, cwd=work, env={**environment, "OTEL_SERVICE_NAME": f"ebpf-{language}"})
                        for language, command in (("java", ["java", f"-javaagent:{AGENT}", "-cp", CLASSES, "App", str(seconds)]),
                                                  ("python", ["venv/bin/python", HERE / "main.py", str(seconds)]))]
            for program in programs:
                program.wait()
            time.sleep(12)    # what the profiler has, and what still waits
            profiling.terminate()
            profiling.wait()
        server.wait_until(lambda: not profcol.metric("profcol_spanjoin_held_requests"), timeout=60, what="requests to leave")
        counts = counts_of(profcol)
        profcol.stop()
        return requests_of(profcol, "traces"), requests_of(profcol, "profiles"), counts


def language_of(files):
    """Return the language of the program that has these source files; None for others."""
    return next((language for name, language in SOURCES.items() if any(file.endswith(name) for file in files)), None)


def text_of(attributes, key):
    """Return the string value of an attribute; empty if there is none."""
    return next((attribute.value.string_value for attribute in attributes if attribute.key == key), "")


def spans_of(messages):
    """Return {span id: Span}."""
    spans = {}
    for resource in (resource for message in messages for resource in message.resource_spans):
        service = text_of(resource.resource.attributes, "service.name").removeprefix("ebpf-")
        for span in (span for scope in resource.scope_spans for span in scope.spans):
            kind = span.name if span.name in KINDS else text_of(span.attributes, "url.path").strip("/")
            spans[span.span_id] = Span(service, kind, span.start_time_unix_nano, span.end_time_unix_nano)
    return spans


def frames_of(sample, dictionary):
    """Return (function without class and package, file) of a sample's stack, its leaf first."""
    for location in dictionary.stack_table[sample.stack_index].location_indices:
        for line in dictionary.location_table[location].lines:
            function = dictionary.function_table[line.function_index]
            name = dictionary.string_table[function.name_strindex]
            yield name.partition("(")[0].rpartition(".")[2].rpartition("/")[2], dictionary.string_table[function.filename_strindex]


def samples_of(messages):
    """Return (language, kind of the running span, span id of the Link, times) of the samples inside of spans."""
    for message in messages:
        dictionary = message.dictionary
        profiles = (p for r in message.resource_profiles for scope in r.scope_profiles for p in scope.profiles)
        for sample in (sample for profile in profiles for sample in profile.samples):
            frames = list(frames_of(sample, dictionary))
            language = language_of([file for _, file in frames])
            kind = next((function for function, _ in frames if function in KINDS), None)
            if language and kind:
                yield language, kind, dictionary.link_table[sample.link_index].span_id, sample.timestamps_unix_nano


def main():
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profiler")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/interop/ebpf")
    options = parser.parse_args()
    build(options.work)
    traces, profiles, counts = run(os.path.abspath(options.profiler), options.work, options.seconds)
    spans = spans_of(traces)
    print(f"{len(spans)} spans, {counts}")
    shares, begun = collections.defaultdict(collections.Counter), set()
    for language, kind, span_id, times in samples_of(profiles):
        span = spans.get(span_id)
        if span:
            begun.add(language)
        elif language not in begun:    # uploaded before profcol knew that spans of the process name their threads
            shares[language]["before the first spans arrived"] += len(times)
            continue
        is_right = span and span.kind == kind and all(span.start - SLACK_NS <= at <= span.end + SLACK_NS for at in times)
        shares[language]["right" if is_right else "wrong" if span else "not joined"] += len(times)
    is_good = len(shares) == 2
    for language, share in sorted(shares.items()):
        early = share.pop("before the first spans arrived", 0)
        known = sum(share.values())
        print(f"{language}: {early} observations before the first spans arrived, then {known}: "
              + ", ".join(f"{count / known:.2%} {name}" for name, count in share.most_common()))
        is_good = is_good and share["right"] / known >= 0.98 and share["wrong"] / known <= 0.02
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
