"""What exporters may hold while their backends do not answer: their shares of memory, and what they borrow.
docs/architecture.md, Branches, has the rule and the figures.
"""
import collections
import os
import sys
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import canonical, client, make, server, testing
from tests.oracle.pipelines import Held

# Exporters may hold 90 MiB of these 320. A share of six has 7.5 MiB; 45 MiB can be borrowed, by one of two exporters 30,
# and by the other one 10 then.
CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}}
processors: {memory_limiter: {check_interval: 1s, limit_mib: 400, spike_limit_mib: 80}}
exporters:
  otlp_http/a: {endpoint: "A", timeout: 120s, compression: none}
  otlp_http/b: {endpoint: "B", timeout: 120s, compression: none}
service:
  pipelines:
    traces: &pipeline {receivers: [otlp], processors: [memory_limiter], exporters: [otlp_http/a, otlp_http/b]}
    metrics: *pipeline
    logs: *pipeline
"""
SIZE = 200_000      # of a request
MEBIBYTE = 1 << 20


class ExporterShares(unittest.TestCase):
    def setUp(self):
        self.a, self.b = Held("http"), Held("http")
        self.addCleanup(self.a.stop)
        self.addCleanup(self.b.stop)
        self.sent = 0

    def run_profcol(self):
        """Return profcol with the two backends."""
        text = CONFIG.replace("A\"", f"{self.a.url}\"").replace("B\"", f"{self.b.url}\"")
        return server.Profcol(text, expect_exit=None, arguments=["--drain-timeout", "1s"])

    def send(self, profcol, mebibytes):
        """Send spans of about that much together. One of the two backends always takes them."""
        for _ in range(mebibytes * MEBIBYTE // SIZE):
            self.sent += 1
            span = {"span_id": f"{self.sent:016x}", "name": f"{self.sent} " + "x" * SIZE}
            answer = client.export("grpc", profcol.address("grpc"), make.traces([span]))
            self.assertTrue(client.succeeded(answer), answer)

    def arrived(self, target):
        """Return how often each number arrived there."""
        return collections.Counter(int(row["name"].split()[0]) for form in target.forms("traces")
                                   for _, _, row in canonical.spans(form))

    def all_once(self):
        """Return how often each number should arrive."""
        return collections.Counter(range(1, self.sent + 1))

    def lost(self, profcol, exporter):
        """Return the spans that had no room, which another exporter accepted."""
        return profcol.metric("otelcol_exporter_enqueue_failed_spans", exporter=exporter)

    def held(self, profcol, exporter, suffix=""):
        """Return a gauge of the exporter's memory for traces, in MiB."""
        return profcol.metric("profcol_exporter_held_bytes" + suffix, exporter=exporter, data_type="traces") / MEBIBYTE

    def test_a_backend_that_pauses_loses_nothing(self):
        """It gets 34 of the 37.5 MiB that its exporter may hold when it answers again."""
        with self.run_profcol() as profcol:
            self.assertAlmostEqual(self.held(profcol, "otlp_http/b", "_limit"), 37.5, places=1)
            self.b.hold()
            self.send(profcol, 34)
            self.assertGreater(self.held(profcol, "otlp_http/b"), 33)
            self.assertAlmostEqual(self.held(profcol, "otlp_http/b", "_limit"), 37.5, places=1)
            self.b.release()
            self.b.wait(self.sent, timeout=60)
            self.assertEqual(self.lost(profcol, "otlp_http/a") + self.lost(profcol, "otlp_http/b"), 0)
            self.assertEqual(self.arrived(self.a), self.all_once())
            self.assertEqual(self.arrived(self.b), self.all_once())
            server.wait_until(lambda: self.held(profcol, "otlp_http/b") == 0, 10, "all memory comes back")

    def test_a_dead_backend_leaves_room(self):
        """While b holds all that it gets, a may hold 17.5 MiB, and loses nothing when it pauses with 16."""
        with self.run_profcol() as profcol:
            self.b.hold()
            self.send(profcol, 40)
            self.assertGreater(self.lost(profcol, "otlp_http/b"), 0)
            self.assertAlmostEqual(self.held(profcol, "otlp_http/b", "_limit"), 37.5, places=1)
            server.wait_until(lambda: self.held(profcol, "otlp_http/a") == 0, 30, "a has taken all")
            self.assertAlmostEqual(self.held(profcol, "otlp_http/a", "_limit"), 17.5, places=0)
            self.a.hold()
            self.send(profcol, 16)
            self.a.release()
            self.a.wait(self.sent, timeout=60)
            self.send(profcol, 4)
            self.a.wait(self.sent, timeout=60)
            self.assertEqual(self.arrived(self.a), self.all_once())
            self.assertEqual(self.lost(profcol, "otlp_http/a"), 0)


if __name__ == "__main__":
    testing.main()
