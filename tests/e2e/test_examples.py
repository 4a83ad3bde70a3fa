"""The files that users start from: examples/*.yaml, examples/run.sh, and the built-in configuration."""

import collections
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, canonical, certificates, client, decode, join, make, pyroscope, replay, server, testing, uploads

PROFCOL = os.environ["PROFCOL"]
SOURCE = pathlib.Path(os.environ["PROFCOL_SOURCE"])
EXAMPLES = sorted((SOURCE / "examples").glob("*.yaml"))
TOKEN = "a token"

# Metrics that dashboards and alerts for the Collector use, without labels, and our own.
METRICS = """
otelcol_receiver_accepted_spans otelcol_receiver_refused_spans
otelcol_receiver_accepted_profile_samples otelcol_receiver_refused_profile_samples
otelcol_exporter_sent_spans otelcol_exporter_send_failed_spans otelcol_exporter_enqueue_failed_spans
otelcol_exporter_sent_profile_samples otelcol_exporter_send_failed_profile_samples
otelcol_exporter_enqueue_failed_profile_samples
otelcol_exporter_queue_size otelcol_exporter_queue_capacity otelcol_exporter_in_flight_requests
otelcol_processor_batch_batch_send_size_bucket otelcol_processor_batch_batch_send_size_sum
otelcol_processor_batch_batch_send_size_count
otelcol_processor_batch_batch_size_trigger_send otelcol_processor_batch_timeout_trigger_send
otelcol_process_uptime otelcol_process_cpu_seconds otelcol_process_memory_rss
otelcol_process_runtime_heap_alloc_bytes
profcol_spanjoin_entries profcol_spanjoin_samples_joined profcol_spanjoin_samples_unjoined profcol_spanjoin_ambiguous
profcol_spanjoin_spans_enriched profcol_spanjoin_evicted profcol_spanjoin_held_bytes profcol_spanjoin_held_requests
profcol_spanjoin_lag_seconds_bucket profcol_spanjoin_lag_seconds_sum profcol_spanjoin_lag_seconds_count
profcol_budget_used_bytes profcol_budget_limit_bytes profcol_server_connections profcol_receiver_invalid_requests
""".split()
UNJOINED = {"no_id", "no_process", "no_span_on_thread", "ambiguous_thread", "not_split", "not_found", "span_open", "expired", "overflow"}


class Example(server.Profcol):
    """A process with an unchanged example. `sets` changes single values and may use the @markers@."""

    def __init__(self, path, sets, **options):
        super().__init__(path.read_text(), **options)
        self.template += "".join(f"# {text}\n" for text in sets)    # so that the markers are found
        self.raw = [part for text in sets for part in ("--set", text)] + self.arguments

    def _spawn(self):
        self.arguments = [self.render(part) for part in self.raw]
        super()._spawn()


def captures(name):
    """Return the trace and profile requests of a recording, spans first."""
    found = [c for c in decode.in_directory(decode.CAPTURES / name) if c.signal in canonical.OPENED]
    return sorted(found, key=lambda capture: capture.signal == "profiles")


class ExamplesTest(unittest.TestCase):
    """Each example starts and does what it documents."""

    def test_all_of_them_are_valid(self):
        self.assertGreaterEqual(len(EXAMPLES), 4)
        for path in EXAMPLES:
            with self.subTest(path.name):
                result = subprocess.run([PROFCOL, "validate", "--config", str(path)], capture_output=True, text=True,
                                        timeout=30, check=False, env={**os.environ, "ONEUPTIME_TOKEN": TOKEN})
                self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)
                for line in result.stderr.splitlines():
                    self.assertIn("alias is deprecated", line)

    def test_correlation_delivers_both_signals(self):
        """An ordinary Collector file: TLS to one backend, two receivers, and the names that the Collector used before
        0.144."""
        with tempfile.TemporaryDirectory() as directory:
            made = certificates.Certificates(directory)
            with backend.Backend("http", tls=made.server) as traces, backend.Backend("http") as profiles:
                sets = ["receivers.otlp.protocols.grpc.endpoint=127.0.0.1:@grpc@",
                        "receivers.otlp.protocols.http.endpoint=127.0.0.1:@http@",
                        "receivers.otlp/profiles.protocols.grpc.endpoint=127.0.0.1:@profiles@",
                        f"exporters.otlphttp/traces.endpoint=https://{traces.address}/otlp",
                        f"exporters.otlphttp/traces.tls.ca_file={made.ca}",
                        f"exporters.otlphttp/pyroscope.endpoint={profiles.url}"]
                sent = captures("ebpf-profiler")
                with Example(SOURCE / "examples" / "correlation.yaml", sets,
                             environment={"ONEUPTIME_TOKEN": TOKEN}) as profcol:
                    results = replay.send([c for c in sent if c.signal == "traces"],
                                          grpc=profcol.address("grpc"), http=profcol.address("http"))
                    results += replay.send([c for c in sent if c.signal == "profiles"], grpc=profcol.address("profiles"))
                    self.assertEqual([result.problem() for result in results if not result.ok], [])
                    # Its receivers serve the signals of their pipelines.
                    answer = client.call(profcol.address("profiles"), client.TRACE_SERVICE)
                    self.assertEqual(answer.grpc_status, 12)
                    self.assertEqual(client.post(profcol.address("http"), client.PROFILES).status, 404)
                    self.assertEqual(profcol.stop(), 0)
                got = traces.of("/otlp/v1/traces")
                self.assertEqual(len(got), len(traces.of()))
                for request in got:
                    request.signal = "traces"
                    self.assertEqual(request.header("x-oneuptime-token"), TOKEN)
                want = [canonical.of(c) for c in sent]
                self.assertEqual(canonical.flat_spans(*(request.form() for request in got)),
                                 canonical.flat_spans(*(form for form in want if "traces" in form)))
                self.assertEqual(canonical.flat_profiles(*profiles.forms("profiles")),
                                 canonical.flat_profiles(*(form for form in want if "profiles" in form)))
                self.assertEqual({request.path for request in profiles.of()}, {client.PROFILES})

    def check_joining(self, name, arguments=()):
        """Send the recording through sidecar.yaml or gateway.yaml. Return the text of the metrics."""
        with backend.Backend("grpc") as traces, backend.Backend("http") as profiles:
            sets = ["receivers.otlp.protocols.grpc.endpoint=127.0.0.1:@grpc@",
                    "receivers.otlp.protocols.http.endpoint=127.0.0.1:@http@",
                    "processors.spanjoin.service_from=profile"]    # test_service_names.py tests what it is by default
            if name == "gateway.yaml":
                sets += ["extensions.health_check.endpoint=127.0.0.1:@health@", "extensions.zpages.endpoint=127.0.0.1:@zpages@"]
            environment = {"TRACES_ENDPOINT": traces.address, "PYROSCOPE_URL": profiles.url}
            sent = captures("ebpf-profiler-obi-links")
            with Example(SOURCE / "examples" / name, sets, environment=environment, arguments=arguments) as profcol:
                results = replay.send(sent, grpc=profcol.address("grpc"), http=profcol.address("http"))
                self.assertEqual([result.problem() for result in results if not result.ok], [])
                counts = [canonical.counts(canonical.of(c)) for c in sent]
                traces.wait_for_items("traces", sum(count.get("spans", 0) for count in counts))
                profiles.wait_for_items("profiles", sum(count.get("samples", 0) for count in counts))
                text = profcol.metrics_text()
                self.assertEqual(profcol.metric("profcol_spanjoin_samples_joined"), 94)
                self.assertEqual(profcol.stop(), 0)
            forms = [canonical.of(c) for c in sent]
            index = join.SpanIndex(form for form in forms if "traces" in form)
            self.assertEqual(canonical.flat_spans(*traces.forms("traces")),
                             canonical.flat_spans(*(form for form in forms if "traces" in form)))
            self.assertEqual(canonical.flat_profiles(*profiles.forms("profiles")), canonical.flat_profiles(
                *(join.expected(form, index) for form in forms if "profiles" in form)))
        return text

    def test_sidecar_joins(self):
        self.check_joining("sidecar.yaml", ["--workers", "1"])

    def test_gateway_joins_and_tells_what_it_does(self):
        text = self.check_joining("gateway.yaml")
        found = {row[0] for row in server.METRIC.findall(text)}
        self.assertEqual([name for name in METRICS if name not in found], [])
        reasons = re.findall(r'profcol_spanjoin_samples_unjoined\{[^}]*reason="(\w+)"', text)
        self.assertEqual(set(reasons), UNJOINED)
        for name in found:
            self.assertRegex(name, r"^(otelcol|profcol)_|^target_info$")
            if not re.search(r"_(bucket|sum|count)$", name):
                self.assertRegex(text, rf"(?m)^# HELP {name} \S")
                self.assertRegex(text, rf"(?m)^# TYPE {name} (counter|gauge)$")
        self.assertIn('otelcol_receiver_accepted_spans{receiver="otlp",transport="grpc"', text)

    def test_pyroscope_joins_what_sdks_upload(self):
        """Traces arrive over OTLP, profiles over the SDKs' own protocols. Pyroscope gets their complete values, with
        the spans that they name."""
        for name in ("go-grpc", "python-http-protobuf", "rust-grpc"):
            with self.subTest(name):
                self.check_uploads(name)

    def check_uploads(self, name):
        spans, profiles = [c for c in captures(name) if c.signal == "traces"], uploads.captures(name)
        sets = ["receivers.otlp.protocols.grpc.endpoint=127.0.0.1:@grpc@",
                "receivers.otlp.protocols.http.endpoint=127.0.0.1:@http@",
                "receivers.pyroscope.endpoint=127.0.0.1:@uploads@"]
        with backend.Backend("grpc") as traces, pyroscope.Pyroscope(now=lambda: profiles[-1].arrival_ns / 1e9) as fake:
            environment = {"TRACES_ENDPOINT": traces.address, "PYROSCOPE_URL": fake.url}
            with Example(SOURCE / "examples" / "pyroscope.yaml", sets, environment=environment) as profcol:
                results = replay.send(spans, grpc=profcol.address("grpc"), http=profcol.address("http"))
                self.assertEqual([result.problem() for result in results if not result.ok], [])
                results = replay.send(profiles, http=profcol.address("uploads"))
                self.assertEqual([(result.status, result.error) for result in results if result.status != 200], [])
                self.assertGreater(profcol.metric("profcol_spanjoin_samples_joined"), 100)
                self.assertEqual(sum(profcol.metric("profcol_spanjoin_samples_unjoined", reason=reason)
                                     for reason in UNJOINED - {"no_id"}), 0)
                self.assertEqual(profcol.stop(), 0)
            self.assertEqual(canonical.flat_spans(*traces.forms("traces")), canonical.flat_spans(*map(canonical.of, spans)))
            self.assertEqual(fake.problems, [])
            want, got = collections.Counter(), collections.Counter()
            for (service, _, kind, unit, _, _, trace_id, span_id), value in (
                    row for upload in profiles for row in uploads.totals_of(upload).items()):
                want[service, kind, unit, trace_id, span_id] += value
            for push in fake.pushes():
                for (kind, _, labels), value in push.rows().items():
                    labels = dict(labels)
                    self.assertEqual("span_id" in labels, "span_kind" in labels, "joined samples have their span's attributes")
                    got[(push.labels["service_name"], *kind.split(":")[1:3], labels.get("trace_id", ""), labels.get("span_id", ""))] += value
            self.assertEqual(got, want)

    def test_keep_counts_what_it_would_save(self):
        """keep.yaml as it is changes nothing; without dry_run it does what was counted."""
        counted = {dry: self.kept(dry) for dry in ("true", "false")}
        self.assertEqual(counted["true"], counted["false"])

    def kept(self, dry_run):
        """Send a recording through keep.yaml. Return {result: samples}, checked against what left."""
        sent = captures("ebpf-profiler-obi-links")
        sets = ["receivers.otlp.protocols.grpc.endpoint=127.0.0.1:@grpc@", "receivers.otlp.protocols.http.endpoint=127.0.0.1:@http@",
                "receivers.pyroscope.endpoint=127.0.0.1:@uploads@", "extensions.explore.endpoint=127.0.0.1:@explore@",
                "processors.spanjoin.samples.wait=200ms", f"processors.spanjoin.keep.dry_run={dry_run}"]
        with backend.Backend("grpc") as traces, pyroscope.Pyroscope(now=lambda: sent[-1].arrival_ns / 1e9) as fake:
            environment = {"TRACES_ENDPOINT": traces.address, "PYROSCOPE_URL": fake.url}
            with Example(SOURCE / "examples" / "keep.yaml", sets, environment=environment) as profcol:
                results = replay.send(sent, grpc=profcol.address("grpc"), http=profcol.address("http"))
                self.assertEqual([result.problem() for result in results if not result.ok], [])
                server.wait_until(lambda: not profcol.metric("profcol_spanjoin_held_requests"), what="requests to leave")
                counts = {result: profcol.metric("profcol_spanjoin_keep_samples", result=result, dry_run=dry_run)
                          for result in ("kept", "folded", "combined", "dropped")}
                left = profcol.metric("otelcol_processor_outgoing_items", processor="spanjoin", otel_signal="profiles")
                self.assertEqual(profcol.stop(), 0)
        folds = dry_run == "false"
        self.assertEqual(left, counts["kept"] + (counts["combined"] if folds else counts["folded"]))
        self.assertGreater(counts["folded"], 0)
        return counts

    def test_the_built_in_configuration(self):
        with tempfile.TemporaryDirectory() as directory:
            ports = [server.free_port() for _ in range(4)]
            reader = f"{{pull: {{exporter: {{prometheus: {{host: 127.0.0.1, port: {ports[2]}}}}}}}}}"
            with open(os.path.join(directory, "log"), "w+", encoding="utf-8") as log:
                process = subprocess.Popen(
                    [PROFCOL, "--set", f"receivers.otlp.protocols.grpc.endpoint=127.0.0.1:{ports[0]}",
                     "--set", f"receivers.otlp.protocols.http.endpoint=127.0.0.1:{ports[1]}",
                     "--set", f"extensions.explore.endpoint=127.0.0.1:{ports[3]}",
                     "--set", f"service.telemetry.metrics.readers=[{reader}]"], stdout=log, stderr=log)
                try:
                    server.wait_until(lambda: all(server.accepts(port) for port in ports), 30, what="listening")
                    message = make.traces([{"span_id": "00000000000000a1", "trace_id": "0" * 30 + "c3"}])
                    self.assertTrue(client.succeeded(client.export("grpc", f"127.0.0.1:{ports[0]}", message)))
                    self.assertTrue(client.succeeded(client.export("http", f"127.0.0.1:{ports[1]}", message)))
                finally:
                    process.send_signal(signal.SIGTERM)
                    code = process.wait(30 * server.PATIENCE)
                log.seek(0)
                text = log.read()
            self.assertEqual(code, 0, text)
            self.assertIn("Everything is ready", text)
            self.assertRegex(text, r"Traces.*spans")


class DemonstrationTest(unittest.TestCase):
    """Tests of `make run`."""

    def test_run(self):
        with tempfile.TemporaryDirectory() as directory:
            ports = [server.free_port() for _ in range(4)]
            environment = {**os.environ, "ONCE": "1", "OUT": directory, "GRPC": f"127.0.0.1:{ports[0]}",
                           "HTTP": f"127.0.0.1:{ports[1]}", "METRICS": f"127.0.0.1:{ports[2]}",
                           "EXPLORE": f"127.0.0.1:{ports[3]}"}
            start = time.monotonic()
            result = subprocess.run([SOURCE / "examples" / "run.sh"], capture_output=True, text=True, timeout=120,
                                    check=False, env=environment)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertLess(time.monotonic() - start, 100)
            self.assertRegex(result.stdout, r"SERVICE +OPERATION +DURATION +SAMPLES +CPU")
            found = re.search(r"(\d+) spans, (\d+) samples: (\d+) name a span, (\d+) of them joined", result.stdout)
            self.assertTrue(found, result.stdout)
            self.assertGreater(int(found[3]), 500)
            self.assertEqual(found[3], found[4], "the recording is complete, so all are joined")
            page = pathlib.Path(directory, "flame.html").read_text()
            self.assertIn("<title>", page)
            self.assertGreater(len(page), 20_000)
            self.assertIn(f"open http://127.0.0.1:{ports[3]} in a browser", result.stdout)
            for port in ports:
                self.assertFalse(server.accepts(port), "it is gone")

    def test_a_port_in_use_is_said(self):
        with tempfile.TemporaryDirectory() as directory, backend.Backend("http") as other:
            environment = {**os.environ, "ONCE": "1", "OUT": directory, "GRPC": f"127.0.0.1:{server.free_port()}",
                           "HTTP": other.address, "METRICS": f"127.0.0.1:{server.free_port()}",
                           "EXPLORE": f"127.0.0.1:{server.free_port()}"}
            result = subprocess.run([SOURCE / "examples" / "run.sh"], capture_output=True, text=True, timeout=60,
                                    check=False, env=environment)
            self.assertEqual(result.returncode, 1)
            self.assertIn("another collector", result.stderr)


if __name__ == "__main__":
    testing.main()
