"""Clients that send again at once while memory is short get a gRPC status for each request, never a reset or a closed connection."""

import collections
import os
import sys
import threading
import unittest

import grpc

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import client, make, server, testing
from tests.oracle.background import Background

CONNECTIONS, AT_ONCE, REQUESTS = 4, 48, 400
CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}}
processors: {memory_limiter: {check_interval: 1s, limit_mib: 20, spike_limit_mib: 4}}
exporters: {nop: {}}
service:
  pipelines: {traces: {receivers: [otlp], processors: [memory_limiter], exporters: [nop]}}
"""
REQUEST = make.traces([{"span_id": "a1" * 8, "trace_id": "c3" * 16, "name": "x" * 500_000}]).SerializeToString()
RETRY_INFO = b"type.googleapis.com/google.rpc.RetryInfo"


class Sender:
    """A connection of gRPC's own client with many requests at once, each of which is followed by the next one."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)])
        self.export = self.channel.unary_unary(client.TRACE_SERVICE)
        self.answers = collections.Counter()
        self.left = threading.Semaphore(AT_ONCE)

    def answered(self, call):
        """Note an answer."""
        details = dict(call.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
        self.answers[call.code(), call.details() if call.code() != grpc.StatusCode.OK else "", RETRY_INFO in details] += 1
        self.left.release()

    def send_all(self):
        """Send until the last answer has come."""
        for _ in range(REQUESTS):
            self.left.acquire()
            self.export.future(REQUEST, timeout=60 * server.PATIENCE).add_done_callback(self.answered)
        for _ in range(AT_ONCE):
            self.left.acquire()
        self.channel.close()


class OverloadTest(unittest.TestCase):
    """See the module."""

    def test_each_gets_a_status(self):
        """Success, or UNAVAILABLE with a delay."""
        with server.Profcol(CONFIG, arguments=["--workers", "1"]) as profcol:
            address = profcol.address("grpc")
            senders = [Sender(address) for _ in range(CONNECTIONS)]
            for sending in [Background(sender.send_all) for sender in senders]:
                sending.result(200)
            answers = sum((sender.answers for sender in senders), collections.Counter())
            refused = answers[grpc.StatusCode.UNAVAILABLE, "data refused due to high memory usage", True]
            self.assertEqual(answers[grpc.StatusCode.OK, "", False] + refused, CONNECTIONS * REQUESTS, answers)
            self.assertGreater(refused, 0)
            self.assertGreaterEqual(profcol.metric("profcol_server_requests_over_budget"), refused)
            for reason in ("flood", "protocol_error"):
                self.assertFalse(profcol.metric("profcol_server_connections_closed", reason=reason))


if __name__ == "__main__":
    testing.main()
