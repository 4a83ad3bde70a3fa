"""The page of the extension explore as a browser gets it, and what it says about profcol itself."""
import json
import os
import re
import sys
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import client, make, server, testing

CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}}
processors: {spanjoin: {window: 90s, samples: {wait: 250ms}}}
exporters:
  otlp_http: {endpoint: "http://127.0.0.1:@nobody@", headers: {x-token: "very-hidden"}, retry_on_failure: {enabled: false}}
  file: {path: "@dir@/out"}
extensions: {explore: {endpoint: "127.0.0.1:@explore@"}}
service:
  extensions: [explore]
  pipelines:
    traces: {receivers: [otlp], processors: [spanjoin], exporters: [otlp_http, file]}
    profiles: {receivers: [otlp], processors: [spanjoin], exporters: [file]}
"""
LISTEN = ("grpc", "explore")
PAGE_BYTES_MAX = 150 * 1024
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
         ".js": "text/javascript; charset=utf-8"}


def get(profcol, path):
    try:
        with urllib.request.urlopen(f"http://{profcol.address('explore')}{path}", timeout=30) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def get_json(profcol, path):
    status, headers, body = get(profcol, path)
    assert (status, headers["content-type"]) == (200, "application/json"), (status, body)
    return json.loads(body)


def files_of(profcol):
    """Every file that the page loads: {path: text}, found as a browser finds them."""
    files, found = {}, ["/"]
    while found:
        path = found.pop()
        status, _headers, text = get(profcol, path)
        assert status == 200, path
        files[path] = text
        references = re.findall(r'(?:src|href)="([\w.]+)"', text) if path == "/" else re.findall(r'from "\./([\w.]+)"', text)
        found += [f"/{name}" for name in references if f"/{name}" not in files]
    return files


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.profcol = server.Profcol(CONFIG, listen=LISTEN)
        cls.profcol.start()

    @classmethod
    def tearDownClass(cls):
        cls.profcol.stop()

    def test_files_have_their_type_and_a_strict_policy(self):
        for path in files_of(self.profcol):
            _status, headers, _body = get(self.profcol, path)
            extension = os.path.splitext(path)[1] or ".html"
            policy = headers["content-security-policy"]
            self.assertEqual(headers["content-type"], TYPES[extension], path)
            self.assertIn("default-src 'none'", policy)
            self.assertIn("frame-ancestors 'none'", policy)
            self.assertNotIn("unsafe", policy)
            self.assertEqual(headers["x-content-type-options"], "nosniff")
            self.assertIn(headers["cache-control"], ("no-store", "no-cache"))

    def test_the_page_is_whole_small_and_on_its_own(self):
        files = files_of(self.profcol)
        self.assertGreater(len(files), 10)
        self.assertLessEqual(sum(len(text.encode()) for text in files.values()), PAGE_BYTES_MAX)
        for path, text in files.items():
            for url in re.findall(r"\w*://[\w.]*", text):
                self.assertIn(url, ("http://www.w3.org", "http://localhost"), path)
        self.assertNotRegex(files["/"], r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)")

    def test_other_paths(self):
        for path in ("/page", "/../main.js", "/main.js/", "/api/", "/api/nothing"):
            self.assertEqual(get(self.profcol, path)[0], 404, path)


class Operations(unittest.TestCase):
    def send(self, profcol):
        spans = make.traces([{"span_id": "00000000000000a1", "trace_id": "0" * 31 + "1"}])
        dictionary = [{"link": ("00000000000000a1", "0" * 31 + "1"), "values": [1]}, {"values": [1]}]
        for message in (spans, make.profiles(dictionary)):
            self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), message)))

    def test_pipelines_join_and_config(self):
        with server.Profcol(CONFIG, listen=LISTEN) as profcol:
            self.send(profcol)
            server.wait_until(lambda: profcol.metric("profcol_spanjoin_samples_unjoined", reason="no_id") == 1 and
                              profcol.metric("otelcol_exporter_send_failed_spans", exporter="otlp_http") == 1)
            pipelines = get_json(profcol, "/api/pipelines")
            nodes = {node["id"]: node for node in pipelines["nodes"]}
            self.assertEqual(sorted(nodes), [
                "exporter/file/profiles", "exporter/file/traces", "exporter/otlp_http/traces",
                "processor/spanjoin/profiles", "processor/spanjoin/traces", "receiver/otlp/profiles",
                "receiver/otlp/traces"])
            self.assertEqual(nodes["receiver/otlp/profiles"]["counters"], {"incoming": 2, "outgoing": 2, "refused": 0})
            self.assertEqual(nodes["processor/spanjoin/profiles"]["joined"], {"samples": 1, "of": 2})
            self.assertEqual(nodes["exporter/otlp_http/traces"]["counters"]["queue_limit"], 1000)
            self.assertEqual({(edge["from"], edge["to"]) for edge in pipelines["edges"]}, {
                ("receiver/otlp/traces", "processor/spanjoin/traces"),
                ("receiver/otlp/profiles", "processor/spanjoin/profiles"),
                ("processor/spanjoin/traces", "exporter/otlp_http/traces"),
                ("processor/spanjoin/traces", "exporter/file/traces"),
                ("processor/spanjoin/profiles", "exporter/file/profiles")})

            items = {edge["to"]: edge["items"] for edge in pipelines["edges"]}
            self.assertEqual(items, {"processor/spanjoin/traces": 1, "processor/spanjoin/profiles": 2,
                                     "exporter/file/traces": 1, "exporter/file/profiles": 2,
                                     "exporter/otlp_http/traces": 0})  # which refused it: nobody listens

            (join,) = get_json(profcol, "/api/join")["spanjoin"]
            self.assertEqual((join["id"], join["window_ns"], join["wait_ns"]), ("spanjoin", 90 * 10**9, 250 * 10**6))
            self.assertEqual(join["samples"]["joined"], 1)
            self.assertEqual({reason: n for reason, n in join["samples"]["unjoined"].items() if n}, {"no_id": 1})
            self.assertEqual(len(join["lag"]["counts"]), len(join["lag"]["bounds_ns"]) + 1)
            self.assertEqual(sum(join["lag"]["counts"]), 1)
            self.assertIn("name no span", join["advice"][0]["text"])

            text = get_json(profcol, "/api/config")["text"]
            self.assertIn("spanjoin:", text)
            self.assertNotIn("very-hidden", text)


if __name__ == "__main__":
    testing.main()
