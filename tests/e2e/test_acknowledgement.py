"""An answer of success is a promise. The tests check each line of the table in docs/architecture.md
("Acknowledgement"). They never wait for a fixed time: backends hold their answers until the test releases them.
"""

import itertools
import os
import re
import signal
import sys
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, canonical, client, server, testing
from tests.oracle.background import Background
from tests.oracle.pipelines import (NO_QUEUE, NO_RETRY, RETRY_SOON, Held, InBackground, config, expected_names, grpc_exporter,
                                    http_exporter, names, sample, span)

UNAVAILABLE, INVALID, INTERNAL = 14, 3, 13


class QueueInMemoryTest(unittest.TestCase):
    """`sending_queue` in memory: success means that every queue that the data reaches has it."""

    def test_success_when_queued(self):
        for protocol in ("grpc", "http"):
            with self.subTest(protocol), Held() as target, \
                    server.Profcol(config({"otlp_http": http_exporter(target)})) as profcol:
                target.hold()
                for number in range(20):
                    answer = client.export(protocol, profcol.address(protocol), span(number))
                    self.assertTrue(client.succeeded(answer), answer)
                self.assertTrue(all(request.answer.accepts for request in target.of()), "nothing was answered with an error")
                target.release()
                target.wait_for_items("traces", 20)
                self.assertEqual(names(target), expected_names(range(20)))

    def test_sigterm_delivers_what_is_queued(self):
        with Held() as target, server.Profcol(config({"otlp_http": http_exporter(target)})) as profcol:
            target.hold()
            for number in range(30):
                self.assertTrue(client.succeeded(client.export("http", profcol.address("http"), span(number))))
            profcol.signal(signal.SIGTERM)
            profcol.wait_for_log("Starting shutdown")
            self.assertIsNone(profcol.process.poll(), "it waits for the backend")
            target.release()
            self.assertEqual(profcol.stop(), 0)
            self.assertEqual(names(target), expected_names(range(30)))

    def test_sigterm_delivers_to_a_backend_that_was_away(self):
        """A request that waits for its next attempt is not given up."""
        with backend.Backend("http") as target:
            target.answers.extend(backend.Answer(status=503) for _ in range(6))
            with server.Profcol(config({"otlp_http": http_exporter(target)})) as profcol:
                for number in range(3):
                    self.assertTrue(client.succeeded(client.export("http", profcol.address("http"), span(number))))
                target.wait_for(lambda: target.of(), what="a first attempt")
                self.assertEqual(profcol.stop(), 0)
            self.assertEqual(names(target), expected_names(range(3)))

    def test_a_dead_backend_is_said_at_the_end(self):
        """After --drain-timeout, the exit code is 1 and the log says how much is lost."""
        port = server.free_port()
        exporter = (f'endpoint: "http://127.0.0.1:{port}", retry_on_failure: {RETRY_SOON}')
        with server.Profcol(config({"otlp_http": exporter}), arguments=["--drain-timeout", "1s"],
                            expect_exit=1) as profcol:
            for number in range(7):
                self.assertTrue(client.succeeded(client.export("http", profcol.address("http"), span(number))))
            self.assertEqual(profcol.stop(), 1)
            self.assertRegex(profcol.log(), r"--drain-timeout")
            dropped = re.findall(r"Dropping data.*\"dropped_items\": (\d+)", profcol.log())
            self.assertEqual(sum(map(int, dropped)), 7)

    def test_queue_full(self):
        """New requests are refused with "try later"; accepted ones arrive."""
        for protocol in ("grpc", "http"):
            with self.subTest(protocol), Held() as target:
                exporter = http_exporter(target, "sending_queue: {queue_size: 5, num_consumers: 1}")
                with server.Profcol(config({"otlp_http": exporter}), arguments=["--workers", "1"]) as profcol:
                    target.hold()
                    accepted, refused = [], None
                    for number in range(20):
                        answer = client.export(protocol, profcol.address(protocol), span(number))
                        if client.succeeded(answer):
                            accepted.append(number)
                        else:
                            refused = answer
                    self.assertIn(len(accepted), (5, 6), "one may be under way")
                    found = client.status(refused)
                    self.assertEqual(found.code, UNAVAILABLE)
                    self.assertIn("sending queue is full", found.message)
                    self.assertIsNotNone(found.retry_after)
                    if protocol == "http":
                        self.assertEqual(refused.status, 503)
                    self.assertEqual(profcol.metric("otelcol_exporter_enqueue_failed_spans", exporter="otlp_http"),
                                     20 - len(accepted))
                    self.assertEqual(profcol.metric("otelcol_exporter_queue_capacity", exporter="otlp_http",
                                                    data_type="traces"), 5)
                    self.assertEqual(profcol.metric("otelcol_receiver_refused_spans", receiver="otlp"), 20 - len(accepted))
                    self.assertEqual(profcol.metric("otelcol_receiver_accepted_spans", receiver="otlp"), len(accepted))
                    target.release()
                    target.wait_for_items("traces", len(accepted))
                    answer = client.export(protocol, profcol.address(protocol), span(99))
                    self.assertTrue(client.succeeded(answer), "there is room again")
                self.assertEqual(names(target), expected_names(accepted + [99]))

    def test_block_on_overflow(self):
        """The client waits for room instead."""
        with Held() as target:
            exporter = http_exporter(target, "sending_queue: {queue_size: 2, num_consumers: 1, block_on_overflow: true}")
            with server.Profcol(config({"otlp_http": exporter}), arguments=["--workers", "1"]) as profcol:
                target.hold()
                calls = [InBackground("grpc", profcol.address("grpc"), span(number)) for number in range(8)]
                target.wait_for(lambda: target.of(), what="the first request")
                server.wait_until(lambda: sum(call.answer is not None for call in calls) >= 2, what="two in the queue")
                self.assertLess(sum(call.answer is not None for call in calls), 5)
                target.release()
                for call in calls:
                    self.assertTrue(client.succeeded(call.result()))
            self.assertEqual(names(target), expected_names(range(8)))


class NoQueueTest(unittest.TestCase):
    """Without a queue, or with wait_for_result: success means that the backend accepted the data."""

    SETTINGS = (NO_QUEUE, "sending_queue: {wait_for_result: true}")

    def test_the_answer_waits_for_the_backend(self):
        for queue in self.SETTINGS:
            for protocol in ("grpc", "http"):
                with self.subTest(protocol, queue=queue), Held("grpc") as target, \
                        server.Profcol(config({"otlp_grpc": grpc_exporter(target, queue)})) as profcol:
                    target.hold()
                    call = InBackground(protocol, profcol.address(protocol), span(1))
                    target.wait_for(lambda: target.of(), what="the request")
                    self.assertIsNone(call.answer)
                    target.release()
                    self.assertTrue(client.succeeded(call.result()))
                    self.assertEqual(names(target), expected_names([1]))

    def test_a_retry_is_part_of_the_answer(self):
        for queue in self.SETTINGS:
            with self.subTest(queue), backend.Backend("grpc") as target, \
                    server.Profcol(config({"otlp_grpc": grpc_exporter(target, queue)})) as profcol:
                target.answers.extend([backend.Answer(grpc_status=UNAVAILABLE)] * 2)
                self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), span(1))))
                self.assertEqual((len(target.of()), names(target)), (3, expected_names([1])))

    def test_errors_reach_the_client_in_its_protocol(self):
        """The client gets the backend's error and its delay, over either protocol."""
        cases = [
            ("grpc", backend.Answer(grpc_status=14, message="busy", retry_after=7), 14, 503, 7),
            ("grpc", backend.Answer(grpc_status=14, message="busy"), 14, 503, None),
            ("grpc", backend.Answer(grpc_status=8, message="slow down", retry_after=2), 8, 429, 2),
            ("grpc", backend.Answer(grpc_status=8, message="too large"), 8, 413, None),
            ("grpc", backend.Answer(grpc_status=3, message="bad"), 3, 400, None),
            ("grpc", backend.Answer(grpc_status=16, message="who are you"), 16, 401, None),
            ("grpc", backend.Answer(grpc_status=7, message="not you"), 7, 403, None),
            ("grpc", backend.Answer(grpc_status=13, message="oops"), 13, 500, None),
            ("http", backend.Answer(status=503, message="busy", retry_after=7), 14, 503, 7),
            ("http", backend.Answer(status=429, message="slow down", retry_after=2), 8, 429, 2),
            ("http", backend.Answer(status=400, message="bad"), 3, 400, None),
            ("http", backend.Answer(status=401, message="who are you"), 16, 401, None),
        ]
        for kind, answer, code, status, delay in cases:
            with backend.Backend(kind, default=answer) as target:
                exporter = ({"otlp_grpc": f'endpoint: "{target.address}", tls: {{insecure: true}}, {NO_QUEUE}, {NO_RETRY}'}
                            if kind == "grpc" else {"otlp_http": f'endpoint: "{target.url}", {NO_QUEUE}, {NO_RETRY}'})
                with server.Profcol(config(exporter)) as profcol:
                    for protocol in ("grpc", "http"):
                        with self.subTest(backend=kind, answer=answer, client=protocol):
                            got = client.export(protocol, profcol.address(protocol), span(1))
                            found = client.status(got)
                            self.assertEqual(found.code, code)
                            if protocol == "http":
                                self.assertEqual(got.status, status)
                            self.assertEqual(found.retry_after, delay)
                            self.assertIn(answer.message, found.message)

    def test_no_backend(self):
        exporter = {"otlp_http": f'endpoint: "http://127.0.0.1:{server.free_port()}", {NO_QUEUE}, {NO_RETRY}'}
        with server.Profcol(config(exporter)) as profcol:
            answer = client.export("http", profcol.address("http"), span(1))
            self.assertEqual((answer.status, client.status(answer).code), (503, UNAVAILABLE))
            answer = client.export("grpc", profcol.address("grpc"), span(1))
            self.assertEqual(answer.grpc_status, UNAVAILABLE)

    def test_sigterm_answers_what_is_under_way(self):
        with Held("grpc") as target, \
                server.Profcol(config({"otlp_grpc": grpc_exporter(target, NO_QUEUE)})) as profcol:
            target.hold()
            calls = [InBackground(protocol, profcol.address(protocol), span(number))
                     for number, protocol in enumerate(("grpc", "http", "grpc", "http"))]
            target.wait_for(lambda: len(target.of()) == 4, what="four requests")
            profcol.signal(signal.SIGTERM)
            profcol.wait_for_log("Starting shutdown")
            target.release()
            for call in calls:
                self.assertTrue(client.succeeded(call.result()))
            self.assertEqual(profcol.stop(), 0)
            self.assertEqual(names(target), expected_names(range(4)))


class HoldingTest(unittest.TestCase):
    """`batch` and `spanjoin` answer when they have admitted a request, and deliver what they hold at the end."""

    def test_batch_answers_at_once_and_drains(self):
        processors = {"batch": "timeout: 1h, send_batch_size: 100000"}
        with backend.Backend("grpc") as target, \
                server.Profcol(config({"otlp_grpc": grpc_exporter(target)}, processors)) as profcol:
            for number in range(25):
                self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), span(number))))
                self.assertTrue(client.succeeded(client.export("http", profcol.address("http"), sample(number))))
            self.assertEqual(target.of(), [], "held for an hour")
            self.assertEqual(profcol.stop(), 0)
            self.assertEqual(names(target), expected_names(range(25)))
            want = canonical.totals(*(canonical.canonical(sample(number)) for number in range(25)))
            self.assertEqual(canonical.totals(*target.forms("profiles")), want)

    def test_spanjoin_answers_at_once_and_drains(self):
        processors = {"spanjoin": "samples: {wait: 1h}, spans: {wait: 1h}, window: 2h"}
        with backend.Backend("grpc") as target, \
                server.Profcol(config({"otlp_grpc": grpc_exporter(target)}, processors)) as profcol:
            for number in range(25):
                answer = client.export("http", profcol.address("http"), sample(number, span_number=1000 + number))
                self.assertTrue(client.succeeded(answer), "its span never comes")
                answer = client.export("grpc", profcol.address("grpc"), span(number))
                self.assertTrue(client.succeeded(answer), "its samples never come")
            self.assertEqual(target.of(), [], "held for an hour")
            self.assertEqual(profcol.metric("profcol_spanjoin_held_requests"), 50)
            self.assertGreater(profcol.metric("profcol_spanjoin_held_bytes"), 0)
            self.assertEqual(profcol.stop(), 0)
            self.assertEqual(names(target), expected_names(range(25)))
            want = canonical.totals(*(canonical.canonical(sample(number)) for number in range(25)))
            self.assertEqual(canonical.totals(*target.forms("profiles")), want)

    def test_spanjoin_and_batch_drain_one_after_the_other(self):
        processors = {"spanjoin": "samples: {wait: 1h}, window: 2h", "batch": "timeout: 1h"}
        with backend.Backend("http") as target, \
                server.Profcol(config({"otlp_http": http_exporter(target)}, processors)) as profcol:
            for number in range(10):
                client.export("http", profcol.address("http"), sample(number, span_number=1000 + number))
                client.export("grpc", profcol.address("grpc"), span(number))
            self.assertEqual(profcol.stop(), 0)
            self.assertEqual(names(target), expected_names(range(10)))
            want = canonical.totals(*(canonical.canonical(sample(number)) for number in range(10)))
            self.assertEqual(canonical.totals(*target.forms("profiles")), want)

    def test_the_last_held_request_of_a_worker(self):
        """The request passes from holder to holder while they drain. The exporter must not stop before it arrives."""
        for processors in ({"spanjoin": "samples: {wait: 1h}, spans: {wait: 1h}, window: 2h", "batch": "timeout: 1h"},
                           {"batch": "timeout: 1h", "spanjoin": "samples: {wait: 1h}, spans: {wait: 1h}, window: 2h"}):
            with self.subTest(list(processors)), backend.Backend("http", default=backend.Answer(delay=0.3)) as target, \
                    server.Profcol(config({"otlp_http": http_exporter(target)}, processors)) as profcol:
                client.export("http", profcol.address("http"), sample(0, span_number=1000))
                client.export("grpc", profcol.address("grpc"), span(0))
                self.assertEqual(profcol.stop(), 0)
                self.assertEqual(names(target), expected_names([0]))
                self.assertEqual(canonical.totals(*target.forms("profiles")), canonical.totals(canonical.canonical(sample(0))))
                self.assertNotIn("Dropping data", profcol.log())

    def test_a_holder_keeps_what_is_refused_behind_it(self):
        """Nothing that is acknowledged and held is lost if a backend refuses for a while."""
        for name, settings in (("batch", "timeout: 50ms"), ("spanjoin", "samples: {wait: 1s}, spans: {wait: 1s}")):
            with self.subTest(name), backend.Backend("grpc") as target:
                target.default = backend.Answer(grpc_status=UNAVAILABLE)
                exporter = f'endpoint: "{target.address}", tls: {{insecure: true}}, {NO_QUEUE}, {NO_RETRY}'
                with server.Profcol(config({"otlp_grpc": exporter}, {name: settings})) as profcol:
                    for number in range(5):
                        self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), span(number))))
                        answer = client.export("http", profcol.address("http"), sample(number, span_number=1000 + number))
                        self.assertTrue(client.succeeded(answer))
                    target.wait_for(lambda: len(target.of()) >= 2, what="attempts")
                    target.default = backend.Answer()
                    target.wait_for_items("traces", 5)
                    target.wait_for_items("profiles", 5)
                self.assertEqual(names(target), expected_names(range(5)))
                want = canonical.totals(*(canonical.canonical(sample(number)) for number in range(5)))
                self.assertEqual(canonical.totals(*target.forms("profiles")), want)

    def test_a_holder_says_what_it_could_not_deliver(self):
        for name, settings in (("batch", "timeout: 1h"), ("spanjoin", "samples: {wait: 1h}, spans: {wait: 1h}, window: 2h"),
                               ("tail_sampling", "decision_wait: 1h, policies: [{name: all, type: always_sample}]")):
            with self.subTest(name):
                exporter = f'endpoint: "http://127.0.0.1:{server.free_port()}", {NO_QUEUE}, {NO_RETRY}'
                with server.Profcol(config({"otlp_http": exporter}, {name: settings}),
                                    arguments=["--drain-timeout", "1s"], expect_exit=1) as profcol:
                    for number in range(7):
                        self.assertTrue(client.succeeded(client.export("http", profcol.address("http"), span(number))))
                    self.assertEqual(profcol.stop(), 1)
                    self.assertRegex(profcol.log(), r"--drain-timeout")

    def fill(self, profcol, count):
        """Send requests of 100 kB whose spans never arrive, over both protocols. Return (accepted, refused)."""
        accepted, refused = [], []
        for number in range(count):
            message = sample(number, span_number=1000 + number)
            message.dictionary.string_table.append("x" * 100_000)
            for protocol in ("grpc", "http"):
                answer = client.export(protocol, profcol.address(protocol), message)
                (accepted if client.succeeded(answer) else refused).append((protocol, answer, message))
        return accepted, refused

    BOUNDED = {"spanjoin": "samples: {wait: 1h}, window: 2h, max_held_mib: 1"}

    def test_spanjoin_lets_the_oldest_go_at_its_bound(self):
        with backend.Backend("grpc") as target:
            with server.Profcol(config({"otlp_grpc": grpc_exporter(target)}, self.BOUNDED)) as profcol:
                accepted, refused = self.fill(profcol, 20)
                self.assertEqual((len(accepted), refused), (40, []))
                self.assertLessEqual(profcol.metric("profcol_spanjoin_held_bytes"), 1 << 20)
                self.assertGreater(profcol.metric("profcol_spanjoin_samples_unjoined", reason="overflow"), 0)
                self.assertEqual(profcol.stop(), 0)
            want = canonical.totals(*(canonical.canonical(message) for _, _, message in accepted))
            self.assertEqual(canonical.totals(*target.forms("profiles")), want)

    def test_spanjoin_refuses_when_nothing_can_go(self):
        """No acknowledged request is dropped in favour of a later one."""
        with backend.Backend("grpc", default=backend.Answer(grpc_status=UNAVAILABLE)) as target:
            exporter = f'endpoint: "{target.address}", tls: {{insecure: true}}, {NO_QUEUE}, {NO_RETRY}'
            with server.Profcol(config({"otlp_grpc": exporter}, self.BOUNDED), arguments=["--workers", "1"]) as profcol:
                accepted, refused = self.fill(profcol, 20)
                self.assertTrue(refused)
                self.assertTrue(accepted)
                for protocol, answer, _ in refused:
                    found = client.status(answer)
                    self.assertEqual(found.code, UNAVAILABLE)
                    self.assertIsNotNone(found.retry_after, "or clients would come back at once")
                    if protocol == "http":
                        self.assertEqual(answer.status, 503, "older SDKs of Python give up at 429")
                target.default = backend.Answer()
                self.assertEqual(profcol.stop(), 0)
            want = canonical.totals(*(canonical.canonical(message) for _, _, message in accepted))
            self.assertEqual(canonical.totals(*target.forms("profiles")), want)


class FanOutTest(unittest.TestCase):
    """Several exporters: the client gets success when all have accepted responsibility."""

    def test_both_get_everything(self):
        with backend.Backend("grpc") as one, backend.Backend("http") as two, \
                server.Profcol(config({"otlp_grpc": grpc_exporter(one), "otlp_http": http_exporter(two)})) as profcol:
            for number in range(20):
                self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), span(number))))
            self.assertEqual(profcol.stop(), 0)
            self.assertEqual((names(one), names(two)), (expected_names(range(20)),) * 2)

    def test_one_refuses(self):
        """The client gets a refusal only if no branch accepts the request. "Try later" outweighs a permanent refusal."""
        for first, second, code in (({}, {"grpc_status": 14}, 0), ({"grpc_status": 3}, {"grpc_status": 14}, 14),
                                    ({"grpc_status": 14}, {"grpc_status": 3}, 14), ({}, {"grpc_status": 3}, 0),
                                    ({"grpc_status": 3}, {"grpc_status": 3}, 3)):
            with self.subTest(first=first, second=second), backend.Backend("grpc") as one, backend.Backend("grpc") as two:
                one.default, two.default = backend.Answer(**first), backend.Answer(**second)
                plain = "tls: {insecure: true}, " + NO_QUEUE + ", " + NO_RETRY
                exporters = {"otlp_grpc/one": f'endpoint: "{one.address}", {plain}',
                             "otlp_grpc/two": f'endpoint: "{two.address}", {plain}'}
                with server.Profcol(config(exporters)) as profcol:
                    answer = client.export("grpc", profcol.address("grpc"), span(1))
                    self.assertEqual(answer.grpc_status, code, answer.grpc_message)
                    self.assertEqual((len(one.of()), len(two.of())), (1, 1))
                    lost = profcol.metric("profcol_branch_lost_spans", to="exporter otlp_grpc/two")
                    self.assertEqual(lost, 1 if code == 0 else 0)

    def test_one_is_slow(self):
        """The answer waits for the slower exporter; the other one already has the data."""
        with Held("grpc") as slow, backend.Backend("grpc") as fast:
            exporters = {"otlp_grpc/slow": grpc_exporter(slow, NO_QUEUE), "otlp_grpc/fast": grpc_exporter(fast, NO_QUEUE)}
            with server.Profcol(config(exporters)) as profcol:
                slow.hold()
                call = InBackground("http", profcol.address("http"), span(1))
                fast.wait(1)
                self.assertIsNone(call.answer)
                slow.release()
                self.assertTrue(client.succeeded(call.result()))


class KillTest(unittest.TestCase):
    """kill -9 loses only the data that may be lost according to the table."""

    def test_without_a_queue_nothing_acknowledged_is_lost(self):
        with backend.Backend("grpc") as target:
            profcol = server.Profcol(config({"otlp_grpc": grpc_exporter(target, NO_QUEUE)})).start()
            done = []

            def send_until_it_is_killed():
                for number in itertools.count():
                    try:
                        if client.succeeded(client.export("grpc", profcol.address("grpc"), span(number))):
                            done.append(number)
                    except OSError:
                        return

            sender = Background(send_until_it_is_killed)
            server.wait_until(lambda: len(done) > 20 or not sender.is_alive(), what="some answers")
            profcol.kill()
            sender.result()
            self.assertGreater(len(done), 20)
            profcol.__exit__(RuntimeError, None, None)
            self.assertLessEqual(set(expected_names(done)), set(names(target)))

    def test_a_file_keeps_what_was_answered(self):
        """The file exporter answers after write() has written the record."""
        with server.Profcol(config({"file": 'path: "@dir@/out.json"'})) as profcol:
            for number in range(10):
                self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), span(number))))
            profcol.kill()
            text = (profcol.directory / "out.json").read_text()
            for number in range(10):
                self.assertIn(f'"span {number}"', text)
            profcol.expect_exit = None


if __name__ == "__main__":
    testing.main()
