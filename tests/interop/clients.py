"""The programs of docs/clients against profcol with examples/pyroscope.yaml: built with each language's own tools, run as a reader would.

A language whose tools are not there is skipped, and said so. What they need is downloaded and built in build/interop/clients.
"""

import collections
import os
import pathlib
import sys
import unittest

sys.path[:0] = [os.environ["PROFCOL_SOURCE"], str(pathlib.Path(__file__).resolve().parent)]

import builds  # noqa: E402
from tests.oracle import backend, pyroscope, server, testing  # noqa: E402

SOURCE = pathlib.Path(os.environ["PROFCOL_SOURCE"])
BUILD = SOURCE / "build" / "interop" / "clients"
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
SPANS_WAIT = "40s"      # longer than any upload interval of the programs
JARS = "jars/opentelemetry-api-1.50.0.jar:jars/opentelemetry-context-1.50.0.jar:."

# Language: (tools, commands that build, command that runs)
PROGRAMS = {
    "go": (["go"], ["go build -o example ."], "./example"),
    "python": (["python3"], ["python3 -m venv venv", "venv/bin/pip install -q -r requirements.txt"], "venv/bin/python main.py"),
    "node": (["node", "npm"], ["npm install --no-audit --no-fund"], "node main.js"),
    "java": (["java", "javac", "mvn"], ["mvn -q -B dependency:copy-dependencies -DoutputDirectory=jars", f"javac -cp {JARS} App.java"],
             f"java -javaagent:jars/opentelemetry-javaagent-2.33.1.jar -Dotel.javaagent.extensions=jars/otel-1.0.2.jar -cp {JARS} App"),
    "rust": (["cargo"], ["cargo build --release"], "target/release/example"),
}


def example():
    """examples/pyroscope.yaml with ports of its own."""
    text = (SOURCE / "examples" / "pyroscope.yaml").read_text()
    for port, marker in (("localhost:4317", "grpc"), ("localhost:4318", "http"), ("127.0.0.1:4040", "uploads")):
        assert port in text
        text = text.replace(f"endpoint: {port}", f"endpoint: 127.0.0.1:@{marker}@")
    return text


def attributes(span):
    return {pair.key: pair.value.string_value or pair.value.int_value for pair in span.attributes}


class ClientsTest(unittest.TestCase):
    """A program with traces and profiling; nothing of it knows of profcol."""

    def check(self, language):
        tools, commands, _ = PROGRAMS[language]
        directory, service = builds.build(language, tools, commands, SOURCE / "docs" / "clients" / language, BUILD / language), f"example-{language}"
        with backend.Backend("grpc") as traces, pyroscope.Pyroscope() as fake:
            environment = {"TRACES_ENDPOINT": traces.address, "PYROSCOPE_URL": fake.url, "SPANS_WAIT": SPANS_WAIT}
            with server.Profcol(example(), environment=environment) as profcol:
                otlp = "http" if language in ("python", "node", "rust") else "grpc"
                builds.run(PROGRAMS[language][2], directory, 120, OTEL_SERVICE_NAME=service, PYROSCOPE_SERVER_ADDRESS=profcol.url("uploads"),
                    OTEL_EXPORTER_OTLP_ENDPOINT=profcol.url(otlp), OTEL_EXPORTER_OTLP_PROTOCOL="grpc" if otlp == "grpc" else "http/protobuf",
                    OTEL_METRICS_EXPORTER="none", OTEL_LOGS_EXPORTER="none", PYROSCOPE_APPLICATION_NAME=service)
                server.wait_until(lambda: profcol.metric("profcol_spanjoin_held_requests") == 0, 60, "all that was held has left")
                joined = profcol.metric("profcol_spanjoin_samples_joined")
                lost = {reason: profcol.metric("profcol_spanjoin_samples_unjoined", reason=reason) for reason in ("not_found", "expired", "overflow")}
                self.assertEqual(profcol.stop(), 0)
            self.assertEqual(fake.problems, [])
            spans = {span.span_id.hex(): span for received in traces.of("traces") for resource in received.message().resource_spans
                     for scope in resource.scope_spans for span in scope.spans}
        totals, named = collections.Counter(), set()
        for push in fake.pushes():
            self.assertEqual(push.labels["service_name"], service)
            for (kind, _, labels), value in push.rows().items():
                totals[kind] += value
                named.update({dict(labels)["span_id"]} if "span_id" in dict(labels) else ())
        print(f"{language}: {joined:.0f} samples joined, unjoined {lost}; {len(spans)} spans, {len(named)} with samples; {dict(totals)}", file=sys.stderr)
        self.assertGreater(joined, 50)
        self.assertLessEqual(sum(lost.values()), 0.01 * joined)
        self.assertGreater(totals[CPU], 1e9)
        self.assertEqual(named - spans.keys(), set())
        for span_id in named:
            gained = attributes(spans[span_id])
            self.assertEqual(gained.get("pyroscope.profile.id"), span_id)
            self.assertGreater(gained.get("profile.samples", 0), 0)

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
