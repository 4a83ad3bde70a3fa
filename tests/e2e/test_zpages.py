"""Extension zpages: what a person and a program see of a running profcol."""
import html.parser
import json
import os
import signal
import sys
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import client, make, server, testing

EVIL = "<script>alert(1)</script>"
CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}}
processors: {batch: {timeout: 50ms}, resource: {attributes: [{key: "EVIL", value: x, action: upsert}]}}
exporters:
  otlp_http: {endpoint: "http://127.0.0.1:@nobody@/EVIL", headers: {x-token: "very-hidden"}}
  file: {path: "@dir@/out"}
extensions:
  zpages: {endpoint: "127.0.0.1:@zpages@"}
  zpages/more: {endpoint: "127.0.0.1:@more@", expvar: {enabled: true}}
service:
  extensions: [zpages, zpages/more]
  pipelines: {traces: {receivers: [otlp], processors: [resource, batch], exporters: [otlp_http, file]}}
""".replace("EVIL", EVIL)
LISTEN = ("grpc", "zpages", "more")
PAGES = ("servicez", "pipelinez", "logz", "configz", "extensionz", "featurez", "tracez")


class Page(html.parser.HTMLParser):
    """The tags and the text of a page; every tag but the void ones has to be closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.words = set(), [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(self.words)


def get(profcol, path, name="zpages", **headers):
    request = urllib.request.Request(f"http://{profcol.address(name)}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def get_json(profcol, page):
    return json.loads(get(profcol, f"/debug/{page}?format=json")[2])


class Zpages(unittest.TestCase):
    def send(self, profcol):
        answer = client.export("grpc", profcol.address("grpc"),
                               make.traces([{"span_id": "00000000000000a1"}, {"span_id": "00000000000000a2"}]))
        self.assertTrue(client.succeeded(answer))

    def exporter(self, profcol, name):
        (found,) = [one for one in get_json(profcol, "servicez")["exporters"] if one["id"] == name]
        return found

    def test_a_dead_backend_shows(self):
        with server.Profcol(CONFIG, listen=LISTEN, expect_exit=None) as profcol:
            server.wait_until(lambda: get_json(profcol, "servicez")["service"]["status"] == "StatusOK", what="the start")
            self.send(profcol)
            server.wait_until(lambda: self.exporter(profcol, "otlp_http")["status"] == "StatusRecoverableError", what="the error")
            server.wait_until(lambda: self.exporter(profcol, "file")["sent"] == 2, what="the file")
            exporter = self.exporter(profcol, "otlp_http")
            self.assertEqual((exporter["sent"], exporter["queue_size"], exporter["queue_size_limit"]), (0, 1, 1000))
            self.assertGreater(exporter["held_bytes"], 0)
            self.assertIn("connection refused", exporter["last_error"])
            self.assertEqual(self.exporter(profcol, "file")["status"], "StatusOK")

            places = {one["id"]: one for one in get_json(profcol, "pipelinez")["pipeline:traces"]}
            self.assertEqual(list(places), ["otlp", "resource", "batch", "otlp_http", "file"])
            self.assertEqual({one["items_in"] for one in places.values()}, {2})
            self.assertEqual([one["items_out"] for one in places.values()], [2, 2, 2, 0, 2])
            self.assertEqual(places["otlp"]["refused"], 0)
            for path in ("servicez", "pipelinez"):
                text = Page(get(profcol, f"/debug/{path}")[2]).text
                self.assertIn("recoverable error", text)
                self.assertIn("connection refused", text)
                self.assertIn("2 in, 0 out", text)

            profcol.process.send_signal(signal.SIGTERM)
            server.wait_until(lambda: get_json(profcol, "servicez")["service"]["status"] == "StatusStopping", what="the drain")
            profcol.kill()

    def test_pages_are_safe(self):
        with server.Profcol(CONFIG, listen=LISTEN) as profcol:
            for page in PAGES:
                status, headers, text = get(profcol, f"/debug/{page}")
                self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
                self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
                self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
                self.assertLessEqual(Page(text).tags & {"script", "link", "img", "iframe"}, set())
                self.assertNotIn("very-hidden", text)
                status, headers, text = get(profcol, f"/debug/{page}?format=json")
                self.assertEqual((status, headers["Content-Type"]), (200, "application/json"))
                self.assertNotIn("very-hidden", text)
                self.assertEqual(json.loads(text)["page"], f"/debug/{page}")
            text = Page(get(profcol, "/debug/configz")[2]).text
            self.assertIn(EVIL, text)          # as text
            self.assertIn("[REDACTED]", text)
            config = get_json(profcol, "configz")["config"]
            self.assertEqual(config["exporters"]["otlp_http"]["headers"], {"x-token": "[REDACTED]"})
            self.assertEqual(config["processors"]["resource"]["attributes"][0]["key"], EVIL)

    def test_what_is_not_answered(self):
        with server.Profcol(CONFIG, listen=LISTEN) as profcol:
            self.assertEqual(get(profcol, "/")[0], 200)
            self.assertEqual(get(profcol, "/debug/nothing")[0], 404)
            self.assertEqual(get(profcol, "/debug/expvarz")[0], 404)
            self.assertEqual(get(profcol, "/debug/expvarz", "more")[0], 200)
            self.assertEqual(get(profcol, "/debug/servicez", Host="evil.example")[0], 403)
            self.assertEqual(get(profcol, "/debug/servicez", Host="localhost:1")[0], 200)
            request = urllib.request.Request(f"http://{profcol.address('zpages')}/debug/servicez", method="DELETE")
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=30)
            refused.exception.close()
            self.assertEqual(refused.exception.code, 405)

    def test_errors_of_the_log_show(self):
        with server.Profcol(CONFIG, listen=LISTEN) as profcol:
            before = len(get_json(profcol, "logz")["errors"])
            profcol.config_path.write_text("")
            profcol.process.send_signal(signal.SIGHUP)
            server.wait_until(lambda: len(get_json(profcol, "logz")["errors"]) > before, what="the warning")
            error = get_json(profcol, "logz")["errors"][0]
            self.assertEqual((error["level"], error["component"]), ("error", ""))
            self.assertIn(error["message"].split(" (")[0], profcol.log())
            self.assertIn(error["message"], Page(get(profcol, "/debug/logz")[2]).text)


if __name__ == "__main__":
    testing.main()
