"""Tests the demonstration: examples/play.py sends the recording, examples/report.py reads the output."""

import html.parser
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from examples import play, report
from tests.oracle import backend, canonical, client, connections, make, recording, replay, server, testing

EXAMPLES = pathlib.Path(os.environ["PROFCOL_SOURCE"]) / "examples"
HOSTILE = "</script><img src=x onerror=alert(1)>&\u2028\x1b[31m"
TRACE = "c3" * 16
RECORDED = play.load(EXAMPLES / "recording")


def run(script, *arguments):
    """Run an example with only the system's Python: -I and -S exclude installed packages."""
    return subprocess.run([sys.executable, "-I", "-S", EXAMPLES / script, *map(str, arguments)],
                          capture_output=True, text=True, timeout=60, check=False)


class RecordingTest(unittest.TestCase):
    """examples/recording matches the captures, and is small."""

    def test_is_current(self):
        entries, files = recording.build()
        self.assertEqual([entry for entry, _ in RECORDED], entries)
        self.assertEqual({entry["file"]: data for entry, data in RECORDED}, files)
        self.assertLess(sum(map(len, files.values())), 600_000)

    def test_the_readme_has_the_right_figures(self):
        text = (EXAMPLES / "recording" / "README.md").read_text()
        spans = {kind: sum(play.count(data, "traces") for entry, data in RECORDED
                           if entry["file"].startswith(f"{kind}-spans")) for kind in ("go", "python")}
        self.assertIn(f"{spans['go']} spans", text)
        self.assertIn(f"{spans['python']} spans", text)


class PlayTest(unittest.TestCase):
    """The player shifts times and changes nothing else."""

    def test_shift_agrees_with_protobuf(self):
        for entry, data in RECORDED:
            with self.subTest(entry["file"]):
                moved = play.shifted(data, entry["signal"], 5_000_000_000)
                self.assertEqual(len(moved), len(data))
                before = canonical.decode(data, entry["signal"])
                for message in times(before):
                    for field in ("start_time_unix_nano", "end_time_unix_nano", "time_unix_nano"):
                        if getattr(message, field, 0):
                            setattr(message, field, getattr(message, field) + 5_000_000_000)
                    if hasattr(message, "timestamps_unix_nano"):
                        message.timestamps_unix_nano[:] = [t + 5_000_000_000 for t in message.timestamps_unix_nano]
                self.assertEqual(canonical.decode(moved, entry["signal"]), before)

    def test_events_and_unset_times(self):
        request = make.traces([{"span_id": "00000000000000a1", "start": 10, "end": 0}])
        request.resource_spans[0].scope_spans[0].spans[0].events.add(time_unix_nano=7)
        moved = canonical.decode(play.shifted(request.SerializeToString(), "traces", 100), "traces")
        span = moved.resource_spans[0].scope_spans[0].spans[0]
        self.assertEqual((span.start_time_unix_nano, span.end_time_unix_nano, span.events[0].time_unix_nano),
                         (110, 0, 107))

    def test_sends_all_of_it_as_of_now(self):
        with backend.Backend("http") as sink:
            sink.answers.append(backend.Answer(status=503, retry_after=0.1))
            done = run("play.py", "--http", sink.url, "--speed", "1000")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("sent 710 spans and 1828 samples", done.stdout)
            requests = sink.accepted()
            self.assertEqual(len(requests), len(RECORDED))
            newest = max(replay.newest(r.payload, r.signal, "protobuf") for r in requests)
            self.assertAlmostEqual(newest / 1e9, time.time(), delta=30)

    def test_nobody_listens(self):
        done = run("play.py", "--http", "http://127.0.0.1:1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot send", done.stderr)
        self.assertNotIn("Traceback", done.stderr)


def times(message):
    """Return every message of a request that has times."""
    for group in getattr(message, "resource_spans", []):
        for scope in group.scope_spans:
            for span in scope.spans:
                yield span
                yield from span.events
    for group in getattr(message, "resource_profiles", []):
        for scope in group.scope_profiles:
            for profile in scope.profiles:
                yield profile
                yield from profile.samples


class ReportTest(unittest.TestCase):
    """The report adds up the output of the file exporter."""

    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, *requests, name="out.json"):
        """Write a file as the file exporter does. Return its path."""
        path = self.directory / name
        path.write_text("".join(canonical.encode_json(request) + "\n" for request in requests), encoding="utf-8")
        return path

    def test_recording(self):
        files = [self.write(*(canonical.decode(data, signal) for entry, data in RECORDED
                              if entry["signal"] == signal), name=f"{signal}.json")
                 for signal in ("traces", "profiles")]
        page = self.directory / "flame.html"
        done = run("report.py", *files, "--html", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertIn("710 spans, 1828 samples: 1064 name a span, 1064 of them joined (100.0 %); "
                      "131 spans have samples", lines)
        self.assertRegex(done.stdout, r"cap-go-pprof +GET /slow +807 ms +7 +70 ms")
        self.assertRegex(done.stdout, r"cap-go-pprof +GET /slow +32/46 +434 +4.34 s")
        self.assertLessEqual(max(map(len, lines[:20])), 120)
        graphs = Page(page.read_text(encoding="utf-8")).graphs
        self.assertTrue(graphs[0]["title"].startswith("cap-go-pprof: GET /slow, 807 ms"))
        self.assertEqual(graphs[0]["rows"][0], [-1, "all", "", 70_000_000, 0])

    def spans_and_profile(self, name="GET /", function="work", depth=1, **sample):
        """Return a traces request, and a builder of profiles with one linked sample."""
        builder = make.ProfilesBuilder()
        builder.profile.sample_type.type_strindex = builder.string("cpu")
        builder.profile.sample_type.unit_strindex = builder.string("nanoseconds")
        builder.sample(stack=builder.stack(*[function] * depth), link=("00000000000000a1", ""),
                       **(sample or {"values": [5_000_000]}))
        return make.traces([{"span_id": "00000000000000a1", "name": name}]), builder

    def test_count_and_time_are_counted_once(self):
        spans, builder = self.spans_and_profile()
        second = builder.add_profile("samples", "count")
        second.period_type.type_strindex = builder.string("cpu")
        second.period_type.unit_strindex = builder.string("nanoseconds")
        second.period = 10_000_000
        builder.sample(profile=second, stack=1, values=[3], link=("00000000000000a1", ""))
        telemetry = report.read([self.write(spans, builder.request)])
        (_, _, cost), = report.slowest(telemetry, 5)
        self.assertEqual((cost.samples, cost.cpu_ns), (3, 5_000_000))

    def test_counts_times_period(self):
        spans, builder = self.spans_and_profile(timestamps=[1, 2])
        builder.profile.sample_type.type_strindex = builder.string("samples")
        builder.profile.sample_type.unit_strindex = builder.string("count")
        builder.profile.period_type.type_strindex = builder.string("cpu")
        builder.profile.period_type.unit_strindex = builder.string("nanoseconds")
        builder.profile.period = 50_000_000
        telemetry = report.read([self.write(spans, builder.request)])
        (_, _, cost), = report.slowest(telemetry, 5)
        self.assertEqual((cost.samples, cost.cpu_ns), (2, 100_000_000))

    def test_sample_of_an_unknown_span(self):
        _, builder = self.spans_and_profile()
        done = run("report.py", self.write(builder.request), "--html", self.directory / "page.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("0 spans, 1 samples: 1 name a span, 0 of them joined (0.0 %)", done.stdout)
        self.assertEqual(Page((self.directory / "page.html").read_text()).graphs, [])

    def test_names_are_not_markup(self):
        spans, builder = self.spans_and_profile(name=HOSTILE, function=HOSTILE)
        page = self.directory / "page.html"
        done = run("report.py", self.write(spans, builder.request), "--html", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("\x1b", done.stdout)
        parsed = Page(page.read_text(encoding="utf-8"))
        self.assertNotIn("img", parsed.tags)
        self.assertEqual(parsed.tags.count("script"), 2)
        self.assertEqual(parsed.graphs[0]["rows"][1][1], HOSTILE)
        self.assertEqual(parsed.links, [])

    def test_deep_stacks(self):
        spans, builder = self.spans_and_profile(depth=20_000)
        page = self.directory / "page.html"
        done = run("report.py", self.write(spans, builder.request), "--html", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(Page(page.read_text()).graphs[0]["rows"]), 20_001)

    def test_line_that_is_being_written(self):
        path = self.write(*(r if hasattr(r, "resource_spans") else r.request for r in self.spans_and_profile()))
        with path.open("a", encoding="utf-8") as file:
            file.write('{"resourceSpans":[')
        self.assertIn("1 spans, 1 samples", run("report.py", path).stdout)
        with path.open("a", encoding="utf-8") as file:
            file.write("\n")
        done = run("report.py", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("out.json:3: not OTLP/JSON", done.stderr)

    def test_narrow_terminal(self):
        spans, builder = self.spans_and_profile(name="n" * 90, function="f" * 300)
        telemetry = report.read([self.write(spans, builder.request)])
        text = report.table(report.slowest(telemetry, 5), 80)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)


JOIN = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:@http@"}}}}
processors: {spanjoin: {samples: {wait: 0s}}}
exporters: {file/traces: {path: "@dir@/traces.json"}, file/profiles: {path: "@dir@/profiles.json"}}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [spanjoin], exporters: [file/traces]}
    profiles: {receivers: [otlp], processors: [spanjoin], exporters: [file/profiles]}
"""


class AgreementTest(unittest.TestCase):
    """The report finds the costs that profcol's join writes on spans, whatever a profiler calls CPU time."""

    NAMES, UNITS = ("cpu", "ctimer", "itimer", "samples", "wall"), ("count", "count", "ns", "us", "milliseconds", "cores")
    PERIODS = ("", ""), ("cpu", "ns"), ("itimer", "us"), ("wall", "ns")

    def upload(self, dice, span_id):
        """Return an upload of a few profiles of a span. Those that are more than 16 apart, or in two scopes, are strangers."""
        builder = make.ProfilesBuilder()
        del builder.scope.profiles[:]
        for _ in range(dice.choice((1, 2, 2, 3, 3, 20))):
            if dice.random() < 0.1:
                builder.scope = builder.resource.scope_profiles.add()
            profile = builder.add_profile(dice.choice(self.NAMES), dice.choice(self.UNITS))
            profile.time_unix_nano += dice.choice((0, 0, 0, 1))
            profile.period_type.type_strindex, profile.period_type.unit_strindex = map(builder.string, dice.choice(self.PERIODS))
            profile.period = dice.choice((0, 10, 10))
            for _ in range(dice.randint(0, 2)):
                values, times = dice.choice((([3], []), ([3, 4], [5, 6]), ([], [5, 6, 7])))
                builder.sample(profile=profile, values=values, timestamps=times, link=(span_id, TRACE))
        return builder.request

    def test_random_uploads(self):
        dice, ids = random.Random(1), [f"{number:016x}" for number in range(1, 301)]
        with server.Profcol(JOIN, arguments=["--workers", "1"]) as profcol:
            connection, address = connections.Http1(profcol.address("http")), profcol.address("http")
            requests = [self.upload(dice, span_id) for span_id in ids] + [make.traces([{"span_id": span_id, "trace_id": TRACE} for span_id in ids])]
            for request in requests:
                answer = client.export("http", address, request, connection=connection)
                self.assertTrue(client.succeeded(answer), (answer, request))
            connection.close()
            profcol.stop()
            files = [profcol.directory / f"{signal}.json" for signal in ("traces", "profiles")]
            costs = report.read(files).costs
            spans = [span for group in json.loads(files[0].read_text())["resourceSpans"]
                     for scope in group["scopeSpans"] for span in scope["spans"]]
        self.assertEqual(len(spans), len(ids))
        for span, request in zip(spans, requests):
            cost, cpu = costs.get(span["spanId"], report.Cost()), report.attribute(span, "profile.cpu_ns")
            self.assertEqual(int(report.attribute(span, "profile.samples") or 0), cost.samples, request)
            self.assertEqual((int(cpu or 0), cpu != ""), (cost.cpu_ns, len(cost.stacks) > 0), request)


class Page(html.parser.HTMLParser):
    """Reads the page like a browser."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.inside, self.data = [], [], "", ""
        self.feed(text)
        self.graphs = json.loads(self.data)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]
        self.inside = dict(attrs).get("id") or tag

    def handle_data(self, data):
        if self.inside == "data":
            self.data += data

    def handle_endtag(self, tag):
        self.inside = ""


if __name__ == "__main__":
    testing.main()
