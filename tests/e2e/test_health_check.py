"""Extension health_check, and `profcol healthcheck`."""
import json
import os
import signal
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import client, make, server, testing

CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}}
processors: {batch: {timeout: 1h}}
exporters: {otlp_http: {endpoint: "http://127.0.0.1:@nobody@"}}
extensions:
  health_check: {endpoint: "127.0.0.1:@health@"}
  health_check/words: {endpoint: "127.0.0.1:@words@", path: /ready, response_body: {healthy: "yes\\n", unhealthy: "no\\n"}}
service:
  extensions: [health_check, health_check/words]
  pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [otlp_http]}}
"""
LISTEN = ("grpc", "health", "words")


def get(url, method="GET"):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=30) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def healthcheck(*arguments):
    return subprocess.run([os.environ["PROFCOL"], "healthcheck", *arguments], capture_output=True, text=True, timeout=60,
                          check=False)


class HealthCheck(unittest.TestCase):
    def test_answers(self):
        with server.Profcol(CONFIG, listen=LISTEN) as profcol:
            url = "http://" + profcol.address("health")
            status, content_type, body = get(url + "/")
            self.assertEqual((status, content_type), (200, "application/json"))
            answer = json.loads(body)
            self.assertEqual(answer["status"], "Server available")
            self.assertRegex(answer["upSince"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$")
            self.assertRegex(answer["uptime"], r"^[0-9.hm]+s$")
            self.assertEqual(get(url + "/any/path", "POST")[0], 200)
            words = "http://" + profcol.address("words")
            self.assertEqual(get(words + "/ready"), (200, "text/plain; charset=utf-8", "yes\n"))
            self.assertEqual(get(words + "/")[0], 404)
            self.assertEqual(healthcheck(url).returncode, 0)
            self.assertIn("status 404 Not Found", healthcheck(words).stderr)

    def test_draining_is_not_ready(self):
        """A backend that is down delays the drain, so that the test can ask during it."""
        with server.Profcol(CONFIG, listen=LISTEN, expect_exit=None) as profcol:
            answer = client.export("grpc", profcol.address("grpc"), make.traces([{"span_id": "00000000000000a1"}]))
            self.assertTrue(client.succeeded(answer))
            url = "http://" + profcol.address("health")
            self.assertEqual(get(url)[0], 200)
            profcol.process.send_signal(signal.SIGTERM)
            server.wait_until(lambda: get(url)[0] == 503, what="the drain")
            status, content_type, body = get(url)
            self.assertEqual((status, content_type), (503, "application/json"))
            self.assertEqual(json.loads(body), {"status": "Server not available", "upSince": "0001-01-01T00:00:00Z", "uptime": ""})
            self.assertEqual(get("http://" + profcol.address("words") + "/ready")[2], "no\n")
            self.assertIn("status 503 Service Unavailable", healthcheck(url).stderr)
            profcol.kill()

    def test_nobody_answers(self):
        result = healthcheck("http://127.0.0.1:1/")
        self.assertEqual(result.returncode, 1)
        self.assertIn("Error: http://127.0.0.1:1/: Connection refused", result.stderr)
        self.assertIn("only http:// is supported", healthcheck("https://localhost/").stderr)
        self.assertIn("http://localhost: ", healthcheck("localhost").stderr)


if __name__ == "__main__":
    testing.main()
