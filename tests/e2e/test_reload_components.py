"""Reloads of a graph with connectors, authenticators, resource_detection and Pyroscope's receiver and exporter: what is
sent after each change goes where the new configuration says."""

import base64
import os
import signal
import sys
import time
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, client, make, outputs, pipelines, pyroscope, server, testing

CONFIG = """
extensions:
  basicauth: {htpasswd: {inline: "one:PASSWORD"}}
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@", auth: {authenticator: basicauth}}}}
  pyroscope: {endpoint: "127.0.0.1:@pyroscope@"}
processors:
  resource_detection: {detectors: [env], timeout: 2s}
  spanjoin: {window: 10m}
  batch: {timeout: 10ms}
connectors:
  routing:
    default_pipelines: [traces/rest]
    table: [{condition: 'resource.attributes["service.name"] == "SHOP"', pipelines: [traces/shop]}]
  count: {spans: {COUNTED: {description: spans}}}
exporters:
  file/shop: {path: "@dir@/shop"}
  file/rest: {path: "@dir@/rest"}
  otlp_http: {endpoint: "COUNTS"}
  pyroscope: {endpoint: "PYROSCOPE", SENDING}
service:
  extensions: [basicauth]
  pipelines:
    traces: {receivers: [otlp], processors: [PROCESSORS], exporters: [routing, count]}
    traces/shop: {receivers: [routing], processors: [batch], exporters: [file/shop]}
    traces/rest: {receivers: [routing], exporters: [file/rest]}
    metrics: {receivers: [count], exporters: [otlp_http]}
    profiles: {receivers: [otlp, pyroscope], processors: [spanjoin], exporters: [pyroscope]}
"""
FIRST = {"PASSWORD": "first", "SHOP": "shop", "COUNTED": "spans.first", "SENDING": "timeout: 10s",
         "PROCESSORS": "resource_detection, spanjoin"}
FOLDED = b"main;work 3\n"


def span(number, service):
    request = pipelines.span(number)
    resource = request.resource_spans[0].resource
    del resource.attributes[:]
    make.set_attributes(resource, {"service.name": service})
    return request


class Components(unittest.TestCase):
    def setUp(self):
        self.values = dict(FIRST)
        self.number = 0

    def text(self):
        text = CONFIG.replace("COUNTS", self.counts.url).replace("PYROSCOPE", self.fake.url)
        for name, value in self.values.items():
            text = text.replace(name, value)
        return text

    def change(self, profcol, **values):
        self.values.update(values)
        before = profcol.metric("profcol_config_reloads", result="applied") or 0
        profcol.config_path.write_text(profcol.render(self.text()))
        profcol.signal(signal.SIGHUP)
        server.wait_until(lambda: profcol.metric("profcol_config_reloads", result="applied") == before + 1, what="the reload")
        server.wait_until(lambda: profcol.metric("profcol_config_retired_components") == 0, what="the drain")

    def send(self, profcol, service, password=None):
        """Send a span; return its name."""
        pair = f"one:{password or self.values['PASSWORD']}".encode()
        header = ("authorization", "Basic " + base64.b64encode(pair).decode())
        answer = client.export("grpc", profcol.address("grpc"), span(self.number, service), headers=(header,))
        self.number += 1
        return f"span {self.number - 1}" if client.succeeded(answer) else None

    def push(self, profcol):
        """Push a profile as Pyroscope's SDKs do."""
        until = int(time.time())
        path = f"/ingest?name=shop%7B%7D&from={until - 10}&until={until}&format=folded"
        answer = client.post(profcol.address("pyroscope"), path, FOLDED, content_type="text/plain")
        self.assertEqual(answer.status, 200)

    def arrives(self, profcol, name, file):
        path = profcol.directory / file
        server.wait_until(lambda: path.exists() and name in pipelines.names_in(outputs.forms(path, "traces", is_growing=True)), what=f"{name} in {file}")

    def counted(self):
        return {metric.name for request in self.counts.accepted("metrics") for group in request.message().resource_metrics
                for scope in group.scope_metrics for metric in scope.metrics}

    def everything_works(self, profcol, shop="shop"):
        self.arrives(profcol, self.send(profcol, shop), "shop")
        self.arrives(profcol, self.send(profcol, "else"), "rest")
        server.wait_until(lambda: self.values["COUNTED"] in self.counted(), what="counts")
        pushes = len(self.fake.pushes())
        self.push(profcol)
        server.wait_until(lambda: len(self.fake.pushes()) > pushes, what="a push")

    def test_each_in_turn(self):
        with backend.Backend("http") as self.counts, pyroscope.Pyroscope() as self.fake, \
                server.Profcol(self.text(), arguments=["--workers", "2"]) as profcol:
            self.everything_works(profcol)
            self.change(profcol, PASSWORD="second")
            self.assertIsNone(self.send(profcol, "shop", password="first"))
            self.everything_works(profcol)
            self.change(profcol, SHOP="store")
            self.arrives(profcol, self.send(profcol, "shop"), "rest")
            self.everything_works(profcol, shop="store")
            self.change(profcol, COUNTED="spans.second")
            self.everything_works(profcol, shop="store")
            self.change(profcol, SENDING="timeout: 11s")
            self.everything_works(profcol, shop="store")
            self.change(profcol, PROCESSORS="spanjoin, batch")
            self.everything_works(profcol, shop="store")
            self.change(profcol, **FIRST)
            self.everything_works(profcol)
            self.assertEqual(self.fake.problems, [])


if __name__ == "__main__":
    testing.main()
