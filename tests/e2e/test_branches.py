"""Several exporters behind one receiver: one that is dead, full or refusing does not affect the others. The client gets
success if one branch accepts the data and no other one asks for a retry. A branch that does not accept the data counts
the loss. Accepted data is delivered once per branch.
"""

import os
import signal
import sys
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, branches, client, server, testing
from tests.oracle.pipelines import (NO_QUEUE, NO_RETRY, Held, InBackground, config, expected_names, http_exporter, names,
                                    span)

UNAVAILABLE, INVALID = 14, 3
ONE_WORKER = ["--workers", "1"]
SHORT_DRAIN = ["--drain-timeout", "1s"]
BEHIND = ({}, {"batch": branches.ONE_EACH})     # without and with a holder before the exporters


class DeadBranchTest(unittest.TestCase):
    """The quick cases of bench/branches."""

    def check(self, outcome):
        """Check that everything was accepted and arrived once."""
        self.assertTrue(outcome.ok, outcome)

    def test_behind_batch(self):
        for protocol in ("grpc", "http"):
            with self.subTest(protocol):
                self.check(branches.dead_backend_behind_batch(protocol))

    def test_in_another_pipeline(self):
        for processors in BEHIND:
            with self.subTest(list(processors)):
                self.check(branches.dead_pipeline(processors))

    def test_behind_forward(self):
        """Nothing piles up before a dead backend behind connectors: it loses what it has no room for."""
        for levels in (1, 2):
            with self.subTest(levels=levels):
                outcome, kept = branches.dead_backend_behind_forward(levels)
                self.check(outcome)
                self.assertFalse(kept)

    def test_behind_join_and_batch(self):
        self.check(branches.dead_backend_behind_join())


class FullQueueTest(unittest.TestCase):
    """Fan-out without a holder: the answers to the client when queues are full."""

    def test_one_is_full(self):
        """The answer is success; the full branch counts what it lost."""
        with backend.Backend("http") as healthy, branches.DeadBackend() as dead:
            text = config(branches.two_exporters("http", healthy, dead))
            with server.Profcol(text, arguments=ONE_WORKER + SHORT_DRAIN, expect_exit=1) as profcol:
                for number in range(20):
                    answer = client.export("grpc", profcol.address("grpc"), span(number))
                    self.assertTrue(client.succeeded(answer), answer)
                self.assertEqual(profcol.metric("otelcol_exporter_enqueue_failed_spans", exporter="otlp_http/dead"), 19)
                self.assertFalse(profcol.metric("otelcol_exporter_enqueue_failed_spans", exporter="otlp_http/healthy"))
                self.assertEqual(profcol.metric("otelcol_receiver_accepted_spans", receiver="otlp"), 20)
                self.assertFalse(profcol.metric("otelcol_receiver_refused_spans", receiver="otlp"))
                healthy.wait_for_items("traces", 20)    # not within the second that the dead one gets at the end
                self.assertEqual(profcol.stop(), 1, "the dead one's queue holds a request")
            self.assertEqual(names(healthy), expected_names(range(20)))

    def test_both_are_full(self):
        """The client is told to try later."""
        with branches.DeadBackend() as one, branches.DeadBackend() as two:
            exporters = {"otlp_http/one": http_exporter(one, branches.FULL_AFTER_ONE),
                         "otlp_http/two": http_exporter(two, branches.FULL_AFTER_ONE)}
            with server.Profcol(config(exporters), arguments=ONE_WORKER + SHORT_DRAIN, expect_exit=1) as profcol:
                self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), span(0))))
                for protocol in ("grpc", "http"):
                    with self.subTest(protocol):
                        answer = client.export(protocol, profcol.address(protocol), span(1))
                        found = client.status(answer)
                        self.assertEqual(found.code, UNAVAILABLE, found)
                        self.assertIsNotNone(found.retry_after, "RetryInfo or Retry-After")
                        if protocol == "http":
                            self.assertEqual(answer.status, 503)
                for exporter in exporters:
                    self.assertEqual(profcol.metric("otelcol_exporter_enqueue_failed_spans", exporter=exporter), 2)

    def test_block_on_overflow(self):
        """While the full branch makes the client wait, no other branch has the item: if it is refused, the client sends
        it again."""
        with backend.Backend("http") as healthy, backend.Backend("http", default=backend.Answer(status=503)) as slow:
            blocking = "sending_queue: {queue_size: 1, block_on_overflow: true}"
            text = config(branches.two_exporters("http", healthy, slow, blocking))
            with server.Profcol(text, arguments=ONE_WORKER) as profcol:
                self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), span(0))))
                healthy.wait(1)
                call = InBackground("grpc", profcol.address("grpc"), span(1))
                attempts = len(slow.of())
                slow.wait_for(lambda: call.answer or len(slow.of()) >= attempts + 4, what="more attempts of the first item")
                self.assertEqual(names(healthy), expected_names([0]))
                if call.answer:
                    self.assertEqual(client.status(call.answer).code, UNAVAILABLE)
                slow.default = backend.Answer()
                if not client.succeeded(call.result()):
                    slow.wait_for_items("traces", 1)
                    self.assertEqual(names(healthy), expected_names([0]))
                    server.wait_until(lambda: client.succeeded(client.export("grpc", profcol.address("grpc"), span(1))),
                                      what="room for the second item")
            self.assertEqual((names(healthy), names(slow)), (expected_names([0, 1]),) * 2)


class WithoutQueueTest(unittest.TestCase):
    """Fan-out to exporters without a queue: their answers are combined into one."""

    CASES = (
        # one, two, the client
        (0, 0, 0),
        (0, INVALID, 0),
        (0, UNAVAILABLE, 0),
        (INVALID, INVALID, INVALID),
        (INVALID, UNAVAILABLE, UNAVAILABLE),
        (UNAVAILABLE, UNAVAILABLE, UNAVAILABLE),
    )

    def check(self, first, second, wanted):
        with backend.Backend("grpc", default=backend.Answer(grpc_status=first)) as one, \
                backend.Backend("grpc", default=backend.Answer(grpc_status=second)) as two:
            plain = f"tls: {{insecure: true}}, {NO_QUEUE}, {NO_RETRY}"
            exporters = {"otlp_grpc/one": f'endpoint: "{one.address}", {plain}',
                         "otlp_grpc/two": f'endpoint: "{two.address}", {plain}'}
            with server.Profcol(config(exporters)) as profcol:
                answer = client.export("grpc", profcol.address("grpc"), span(1))
                self.assertEqual(answer.grpc_status, wanted, answer.grpc_message)
                self.assertEqual((len(one.of()), len(two.of())), (1, 1), "each is asked once")

    def test_what_the_client_is_told(self):
        for first, second, wanted in self.CASES:
            for one, two in {(first, second), (second, first)}:
                with self.subTest(one=one, two=two):
                    self.check(one, two, wanted)


class StopTest(unittest.TestCase):
    """SIGTERM with one dead branch: the other one's queue drains completely."""

    ITEMS = 20

    def send(self, profcol):
        """Send all items; each is accepted."""
        for number in range(self.ITEMS):
            self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), span(number))))

    def stop(self, profcol, healthy):
        """Send SIGTERM while the healthy backend holds its answers. Return the exit code."""
        profcol.signal(signal.SIGTERM)
        profcol.wait_for_log("Starting shutdown")
        healthy.release()
        return profcol.stop()

    def test_data_remains_in_the_dead_branch(self):
        for processors in BEHIND:
            with self.subTest(list(processors)), Held() as healthy, branches.DeadBackend() as dead:
                text = config(branches.two_exporters("http", healthy, dead, "sending_queue: {queue_size: 1000}"), processors)
                with server.Profcol(text, arguments=["--drain-timeout", "3s"], expect_exit=1) as profcol:
                    healthy.hold()
                    self.send(profcol)
                    self.assertEqual(self.stop(profcol, healthy), 1)
                    self.assertIn("Dropping data", profcol.log())
                self.assertEqual(names(healthy), expected_names(range(self.ITEMS)))

    def test_further_signals_change_nothing(self):
        """As in the Collector, signals during the drain are ignored: everything is delivered."""
        with Held() as healthy:
            with server.Profcol(config({"otlp_http/healthy": http_exporter(healthy)}, {})) as profcol:
                healthy.hold()
                self.send(profcol)
                profcol.signal(signal.SIGTERM)
                profcol.wait_for_log("Starting shutdown")
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                    profcol.signal(number)
                self.assertIsNone(profcol.process.poll(), "still draining")
                healthy.release()
                self.assertEqual(profcol.stop(), 0)
                self.assertEqual(profcol.log().count("Received signal from OS"), 1)
            self.assertEqual(names(healthy), expected_names(range(self.ITEMS)))

    def test_nothing_remains_in_the_dead_branch(self):
        """Without retries the data of the dead branch was already dropped, as configured. The stop does not count it as
        a failure."""
        for processors in BEHIND:
            with self.subTest(list(processors)), Held() as healthy, branches.DeadBackend() as dead:
                exporters = {"otlp_http/healthy": http_exporter(healthy),
                             "otlp_http/dead": f'endpoint: "{dead.url}", {NO_RETRY}'}
                with server.Profcol(config(exporters, processors)) as profcol:
                    healthy.hold()
                    self.send(profcol)
                    server.wait_until(lambda: profcol.metric("otelcol_exporter_send_failed_spans", exporter="otlp_http/dead")
                                      == self.ITEMS, what="the dead branch has dropped everything")
                    self.assertEqual(self.stop(profcol, healthy), 0)
                self.assertEqual(names(healthy), expected_names(range(self.ITEMS)))


if __name__ == "__main__":
    testing.main()
