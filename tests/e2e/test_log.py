"""The log, read as tools read the Collector's: every line of runs in which everything goes wrong."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, client, log_lines, log_messages, make, server, testing

SOURCE = pathlib.Path(os.environ["PROFCOL_SOURCE"])

# In each of these files a setting has to be warned about, too: an ignored one.
CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}, http: {endpoint: "127.0.0.1:@http@"}}}}
processors: {batch: {send_batch_size: 1, timeout: 10ms}, batch/idle: }
exporters:
  otlp_http/moody: {endpoint: "MOODY", encoding: json, retry_on_failure: {initial_interval: 20ms, max_interval: 20ms}}
  otlp_http/strict: {endpoint: "STRICT", retry_on_failure: {enabled: false}, sending_queue: {enabled: false}}
  otlp_grpc/dead: {endpoint: "127.0.0.1:1", tls: {insecure: true}, sending_queue: {queue_size: 1, num_consumers: 1}, retry_on_failure: {initial_interval: 10s, max_elapsed_time: 0s}}
  debug: {verbosity: VERBOSITY}
service:
  telemetry:
    logs: {encoding: ENCODING, level: LEVEL, processors: [], initial_fields: {zone: "a\\tb", at: {n: [1, null]}}}
    metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: @metrics@}}}}]}
    resource: {service.name: "sh\\"op", service.version: null}
  pipelines:
    traces: {receivers: [otlp], processors: [batch], exporters: [otlp_http/moody]}
    traces/strict: {receivers: [otlp], exporters: [otlp_http/strict, debug]}
    traces/full: {receivers: [otlp], exporters: [otlp_grpc/dead]}
"""
ENCODINGS = ("console", "json")


def configuration(encoding, moody="http://127.0.0.1:1", strict="http://127.0.0.1:1", level="debug", verbosity="basic"):
    """Return the YAML; its third line of logs has a setting that is ignored."""
    text = CONFIG.replace("ENCODING", encoding).replace("LEVEL", level).replace("VERBOSITY", verbosity)
    return text.replace("MOODY", moody).replace("STRICT", strict).replace("    metrics: {readers", "    traces: {level: detailed}\n    metrics: {readers")


def send(profcol, name="x"):
    """Send a span; whether it is accepted does not matter."""
    return client.export("grpc", profcol.address("grpc"), make.traces([{"span_id": "00000000000000a1", "name": name}]))


def end(profcol):
    """Kill it: a drain would wait for the dead backends."""
    profcol.expect_exit = None
    profcol.kill()


def run(*arguments):
    """Run a command that ends by itself."""
    return subprocess.run([os.environ["PROFCOL"], *arguments], capture_output=True, text=True, timeout=60, check=False)


class EveryLine(unittest.TestCase):
    """Done when: a parser of the Collector's forms reads every line of a run with errors."""

    def check_lines(self, profcol, encoding):
        records = profcol.log_records(encoding)
        for record in records:
            self.assertEqual(list(record.fields)[:3], ["at", "zone", "resource"], record)
            self.assertEqual((record.fields["zone"], record.fields["at"]), ("a\tb", {"n": [1, None]}))
            self.assertEqual(sorted(record.fields["resource"]), ["service.instance.id", "service.name"])
            self.assertEqual(record.fields["resource"]["service.name"], 'sh"op')
            self.assertEqual(record.caller is None, record.message == "Traces", record)
        self.assertEqual(len({record.fields["resource"]["service.instance.id"] for record in records}), 1)
        return records

    def check_known(self, records):
        """The messages are those that log_messages lists, apart from those of debug."""
        known = {(message.level, message.text) for message in log_messages.every(SOURCE)}
        for record in records:
            if record.message != "Traces":
                self.assertIn((record.level, record.message), known)

    def test_a_run_in_which_everything_fails(self):
        hostile = 'no\n2026-01-01T00:00:00.000Z\terror\tforged\x1b[2J "\u2028'
        for encoding in ENCODINGS:
            with self.subTest(encoding), backend.Backend("http") as moody, \
                    backend.Backend("http", default=backend.Answer(status=400, message=hostile)) as strict:
                address = moody.url
                moody.stop()
                with server.Profcol(configuration(encoding, address, strict.url)) as profcol:
                    wait = lambda message, **fields: profcol.wait_for_record(message, encoding=encoding, **fields)
                    wait("Components are not started, because neither a pipeline nor service::extensions uses them", components="processors::batch/idle")
                    for _ in range(4):
                        send(profcol)
                    exporter = {"otelcol__component__kind": "exporter", "otelcol__signal": "traces"}
                    away = wait("Exporting failed. Will retry the request after interval.", otelcol__component__id="otlp_http/moody", **exporter)
                    self.assertEqual(away.level, "warn")
                    self.assertRegex(away.fields["interval"], r"^\d+ms$")
                    self.assertIn("code = Unavailable", away.fields["error"])
                    wait("Exporting failed again. Will retry the request after interval.", otelcol__component__id="otlp_http/moody")
                    rejected = wait("Dropping data that another branch accepted.", otelcol__component__id="otlp_http/strict", **exporter)
                    self.assertEqual(rejected.level, "error")
                    self.assertGreater(rejected.fields["dropped_items"], 0)
                    wait("Traces", otelcol__component__id="debug", spans=1)
                    with backend.Backend("http", port=int(address.rsplit(":", 1)[1])) as back:
                        back.wait_for_items("traces", 1)
                        again = wait("Exporting works again.", otelcol__component__id="otlp_http/moody", **exporter)
                        self.assertGreater(again.fields["failed_attempts"], 0)
                        self.assertRegex(again.fields["after"], r"^[\d.]+m?s$")
                        good = profcol.config_path.read_text()
                        profcol.config_path.write_text(good.replace("timeout: 10ms", "timeout: soon"))
                        profcol.signal(signal.SIGHUP)
                        mistake = wait("The configuration has an error")
                        self.assertRegex(mistake.fields["place"], r"config\.yaml:3:\d+$")
                        self.assertRegex(mistake.fields["error"], r"^processors::batch::timeout: ")
                        profcol.config_path.write_text(good.replace("timeout: 10ms", "timeout: 20ms"))
                        profcol.signal(signal.SIGHUP)
                        wait("The changed configuration is in use", unchanged_components=5, replaced_components=1, new_components=0)
                        profcol.config_path.write_text("\t{")
                        profcol.signal(signal.SIGHUP)
                        server.wait_until(lambda: sum(record.message.startswith("The changed configuration has errors") for record in profcol.log_records(encoding)) == 2)
                        profcol.process.terminate()
                        wait("Received signal from OS", signal="terminated")
                        wait("Starting shutdown...")
                        records = self.check_lines(profcol, encoding)
                        self.check_known(records)
                        self.assertTrue(any(record.level == "warn" and "has no effect" in record.fields.get("warning", "") for record in records))
                        self.assertNotIn("forged", [record.message for record in records])
                        end(profcol)

    def test_one_line_when_a_backend_goes_away_and_one_when_it_is_back(self):
        """At the default level, however many attempts there are."""
        with backend.Backend("http") as first:
            address = first.url
            first.stop()
            # With one worker, no attempt that failed earlier is reported after the first that succeeded.
            with server.Profcol(configuration("console", address, level="info"), arguments=["--workers", "1"]) as profcol:
                for _ in range(3):
                    send(profcol)
                server.wait_until(lambda: (profcol.metric("otelcol_exporter_queue_size", exporter="otlp_http/moody") or 0) >= 3, what="the queue")
                with backend.Backend("http", port=int(address.rsplit(":", 1)[1])) as back:
                    back.wait_for_items("traces", 3)
                    profcol.wait_for_record("Exporting works again.")
                    of = [record for record in profcol.log_records() if record.fields.get("otelcol.component.id") == "otlp_http/moody"]
                    self.assertEqual([record.message for record in of], ["Exporting failed. Will retry the request after interval.", "Exporting works again."])
                end(profcol)

    def test_debug(self):
        """Its texts have several lines: in json one record, in console as those of the Collector."""
        for encoding in ENCODINGS:
            with self.subTest(encoding), backend.Backend("http") as sink:
                with server.Profcol(configuration(encoding, sink.url, sink.url, verbosity="detailed", level="info")) as profcol:
                    send(profcol, "two\nlines \x1b")
                    server.wait_until(lambda: "Span #0" in profcol.log(), what="the text")
                    text = profcol.log()
                    end(profcol)
                records = log_lines.parse(text, encoding, may_continue=True)
                self.assertEqual(sum("Span #0" in record.message for record in records), 1)
                if encoding == "json":
                    self.assertEqual(len(text.splitlines()), len(records))

    def test_outputs(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = f'output_paths: [stdout, "{folder}/a.log", "file://{folder}/b.log"], '
            with server.Profcol(configuration("json", level="info").replace("logs: {", "logs: {" + paths)) as profcol:
                first = pathlib.Path(folder, "a.log")
                server.wait_until(lambda: "Everything is ready" in first.read_text(), what="the log")
                first.rename(f"{folder}/old.log")
                profcol.signal(signal.SIGHUP)
                server.wait_until(lambda: first.exists() and "configuration is unchanged" in first.read_text(), what="the new file")
                profcol.stop()
                self.assertEqual((profcol.directory / "err").read_text(), "")
                old, new, both = (pathlib.Path(folder, name).read_text() for name in ("old.log", "a.log", "b.log"))
                self.assertEqual(old + new, both)
                self.assertEqual(both, profcol.output())
                self.assertEqual(log_lines.parse(both, "json")[-1].message, "Shutdown complete.")


class Ends(unittest.TestCase):
    """Processes that do not start."""

    def write(self, text):
        path = pathlib.Path(self.folder.name, "config.yaml")
        path.write_text(text)
        return str(path)

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_a_bad_configuration(self):
        """Lines in the encoding that the file asks for, and texts for people from validate."""
        ports = {"@grpc@": "0", "@http@": "0", "@metrics@": "0"}
        for encoding in ENCODINGS:
            text = configuration(encoding).replace("timeout: 10ms", "timeout: soon").replace("exporters: [otlp_grpc/dead]", "exporters: [gone]")
            for name, port in ports.items():
                text = text.replace(name, port)
            path = self.write(text)
            result = run("--config", path)
            records = log_lines.parse(result.stderr, encoding)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertEqual([record.level for record in records].count("error"), 2, records)
            self.assertTrue(all(record.fields["place"].startswith(path) for record in records))
            validated = run("validate", "--config", path)
            self.assertIn(f"{path}:3:", validated.stderr)
            self.assertRegex(validated.stderr, r"(?m)^\S+:3:\d+: error: processors::batch::timeout: ")

    def test_no_yaml(self):
        result = run("--config", self.write("{"))
        (record,) = log_lines.parse(result.stderr)
        self.assertEqual((result.returncode, record.level), (1, "error"))

    def test_an_address_in_use(self):
        for encoding in ENCODINGS:
            with self.subTest(encoding), socket.socket() as taken:
                taken.bind(("127.0.0.1", 0))
                taken.listen()
                text = configuration(encoding).replace("@grpc@", str(taken.getsockname()[1])).replace("@http@", "0").replace("@metrics@", "0")
                result = run("--config", self.write(text))
                records = log_lines.parse(result.stderr, encoding)
                self.assertEqual((result.returncode, records[-1].level, records[-1].message), (1, "error", "Cannot start"))
                self.assertRegex(records[-1].fields["error"], "receiver otlp: .*Address already in use")

    def test_a_log_that_cannot_be_opened(self):
        text = configuration("json").replace("logs: {", "logs: {output_paths: [/nonexistent/x], ")
        for name in ("@grpc@", "@http@", "@metrics@"):
            text = text.replace(name, "0")
        result = run("--config", self.write(text))
        (record,) = log_lines.parse(result.stderr, "json")
        self.assertEqual((result.returncode, record.message), (1, "Cannot start"))
        self.assertEqual(record.fields["error"], "cannot open the log /nonexistent/x: No such file or directory")


class Parser(unittest.TestCase):
    """The parser reads what the Collector 0.158 printed, and refuses what is not a record."""

    RESOURCE = '{"resource": {"service.instance.id": "db5b2957", "service.name": "otelcol", "service.version": "0.158.0"}'

    def test_lines_of_the_collector(self):
        (record,) = log_lines.parse("2026-11-23T00:40:57.745Z\tinfo\tinternal/retry_sender.go:136\tExporting failed. Will retry the request after interval.\t" + self.RESOURCE
                                    + ', "otelcol.component.id": "otlp_grpc/dead", "error": "rpc error: code = Unavailable desc = connection error: desc = \\"x\\"", "interval": "126.725038ms"}\n')
        self.assertEqual((record.caller, record.fields["interval"]), ("internal/retry_sender.go:136", "126.725038ms"))
        (record,) = log_lines.parse('{"level":"info","ts":"2026-11-23T00:41:12.924Z","caller":"service@v0.158.0/service.go:320","msg":"Starting shutdown...","resource":{"service.name":"otelcol"}}\n', "json")
        self.assertEqual(record.message, "Starting shutdown...")

    def test_what_is_not_a_record(self):
        good = "2026-11-23T00:40:57.745Z\tinfo\tx/y.go:1\tmessage\t"
        for line in ("Error: cannot start", "a.yaml:3:1: error: x", good + "{x}", good + '{"a": 1, "a": 2}', good + '{"a": "\x1b"}', "2026-11-23T00:40:57.745Z\tinfo\tm\t[1]", "2026-11-23 00:40:57\tinfo\tm"):
            with self.subTest(line), self.assertRaises(ValueError):
                log_lines.parse(line + "\n")
        for line in ("{}", '{"level":"info","ts":"now","msg":"x"}', '{"level":"info","ts":"2026-11-23T00:40:57.745Z","msg":"x","a":1,"a":2}', "text", good):
            with self.subTest(line), self.assertRaises((ValueError, KeyError)):
                log_lines.parse(line + "\n", "json")


if __name__ == "__main__":
    testing.main()
