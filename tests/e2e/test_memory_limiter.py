"""Processor memory_limiter: the limits of the process."""
import gzip
import json
import os
import random
import sys
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import client, make, server, testing

CONFIG = """
receivers:
  otlp: {protocols: {http: {endpoint: "127.0.0.1:@http@"}, grpc: {endpoint: "127.0.0.1:@grpc@", max_recv_msg_size_mib: 20}}}
  pyroscope: {endpoint: "127.0.0.1:@pyroscope@"}
processors: {memory_limiter: {check_interval: 1s, limit_mib: 16, spike_limit_mib: 4}}
exporters: {nop: }
service:
  pipelines:
    traces: {receivers: [otlp], processors: [memory_limiter], exporters: [nop]}
    profiles: {receivers: [pyroscope], processors: [memory_limiter], exporters: [nop]}
"""
UNAVAILABLE = 14
PUSH = "/push.v1.PusherService/Push"
REQUESTS_MIB = 20 / 3  # (16 - 4 - 16 / 8) * 2 / 3


class MemoryLimiter(unittest.TestCase):
    def test_what_is_over_the_limit_is_refused_when_it_arrives(self):
        small = make.traces([{"span_id": "00000000000000a1"}])
        # Over HTTP/1.1 with gzip, because a client that is refused while it still sends may not be able to read the
        # reason.
        large = make.traces([{"span_id": "00000000000000a2", "name": "x" * 9_000_000 + random.randbytes(10_000).hex()}])
        packed = gzip.compress(large.SerializeToString())
        with server.Profcol(CONFIG) as profcol:
            self.assertAlmostEqual(profcol.metric("profcol_budget_limit_bytes") / 2**20, REQUESTS_MIB, places=2)
            grpc, http = profcol.address("grpc"), profcol.address("http")
            refused = {"grpc": lambda: client.export("grpc", grpc, large),
                       "http": lambda: client.post(http, "/v1/traces", packed, encoding="gzip")}
            for protocol, send in refused.items():
                self.assertTrue(client.succeeded(client.export(protocol, profcol.address(protocol), small)))
                answer = send()
                # As the Collector answers. Python's exporter up to 1.35 drops data after 429.
                self.assertEqual(answer.status, 200 if protocol == "grpc" else 503)
                self.assertEqual(client.status(answer),
                                 client.Status(UNAVAILABLE, "data refused due to high memory usage", retry_after=1))
                self.assertTrue(client.succeeded(client.export(protocol, profcol.address(protocol), small)))
            self.assertEqual(
                profcol.metric("otelcol_processor_memory_limiter_accepted_spans", processor="memory_limiter"), 4)

    def test_uploads_of_pyroscope(self):
        """503, which whoever sends again does send again: the Java agent, Alloy (429 only with retry_on_http_429)."""
        # Little more than there is room for: a client that is refused while it still sends much may not be able to read
        # the answer.
        upload = b"x" * 7_100_000 + random.randbytes(10_000).hex().encode()
        with server.Profcol(CONFIG) as profcol:
            address = profcol.address("pyroscope")
            for body in (upload, gzip.compress(upload)):
                for path, content_type in (("/ingest?name=shop&format=lines", None), (PUSH, "application/proto")):
                    encoding = "gzip" if len(body) < len(upload) and path == PUSH else None
                    answer = client.post(address, path, body, content_type=content_type, encoding=encoding, expect=True)
                    self.assertEqual((answer.status, answer.header("retry-after")), (503, "1"), path)
                    refusal = {"code": "unavailable", "message": "data refused due to high memory usage"}
                    # As text if not even the head of the request finds memory: the one before has only just been answered.
                    self.assertIn(answer.body, (json.dumps(refusal, separators=(",", ":")).encode(), refusal["message"].encode()))
            answer = client.call(address, PUSH, upload)
            self.assertEqual(client.status(answer),
                             client.Status(UNAVAILABLE, "data refused due to high memory usage", retry_after=1))

    def test_limits_of_the_join(self):
        """An eighth of the limit: in spans of 256 bytes from 10,000, and in MiB from 8."""
        for limit, spans, held in (16, 10_000, 8), (200, 102_400, 25), (1000, 512_000, 125):
            config = CONFIG.replace("limit_mib: 16", f"limit_mib: {limit}").replace("processors: {", "processors: {spanjoin: , ")
            config = config.replace("[memory_limiter]", "[memory_limiter, spanjoin]")
            with self.subTest(limit), server.Profcol(config) as profcol:
                profcol.wait_for_log(rf'"max_spans": {spans}, "max_held_mib": {held}\b')


if __name__ == "__main__":
    testing.main()
