"""What a span says it cost, and what Pyroscope says: run.sh complete http://127.0.0.1:4041 [TEST...]

Programs in five languages, each with OpenTelemetry's and Pyroscope's SDKs as their makers ship them, do some work in 100 spans of 0.1 to 20 s. Their
spans and profiles go to profcol, whose profiles go to a real Pyroscope at the given address, which stores them. profcol holds spans (spans.wait) until
uploads cover them; then `profile.cpu_ns` of each span must be what Pyroscope returns for it. The profilers call the program by another name than the
spans; Pyroscope must have it all under that of the spans. Beside them a service sends spans without being profiled. These must not be delayed.

What is not equal is printed, with the reason if one is known. A language whose tools are not there is skipped, and said so.
"""

import collections
import json
import os
import pathlib
import random
import shutil
import sys
import threading
import time
import unittest
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), os.environ["PROFCOL_SOURCE"]]

import builds  # noqa: E402
from tests.oracle import backend, client, make, server, testing  # noqa: E402

SOURCE = pathlib.Path(os.environ["PROFCOL_SOURCE"])
BUILD = SOURCE / "build" / "interop" / "complete"
PYROSCOPE = os.environ["PYROSCOPE_URL"].rstrip("/")
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
SPANS_WAIT = 40
SPANS = int(os.environ.get("COMPLETE_SPANS", "100"))
RUN = f"{int(time.time()):x}"       # so that each run has its own services
JARS = "jars/opentelemetry-api-1.50.0.jar:jars/opentelemetry-context-1.50.0.jar:."
CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}, http: {endpoint: "127.0.0.1:@http@"}}}
  pyroscope: {endpoint: "127.0.0.1:@uploads@"}
processors:
  spanjoin: {window: 120s, spans: {wait: WAITs}}
exporters:
  otlp_grpc: {endpoint: "TRACES", tls: {insecure: true}}
  pyroscope: {endpoint: "PYROSCOPE"}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [spanjoin], exporters: [otlp_grpc]}
    profiles: {receivers: [pyroscope], processors: [spanjoin], exporters: [pyroscope]}
"""

# Language: (tools, commands that build, command that runs, protocol of its spans). docs/clients/LANGUAGE says what it needs.
PROGRAMS = {
    "go": (["go"], ["go build -o example ."], "./example", "grpc"),
    "python": (["python3"], ["python3 -m venv venv", "venv/bin/pip install -q -r requirements.txt"], "venv/bin/python main.py", "http"),
    "node": (["node", "npm"], ["npm install --no-audit --no-fund"], "node main.js", "http"),
    "java": (["java", "javac", "mvn"], ["mvn -q -B dependency:copy-dependencies -DoutputDirectory=jars", f"javac -cp {JARS} App.java"],
             f"java -javaagent:jars/opentelemetry-javaagent-2.33.1.jar -Dotel.javaagent.extensions=jars/otel-1.0.2.jar -cp {JARS} App", "grpc"),
    "rust": (["cargo"], ["cargo build --release"], "target/release/example", "http"),
}


def durations(language):
    """Milliseconds of each span: most are short, one in ten takes 5 to 20 s."""
    rng = random.Random(f"complete {language}")
    found = [rng.randint(100, 1000) if i % 10 < 6 else rng.randint(1000, 5000) if i % 10 < 9 else rng.randint(5000, 20000) for i in range(SPANS)]
    rng.shuffle(found)
    return found


def program(language):
    """Build a program; return its directory."""
    tools, commands, _, _ = PROGRAMS[language]
    directory = BUILD / language
    shutil.copytree(SOURCE / "docs" / "clients" / language, directory, dirs_exist_ok=True)
    return builds.build(language, tools, commands, HERE / language, directory)


def ask(method, **request):
    """Ask Pyroscope."""
    data = json.dumps({"start": str(int(time.time() - 3600) * 1000), "end": str(int(time.time() + 60) * 1000), **request}).encode()
    call = urllib.request.Request(f"{PYROSCOPE}/querier.v1.QuerierService/{method}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(call, timeout=60) as answer:
        return json.load(answer)


def stored(service, *span_ids):
    """The CPU time in ns that Pyroscope has of a service, or of one of its spans."""
    more = {"spanSelector": list(span_ids)} if span_ids else {}
    answer = ask("SelectMergeStacktraces", profileTypeID=CPU, labelSelector=f'{{service_name="{service}"}}', **more)
    return int(answer.get("flamegraph", {}).get("total", 0))


def attributes(span):
    return {pair.key: pair.value.string_value or pair.value.bool_value or pair.value.int_value for pair in span.attributes}


class Unprofiled:
    """A service without a profiler: a span a second, each with the time until it arrives at the backend."""

    def __init__(self, profcol, sink):
        self.profcol, self.sink = profcol, sink
        self.sent, self.stopped = {}, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()

    def run(self):
        number = 0
        while not self.stopped.wait(1):
            number += 1
            span_id = f"{number:016x}"
            self.sent[span_id] = time.monotonic()
            client.export("grpc", self.profcol.address("grpc"), make.traces([{"span_id": span_id}], resource={"service.name": "unprofiled"}))

    def delays(self, first):
        """Seconds of each span that was sent later than `first` seconds after the first one."""
        start = min(self.sent.values())
        arrived = {span.span_id.hex(): at for span, service, at in spans_of(self.sink) if service == "unprofiled"}
        return [arrived[span_id] - at for span_id, at in self.sent.items() if span_id in arrived and at - start > first]


def spans_of(sink):
    """Each span that has arrived, with its service and the time of arrival."""
    for received in sink.of("traces"):
        for resource in received.message().resource_spans:
            service = next(pair.value.string_value for pair in resource.resource.attributes if pair.key == "service.name")
            for scope in resource.scope_spans:
                for span in scope.spans:
                    yield span, service, received.time


class CompleteTest(unittest.TestCase):
    """See the module."""

    def run_program(self, profcol, language, directory, service):
        _, _, command, protocol = PROGRAMS[language]
        lengths = durations(language)
        builds.run(command, directory, 900, OTEL_SERVICE_NAME=service, PYROSCOPE_APPLICATION_NAME=f"app-{language}-{RUN}",
                   PYROSCOPE_SERVER_ADDRESS=profcol.url("uploads"), OTEL_EXPORTER_OTLP_ENDPOINT=profcol.url(protocol),
                   OTEL_EXPORTER_OTLP_PROTOCOL="grpc" if protocol == "grpc" else "http/protobuf", OTEL_METRICS_EXPORTER="none", OTEL_LOGS_EXPORTER="none",
                   SPANS_MS=",".join(map(str, lengths)), WORKERS="4", BUSY_MS="20", IDLE_MS="80", LINGER_MS="30000")

    def check(self, language):
        directory, service = program(language), f"complete-{language}-{RUN}"
        with backend.Backend("grpc") as traces:
            config = CONFIG.replace("WAIT", str(SPANS_WAIT)).replace("TRACES", traces.address).replace("PYROSCOPE", PYROSCOPE)
            with server.Profcol(config) as profcol:
                with Unprofiled(profcol, traces) as unprofiled:
                    self.run_program(profcol, language, directory, service)
                server.wait_until(lambda: profcol.metric("profcol_spanjoin_held_requests") == 0, 90, "all that was held to leave")
                server.wait_until(lambda: profcol.metric("otelcol_exporter_queue_size", exporter="pyroscope") == 0, 60, "the exporter to send all")
                lost = {reason: profcol.metric("profcol_spanjoin_samples_unjoined", reason=reason) for reason in ("not_found", "span_open", "expired", "overflow")}
                services = {result: profcol.metric("profcol_spanjoin_service_samples", result=result) for result in ("renamed", "conflict")}
                self.assertEqual(profcol.stop(), 0)
                log = profcol.log()
            delays = unprofiled.delays(SPANS_WAIT)
            spans = {span.span_id: span for span, name, _ in spans_of(traces) if name == service}
            left = {span.span_id: at for span, name, at in spans_of(traces) if name == service}
            zero = time.time() - time.monotonic()
        time.sleep(2)       # until Pyroscope shows what it has stored
        start = min(span.start_time_unix_nano for span in spans.values()) / 1e9
        when = {key: (span.start_time_unix_nano / 1e9 - start, span.end_time_unix_nano / 1e9 - start, left[key] + zero - start) for key, span in spans.items()}
        self.report(language, service, list(spans.values()), when, (lost, services, delays, log))

    def report(self, language, service, spans, when, told):
        """Compare; print; fail if something differs."""
        lost, services, delays, log = told
        differing, longest = collections.Counter(), 0
        for span in spans:
            have = attributes(span)
            seconds = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
            longest = max(longest, seconds)
            cost, real = have.get("profile.cpu_ns", 0), stored(service, span.span_id.hex())
            if cost == real:
                continue
            complete = have.get("profile.complete", True)
            differing["complete" if complete else "incomplete"] += 1
            begin, end, left = when[span.span_id]
            print(f"{language}: span {span.span_id.hex()} from {begin:.1f} to {end:.1f} s, left at {left:.1f} s: profile.cpu_ns {cost}, Pyroscope {real}; "
                  f"complete: {complete}", file=sys.stderr)
        with_cost = sum("profile.cpu_ns" in attributes(span) for span in spans)
        said = [line for line in log.splitlines() if "\twarn\t" in line or "\terror\t" in line]
        print(f"{language}: {len(spans)} spans of up to {longest:.1f} s, {with_cost} with cost, {len(spans) - sum(differing.values())} equal, {dict(differing)}; "
              f"CPU in all {sum(attributes(span).get('profile.cpu_ns', 0) for span in spans) / 1e9:.2f} s, of the service {stored(service) / 1e9:.2f} s, left behind "
              f"{stored(f'app-{language}-{RUN}') / 1e9:.2f} s; samples unjoined {lost}, services {services}; {len(delays)} spans of the unprofiled service, delayed by up to "
              f"{max(delays, default=0):.2f} s; log {said}", file=sys.stderr)
        self.assertEqual(len(spans), SPANS)
        self.assertGreater(with_cost, SPANS * 0.5)      # short ones may be without a sample
        self.assertEqual(differing, {})
        self.assertGreater(len(delays), 0)
        self.assertLess(max(delays), SPANS_WAIT / 4)

    def test_go(self):
        self.check("go")

    def test_python(self):
        self.check("python")

    def test_node(self):
        self.check("node")

    def test_java(self):
        self.check("java")

    def test_rust(self):
        self.check("rust")


if __name__ == "__main__":
    testing.main()
