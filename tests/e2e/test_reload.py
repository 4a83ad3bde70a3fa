"""Reloading the configuration: SIGHUP, --watch, and what `validate --diff` says about it."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, client, connections, make, outputs, pipelines, server, testing
from tests.oracle.reloading import Reloading

CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}}
processors: {batch: {timeout: 10ms}}
exporters: {file: {path: "@dir@/out"}}
extensions: {health_check: {http: {endpoint: "127.0.0.1:@health@", status: {enabled: true}}}}
service: {extensions: [health_check], pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [file]}}}
"""
BAD = CONFIG.replace("timeout: 10ms", "timeout: soon")


class Loading(unittest.TestCase):
    def test_a_bad_file_changes_nothing_and_says_so(self):
        with Reloading(CONFIG) as profcol:
            profcol.wait_for_log("Everything is ready")     # the listeners are open before it
            self.assertEqual(profcol.metric("profcol_config_last_reload_successful"), 1)
            profcol.reload(BAD, "refused")
            profcol.wait_for_log(r'config\.yaml:3:\d+", "error": "processors::batch::timeout: ')
            self.assertEqual(profcol.metric("profcol_config_last_reload_successful"), 0)
            self.assertIn('"configuration"', profcol.health())
            self.assertIn("StatusRecoverableError", profcol.health())
            answer = client.export("grpc", profcol.address("grpc"), make.traces([{"span_id": "00000000000000a1"}]))
            self.assertTrue(client.succeeded(answer))
            profcol.reload("", "refused")
            profcol.reload(CONFIG, "unchanged")
            self.assertEqual(profcol.metric("profcol_config_last_reload_successful"), 1)
            self.assertNotIn("configuration", profcol.health())

    def test_a_file_that_is_gone_is_an_error(self):
        with Reloading(CONFIG) as profcol:
            profcol.config_path.unlink()
            profcol.signal(signal.SIGHUP)
            server.wait_until(lambda: profcol.count("refused") == 1, what="the reload")
            profcol.reload(CONFIG, "unchanged")

    def test_watch(self):
        """A file, a file of a placeholder, and a symbolic link that is exchanged."""
        with Reloading(CONFIG, arguments=["--watch"]) as profcol:
            profcol.write(BAD)
            server.wait_until(lambda: profcol.count("refused") == 1, what="a reload without SIGHUP")
            profcol.write(CONFIG.replace("timeout: 10ms", 'timeout: "${file:@dir@/timeout}"'))
            server.wait_until(lambda: profcol.count("refused") == 2, what="a reload of a missing file")
            (profcol.directory / "timeout").write_text("10ms")
            server.wait_until(lambda: profcol.count("unchanged") == 1, what="a reload of the placeholder's file")
            for name, text in (("one", CONFIG), ("two", BAD)):
                (profcol.directory / name).write_text(profcol.render(text))
            link = profcol.directory / "link"
            for target, result, count in (("one", "unchanged", 2), ("two", "refused", 3)):
                link.symlink_to(target)
                link.rename(profcol.config_path)
                server.wait_until(lambda r=result, c=count: profcol.count(r) == c, what=f"the link to {target}")

    def test_a_pipe_that_nobody_writes_to_does_not_hold_up_the_end(self):
        with Reloading(CONFIG) as profcol:
            profcol.config_path.unlink()
            os.mkfifo(profcol.config_path)
            profcol.signal(signal.SIGHUP)
            server.wait_until(lambda: profcol.count("refused") == 1, 60, "the reload")
            profcol.wait_for_log("unable to read the file .*: Connection timed out")
            profcol.stop()

    def test_sighup_without_watch_only(self):
        with Reloading(CONFIG) as profcol:
            profcol.write(BAD)
            profcol.reload(BAD, "refused")
            self.assertEqual(profcol.count("refused"), 1)


EXPORTER = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}}
processors: {batch: {timeout: 10ms}}
exporters:
  otlp_http: {endpoint: "http://127.0.0.1:@backend@", sending_queue: {queue_size: 1000}, retry_on_failure: {initial_interval: 50ms, max_interval: 200ms}}
  file: {path: "@dir@/out"}
service: {pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [otlp_http]}}}
"""
JOIN = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}}
processors: {batch: {timeout: 10ms}, resource: {attributes: [{key: a, value: b, action: upsert}]}, spanjoin: {}}
exporters: {nop: }
service: {pipelines: {traces: {receivers: [otlp], processors: [spanjoin, batch], exporters: [nop]},
                      profiles: {receivers: [otlp], processors: [spanjoin], exporters: [nop]}}}
"""
OTHER_QUEUE = EXPORTER.replace("queue_size: 1000", "queue_size: 2000")
BOTH = EXPORTER.replace("exporters: [otlp_http]", "exporters: [otlp_http, file]")
FILE = EXPORTER.replace("exporters: [otlp_http]", "exporters: [file]")
NO_QUEUE = EXPORTER.replace("queue_size: 1000", "enabled: false").replace("initial_interval", "enabled: false, initial_interval")


class Applying(unittest.TestCase):
    """What happens to data that is on its way."""

    def send(self, profcol, *numbers):
        for number in numbers:
            answer = client.export("grpc", profcol.address("grpc"), pipelines.span(number))
            self.assertTrue(client.succeeded(answer))

    def queued(self, profcol, is_something=True):
        def size():
            return profcol.metric("otelcol_exporter_queue_size", exporter="otlp_http")
        server.wait_until(lambda: (size() > 0) == is_something, what="the queue")

    def kept(self, profcol, count):
        server.wait_until(lambda: profcol.metric("profcol_branch_kept_requests") == count, what="the branches")

    def drained(self, profcol):
        server.wait_until(lambda: profcol.metric("profcol_config_retired_components") == 0, 30, "the drain")

    def start(self, config, **options):
        return Reloading(config, listen=["grpc", "metrics"], **options)

    def queue_size(self, profcol):
        return profcol.metric("otelcol_exporter_queue_size", exporter="otlp_http")

    def test_the_queue_goes_on_with_the_exporter_that_replaces_it(self):
        """As when a wrong address is corrected."""
        nowhere = self.enterContext(socket.socket())
        nowhere.bind(("127.0.0.1", 0))      # so nobody else gets the port, and nobody listens
        dead = EXPORTER.replace("@backend@", str(nowhere.getsockname()[1]))
        with self.start(dead) as profcol, backend.Backend("http") as target:
            self.send(profcol, 0, 1)
            self.queued(profcol)
            profcol.reload(dead.replace("queue_size: 1000", "queue_size: 2000"), "applied")
            self.drained(profcol)
            self.queued(profcol)
            self.send(profcol, 2)
            profcol.reload(EXPORTER.replace("127.0.0.1:@backend@", target.address), "applied")
            target.wait_for_items("traces", 3)
            self.drained(profcol)
            self.assertEqual(pipelines.names(target), pipelines.expected_names(range(3)))
            self.assertEqual(profcol.metric("otelcol_exporter_sent_spans", exporter="otlp_http"), 3)
            self.assertEqual(profcol.metric("otelcol_exporter_queue_capacity", exporter="otlp_http"), 1000)
            self.assertEqual(self.queue_size(profcol), 0)

    def test_what_the_new_queue_has_no_room_for_stays_with_the_old_exporter(self):
        config = EXPORTER.replace("processors: [batch]", "processors: []")
        with self.start(config) as profcol:
            self.send(profcol, *range(5))
            profcol.reload(config.replace("queue_size: 1000", "queue_size: 2"), "applied")
            self.assertEqual(profcol.metric("otelcol_exporter_queue_capacity", exporter="otlp_http"), 2)
            self.assertEqual(self.queue_size(profcol), 5)    # of both
            self.assertEqual(profcol.metric("profcol_config_retired_components"), 1)
            with backend.Backend("http", port=profcol.ports["backend"]) as target:
                self.drained(profcol)
                target.wait_for_items("traces", 5)
                self.assertEqual(pipelines.names(target), pipelines.expected_names(range(5)))

    def test_an_exporter_that_is_removed_delivers_its_queue(self):
        with self.start(EXPORTER) as profcol:
            self.send(profcol, 0, 1)
            self.queued(profcol)
            profcol.reload(FILE, "applied")
            self.send(profcol, 2)
            self.assertGreater(profcol.metric("profcol_config_retired_components"), 0)
            with backend.Backend("http", port=profcol.ports["backend"]) as target:
                self.drained(profcol)
                self.assertEqual(pipelines.names(target), pipelines.expected_names([0, 1]))

    def test_data_that_waits_at_a_branch(self):
        """Without a queue, `batch` keeps the data, which is acknowledged. Its exporter is replaced, and then removed."""
        with self.start(NO_QUEUE) as profcol:
            self.send(profcol, 0)
            self.kept(profcol, 1)
            profcol.reload(NO_QUEUE.replace("otlp_http: {", "otlp_http: {timeout: 7s, "), "applied")
            self.send(profcol, 1)
            self.kept(profcol, 2)
            profcol.reload(FILE, "applied")
            self.send(profcol, 2)
            self.assertGreater(profcol.metric("profcol_config_retired_components"), 0)
            with backend.Backend("http", port=profcol.ports["backend"]) as target:
                self.drained(profcol)
                self.assertEqual(pipelines.names(target), pipelines.expected_names([0, 1]))
            profcol.stop()
            self.assertEqual(pipelines.names_in(outputs.forms(profcol.directory / "out", "traces")), ["span 2"])

    def test_an_exporter_that_leaves_and_comes_back(self):
        """Another one stays: the data on its way to the first is not held up, and nothing arrives twice."""
        with backend.Backend("http") as target:
            def fill(text):
                return text.replace("@backend@", str(target.port)).replace("processors: [batch], ", "")
            with self.start(fill(BOTH)) as profcol:
                number = 0
                for text in (FILE, BOTH, EXPORTER, BOTH, FILE, BOTH):
                    self.send(profcol, number)
                    profcol.reload(fill(text), "applied")
                    number += 1
                self.send(profcol, number)
                self.drained(profcol)
                profcol.stop()
                written = pipelines.names_in(outputs.forms(profcol.directory / "out", "traces"))
            self.assertEqual(written, pipelines.expected_names([0, 1, 2, 4, 5, 6]))
            self.assertEqual(pipelines.names(target), pipelines.expected_names([0, 2, 3, 4, 6]))

    def test_the_end_waits_for_what_is_retired(self):
        with self.start(EXPORTER) as profcol:
            self.send(profcol, 0)
            self.queued(profcol)
            profcol.reload(OTHER_QUEUE, "applied")
            self.send(profcol, 1)
            profcol.signal(signal.SIGTERM)
            profcol.wait_for_log("Starting shutdown")
            with backend.Backend("http", port=profcol.ports["backend"]) as target:
                self.assertEqual(profcol.process.wait(60), 0)
                self.assertEqual(pipelines.names(target), pipelines.expected_names([0, 1]))

    def test_what_cannot_be_delivered_at_the_end_is_counted(self):
        with self.start(EXPORTER, arguments=["--drain-timeout", "100ms", "--workers", "2"], expect_exit=1) as profcol:
            for number, text in enumerate((OTHER_QUEUE, NO_QUEUE, BOTH)):
                self.send(profcol, number)
                profcol.reload(text, "applied")
            self.send(profcol, 3)
            profcol.stop()
            self.assertIn("Acknowledged data is lost", profcol.log())

    def test_what_cannot_start_changes_nothing(self):
        with socket.socket() as taken, self.start(EXPORTER) as profcol:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            wrong = OTHER_QUEUE.replace("receivers: {", f'receivers: {{otlp/2: {{protocols: {{grpc: {{endpoint: "127.0.0.1:{port}"}}}}}}, ')
            profcol.reload(wrong.replace("receivers: [otlp]", "receivers: [otlp, otlp/2]"), "failed")
            profcol.wait_for_log("cannot be applied.*otlp/2.*Address already in use")
            self.assertEqual(profcol.metric("otelcol_exporter_queue_capacity", exporter="otlp_http"), 1000)
            self.assertEqual(profcol.metric("profcol_config_retired_components"), 0)
            with backend.Backend("http", port=profcol.ports["backend"]) as target:
                self.send(profcol, 0)
                target.wait_for_items("traces", 1)
                profcol.reload(OTHER_QUEUE, "applied")
                self.assertEqual(profcol.metric("otelcol_exporter_queue_capacity", exporter="otlp_http"), 2000)

    def test_another_order_of_processors_keeps_the_index(self):
        with Reloading(JOIN, arguments=["--workers", "2"]) as profcol:
            self.send(profcol, *range(20))
            for order in ("batch, spanjoin", "batch, resource, spanjoin", "spanjoin, resource"):
                profcol.reload(JOIN.replace("spanjoin, batch", order), "applied")
                self.drained(profcol)
                self.assertEqual(profcol.metric("profcol_spanjoin_entries"), 20)
            for number in range(20):
                answer = client.export("grpc", profcol.address("grpc"), pipelines.sample(number, number))
                self.assertTrue(client.succeeded(answer))
            self.assertEqual(profcol.metric("profcol_spanjoin_samples_joined"), 20)
            profcol.reload(JOIN.replace("spanjoin: {}", "spanjoin: {max_spans: 30000}"), "applied")
            self.drained(profcol)
            self.assertEqual(profcol.metric("profcol_spanjoin_entries"), 0)

    def test_held_requests_leave_when_the_join_changes(self):
        """Their spans come later; nothing is lost, and what comes afterwards is joined."""
        config = JOIN.replace("spanjoin: {}", "spanjoin: {samples: {wait: 60s}}")
        for change in (("spanjoin, batch", "batch, spanjoin"), ("wait: 60s", "wait: 50s")):
            with self.subTest(change):
                self.check_held_requests(config, change)

    def check_held_requests(self, config, change):
        with Reloading(config, arguments=["--workers", "2"]) as profcol:
            for number in range(10):
                client.export("grpc", profcol.address("grpc"), pipelines.sample(number, number))
            server.wait_until(lambda: profcol.metric("profcol_spanjoin_held_requests") == 10, what="held requests")
            profcol.reload(config.replace(*change), "applied")
            self.drained(profcol)
            self.assertEqual(profcol.metric("profcol_spanjoin_held_requests"), 0)
            self.assertEqual(profcol.metric("profcol_spanjoin_samples_unjoined", reason="not_found"), 10)
            for number in range(10, 20):
                client.export("grpc", profcol.address("grpc"), pipelines.sample(number, number))
            self.send(profcol, *range(20))
            server.wait_until(lambda: profcol.metric("profcol_spanjoin_samples_joined") == 10, what="joined samples")
            profcol.stop()

    def test_two_listeners_cannot_share_an_address(self):
        """Only that of a listener that goes is free."""
        two = CONFIG.replace("receivers: {", 'receivers: {otlp/2: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}, ')
        with Reloading(CONFIG) as profcol:
            profcol.reload(two.replace("receivers: [otlp]", "receivers: [otlp, otlp/2]"), "refused")
            profcol.reload(two.replace("receivers: [otlp]", "receivers: [otlp/2]"), "applied")
            self.send(profcol, 0)

    def test_other_addresses_with_the_same_port(self):
        """No client is refused while a listener moves between addresses that overlap."""
        addresses = ("127.0.0.1:@grpc@", "0.0.0.0:@grpc@", "localhost:@grpc@", ":@grpc@", "127.0.0.1:@grpc@")
        with Reloading(CONFIG, arguments=["--workers", "2"]) as profcol:
            stop, sent = threading.Event(), []

            def keep_sending():
                while not stop.is_set():
                    sent.append(client.succeeded(client.export("grpc", profcol.address("grpc"), pipelines.span(len(sent)))))

            sender = threading.Thread(target=keep_sending)
            sender.start()
            self.addCleanup(sender.join)
            self.addCleanup(stop.set)
            for address in addresses[1:]:
                before = len(sent)
                profcol.reload(CONFIG.replace(addresses[0], address), "applied")
                self.drained(profcol)
                server.wait_until(lambda: len(sent) > before + 1 or not sender.is_alive(), what="requests")
            stop.set()
            sender.join()
            self.assertNotIn(False, sent)
            profcol.stop()
            self.assertEqual(pipelines.names_in(outputs.forms(profcol.directory / "out", "traces")),
                             pipelines.expected_names(range(len(sent))))

    def test_unix_socket(self):
        text = CONFIG.replace('"127.0.0.1:@grpc@"', '"@dir@/socket", transport: unix')
        with Reloading(text) as profcol:
            path = profcol.directory / "socket"
            for megabytes in (5, 6):
                changed = text.replace("transport: unix", f"transport: unix, max_recv_msg_size_mib: {megabytes}")
                profcol.reload(changed, "applied")
                self.drained(profcol)
                with socket.socket(socket.AF_UNIX) as connection:
                    connection.connect(str(path))
            profcol.stop()
            self.assertFalse(path.exists())

    def test_pages_show_the_new_configuration(self):
        text = CONFIG.replace("status: {enabled: true}", "status: {enabled: true}, config: {enabled: true}")
        with Reloading(text) as profcol:
            profcol.reload(text.replace("10ms", "3210ms"), "applied")
            with urllib.request.urlopen(profcol.url("health") + "/config", timeout=30) as answer:
                self.assertIn("3.21", answer.read().decode().replace("3210ms", "3.21").replace("3s210ms", "3.21"))
            self.assertIn('"processor:batch"', profcol.health())

    def test_signals_come_and_go(self):
        """The receiver and its connection go on. What it no longer takes is refused as if it had never been."""
        more = CONFIG.replace("{pipelines: {", "{pipelines: {metrics: {receivers: [otlp], exporters: [nop]}, ").replace(
            "exporters: {", "exporters: {nop: , ").replace("pipelines: {traces", "pipelines: {metrics: {receivers: [otlp], exporters: [nop]}, traces")
        with Reloading(CONFIG) as profcol:
            connection = connections.Http2(profcol.address("grpc"))
            self.addCleanup(connection.close)
            for text, result in ((CONFIG, 12), (more, 0), (CONFIG, 12), (more, 0)):
                if text != CONFIG or result == 12 and profcol.count("applied"):
                    profcol.reload(text, "applied")
                answer = client.call(profcol.address("grpc"), client.METRICS_SERVICE, b"", connection=connection)
                self.assertEqual(answer.grpc_status, result)
                answer = client.export("grpc", profcol.address("grpc"), pipelines.span(1), connection=connection)
                self.assertTrue(client.succeeded(answer))


class Diff(unittest.TestCase):
    def run_diff(self, *arguments):
        return subprocess.run([os.environ["PROFCOL"], "validate", "--diff", *arguments], capture_output=True, text=True,
                              timeout=60, check=False, stdin=subprocess.DEVNULL)

    def test_diff(self):
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            texts = {"old": CONFIG, "new": CONFIG.replace("10ms", "20ms"), "bad": BAD}
            for file, text in texts.items():
                (directory / file).write_text(text.replace("@grpc@", "1").replace("@health@", "2"))
            old, new, bad = (str(directory / file) for file in texts)
            same = self.run_diff(old, old)
            self.assertEqual((same.returncode, same.stdout, same.stderr), (0, "A reload changes nothing.\n", ""))
            changed = self.run_diff(old, new)
            self.assertEqual((changed.returncode, changed.stderr), (0, ""))
            self.assertEqual(changed.stdout.splitlines(), [
                "receiver otlp: unchanged, goes on",
                "processor batch: changed, a new one starts and the old one drains (timeout differs)",
                "exporter file: unchanged, goes on",
                "extension health_check: unchanged, goes on",
                "pipeline traces: unchanged"])
            wrong = self.run_diff(old, bad)
            self.assertEqual((wrong.returncode, wrong.stdout), (1, ""))
            self.assertIn("processors::batch::timeout", wrong.stderr)
            self.assertIn("needs two configurations", self.run_diff(old).stderr)


if __name__ == "__main__":
    testing.main()
