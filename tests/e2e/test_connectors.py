"""Connectors join pipelines: what enters one arrives behind the others, once for each way."""

import os
import sys
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, client, make, server, testing
from tests.oracle.pipelines import span

CONFIG = """
receivers:
  otlp/a: {protocols: {grpc: {endpoint: "127.0.0.1:@a@"}}}
  otlp/b: {protocols: {grpc: {endpoint: "127.0.0.1:@b@"}}}
processors:
  resource/a: {attributes: [{key: from, value: a, action: insert}]}
  resource/b: {attributes: [{key: from, value: b, action: insert}]}
  batch: {timeout: 50ms}
exporters:
  otlp_grpc/one: {endpoint: "ONE", tls: {insecure: true}, QUEUE}
  otlp_grpc/two: {endpoint: "TWO", tls: {insecure: true}, QUEUE}
connectors:
  forward:
  forward/late:
service:
  pipelines:
    traces/last: {receivers: [forward/late], processors: [batch], exporters: [otlp_grpc/two]}
    traces/join: {receivers: [forward], exporters: [otlp_grpc/one, forward/late]}
    traces/a: {receivers: [otlp/a], processors: [resource/a], exporters: [forward]}
    traces/b: {receivers: [otlp/b], processors: [resource/b], exporters: [forward]}
"""
NO_QUEUE = "sending_queue: {enabled: false}"
QUEUE = "sending_queue: {}"


def config(one, two, queue=QUEUE):
    """Two receivers, which meet in one pipeline, which leads to another one."""
    return CONFIG.replace("ONE", one.address).replace("TWO", two.address).replace("QUEUE", queue)


def names(target):
    """(the pipeline, the span) of all that arrived."""
    return sorted((next(a.value.string_value for a in group.resource.attributes if a.key == "from"), item.name) for request in target.accepted("traces")
                  for group in request.message().resource_spans for scope in group.scope_spans for item in scope.spans)


class ConnectorsTest(unittest.TestCase):
    """forward, twice in a row."""

    def test_pipelines_meet_and_part(self):
        wanted = [("a", "span 0"), ("a", "span 2"), ("b", "span 1"), ("b", "span 3")]
        with backend.Backend("grpc") as one, backend.Backend("grpc") as two, server.Profcol(config(one, two)) as process:
            for number in range(4):
                self.assertTrue(client.succeeded(client.export("grpc", process.address("ab"[number % 2]), span(number))))
            for target in (one, two):
                server.wait_until(lambda target=target: names(target) == wanted, what="all spans")

    def test_a_refusal_reaches_the_client(self):
        """Nobody has the data: one has no queue, and the other pipeline's backend refuses it, too."""
        away = backend.Answer(grpc_status=3, message="bad")
        with backend.Backend("grpc", default=away) as one, backend.Backend("grpc", default=away) as two:
            text = config(one, two, NO_QUEUE).replace("processors: [batch], ", "")
            with server.Profcol(text) as process:
                answer = client.export("grpc", process.address("a"), span(1))
                self.assertEqual((answer.grpc_status, client.status(answer).message),
                                 (3, "bad"))

    def test_the_end_loses_nothing(self):
        """What waits in the batch behind two connectors is delivered at SIGTERM."""
        with backend.Backend("grpc") as one, backend.Backend("grpc") as two:
            with server.Profcol(config(one, two).replace("timeout: 50ms", "timeout: 1h")) as process:
                for number in range(10):
                    client.export("grpc", process.address("a"), span(number))
            self.assertEqual(len(names(two)), 10)


if __name__ == "__main__":
    testing.main()
