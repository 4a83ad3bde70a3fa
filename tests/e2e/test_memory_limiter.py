"""Processor memory_limiter: the limits of the process."""
import gzip
import os
import random
import sys
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import client, make, server, testing

CONFIG = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:@http@"}, grpc: {endpoint: "127.0.0.1:@grpc@", max_recv_msg_size_mib: 20}}}}
processors: {memory_limiter: {check_interval: 1s, limit_mib: 16, spike_limit_mib: 4}}
exporters: {nop: }
service: {pipelines: {traces: {receivers: [otlp], processors: [memory_limiter], exporters: [nop]}}}
"""
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
                self.assertIn("data refused due to high memory usage", str(send()))
                self.assertTrue(client.succeeded(client.export(protocol, profcol.address(protocol), small)))
            self.assertEqual(
                profcol.metric("otelcol_processor_memory_limiter_accepted_spans", processor="memory_limiter"), 4)


if __name__ == "__main__":
    testing.main()
