"""A reload changes service::telemetry while data flows: the log, the metrics listener, periodic readers, the resource."""

import http.client
import itertools
import os
import signal
import socket
import sys
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, background, client, connections, log_lines, outputs, pipelines, server, testing
from tests.oracle.background import Repeating

RELOADS = int(os.environ.get("PROFCOL_RELOADS", "50"))

CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}}
processors: {batch: {timeout: 10ms}}
exporters: {file: {path: "@dir@/data"}, debug: {}}
service:
  telemetry:
    logs: {LOGS}
    metrics: {level: LEVEL, readers: [{pull: {exporter: {prometheus: {host: HOST, port: PORT FORM}}}} PUSHES]}
    resource: {RESOURCE}
  pipelines: {traces: {receivers: [otlp], processors: [PROCESSORS], exporters: [file, debug]}}
"""
DEFAULTS = {"LOGS": "sampling: {enabled: false}", "LEVEL": "normal", "HOST": "127.0.0.1", "PORT": "@metrics@", "FORM": "", "PUSHES": "",
            "RESOURCE": "color: blue", "PROCESSORS": "batch"}
IN_USE = "The changed configuration is in use"
DEAD = 'otlp_http: {endpoint: "http://127.0.0.1:1", retry_on_failure: {initial_interval: 10ms, max_interval: 20ms, max_elapsed_time: 0s}}'
LEVEL_WARNING = "The change of service::telemetry::metrics::level takes full effect when profcol is restarted"


def config(**values):
    """Return the YAML with these values."""
    text = CONFIG
    for name, value in {**DEFAULTS, **values}.items():
        text = text.replace(name, str(value))
    return text


def push_to(target, interval=3600000, timeout=30000, more=""):
    """Return a periodic reader, to follow the pull reader."""
    return f', {{periodic: {{interval: {interval}, timeout: {timeout}, exporter: {{otlp: {{protocol: http/protobuf, endpoint: "{target.url}"{more}}}}}}}}}'


class Reloading(server.Profcol):
    """A process whose configuration file the test rewrites."""

    def __init__(self, text, **options):
        super().__init__(text, listen=["grpc", "metrics"], **options)

    def count(self, result):
        """Return how many reloads had this result; -1 if the scrape met a listener just as it closed or before it opened."""
        try:
            return self.metric("profcol_config_reloads", result=result) or 0
        except (OSError, http.client.HTTPException):
            return -1

    def send_reload(self, text):
        path = self.config_path.with_suffix(".new")
        path.write_text(self.render(text))
        path.rename(self.config_path)
        self.signal(signal.SIGHUP)

    def reload(self, text, result="applied", port=None):
        """Reload and wait for the result. port: where the metrics are then."""
        server.wait_until(lambda: self.count(result) >= 0, what="a scrape")
        before = self.count(result)
        self.send_reload(text)
        if port:
            server.wait_until(lambda: server.accepts(port), what="the listener")
            self.ports["metrics"] = port
        server.wait_until(lambda: self.count(result) == before + 1, what=f"reload: {result}")

    def send(self, *numbers):
        for number in numbers:
            assert client.succeeded(client.export("grpc", self.address("grpc"), pipelines.span(number)))


class Silent(socket.socket):
    """A backend that accepts connections and answers nothing by itself."""

    def __init__(self):
        super().__init__()
        self.bind(("127.0.0.1", 0))
        self.listen()
        self.settimeout(30 * server.PATIENCE)
        self.url = f"http://127.0.0.1:{self.getsockname()[1]}"


class Log(unittest.TestCase):
    def test_level_encoding_and_fields(self):
        with Reloading(config()) as profcol:
            profcol.reload(config(LOGS="level: warn"))
            self.assertNotIn(IN_USE, profcol.log())
            profcol.reload(config(LOGS="level: debug, initial_fields: {zone: a}"))
            self.assertRegex(profcol.log(), IN_USE + r'.*"zone": ?"a"')
            self.assertNotIn(IN_USE, profcol.log().splitlines()[0])
            profcol.reload(config(LOGS="encoding: json, disable_caller: true"))
            line = next(line for line in profcol.log().splitlines() if line.startswith("{") and IN_USE in line)
            self.assertNotIn('"caller"', line)
            self.assertNotIn('"zone"', line)
            profcol.reload(config(LOGS="encoding: json, disable_caller: true"), "unchanged")
            profcol.reload(config(RESOURCE="color: green"))
            self.assertRegex(profcol.log().splitlines()[-1], '"color": ?"green"')

    def test_debug_is_switched_on_and_off(self):
        """The retries of a dead backend are debug lines."""
        def retrying(level):
            return config(LOGS=f"sampling: {{enabled: false}}, level: {level}").replace("debug: {}", DEAD).replace("file, debug", "otlp_http")
        with Reloading(retrying("info"), expect_exit=None) as profcol:
            def debug_lines():
                return profcol.log().count("\tdebug\t")

            def failures():
                return profcol.log().count("Exporting failed")
            profcol.send(1)
            server.wait_until(failures, what="a failure")
            self.assertEqual(debug_lines(), 0)
            profcol.reload(retrying("debug"))
            server.wait_until(lambda: debug_lines() > 3, what="debug lines")
            profcol.reload(retrying("warn"))
            count = debug_lines()
            profcol.reload(retrying("info"))
            self.assertEqual(debug_lines(), count)
            profcol.kill()

    def test_a_file_that_a_reload_moves(self):
        """Every line of the data that flows is in exactly one of the files, and whole."""
        def to(name):
            return config(LOGS=f'sampling: {{enabled: false}}, output_paths: ["@dir@/{name}.log"]')
        with Reloading(to("a"), arguments=["--workers", "2"]) as profcol:
            numbers = itertools.count()
            senders = [Repeating(lambda: profcol.send(next(numbers))) for _ in range(2)]
            for name in "babab":
                profcol.reload(to(name))
            background.end_all(senders)
            profcol.stop()
            sent = next(numbers)
            texts = {name: (profcol.directory / f"{name}.log").read_text() for name in "ab"}
        spans = 0
        for text in texts.values():
            for record in log_lines.parse(text, "console"):
                spans += record.fields.get("spans", 0) if record.message == "Traces" else 0
        self.assertEqual(spans, sent)
        self.assertEqual(texts["b"].count(IN_USE), 3)
        self.assertEqual(texts["a"].count(IN_USE), 2)
        self.assertIn("Shutdown complete", texts["b"])

    def test_a_file_that_cannot_be_opened_changes_nothing(self):
        with Reloading(config()) as profcol:
            wrong = config(LOGS='level: error, output_paths: ["@dir@/none/x"]', LEVEL="none", PROCESSORS="")
            profcol.reload(wrong, "failed")
            profcol.wait_for_log("cannot be applied.*service::telemetry::logs: cannot open the log .*/none/x")
            self.assertEqual(profcol.metric("otelcol_processor_incoming_items", processor="batch"), 0)
            profcol.reload(config(), "unchanged")


class Metrics(unittest.TestCase):
    def test_the_port_moves(self):
        with Reloading(config()) as profcol:
            old, new = profcol.ports["metrics"], server.free_port()
            profcol.reload(config(PORT=new), port=new)
            server.wait_until(lambda: not server.accepts(old), what="the end of the old listener")
            profcol.reload(config(PORT=old), port=old)
            profcol.wait_for_log("What the reload replaced or removed is drained")

    def test_other_addresses_with_the_same_port(self):
        """No scrape is refused while the listener moves between addresses that overlap."""
        with Reloading(config()) as profcol:
            scrapes = itertools.count()

            def scrape():
                profcol.metrics_text()
                next(scrapes)
            with Repeating(scrape):
                for host in ("0.0.0.0", "localhost", "127.0.0.1", "0.0.0.0", "127.0.0.1"):
                    profcol.reload(config(HOST=host))
            self.assertGreater(next(scrapes), 5)

    def test_a_connection_stays_if_the_address_does(self):
        """The form of names, the resource and the level change between two scrapes of one connection."""
        with Reloading(config()) as profcol:
            with socket.create_connection(("127.0.0.1", profcol.ports["metrics"])) as connection:
                reader = connection.makefile("rb")

                def scrape():
                    connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    self.assertIn(b"200", reader.readline())
                    size = 0
                    while (line := reader.readline().strip()):
                        if line.lower().startswith(b"content-length:"):
                            size = int(line.split(b":")[1])
                    return reader.read(size).decode()
                first = scrape()
                self.assertIn('color="blue"', first)
                self.assertNotIn("otel_scope_name", first)
                instance = first.split('service_instance_id="')[1].split('"')[0]
                profcol.reload(config(FORM=", without_scope_info: false", RESOURCE="color: red", LOGS="level: debug", LEVEL="basic"))
                second = scrape()
                self.assertIn("otel_scope_name", second)
                self.assertEqual([line.split("{")[0] for line in second.splitlines() if line.startswith("target_info")], ["target_info"])
                self.assertIn(f'color="red",service_instance_id="{instance}"', second)
                self.assertNotIn("otelcol_processor_batch_timeout_trigger_send", second)
                self.assertIn("otelcol_processor_batch_timeout_trigger_send", first)

    def test_the_level_detailed(self):
        with Reloading(config()) as profcol:
            profcol.reload(config(LEVEL="basic"))
            profcol.reload(config(LEVEL="normal"))
            self.assertNotIn(LEVEL_WARNING, profcol.log())
            profcol.reload(config(LEVEL="detailed"))
            self.assertIn(LEVEL_WARNING, profcol.log())
            profcol.send(1)
            self.assertNotIn("otelcol_processor_batch_batch_send_size_bytes", profcol.metrics_text())
            profcol.reload(config(LEVEL="detailed").replace("10ms", "20ms"))    # a new batch counts it
            self.assertIn("otelcol_processor_batch_batch_send_size_bytes", profcol.metrics_text())
            profcol.reload(config(LEVEL="normal").replace("10ms", "20ms"))
            self.assertNotIn("otelcol_processor_batch_batch_send_size_bytes", profcol.metrics_text())
            self.assertEqual(profcol.log().count(LEVEL_WARNING), 1)

    def test_switched_off_and_on(self):
        with Reloading(config()) as profcol:
            port = profcol.ports["metrics"]
            profcol.send_reload(config(LEVEL="none"))
            server.wait_until(lambda: not server.accepts(port), what="the end of the listener")
            profcol.send(1)
            profcol.send_reload(config())
            server.wait_until(lambda: server.accepts(port), what="the listener")
            server.wait_until(lambda: profcol.count("applied") == 2, what="the reload")
            self.assertEqual(profcol.metric("otelcol_receiver_accepted_spans", transport="grpc"), 1)

    def test_a_port_in_use_changes_nothing(self):
        with socket.socket() as taken, backend.Backend() as target, Reloading(config(PUSHES="")) as profcol:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            wrong = config(PORT=taken.getsockname()[1], LOGS="level: error", RESOURCE="color: red", LEVEL="basic", PUSHES=push_to(target, 10))
            profcol.reload(wrong, "failed")
            profcol.wait_for_log("cannot be applied.*service::telemetry::metrics.*Address already in use")
            page = profcol.metrics_text()
            self.assertIn('color="blue"', page)
            self.assertIn("otelcol_processor_batch_timeout_trigger_send", page)
            profcol.reload(config(), "unchanged")
            self.assertEqual(target.of(), [])

    def test_a_component_that_cannot_start_changes_nothing(self):
        """The log and the listener were prepared by then."""
        with socket.socket() as taken, backend.Backend() as target, Reloading(config()) as profcol:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            new = server.free_port()
            wrong = config(PORT=new, LOGS="level: error", RESOURCE="color: red", LEVEL="basic", PUSHES=push_to(target, 10))
            profcol.reload(wrong.replace("127.0.0.1:@grpc@", f"127.0.0.1:{taken.getsockname()[1]}"), "failed")
            self.assertFalse(server.accepts(new))
            self.assertIn('color="blue"', profcol.metrics_text())
            profcol.reload(wrong, port=new)
            target.wait(1, "metrics")


class SharedAddresses(unittest.TestCase):
    """One reload moves the metrics to where a component listens, or the other way round."""

    def moved(self, metrics="@metrics@", zpages="@zpages@", host="127.0.0.1"):
        extension = f"extensions: {{zpages: {{endpoint: \"127.0.0.1:{zpages}\"}}}}\n"
        return config(HOST=host, PORT=metrics).replace("service:", extension + "service:\n  extensions: [zpages]")

    def check(self, profcol, metrics, zpages):
        profcol.ports["metrics"] = metrics
        server.wait_until(lambda: profcol.count("applied") > 0, what="the reload")
        self.assertIn("otelcol_process_uptime", profcol.metrics_text())
        with urllib.request.urlopen(f"http://127.0.0.1:{zpages}/debug/servicez", timeout=30) as answer:
            self.assertIn(b"Overview", answer.read())
        profcol.send(1)

    def reload_to(self, profcol, metrics, zpages, host="127.0.0.1"):
        before = profcol.log().count(IN_USE)
        profcol.send_reload(self.moved(metrics, zpages, host))
        server.wait_until(lambda: profcol.log().count(IN_USE) > before, what="the reload")
        self.check(profcol, metrics, zpages)

    def test_metrics_take_over_the_port_of_a_component(self):
        for host in ("127.0.0.1", "0.0.0.0"):
            with self.subTest(host), Reloading(self.moved()) as profcol:
                old = profcol.ports["metrics"]
                self.reload_to(profcol, profcol.ports["zpages"], server.free_port(), host)
                server.wait_until(lambda old=old: not server.accepts(old), what="the end of the old listener")

    def test_a_component_takes_over_the_port_of_the_metrics(self):
        with Reloading(self.moved()) as profcol:
            old = profcol.ports["zpages"]
            self.reload_to(profcol, server.free_port(), profcol.ports["metrics"])
            server.wait_until(lambda: not server.accepts(old), what="the end of the old listener")

    def test_both_change_places(self):
        with Reloading(self.moved()) as profcol:
            first, second = profcol.ports["metrics"], profcol.ports["zpages"]
            self.reload_to(profcol, second, first)
            self.reload_to(profcol, first, second)

    def test_a_refused_take_over_changes_nothing(self):
        with Reloading(self.moved()) as profcol:
            metrics, zpages = profcol.ports["metrics"], profcol.ports["zpages"]
            wrong = self.moved(zpages, server.free_port()).replace("@dir@/data", "/nowhere/data")
            profcol.reload(wrong, "failed")
            profcol.reload(self.moved(), "unchanged")
            self.reload_to(profcol, zpages, metrics)


class Gauges(unittest.TestCase):
    def test_the_queue_of_a_replaced_exporter_is_seen(self):
        """The new queue has room for one request, so the old exporter keeps the others."""
        def queueing(size):
            dead = DEAD.replace("retry_on", f"sending_queue: {{queue_size: {size}}}, retry_on")
            return config(PROCESSORS="").replace("debug: {}", dead).replace("file, debug", "otlp_http")
        with Reloading(queueing(50), expect_exit=None) as profcol:
            profcol.send(1, 2, 3, 4, 5)
            profcol.reload(queueing(1))
            server.wait_until(lambda: profcol.metric("otelcol_exporter_queue_capacity") == 1, what="the new exporter")
            self.assertEqual(profcol.metric("otelcol_exporter_queue_size"), 5)
            self.assertGreater(profcol.metric("profcol_config_retired_components"), 0)
            profcol.kill()


class Pushes(unittest.TestCase):
    def test_added_changed_and_removed_while_data_flows(self):
        with backend.Backend() as one, backend.Backend() as other, Reloading(config()) as profcol:
            profcol.send(1)
            profcol.reload(config(PUSHES=push_to(one) + push_to(other, 50)))
            other.wait(2, "metrics")
            profcol.send(2)
            profcol.reload(config(PUSHES=push_to(other, 50)))          # one pushes a last time
            one.wait(1, "metrics")
            self.assertEqual(len(one.of()), 1)
            profcol.wait_for_log("What the reload replaced or removed is drained")
            seen = len(other.of())
            other.wait(seen + 2, "metrics")
            profcol.reload(config(PUSHES=push_to(other)))               # another interval
            profcol.reload(config(PUSHES=push_to(other) + push_to(one, more=", compression: gzip")))
            self.assertEqual(len(one.of()), 1)
            profcol.reload(config())
            one.wait(2, "metrics")
            self.assertEqual(one.of()[1].header("content-encoding"), "gzip")
            profcol.send(3)
            profcol.stop()

    def test_a_dead_backend_holds_up_no_reload(self):
        """A removed reader waits for its answer while further reloads are applied; the end of the process does, too."""
        with Silent() as silent, Reloading(config()) as profcol:
            profcol.reload(config(PUSHES=push_to(silent, timeout=20000)))
            profcol.reload(config())
            connection, _ = silent.accept()
            with connection:
                profcol.reload(config(LOGS="level: debug"))
                profcol.send(1)
                connection.recv(1 << 20)
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n")
            profcol.wait_for_log("What the reload replaced or removed is drained")

    def test_the_end_waits_for_a_retired_reader(self):
        with Silent() as silent, Reloading(config()) as profcol:
            profcol.reload(config(PUSHES=push_to(silent, timeout=100)))
            profcol.reload(config())
            profcol.stop()
            self.assertIn("Cannot push profcol's own metrics", profcol.log())

    def test_another_resource(self):
        with backend.Backend() as target, Reloading(config(PUSHES="")) as profcol:
            profcol.reload(config(PUSHES=push_to(target)))
            profcol.reload(config(PUSHES=push_to(target), RESOURCE="color: red"))
            target.wait(1, "metrics")
            self.assertIn(b"blue", target.of()[0].payload)
            profcol.stop()
            self.assertIn(b"red", target.of()[1].payload)
            self.assertNotIn(b"blue", target.of()[1].payload)


class UnderLoad(unittest.TestCase):
    def descriptors(self, profcol):
        return len(os.listdir(f"/proc/{profcol.process.pid}/fd"))

    def test_many_reloads(self):
        with backend.Backend() as target, socket.socket() as taken, Reloading(config(), arguments=["--workers", "2"]) as profcol:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            ports = (profcol.ports["metrics"], server.free_port())
            changes = [{"LOGS": 'encoding: json, output_paths: ["@dir@/b.log"]'}, {"PORT": ports[1]}, {"PUSHES": push_to(target, 20)},
                       {"LEVEL": "detailed"}, {"RESOURCE": "color: red"}, {"HOST": "0.0.0.0"}, {"LOGS": "level: debug"},
                       {"PUSHES": push_to(target, 30, more=", compression: gzip")}, {"PROCESSORS": ""}]
            sent = itertools.count()

            def send(connection):
                answer = client.export("grpc", profcol.address("grpc"), pipelines.span(next(sent)), connection=connection)
                self.assertTrue(client.succeeded(answer), answer)
            kept = [connections.Http2(profcol.address("grpc")) for _ in range(2)]
            senders = [Repeating(lambda connection=connection: send(connection)) for connection in kept]
            self.addCleanup(background.end_all, senders)
            descriptors = self.descriptors(profcol)
            for number in range(RELOADS):
                values = {"PORT": ports[0], **changes[number % len(changes)], **changes[(number * 5 + 2) % len(changes)]}
                port = values["PORT"]
                if number % 5 == 4:
                    profcol.reload(config(**{**values, "PORT": taken.getsockname()[1]}), "failed")
                else:
                    profcol.reload(config(**values), port=port)
            background.end_all(senders)
            for connection in kept:
                connection.close()
            profcol.reload(config(PORT=ports[0], RESOURCE="color: last"), port=ports[0])
            server.wait_until(lambda: self.descriptors(profcol) < descriptors + 5, 30, "the drain")     # two senders are gone
            profcol.stop()
            written = outputs.forms(profcol.directory / "data", "traces")
            self.assertEqual(len(pipelines.names_in(written)), next(sent))


if __name__ == "__main__":
    testing.main()
