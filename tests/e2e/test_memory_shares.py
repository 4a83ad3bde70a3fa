"""One client holds as much memory as it gets; another one, with a different address, must not be refused.
docs/architecture.md, Limits, says how much each may hold.
"""

import collections
import contextlib
import os
import sys
import tempfile
import threading
import unittest

import grpc

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import background, branches, client, hogs, make, memory_limit, server, testing

MEBIBYTES = 64              # the memory limit; a quarter of it is the budget
BUDGET = MEBIBYTES << 18
HOG, GOOD = "127.0.0.2", "127.0.0.3"
MORE_HOGS = "127.0.0.4", "127.0.0.5"
CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:@grpc@", max_connections: 4096}
      http: {endpoint: "127.0.0.1:@http@", max_connections: 4096}
exporters:
  otlp_http: {endpoint: "DEAD", sending_queue: {queue_size: 1000000}}
  nop: {}
service:
  pipelines: {traces: {receivers: [otlp], exporters: [otlp_http, nop]}}
"""


def span(number, size):
    """Return a request with one span of about `size` bytes."""
    return make.traces([{"span_id": f"{number + 1:016x}", "trace_id": "c3" * 16, "name": "x" * size}])


@unittest.skipUnless(memory_limit.can_pretend(), "needs a namespace of its own for the limit of memory")
class MemorySharesTest(unittest.TestCase):
    """See the module."""

    def run_profcol(self, workers):
        """Return profcol with a small limit."""
        directory = tempfile.TemporaryDirectory()
        dead = branches.DeadBackend()
        self.addCleanup(directory.cleanup)
        self.addCleanup(dead.__exit__)
        return server.Profcol(CONFIG.replace("DEAD", dead.url), binary=memory_limit.pretend(directory.name, MEBIBYTES),
                              arguments=["--workers", str(workers), *branches.DRAIN], expect_exit=None)

    def fill_queue(self, profcol):
        """Fill the dead exporter's queue to its limit with requests of the hog."""
        both = client.Both(profcol, HOG)
        for number in range(40):
            answer = both.export(("grpc", "http")[number % 2], span(number, 200_000))
            self.assertTrue(client.succeeded(answer), answer)   # nop has accepted it
        self.assertGreater(profcol.metric("profcol_exporter_held_bytes", exporter="otlp_http"), BUDGET // 5)
        both.close()

    def send_all(self, profcol, count):
        """Send a good client's requests, small and large, over both protocols."""
        both = client.Both(profcol, GOOD)
        for number in range(count):
            answer = both.export(("grpc", "http")[number // 2 % 2], span(number, 1000 if number % 10 else 100_000))
            self.assertTrue(client.succeeded(answer), answer)
        both.close()

    def check(self, workers):
        """One hog, one good client."""
        with self.run_profcol(workers) as profcol:
            self.fill_queue(profcol)
            with hogs.Hog(profcol, ["http", "grpc"] * 20, HOG) as hog:
                server.wait_until(lambda: hog.refused > 50, 30, "the hog has all it gets")
                largest = profcol.metric("profcol_budget_largest_source_bytes")
                self.assertGreater(largest, BUDGET // 2)
                before = hog.refused
                self.send_all(profcol, 1000)
                self.assertGreater(hog.refused, before)
            server.wait_until(lambda: profcol.metric("profcol_budget_used_bytes") <
                              profcol.metric("profcol_exporter_held_bytes", exporter="otlp_http") + 200_000, 10, "all comes back")

    def test_one_worker(self):
        """None of 1,000 requests of a good client is refused."""
        self.check(1)

    def test_two_workers(self):
        """The same with two workers; the hog has connections on both."""
        self.check(2)

    def test_three_hogs(self):
        """In whatever order three hogs got their memory, 8 % of the budget is left for the good client. Its requests
        take 7 %, more than the sixteenth that three equal hogs leave below the budget."""
        with self.run_profcol(2) as profcol, contextlib.ExitStack() as stack:
            for source in (HOG, *MORE_HOGS):
                hog = stack.enter_context(hogs.Hog(profcol, ["http", "grpc"] * 20, source))
                server.wait_until(lambda hog=hog: hog.refused > 50, 30, "the hog has all it gets")
            server.wait_until(lambda: profcol.metric("profcol_budget_used_bytes") > BUDGET * 9 // 10, 30, "the hogs have all they get")
            self.send_all(profcol, 110)
            self.assertGreater(profcol.metric("profcol_exporter_held_bytes", exporter="otlp_http"), BUDGET // 16)

    def test_clients_that_try_again_at_once(self):
        """Eight connections of a gRPC client, 16 requests of 3 MB each at a time: every refusal is a status with a delay.

        With a sanitizer four at a time: the server resets a request whose body takes longer than its pace allows.
        """
        at_a_time = 4 if server.PATIENCE > 1 else 16
        body = span(1, 3_000_000).SerializeToString()
        answers, lock = collections.Counter(), threading.Lock()

        def send(call):
            try:
                call(body, timeout=60 * server.PATIENCE)
            except grpc.RpcError as error:
                with lock:
                    answers[error.code(), "grpc-status-details-bin" in dict(error.trailing_metadata() or ())] += 1

        with self.run_profcol(2) as profcol, contextlib.ExitStack() as stack:
            calls = [stack.enter_context(grpc.insecure_channel(profcol.address("grpc"), [("grpc.use_local_subchannel_pool", 1)]))
                     .unary_unary(client.TRACE_SERVICE) for _ in range(8)]
            senders = [background.Repeating(lambda call=call: send(call)) for call in calls * at_a_time]
            try:
                server.wait_until(lambda: sum(answers.values()) > 3000, 60, "refusals")
            finally:
                background.end_all(senders)
            self.assertEqual(profcol.metric("profcol_server_connections_closed", reason="flood") or 0, 0)
        self.assertGreater(answers.pop((grpc.StatusCode.UNAVAILABLE, True)), 1000)
        self.assertEqual(answers, {})


if __name__ == "__main__":
    testing.main()
