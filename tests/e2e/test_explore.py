"""Extension explore: what it answers, who may ask, reloads, and `profcol explain`."""
import base64
import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import unittest
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import client, make, server, testing
from tests.oracle.reloading import Reloading

CONFIG = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:@http@", include_metadata: true}}}}
processors: {spanjoin: {samples: {wait: 0s}}}
exporters: {nop: }
extensions:
  explore: {endpoint: "127.0.0.1:@explore@"}
service:
  extensions: [explore]
  pipelines:
    traces: {receivers: [otlp], processors: [spanjoin], exporters: [nop]}
    profiles: {receivers: [otlp], processors: [spanjoin], exporters: [nop]}
"""
LISTEN = ("http", "explore")
SPAN, TRACE = "00000000000000a1", "000000000000000000000000000000b1"
EVIL = '<script>alert(1)</script>\u202e"\\'


def get(profcol, path, method="GET", **headers):
    request = urllib.request.Request(f"http://{profcol.address('explore')}{path}", headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


def ask(profcol, path, **headers):
    status, _, body = get(profcol, "/api/" + path, **headers)
    assert status == 200, (path, status, body)
    return json.loads(body)


def send(profcol, message, **options):
    answer = client.export("http", profcol.address("http"), message, **options)
    assert client.succeeded(answer), answer


def a_span(span_id=SPAN, **more):
    return {"span_id": span_id, "trace_id": TRACE, "name": "GET /slow", "end": 1_002_000_000_000, **more}


def send_span(profcol, service="shop", headers=(), **more):
    send(profcol, make.traces([a_span(**more)], resource={"service.name": service, "service.version": "1"}), headers=headers)


def send_sample(profcol, span_id=SPAN, service="shop", headers=(), kind="cpu", unit="nanoseconds", functions=("leaf", "main")):
    builder = make.ProfilesBuilder()
    make.set_attributes(builder.resource.resource, {"service.name": service})
    builder.profile.sample_type.type_strindex = builder.string(kind)
    builder.profile.sample_type.unit_strindex = builder.string(unit)
    builder.sample(stack=builder.stack(*functions), values=[30], link=(span_id, TRACE) if span_id else None)
    send(profcol, builder.request, headers=headers)


def wait_for_total(profcol, total, what="the store"):
    server.wait_until(lambda: sum(one["total"] for one in ask(profcol, "status")["types"]) == total, what=what)


def explain(profcol, span_id=SPAN, environment=None, user=""):
    return subprocess.run([os.environ["PROFCOL"], "explain", span_id, f"http://{user}{profcol.address('explore')}"],
                          env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False)


class Explore(unittest.TestCase):
    def test_a_request_is_found(self):
        with server.Profcol(CONFIG, listen=LISTEN) as profcol:
            send_span(profcol, attributes={"user": EVIL, "n": 3})
            send_sample(profcol)
            wait_for_total(profcol, 30)
            (span,) = ask(profcol, "spans?min_duration=1s&attribute=n%3D3")["spans"]
            self.assertEqual((span["span_id"], span["operation"], span["duration_ns"], span["costs"]),
                             (SPAN, "GET /slow", 2_000_000_000, {"cpu": 30}))
            self.assertEqual(span["attributes"]["user"], EVIL)
            graph = ask(profcol, f"flamegraph?span={SPAN}")
            self.assertEqual([graph["names"][node[1]] for node in graph["nodes"]], ["", "main", "leaf"])
            self.assertEqual(graph["total"], 30)
            one = ask(profcol, f"span?span={SPAN}&trace={TRACE}")
            self.assertEqual(one["span"]["time"], {"on_cpu_ns": 30, "off_cpu_ns": None, "lock_ns": None, "wait_ns": None,
                                                   "other_ns": 2_000_000_000 - 30})
            self.assertEqual([other["span_id"] for other in one["trace"]], [SPAN])
            status, headers, body = get(profcol, "/api/export")
            self.assertEqual((status, headers["Content-Disposition"]), (200, 'attachment; filename="profile.pb.gz"'))
            self.assertIn(b"leaf", gzip.decompress(body))
            self.assertEqual(get(profcol, "/api/export?format=collapsed")[2], b"main;leaf 30\n")
            speedscope = ask(profcol, "export?format=speedscope")
            self.assertEqual(speedscope["profiles"][0]["weights"], [30])
            for path in ("pipelines", "join", "config", "histogram", "functions", "operations", "services"):
                ask(profcol, path)
            said = explain(profcol)
            self.assertEqual(said.returncode, 0, said.stderr)
            self.assertIn("1 sample (cpu) was joined. The span had left before them (spans.wait)", said.stdout)
            self.assertIn("  duration_ns     2s = 2000000000 ns\n  start           1970-01-01T00:16:40.000000000Z = 1000000000000\n", said.stdout)
            identifier = base64.b64encode(bytes.fromhex(SPAN)).decode()
            for spelling in (SPAN.upper(), f"0x{SPAN}", identifier, f"00-{TRACE.upper()}-{SPAN.upper()}-01"):
                self.assertEqual(explain(profcol, spelling).stdout, said.stdout, spelling)
            self.assertIn("is not the id of a span", explain(profcol, "a b").stderr)

    def test_requests_that_are_refused(self):
        with server.Profcol(CONFIG, listen=LISTEN) as profcol:
            for path, method, status in (("/api/nothing", "GET", 404), ("/nothing", "GET", 404), ("/api/status", "POST", 405),
                                         ("/api/span", "GET", 400), (f"/api/span?span={SPAN}", "GET", 404),
                                         ("/api/spans?limit=5000", "GET", 400), ("/api/spans?sort=x", "GET", 400), ("/api/spans?entry=x", "GET", 400),
                                         ("/api/flamegraph?type=nothing", "GET", 400), ("/api/flamegraph?from=x", "GET", 400),
                                         ("/api/explain?id=x", "GET", 400), ("/api/export?format=x", "GET", 400),
                                         ("/api/status?" + "a=1&" * 60, "GET", 400), ("/api/pipelines?a=1", "GET", 400), ("/api/functions?sort=x", "GET", 400)):
                got, headers, body = get(profcol, path, method)
                self.assertEqual(got, status, (path, body))
                self.assertIn("code", json.loads(body)["error"])
                self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
            self.assertEqual(get(profcol, "/api/status", Host="evil.example")[0], 403)
            status, headers, body = get(profcol, "/", "HEAD")
            self.assertEqual((status, body), (200, b""))
            self.assertNotIn("unsafe", headers["Content-Security-Policy"])

    def test_names_of_a_megabyte(self):
        small = CONFIG.replace('@explore@"', '@explore@", max_memory_mib: 1')
        with server.Profcol(small, listen=LISTEN) as profcol:
            for i in range(20):
                send_sample(profcol, functions=(f"{i}" + "x" * 1_000_000, EVIL * 1000))
                wait_for_total(profcol, 30 * (i + 1))   # the mailbox has room for one of them
            self.assertEqual(ask(profcol, "flamegraph")["total"], 600)
            self.assertLess(ask(profcol, "status")["budget"]["used_bytes"], 1 << 20)

    def test_links_to_other_programs(self):
        config = CONFIG.replace('@explore@"', '@explore@", links: {grafana: "http://g/grafana/", tempo: "http://t/api/traces/", '
                                              'pyroscope: "http://p", datasource: traces}')
        with server.Profcol(config, listen=LISTEN) as profcol:
            send_span(profcol, service='a "shop"')
            server.wait_until(lambda: ask(profcol, "spans")["total"], what="the span")
            links = ask(profcol, f"span?span={SPAN}")["links"]
            self.assertEqual(links["tempo"], f"http://t/api/traces/{TRACE}")
            grafana, pyroscope = urllib.parse.urlsplit(links["grafana"]), urllib.parse.urlsplit(links["pyroscope"])
            self.assertEqual((grafana.netloc, grafana.path, pyroscope.netloc, pyroscope.path), ("g", "/grafana/explore", "p", "/"))
            query = urllib.parse.parse_qs(grafana.query, strict_parsing=True)
            (pane,) = json.loads(query["panes"][0]).values()
            self.assertEqual((query["schemaVersion"], pane["datasource"], pane["range"]), (["1"], "traces", {"from": "940000", "to": "1062000"}))
            self.assertEqual(pane["queries"], [{"refId": "A", "datasource": {"type": "tempo", "uid": "traces"}, "queryType": "traceql", "query": TRACE}])
            self.assertEqual(urllib.parse.parse_qs(pyroscope.query, strict_parsing=True), {
                "query": [r'process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="a \"shop\""}'], "from": ["940"], "until": ["1062"]})

    def test_links_to_the_profile_of_a_span(self):
        config = CONFIG.replace('@explore@"', '@explore@", links: {grafana: "http://g", pyroscope: "http://p", pyroscope_datasource: profiles}')
        with server.Profcol(config, listen=LISTEN) as profcol:
            send_span(profcol, service='a "shop"')
            server.wait_until(lambda: ask(profcol, "spans")["total"], what="the span")
            link = urllib.parse.urlsplit(ask(profcol, f"span?span={SPAN}")["links"]["pyroscope"])
            (pane,) = json.loads(urllib.parse.parse_qs(link.query)["panes"][0]).values()
            self.assertEqual((link.netloc, link.path, pane["datasource"], pane["range"]), ("g", "/explore", "profiles", {"from": "940000", "to": "1062000"}))
            self.assertEqual(pane["queries"], [{
                "refId": "A", "datasource": {"type": "grafana-pyroscope-datasource", "uid": "profiles"}, "queryType": "profile",
                "profileTypeId": "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "labelSelector": r'{service_name="a \"shop\""}', "groupBy": [], "spanSelector": [SPAN]}])

    def test_every_reader_takes_names_with_a_nul(self):
        with server.Profcol(CONFIG, listen=LISTEN) as profcol:
            send_span(profcol, name="GET /\0slow", attributes={"user": "a\0\0b", "file": "C:\\u0000\\", "k\0": "\0"})
            send_sample(profcol, functions=("le\0af", "\0"))
            wait_for_total(profcol, 30)
            (span,) = ask(profcol, "spans")["spans"]
            self.assertEqual(span["operation"], "GET /\ufffdslow")
            self.assertEqual(span["attributes"], {"user": "a\ufffd\ufffdb", "file": "C:\\u0000\\", "k\ufffd": "\ufffd"})
            self.assertEqual(ask(profcol, "flamegraph")["names"], ["", "\ufffd", "le\ufffdaf"])
            said = explain(profcol)   # jansson refuses a NUL
            self.assertEqual((said.returncode, said.stderr), (0, ""))
            self.assertIn("GET /\ufffdslow", said.stdout)

    def test_explain_another_tenant(self):
        with server.Profcol(CONFIG, listen=LISTEN) as profcol:
            send_span(profcol, headers=[("x-scope-orgid", "one")])
            send_sample(profcol, headers=[("x-scope-orgid", "two")])
            wait_for_total(profcol, 30)
            said = explain(profcol).stdout
            self.assertIn("[other_tenant]", said)
            self.assertIn("tenant_from: []", said)

    def test_explain_without_explore(self):
        said = subprocess.run([os.environ["PROFCOL"], "explain", SPAN, f"http://127.0.0.1:{server.free_port()}"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(said.returncode, 1)
        self.assertIn("run profcol with the extension explore", said.stderr)


class Access(unittest.TestCase):
    def check(self, config):
        return subprocess.run([os.environ["PROFCOL"], "validate", "--config", "yaml:" + config], capture_output=True, text=True,
                              check=False)

    def test_other_addresses_need_a_secret(self):
        ports = CONFIG.replace("@http@", "1").replace("@explore@", "2")
        for address in ("0.0.0.0:2", "[::]:2", "192.0.2.1:2", ":2"):
            config = ports.replace("127.0.0.1:2", address)
            said = self.check(config)
            self.assertEqual(said.returncode, 1, address)
            self.assertIn("so it needs auth or token", said.stderr)
            self.assertEqual(self.check(config.replace(f'"{address}"', f'"{address}", token: x')).returncode, 0)
            self.assertIn("no blanks", self.check(config.replace(f'"{address}"', f'"{address}", token: " "')).stderr)
        for address in ("localhost:2", "[::1]:2", "127.1.2.3:2"):
            said = self.check(ports.replace("127.0.0.1:2", address))
            self.assertEqual(said.returncode, 0, said.stderr)

    def test_a_token(self):
        config = CONFIG.replace('@explore@"', '@explore@", token: very-hidden')
        with server.Profcol(config, listen=LISTEN) as profcol:
            status, headers, _ = get(profcol, "/api/status")
            self.assertEqual((status, headers["WWW-Authenticate"]), (401, "Bearer"))
            self.assertIn(b"is missing", get(profcol, "/api/status")[2])
            status, _, body = get(profcol, "/api/status", Authorization="Bearer very-hidde")
            self.assertEqual(status, 401)
            self.assertIn(b"has another token", body)
            self.assertEqual(get(profcol, "/api/config")[0], 401)
            self.assertEqual(get(profcol, "/")[0], 200)
            ask(profcol, "status", Authorization="Bearer very-hidden")
            self.assertNotIn("very-hidden", ask(profcol, "config", Authorization="Bearer very-hidden")["text"])
            self.assertIn("PROFCOL_EXPLORE_TOKEN", explain(profcol).stderr)
            self.assertEqual(explain(profcol, environment={"PROFCOL_EXPLORE_TOKEN": "very-hidden"}).returncode, 0)

    def test_an_authenticator(self):
        config = (CONFIG.replace("  explore: {", "  basicauth: {htpasswd: {inline: 'ann:secret'}}\n  explore: {")
                  .replace('@explore@"', '@explore@", auth: {authenticator: basicauth}')
                  .replace("extensions: [explore]", "extensions: [basicauth, explore]"))
        with server.Profcol(config, listen=LISTEN) as profcol:
            self.assertEqual(get(profcol, "/")[0], 401)
            secret = base64.b64encode(b"ann:secret").decode()
            ask(profcol, "status", Authorization=f"Basic {secret}")
            self.assertIn("unknown", explain(profcol, user="ann:s%65cret@").stdout)
            for user in ("", "ann:wrong@", "ann@"):
                said = explain(profcol, user=user)
                self.assertIn("status 401", said.stderr)
                self.assertIn("http://USER:PASSWORD@HOST:PORT", said.stderr)
                self.assertNotIn("wrong", said.stderr)
            self.assertNotIn("secret", explain(profcol, user="ann:secret@127.0.0.1:0/").stderr)


    def test_silent_connections_keep_nobody_out(self):
        with server.Profcol(CONFIG, listen=LISTEN) as profcol:
            host, port = profcol.address("explore").rsplit(":", 1)
            silent = [socket.create_connection((host, int(port))) for _ in range(70)]
            for one in silent[::2]:
                one.sendall(b"GET /api/status HTTP/1.1\r\nHost:")
            ask(profcol, "status")
            self.assertGreater(profcol.metric("profcol_server_connections_closed", server="extension explore", reason="made_room"), 0)
            for one in silent:
                one.close()


class Reloads(unittest.TestCase):
    def test_what_it_remembers_stays(self):
        with Reloading(CONFIG, listen=LISTEN) as profcol:
            send_span(profcol)
            send_sample(profcol)
            wait_for_total(profcol, 30)
            other_join = CONFIG.replace("wait: 0s", "wait: 1ms")
            profcol.reload(other_join)
            send_sample(profcol)
            wait_for_total(profcol, 60, "the feed of the new spanjoin")
            links = other_join.replace('@explore@"', '@explore@", links: {grafana: "http://grafana:3000"}')
            profcol.reload(links)
            server.wait_until(lambda: ask(profcol, "status")["links"]["grafana"], what="the new explore")
            send_sample(profcol)
            wait_for_total(profcol, 90, "the store in the new explore")
            profcol.reload(links.replace('@explore@"', '@explore@", max_memory_mib: 32'))
            server.wait_until(lambda: ask(profcol, "status")["budget"]["limit_bytes"] == 32 << 20, what="another size")
            send_sample(profcol)
            wait_for_total(profcol, 30, "a store of another size is a new one")
            profcol.reload(CONFIG.replace("  extensions: [explore]\n", ""))
            profcol.wait_until_drained()
            send_sample(profcol)
            profcol.reload(CONFIG)
            wait_for_total(profcol, 0)

    def test_the_end_while_queries_wait(self):
        with server.Profcol(CONFIG, listen=LISTEN) as profcol:
            send_sample(profcol)
            wait_for_total(profcol, 30)
            profcol.signal(signal.SIGTERM)
            profcol.stop()


if __name__ == "__main__":
    testing.main()
