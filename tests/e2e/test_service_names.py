"""One process, one service: uploads of real SDKs whose spans, recorded with them, are sent under another service. What Pyroscope receives must stand
under the service of the spans from the first upload on that has samples of them; profiles without samples of spans (memory, locks) as well.
"""

import os
import sys
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import canonical, client, decode, pyroscope, replay, server, testing, uploads

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}
  pyroscope: {endpoint: "127.0.0.1:@uploads@"}
processors:
  spanjoin: {window: 1h, samples: {wait: 100ms}, service_from: FROM}
exporters:
  nop:
  pyroscope: {endpoint: "URL", sending_queue: {enabled: false}}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [spanjoin], exporters: [nop]}
    profiles: {receivers: [pyroscope], processors: [spanjoin], exporters: [pyroscope]}
"""
CLIENTS = ["go-grpc", "java-grpc-jfr", "node-grpc-gzip", "python-grpc-gzip"]      # that name spans
SHOP = {"service.name": "shop", "service.namespace": "eu"}


def renamed(capture, services):
    """Return the traces request, with the spans of its resources under these services in turn."""
    message = canonical.decode(capture.payload, "traces", capture.content)
    for i, resource in enumerate(message.resource_spans):
        others = [pair for pair in resource.resource.attributes if pair.key not in SHOP]
        del resource.resource.attributes[:]
        for pair in others:
            resource.resource.attributes.add().CopyFrom(pair)
        for key, text in services[i % len(services)].items():
            resource.resource.attributes.add(key=key).value.string_value = text
    return message


class ServiceNamesTest(unittest.TestCase):
    """See the module."""

    def send(self, name, services, names_from="span"):
        """Send the spans, then the uploads of a client one by one. Return, for each upload, the services of what Pyroscope received (name and namespace) and
        whether samples had been joined until then; and the counts of samples."""
        spans = [capture for capture in decode.in_directory(decode.CAPTURES / name) if capture.signal == "traces"]
        profiles = uploads.captures(name)
        with pyroscope.Pyroscope(now=lambda: profiles[-1].arrival_ns / 1e9) as fake:
            config = CONFIG.replace("FROM", names_from).replace("URL", fake.url)
            with server.Profcol(config, arguments=["--workers", "1"]) as profcol:
                for i, capture in enumerate(spans):
                    self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), renamed(capture, services[i % len(services):] + services))))
                received, seen = [], 0
                for capture in profiles:
                    (result,) = replay.send([capture], http=profcol.address("uploads"), grpc=profcol.address("uploads"))
                    self.assertEqual(result.status, 200)
                    server.wait_until(lambda: not profcol.metric("profcol_spanjoin_held_requests"), what="the upload to leave")
                    pushes = fake.pushes()
                    received.append(({(push.labels["service_name"], push.labels.get("service_namespace", "")) for push in pushes[seen:]},
                                     profcol.metric("profcol_spanjoin_samples_joined") > 0))
                    seen = len(pushes)
                counts = {result: profcol.metric("profcol_spanjoin_service_samples", result=result) for result in ("renamed", "conflict")}
                profcol.stop()
            self.assertEqual(fake.problems, [])
        return received, counts

    def test_all_profiles_follow_the_spans(self):
        for name in CLIENTS:
            with self.subTest(name):
                received, counts = self.send(name, [SHOP])
                for named, joined in received:
                    self.assertEqual(named - {("shop", "eu")} if joined else named & {("shop", "eu")}, set())
                self.assertGreater(counts["renamed"], 0)
                self.assertEqual(counts["conflict"], 0)

    def test_two_services_keep_the_name(self):
        received, counts = self.send("go-grpc", [{"service.name": "shop"}, {"service.name": "cart"}])
        self.assertEqual({service for named, joined in received if joined for service, _ in named}, {"cap-go"})
        self.assertGreater(counts["conflict"], 0)

    def test_the_profile_decides(self):
        received, counts = self.send("go-grpc", [SHOP], names_from="profile")
        self.assertEqual({service for named, _ in received for service, _ in named}, {"cap-go"})
        self.assertEqual(sum(counts.values()), 0)


if __name__ == "__main__":
    testing.main()
