"""Extension health_check, and `profcol healthcheck`."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

import grpc

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, certificates, client, make, server, testing

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


V2 = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}}
exporters:
  otlp_http: {endpoint: "http://127.0.0.1:@nobody@", headers: {x-token: "very-secret"}}
  debug:
extensions:
  health_check: {http: {endpoint: "127.0.0.1:@health@", config: {enabled: true}}, grpc: {endpoint: "127.0.0.1:@hgrpc@"}}
  health_check/strict: {use_v2: true, http: {endpoint: "127.0.0.1:@strict@"}, component_health: {include_recoverable_errors: true}}
  health_check/v1: {endpoint: "127.0.0.1:@words@"}
service:
  extensions: [health_check, health_check/strict, health_check/v1]
  pipelines: {traces: {receivers: [otlp], exporters: [otlp_http]}, traces/b: {receivers: [otlp], exporters: [debug]}}
"""
V2_LISTEN = ("grpc", "health", "hgrpc", "strict", "words")


def check(address, request):
    """What grpc.health.v1.Health/Check answers: its bytes, or the code."""
    with grpc.insecure_channel(address) as channel:
        method = channel.unary_unary("/grpc.health.v1.Health/Check", request_serializer=bytes, response_deserializer=bytes)
        try:
            return method(request, timeout=30)
        except grpc.RpcError as error:
            return error.code()


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
            server.wait_until(lambda: get(url)[0] == 200, what="the start")
            status, content_type, body = get(url + "/")
            self.assertEqual((status, content_type), (200, "application/json"))
            answer = json.loads(body)
            self.assertEqual(answer["status"], "Server available")
            self.assertRegex(answer["upSince"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$")
            self.assertRegex(answer["uptime"], r"^[0-9.hm]+s$")
            self.assertEqual({json.loads(get(url)[2])["upSince"] for _ in range(5)}, {answer["upSince"]})
            self.assertEqual(get(url + "/any/path", "POST")[0], 200)
            words = "http://" + profcol.address("words")
            self.assertEqual(get(words + "/ready"), (200, "text/plain; charset=utf-8", "yes\n"))
            self.assertEqual(get(words + "/")[0], 404)
            self.assertEqual(healthcheck(url).returncode, 0)
            self.assertIn("status 404 Not Found; give the URL with the `path` of health_check", healthcheck(words).stderr)

    def test_draining_is_not_ready(self):
        """A backend that is down delays the drain, so that the test can ask during it."""
        with server.Profcol(CONFIG, listen=LISTEN, expect_exit=None) as profcol:
            answer = client.export("grpc", profcol.address("grpc"), make.traces([{"span_id": "00000000000000a1"}]))
            self.assertTrue(client.succeeded(answer))
            url = "http://" + profcol.address("health")
            server.wait_until(lambda: get(url)[0] == 200, what="the start")
            profcol.process.send_signal(signal.SIGTERM)
            server.wait_until(lambda: get(url)[0] == 503, what="the drain")
            status, content_type, body = get(url)
            self.assertEqual((status, content_type), (503, "application/json"))
            self.assertEqual(json.loads(body), {"status": "Server not available", "upSince": "0001-01-01T00:00:00Z", "uptime": ""})
            self.assertEqual(get("http://" + profcol.address("words") + "/ready")[2], "no\n")
            self.assertIn("status 503 Service Unavailable", healthcheck(url).stderr)
            profcol.kill()

    def test_a_dead_backend_shows_and_fails_no_liveness_probe(self):
        with server.Profcol(V2, listen=V2_LISTEN, expect_exit=None) as profcol:
            url, strict = ("http://" + profcol.address(name) + "/status" for name in ("health", "strict"))
            server.wait_until(lambda: get(url)[0] == 200, what="the start")
            status, content_type, body = get(url)
            self.assertEqual((status, content_type), (200, "application/json"))
            answer = json.loads(body)
            self.assertEqual((answer["healthy"], answer["status"]), (True, "StatusOK"))
            self.assertNotIn("components", answer)
            self.assertEqual(check(profcol.address("hgrpc"), b""), b"\x08\x01")

            sent = client.export("grpc", profcol.address("grpc"), make.traces([{"span_id": "00000000000000a1"}]))
            self.assertTrue(client.succeeded(sent))
            server.wait_until(lambda: "Recoverable" in get(url)[2], what="the error")
            status, _, body = get(url + "?verbose")
            answer = json.loads(body)
            self.assertEqual((status, answer["healthy"], answer["status"]), (200, True, "StatusRecoverableError"))
            self.assertIn("connection refused", answer["error"])
            pipelines = answer["components"]
            self.assertEqual(set(pipelines), {"extensions", "pipeline:traces", "pipeline:traces/b"})
            traces = pipelines["pipeline:traces"]
            self.assertEqual((traces["status"], traces["error"]), ("StatusRecoverableError", answer["error"]))
            self.assertEqual(traces["components"]["exporter:otlp_http"]["status_time"], answer["status_time"])
            self.assertEqual(traces["components"]["receiver:otlp"]["status"], "StatusOK")
            self.assertEqual(pipelines["pipeline:traces/b"]["status"], "StatusOK")

            status, _, body = get(url + "?pipeline=traces%2Fb&verbose")
            self.assertEqual((status, set(json.loads(body)["components"])), (200, {"receiver:otlp", "exporter:debug"}))
            self.assertEqual(get(url + "?pipeline=none")[0], 404)
            self.assertEqual(get("http://" + profcol.address("words"))[0], 200)
            status, _, body = get(strict)
            self.assertEqual((status, json.loads(body)["healthy"]), (500, False))
            self.assertEqual(get(strict + "?pipeline=traces/b")[0], 200)
            self.assertEqual(check(profcol.address("hgrpc"), b"\x0a\x06traces"), b"\x08\x01")
            self.assertEqual(check(profcol.address("hgrpc"), b"\x0a\x04none"), grpc.StatusCode.NOT_FOUND)

            profcol.process.send_signal(signal.SIGTERM)
            server.wait_until(lambda: get(url)[0] == 503, what="the drain")
            self.assertEqual(json.loads(get(url)[2])["status"], "StatusStopping")
            self.assertEqual(check(profcol.address("hgrpc"), b""), b"\x08\x02")
            profcol.kill()

    def test_a_refused_reload_is_shown_and_stays_healthy(self):
        config = V2.replace("include_recoverable_errors: true", "include_recoverable_errors: true, recovery_duration: 1ns")
        with server.Profcol(config, listen=V2_LISTEN) as profcol:
            good = profcol.config_path.read_text()
            strict = "http://" + profcol.address("strict") + "/status"
            profcol.config_path.write_text(good + "bogus: 1\n")
            profcol.signal(signal.SIGHUP)
            server.wait_until(lambda: "the changed configuration is not used" in get(strict)[2], what="the error")
            status, _, body = get(strict)
            self.assertEqual(status, 200)
            answer = json.loads(body)
            self.assertEqual((answer["healthy"], answer["status"]), (True, "StatusRecoverableError"))
            self.assertEqual(get("http://" + profcol.address("words") + "/")[0], 200)
            profcol.config_path.write_text(good)
            profcol.signal(signal.SIGHUP)
            server.wait_until(lambda: json.loads(get(strict)[2])["status"] == "StatusOK", what="the end of the error")

    def test_the_configuration_is_shown_without_secrets(self):
        with server.Profcol(V2, listen=V2_LISTEN) as profcol:
            url = "http://" + profcol.address("health")
            status, content_type, body = get(url + "/config")
            self.assertEqual((status, content_type), (200, "application/json"))
            exporter = json.loads(body)["exporters"]["otlp_http"]
            self.assertEqual(exporter["headers"], {"x-token": "[REDACTED]"})
            self.assertIs(exporter["sending_queue"]["enabled"], True)
            self.assertEqual(exporter["sending_queue"]["queue_size"], 1000)
            self.assertNotIn("very-secret", body)
            rebound = urllib.request.Request(url + "/config", headers={"Host": "evil.example"})
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(rebound, timeout=30)
            refused.exception.close()
            self.assertEqual(refused.exception.code, 403)
            self.assertEqual(get(url + "/")[0], 404)
            self.assertEqual(get("http://" + profcol.address("strict") + "/config")[0], 404)

    def test_a_backend_that_comes_back_shows_as_well(self):
        with backend.Backend("http", default=backend.Answer(status=503)) as target:
            config = V2.replace("http://127.0.0.1:@nobody@", target.url).replace("headers:", "retry_on_failure: {initial_interval: 50ms}, headers:")
            with server.Profcol(config, listen=V2_LISTEN) as profcol:
                url = "http://" + profcol.address("health") + "/status"
                client.export("grpc", profcol.address("grpc"), make.traces([{"span_id": "00000000000000a1"}]))
                server.wait_until(lambda: "Recoverable" in get(url)[2], what="the error")
                target.default = backend.Answer()
                server.wait_until(lambda: "StatusOK" in get(url)[2], what="the recovery")

    def test_what_fails_in_other_components_shows(self):
        """A disk that is full, a target that does not answer."""
        config = V2.replace("debug:", "file: {path: /dev/full}").replace("exporters: [debug]", "exporters: [file]").replace(
            "receivers: {otlp:", "receivers: {pprof: {scrape: {targets: [{endpoint: 'http://127.0.0.1:@nobody@'}], interval: 100ms, "
            "profiles: {cpu: {enabled: false}}}}, otlp:").replace(
            "traces/b:", "profiles: {receivers: [pprof], exporters: [otlp_http]}, traces/b:")
        with server.Profcol(config, listen=V2_LISTEN, expect_exit=None) as profcol:
            url = "http://" + profcol.address("health") + "/status?verbose&pipeline="
            client.export("grpc", profcol.address("grpc"), make.traces([{"span_id": "00000000000000a1"}]))

            def component(pipeline, name):
                return json.loads(get(url + pipeline)[2])["components"][name]
            for pipeline, name, why in (("traces/b", "exporter:file", "/dev/full: No space left on device"),
                                        ("profiles", "receiver:pprof", "connection refused")):
                server.wait_until(lambda: component(pipeline, name)["status"] == "StatusRecoverableError", what=name)
                self.assertIn(why, component(pipeline, name)["error"])
            self.assertEqual(component("traces/b", "receiver:otlp")["status"], "StatusOK")
            profcol.kill()

    def test_tls_and_sockets(self):
        with tempfile.TemporaryDirectory() as directory:
            made = certificates.Certificates(directory)
            files = f"cert_file: {made.server[0]}, key_file: {made.server[1]}"
            path = os.path.join(directory, "health.sock")
            text = (CONFIG.replace("health_check: {", f"health_check: {{tls: {{{files}}}, ", 1)
                    .replace("extensions:", "extensions:\n  health_check/socket: {transport: unix, path: /ready, "
                             f"endpoint: \"{path}\"}}", 1).replace("[health_check,", "[health_check/socket, health_check,"))
            with server.Profcol(text, listen=LISTEN) as profcol:
                place = profcol.address("health")
                server.wait_until(lambda: healthcheck(f"https://{place}", "--ca-file", made.ca).returncode == 0, what="the start")
                self.assertEqual(healthcheck("--skip-verify", f"https://{place}/").stderr, "")
                self.assertIn(f"Error: https://{place}/: tls: certificate: ", healthcheck(f"https://{place}/").stderr)
                self.assertIn("status 400 Bad Request; the port expects TLS: write https://", healthcheck(place).stderr)
                self.assertEqual(healthcheck(f"unix://{path}:/ready").stderr, "")
                self.assertEqual(healthcheck(f"unix:{path}:/ready").returncode, 0)
                self.assertIn("status 404", healthcheck(f"unix://{path}").stderr)
        self.assertIn("No such file or directory", healthcheck(f"unix://{path}").stderr)
        self.assertIn("File name too long", healthcheck("unix:///" + 200 * "a").stderr)

    def test_nobody_answers(self):
        result = healthcheck("http://127.0.0.1:1/")
        self.assertEqual(result.returncode, 1)
        self.assertIn("Error: http://127.0.0.1:1/: Connection refused", result.stderr)
        self.assertIn("http://localhost: ", healthcheck("localhost").stderr)


if __name__ == "__main__":
    testing.main()
