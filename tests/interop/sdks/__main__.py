"""OpenTelemetry's SDKs -> profcol -> backends, and -> Collector -> backends: run.sh sdks [TEST...]

Each program of this folder sends traces, metrics and logs, the same in each run. It runs twice in each protocol that it has: once with
profcol in front of three backends (gRPC, HTTP with protobuf, HTTP with JSON), once with the Collector, both with CONFIGURATION. The SDK
must not warn of anything, and all six backends must receive the same, as forms.py compares it. $PROFCOL and $OTELCOL are the binaries.
"""

import collections
import contextlib
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), os.environ["PROFCOL_SOURCE"]]

import forms  # noqa: E402
import programs  # noqa: E402
from tests.oracle import backend, canonical, make, server, testing  # noqa: E402

CONFIGURATION = """
extensions:
  health_check: {endpoint: "127.0.0.1:@health@"}
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:@grpc@"}
      http: {endpoint: "127.0.0.1:@http@"}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 400}
  resource_detection: {detectors: [env, system], system: {hostname_sources: [os]}}
  resource: {attributes: [{key: added, value: here, action: upsert}]}
  batch: {timeout: 200ms}
exporters:
  otlp_grpc: {endpoint: "GRPC", tls: {insecure: true}}
  otlp_http: {endpoint: "HTTP"}
  otlp_http/json: {endpoint: "JSON", encoding: json}
service:
  extensions: [health_check]
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: &all {receivers: [otlp], processors: [memory_limiter, resource_detection, resource, batch], exporters: [otlp_grpc, otlp_http, otlp_http/json]}
    metrics: *all
    logs: *all
"""
SIGNALS = ("traces", "metrics", "logs")
TABLE = []


class Arrived:
    """What one run of a program sent, as it arrived at the three backends: all rows, and those that the next run has, too."""

    def __init__(self, warnings, log, program, requests):
        self.warnings = warnings
        self.log = log
        self.all = {way: {signal: form.rows(signal) for signal in SIGNALS} for way, form in requests.items()}
        self.repeatable = dict(self.all["grpc"])
        if program.interval_ms < 60000:
            self.repeatable["metrics"] = requests["grpc"].last_points()

    def counts(self):
        """The number of spans, data points and records."""
        return " / ".join(str(len(self.repeatable[signal])) for signal in SIGNALS)

    def differences(self, other):
        """Where its three backends received something else, or the other run's."""
        found = {f"{signal}, {way} and gRPC": forms.difference(rows[signal], self.all["grpc"][signal]) for way, rows in self.all.items() for signal in SIGNALS}
        found.update({f"{signal}, through profcol and the Collector": forms.difference(self.repeatable[signal], other.repeatable[signal]) for signal in SIGNALS})
        return [f"{where}: {text}" for where, text in found.items() if text]


def messages(sink):
    found = collections.defaultdict(list)
    for received in sink.of():
        found[received.signal].append(received.message())
    return found


def run(binary, program, protocol, default=None):
    """One run of the program with profcol or the Collector between it and three backends, which answer with `default`."""
    with contextlib.ExitStack() as stack:
        sinks = {way: stack.enter_context(backend.Backend("grpc" if way == "grpc" else "http", default=default)) for way in ("grpc", "http", "json")}
        text = CONFIGURATION.replace("GRPC", sinks["grpc"].address).replace("HTTP", sinks["http"].url).replace("JSON", sinks["json"].url)
        with server.Profcol(text, binary=binary) as between:
            warnings = program.run(protocol, between.url("grpc" if protocol == "grpc" else "http"))
            between.stop()
            log = between.log()
        return Arrived(warnings, log, program, {way: forms.Forms(messages(sink)) for way, sink in sinks.items()})


class SdksTest(unittest.TestCase):
    """See the module."""

    def check(self, language):
        program = programs.PROGRAMS[language]
        for protocol in program.protocols:
            with self.subTest(language, protocol=protocol):
                ours, theirs = (run(os.environ[name], program, protocol) for name in ("PROFCOL", "OTELCOL"))
                differs = ours.differences(theirs)
                TABLE.append((language, protocol, ours.counts(), theirs.counts(), len(ours.warnings), len(theirs.warnings), len(differs)))
                self.assertEqual(ours.warnings, [])
                self.assertNotRegex(ours.log, r"\t(warn|error)\t")
                for signal in SIGNALS:
                    self.assertGreater(len(theirs.repeatable[signal]), 5)
                self.assertEqual("\n".join(differs), "")

    def test_go(self):
        self.check("go")

    def test_python(self):
        self.check("python")

    def test_node(self):
        self.check("node")

    def test_java(self):
        self.check("java")

    @classmethod
    def tearDownClass(cls):
        print("\n| SDK | protocol | spans / data points / log records through profcol | through the Collector | warnings of the SDK, profcol | Collector | differences |"
              "\n|---|---|---|---|---|---|---|")
        for row in TABLE:
            print("|", " | ".join(str(cell) for cell in row), "|")


class SelfTest(unittest.TestCase):
    """What the comparison would see."""

    def test_a_refusal_is_a_warning(self):
        """A program whose data is refused says so: its silence means something."""
        refusal = backend.Answer(status=400, grpc_status=3, message="no")
        for program in programs.PROGRAMS.values():
            for protocol in program.protocols[:2]:
                with self.subTest(program.language, protocol=protocol):
                    kind = "grpc" if protocol == "grpc" else "http"
                    with backend.Backend(kind, default=refusal) as sink:
                        self.assertNotEqual(program.run(protocol, sink.url), [])

    def test_a_change_is_a_difference(self):
        """A span that is missing, one that arrives twice, an attribute, a parent."""
        def rows(*spans):
            return forms.Forms({"traces": [make.traces(list(spans))]}).rows("traces")

        parent, child = {"span_id": "00000000000000a1", "name": "a"}, {"span_id": "00000000000000a2", "name": "b", "parent_span_id": "00000000000000a1"}
        want = rows(parent, child)
        renamed = [{**span, **{key: value.replace("00000000000000", "00000000000001") for key, value in span.items() if key.endswith("id")}} for span in (parent, child)]
        self.assertEqual(forms.difference(rows(*renamed), want), "")
        for changed in ([parent], [parent, child, child], [parent, {**child, "attributes": {"k": 1}}], [parent, {**child, "parent_span_id": "0" * 16}]):
            self.assertNotEqual(forms.difference(rows(*changed), want), "")


    def test_a_change_is_reported(self):
        """In one of the three backends, in one of the two runs; a value of the program's own metrics."""
        def arrived(way="", value=1):
            message = canonical.MESSAGES["metrics"]()
            metric = message.resource_metrics.add().scope_metrics.add().metrics.add(name="interop.requests")
            metric.sum.data_points.add(as_int=1)
            changed = canonical.MESSAGES["metrics"].FromString(message.SerializeToString())
            changed.resource_metrics[0].scope_metrics[0].metrics[0].sum.data_points[0].as_int = value
            requests = {name: forms.Forms({"metrics": [changed if way in (name, "all") else message]}) for name in ("grpc", "http", "json")}
            return Arrived([], "", programs.PROGRAMS["go"], requests)

        self.assertEqual(arrived().differences(arrived("all")), [])
        for ours in (arrived("json", 2), arrived("http", 2), arrived("all", 2)):
            self.assertNotEqual(ours.differences(arrived()), [])


if __name__ == "__main__":
    testing.main()
