"""Processor resource_detection beside fake metadata services."""
import http.server
import os
import sys
import threading
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import client, make, outputs, server, testing

CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}}
processors: {resourcedetection: {SETTINGS}}
exporters: {file: {path: "@dir@/out"}}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [resourcedetection], exporters: [file]}
    profiles: {receivers: [otlp], processors: [resourcedetection], exporters: [file]}
"""
EC2 = {
    "/latest/api/token": b"token",
    "/latest/dynamic/instance-identity/document": b'{"region": "eu-west-1", "instanceId": "i-1"}',
    "/latest/meta-data/hostname": b"ip-1.internal",
}
NOWHERE = "http://127.0.0.1:1"


class Service:
    """Metadata services of all kinds on one port; a path that is not in `pages` is 404."""

    def __init__(self, pages, hangs=False):
        self.pages = dict(pages)
        self.released = threading.Event()
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                if hangs:
                    service.released.wait(60)
                    self.close_connection = True
                    return
                body = service.pages.get(self.path)
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            do_GET = do_PUT = answer

            def log_message(self, *_arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_error):
        self.released.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def environment(self):
        host = f"127.0.0.1:{self.server.server_address[1]}"
        return environment(f"http://{host}", host)


def environment(url, host="127.0.0.1:1"):
    return {"AWS_EC2_METADATA_SERVICE_ENDPOINT": url, "AZURE_POD_IDENTITY_AUTHORITY_HOST": url,
            "GCE_METADATA_HOST": host, "DOCKER_HOST": "tcp://" + host, "OTEL_RESOURCE_ATTRIBUTES": "team=a%20b"}


def profcol_with(settings, variables, **arguments):
    return server.Profcol(CONFIG.replace("SETTINGS", settings), environment=variables, **arguments)


def attribute(key, value):
    return b'{"key":"%s","value":{"stringValue":"%s"}}' % (key.encode(), value.encode())


class ResourceDetection(unittest.TestCase):
    def records(self, profcol, *requests):
        """What the file has after these requests, as one text."""
        for request in requests:
            self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), request)))
        return b"".join(outputs.records(profcol.directory / "out", "json"))

    def test_traces_and_profiles_gain_what_is_found(self):
        with Service(EC2) as service, \
                profcol_with("detectors: [env, ec2, azure, gcp], timeout: 60s", service.environment()) as profcol:
            text = self.records(profcol, make.traces([{"span_id": "00000000000000a1"}]), make.profiles([{"values": [1]}]))
            for key, value in {"team": "a b", "cloud.provider": "aws", "cloud.region": "eu-west-1", "host.id": "i-1",
                               "host.name": "ip-1.internal"}.items():
                self.assertEqual(text.count(attribute(key, value)), 2, key)
            self.assertIn('"resource_attributes": "team=a b, cloud.provider=aws', profcol.log())
            self.assertNotIn("failed to detect", profcol.log())

    def test_a_service_that_hangs_or_fails_does_not_stop_the_start(self):
        cases = {
            "hangs": (Service({}, hangs=True), ("docker", "no answer within the timeout")),
            "garbage": (Service({"/info": b"{", "/latest/api/token": b"",
                                 "/latest/dynamic/instance-identity/document": b"\xff"}),
                        ("docker", "the answer is not a JSON object")),
            "oversized": (Service({"/info": b" " * 1_000_000}), ("docker", "the answer is larger than 256 KiB")),
            "404": (Service({}), ("docker", "the answer has status 404")),
        }
        for name, (service, warning) in cases.items():
            with self.subTest(name), service, \
                    profcol_with(f"detectors: [docker, ec2, gcp, azure, env], timeout: {server.PATIENCE}s",
                                 service.environment()) as profcol:
                text = self.records(profcol, make.traces([{"span_id": "00000000000000a1"}]))
                self.assertIn(attribute("team", "a b"), text)
                self.assertNotIn(b"cloud.provider", text)
                self.assertIn(f'"detector": "{warning[0]}", "error": "{warning[1]}', profcol.log())
                if name == "hangs":
                    self.assertRegex(profcol.log(), r'\twarn\t.*The detector got no answer within the timeout.*"detector": "ec2"')

    def test_metadata_that_must_exist_stop_the_start(self):
        profcol = profcol_with("detectors: [ec2], timeout: 3s, ec2: {fail_on_missing_metadata: true}",
                               environment(NOWHERE))
        with self.assertRaisesRegex(server.Failed, 'Cannot start.*"processor resourcedetection: detector ec2: connect to'):
            profcol.start()

    def test_a_refresh_finds_what_has_changed(self):
        with Service(EC2) as service, \
                profcol_with("detectors: [ec2], refresh_interval: 50ms", service.environment()) as profcol:
            span = make.traces([{"span_id": "00000000000000a1"}])
            self.assertIn(attribute("host.name", "ip-1.internal"), self.records(profcol, span))
            service.pages["/latest/meta-data/hostname"] = b"ip-2.internal"
            server.wait_until(lambda: attribute("host.name", "ip-2.internal") in self.records(profcol, span), 30,
                              "the new name")

    def test_the_host_is_described(self):
        with profcol_with("detectors: [system], timeout: 2s", environment(NOWHERE)) as profcol:
            text = self.records(profcol, make.traces([{"span_id": "00000000000000a1"}]))
            self.assertIn(attribute("os.type", "linux"), text)
            self.assertIn(b'"key":"host.name"', text)
            self.assertIn(b'"schemaUrl":"https://opentelemetry.io/schemas/', text)


if __name__ == "__main__":
    testing.main()
