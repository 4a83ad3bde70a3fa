"""The receiver pprof with targets that serve the profiles of a real Go service, with known gains. Nothing here depends
on timing: the n-th answer of a target is always the same.
"""

import collections
import gzip
import http.server
import os
import pathlib
import socket
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, canonical, decode, outputs, server, testing, uploads, wire
from tests.oracle.pprof import Message

DATA = pathlib.Path(os.environ["PROFCOL_SOURCE"]) / "tests" / "data" / "pprof"
CONFIG = """
receivers:
  pprof:
    scrape:
      interval: 200ms
      timeout: 5s
      profiles: {PROFILES}
      targets: [TARGETS]
exporters:
  EXPORTER
service:
  pipelines:
    profiles: {receivers: [pprof], exporters: [ID]}
"""
KINDS = ("cpu", "heap", "allocs", "goroutine", "mutex", "block")
CUMULATIVE = {"alloc_objects", "alloc_space", "contentions", "delay"}


def profcol(targets, *kinds, exporter='file: {path: "@dir@/out", format: proto}'):
    """Return a process that scrapes only these kinds of profiles from these targets, (URL, labels)."""
    wanted = ", ".join(f"{kind}: {{enabled: {str(kind in kinds).lower()}}}" for kind in KINDS)
    listed = ", ".join(f'{{endpoint: "{url}", labels: {labels}}}' for url, labels in targets)
    config = (CONFIG.replace("PROFILES", wanted).replace("TARGETS", listed).replace("EXPORTER", exporter)
              .replace("ID", exporter.partition(":")[0]))
    return server.Profcol(config, arguments=["--workers", "2"])


def recording(name):
    """Return a recorded pprof of a Go service."""
    return gzip.decompress((DATA / f"go-{name}.pb.gz").read_bytes())


def varint(value):
    """Return a varint of protobuf."""
    value &= 2**64 - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def block(number, payload):
    """Return a bytes field."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def changed(pprof, change):
    """Return the pprof with change(i, values) as the values of its i-th sample."""
    out, at, i = b"", 0, 0
    for number, _, _, start, end in wire.fields(pprof):
        if number == 2:
            sample = pprof[start:end]
            values = change(i, Message(sample).numbers(2))
            rest, inner = b"", 0
            for field, _, _, _, stop in wire.fields(sample):
                rest += sample[inner:stop] if field != 2 else b""
                inner = stop
            out += block(2, rest + block(2, b"".join(map(varint, values))))
            i += 1
        else:
            out += pprof[at:end]
        at = end
    return out


def gained(pprof, times):
    """Return the pprof after each sample has gained its own amount `times` times. Only cumulative values change."""
    message = Message(pprof)
    names = [message.fields[6][kind.one(1)].decode() for kind in message.messages(1)]
    return changed(pprof, lambda i, values: [value + times * (i + 1 + k) if name in CUMULATIVE else value
                                             for k, (name, value) in enumerate(zip(names, values))])


def gain(pprof):
    """Return the pprof that each gain adds."""
    message = Message(pprof)
    names = [message.fields[6][kind.one(1)].decode() for kind in message.messages(1)]
    return changed(pprof, lambda i, values: [i + 1 + k if name in CUMULATIVE else 0 for k, name in enumerate(names)])


class Target:
    """A service with /debug/pprof. It gives answers[path] one after another and repeats the last one."""

    def __init__(self, answers):
        self.asked = collections.Counter()
        self.queries = collections.defaultdict(set)
        target, lock = self, threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                path, _, query = self.path.partition("?")
                kind = path.rpartition("/")[2]
                with lock:
                    given = answers[kind]
                    answer = given[min(target.asked[kind], len(given) - 1)]
                    target.asked[kind] += 1
                    target.queries[kind].add(query)
                status, body = answer if isinstance(answer, tuple) else (200, answer)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def wait(self, kind, count):
        """Wait until it got more than `count` requests, so that its first `count` answers are processed."""
        server.wait_until(lambda: self.asked[kind] > count, what=f"{count} scrapes of {kind}")


def written(process):
    """Return the requests in its file, as messages."""
    path = process.directory / "out"
    return [canonical.decode(record, "profiles") for record in outputs.records(path, "proto")] if path.exists() else []


def totals_of(messages):
    """Return (totals of cumulative values, totals of the others)."""
    sums = (collections.Counter(), collections.Counter())
    for message in messages:
        for key, value in uploads.totals_of_otlp(message).items():
            sums[key[2] not in CUMULATIVE][key] += value
    return sums


def times(totals, count):
    return collections.Counter({key: value * count for key, value in totals.items()})


def scrapes(process, result, **labels):
    return process.metric("profcol_receiver_scrapes", result=result, **labels) or 0


class GainTest(unittest.TestCase):
    """The receiver converts cumulative profiles to gains."""

    def check(self, kind, metric, answers, gains, more=()):
        """Check the gains. answers: of the target; gains: how many gains the output must have in all."""
        base = recording(kind)
        with Target({kind: answers}) as target:
            with profcol([(target.url, "{service_name: shop}")], kind, *more) as process:
                target.wait(kind, len(answers) + 1)
                process.stop()
                have, _ = totals_of(written(process))
        want, _ = uploads.pprof_totals(gain(base), "shop", metric)
        self.assertTrue(want)
        self.assertEqual(have, times(want, gains))

    def test_gains(self):
        for kind, metric in (("heap", "memory"), ("mutex", "mutex"), ("block", "block")):
            with self.subTest(kind):
                base = recording(kind)
                self.check(kind, metric, [gzip.compress(gained(base, n)) for n in (0, 1, 3, 3, 10)], 10)

    def test_restart(self):
        """Values fall after a restart. The receiver starts again, because it does not know which counts are new."""
        base = recording("mutex")
        self.check("mutex", "mutex", [gained(base, n) for n in (5, 7, 1, 2)], 3)

    def test_what_is_in_use_is_sent_as_it_is(self):
        base = recording("heap")
        with Target({"heap": [base], "allocs": [gained(base, 1), gained(base, 4)]}) as target:
            with profcol([(target.url, "{service_name: shop}")], "heap", "allocs") as process:
                target.wait("heap", 2)
                target.wait("allocs", 3)
                process.stop()
                messages = written(process)
        have, in_use = totals_of(messages)
        self.assertEqual(have, times(uploads.pprof_totals(gain(base), "shop", "memory")[0], 3))
        once = {key: value for key, value in uploads.pprof_totals(base, "shop", "memory")[0].items()
                if key[2] not in CUMULATIVE}
        count = sum(bool(totals_of([message])[1]) for message in messages)
        self.assertGreater(count, 1)
        self.assertEqual(in_use, times(once, count))

    def test_what_is_refused_comes_with_the_next(self):
        base = recording("mutex")
        exporter = 'otlp_http: {endpoint: "SINK", sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}'
        with backend.Backend() as sink, Target({"mutex": [gained(base, n) for n in (0, 1, 3, 6)]}) as target:
            sink.answers.extend([backend.Answer(status=503), backend.Answer(status=503)])
            with profcol([(target.url, "{service_name: shop}")], "mutex",
                         exporter=exporter.replace("SINK", sink.url)) as process:
                sink.wait(1)
                self.assertEqual(scrapes(process, "refused"), 2)
                self.assertIn("works again", process.wait_for_log("works again") and process.log())
            have, _ = totals_of([request.message() for request in sink.accepted()])
        self.assertEqual(have, times(uploads.pprof_totals(gain(base), "shop", "mutex")[0], 6))


class TargetTest(unittest.TestCase):
    """Targets with profiles and without."""

    def test_names_and_labels(self):
        names = {"profile": "cpu", "heap": "heap", "goroutine": "goroutine", "mutex": "mutex", "block": "block"}
        files = {path: (DATA / f"go-{name}.pb.gz").read_bytes() for path, name in names.items()}
        with Target({path: [file, file] for path, file in files.items()}) as target:
            labels = "{service_name: shop, service_namespace: eu, env: dev, __hidden: x}"
            with profcol([(target.url, labels)], "cpu", "heap", "goroutine") as process:
                for path in ("profile", "heap", "goroutine"):
                    target.wait(path, 1)
                process.stop()
                messages = written(process)
        for message in messages:
            have = {pair.key: pair.value.string_value for pair in message.resource_profiles[0].resource.attributes}
            self.assertEqual(have, {"service.name": "shop", "service.namespace": "eu", "env": "dev"})
        totals = collections.Counter()
        for path, metric in (("profile", "process_cpu"), ("heap", "memory"), ("goroutine", "goroutines")):
            totals |= uploads.pprof_totals(uploads.plain(files[path]), "shop", metric)[0]
        have = set().union(*(uploads.totals_of_otlp(message) for message in messages))
        self.assertEqual(have, {key for key in totals if key[2] not in CUMULATIVE})
        self.assertEqual(target.queries["profile"], {"seconds=1"})
        self.assertEqual(target.queries["heap"], {""})

    def test_large(self):
        """Profiles of more than 64 KiB, compressed and not."""
        texts = b"".join(block(6, os.urandom(500).hex().encode()) for _ in range(500))
        large = recording("goroutine") + texts
        with Target({"goroutine": [large, gzip.compress(large)]}) as target:
            with profcol([(target.url, "{service_name: shop}")], "goroutine") as process:
                target.wait("goroutine", 2)
                process.stop()
                want = uploads.pprof_totals(large, "shop", "goroutines")[0]
                for message in written(process):
                    self.assertEqual(uploads.totals_of_otlp(message), want)

    def test_failures(self):
        """A target that is dead, silent, broken or wrong is counted, and logged once. The good one is not affected."""
        base = recording("mutex")
        bad = [(503, b"busy"), b"\x1f\x8bno gzip", base[:-1000], gained(base, 1)]
        with Target({"mutex": [base]}) as good, Target({"mutex": [base] + bad}) as ill, socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            dead = f"http://127.0.0.1:{server.free_port()}"
            quiet = f"http://127.0.0.1:{silent.getsockname()[1]}"
            targets = [(quiet, "{service_name: a}"), (dead, "{service_name: b}"), (ill.url, "{service_name: shop}"),
                       (good.url, "{service_name: c}")]
            with profcol(targets, "mutex") as process:
                ill.wait("mutex", 5)
                good.wait("mutex", 5)
                server.wait_until(lambda: scrapes(process, "failed", target=dead) >= 2, what="failures of the dead one")
                server.wait_until(lambda: scrapes(process, "skipped", target=quiet) >= 2, what="turns of the silent one")
                self.assertEqual(scrapes(process, "failed", target=ill.url, profile="mutex"), 3)
                self.assertEqual(scrapes(process, "failed", target=good.url), 0)
                # Only a machine that is too busy for the interval skips a turn of the good one.
                self.assertLess(scrapes(process, "skipped", target=good.url), scrapes(process, "skipped", target=quiet))
                self.assertGreaterEqual(scrapes(process, "ok", target=good.url), 5)
                log = process.log()
                self.assertEqual(log.count(f'"profile": "mutex", "target": "{dead}", "error"'), 1)
                self.assertIn(f'"profile": "mutex", "target": "{ill.url}", "error": "answered with status 503: busy"', log)
                self.assertIn(f'"profile": "mutex", "target": "{ill.url}", "failed_attempts": 3', log)
                process.stop()
                have, _ = totals_of(written(process))
        self.assertEqual(have, uploads.pprof_totals(gain(base), "shop", "mutex")[0])


PLAIN = """
receivers:
  pprof: RECEIVER
exporters:
  EXPORTER
service:
  pipelines:
    profiles: {receivers: [pprof], exporters: [ID]}
"""


def plain_profcol(receiver, exporter='file: {path: "@dir@/out", format: proto}', **options):
    """Return a process with this receiver."""
    config = PLAIN.replace("RECEIVER", receiver).replace("EXPORTER", exporter).replace("ID", exporter.partition(":")[0])
    return server.Profcol(config, arguments=["--workers", "2"], **options)


def resource_of(message):
    """Return the attributes of the message's only resource."""
    return {pair.key: pair.value.string_value for pair in message.resource_profiles[0].resource.attributes}


class PushTest(unittest.TestCase):
    """Tests of POST /v1/pprof."""

    def post(self, process, body, path="/v1/pprof", method="POST", encoding=None):
        headers = {"Content-Encoding": encoding} if encoding else {}
        request = urllib.request.Request(process.url("in") + path, data=body, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def test_push(self):
        receiver = '{push: {endpoint: "127.0.0.1:@in@", labels: {service_name: shop}}}'
        with plain_profcol(receiver) as process:
            for name, metric in (("cpu", "process_cpu"), ("heap", "memory"), ("goroutine", "goroutine")):
                for data in (recording(name), gzip.compress(recording(name))):
                    self.assertEqual(self.post(process, data), (204, b""))
                    want, _ = uploads.pprof_totals(recording(name), "shop", "")
                    have = uploads.totals_of_otlp(written(process)[-1])
                    self.assertEqual({(key[0], *key[2:]): value for key, value in have.items()},
                                     {(key[0], *key[2:]): value for key, value in want.items()})
            self.assertEqual(self.post(process, recording("cpu")[:-2000])[0], 400)
            self.assertEqual(self.post(process, b"\x1f\x8bno gzip")[0], 400)
            # 3 MB within 3 kB of gzip within 100 bytes of zstd.
            twice = decode.compress(gzip.compress(bytes(3_000_000)), "zstd")
            status, text = self.post(process, twice, encoding="zstd")
            self.assertEqual(status, 413)
            self.assertIn(b"the decompressed profile has more than", text)
            self.assertEqual(self.post(process, b"", path="/v1/other")[0], 404)
            self.assertEqual(self.post(process, None, method="GET")[0], 405)
            self.assertEqual(process.metric("profcol_receiver_invalid_requests", receiver="pprof"), 2)
            self.assertEqual(len(written(process)), 6)


class FilesTest(unittest.TestCase):
    """Files in a folder."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def put(self, name, data):
        """Move the file into place, as a careful writer does."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / ".new").write_bytes(data)
        (path.parent / ".new").rename(path)
        return path

    def files(self, process, result):
        return process.metric("profcol_receiver_files", result=result) or 0

    def wait_for_files(self, process, result, count):
        """Wait for the count, which changes a moment after the file."""
        server.wait_until(lambda: self.files(process, result) == count, what=f"{count} files: {result}")

    def receiver(self, more):
        return f'{{files: {{directory: "{self.folder}", interval: 50ms, {more}}}}}'

    def test_once(self):
        span, trace = "00f067aa0ba902b7", "4bf92f3577b34da6a3ce929d0e0e4736"
        path = self.put(f"shop/{trace}-{span}.pb", recording("mutex"))
        self.put("other/x.pb.gz", gzip.compress(recording("goroutine")))
        self.put("other/x.txt", b"no profile")
        pattern = r"/(?<service>[^/]+)/(?:(?<trace_id>[0-9a-f]{32})-(?<span_id>[0-9a-f]{16})|x)\.pb(\.gz)?$"
        more = f"watch: false, pattern: '{pattern}', labels: {{service_name: no, env: dev}}"
        with plain_profcol(self.receiver(more)) as process:
            process.wait_for_log('All files of the folder have been read.*"files": 2')
            messages = {resource_of(message)["service.name"]: message for message in written(process)}
        self.assertEqual(set(messages), {"shop", "other"})
        self.assertEqual(resource_of(messages["shop"])["env"], "dev")
        have = uploads.totals_of_otlp(messages["shop"])
        self.assertEqual({key[-2:] for key in have}, {(trace, span)})
        want, _ = uploads.pprof_totals(recording("goroutine"), "other", "goroutine")
        self.assertEqual(sum(uploads.totals_of_otlp(messages["other"]).values()), sum(want.values()))
        self.assertTrue(path.exists())

    def test_watched(self):
        """Files that arrive later, that are broken, and that are deleted after they were accepted."""
        broken = self.put("broken.pb", recording("cpu")[:-2000])
        with plain_profcol(self.receiver("after_reading: delete")) as process:
            self.wait_for_files(process, "failed", 1)
            for i in range(3):
                path = self.put(f"{i}.pb.gz", gzip.compress(recording("mutex")))
                server.wait_until(lambda: not path.exists(), what="the file to go")
            self.wait_for_files(process, "ok", 3)
            self.assertEqual(self.files(process, "failed"), 1)
            self.assertEqual(process.log().count(str(broken)), 1)
            self.assertEqual(len(written(process)), 3)
        self.assertTrue(broken.exists())

    def test_moved_and_tried_again(self):
        """A file that is refused temporarily stays."""
        exporter = 'otlp_http: {endpoint: "SINK", sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}'
        with tempfile.TemporaryDirectory() as done, backend.Backend() as sink:
            sink.answers.append(backend.Answer(status=503))
            path = self.put("a.pb", recording("mutex"))
            with plain_profcol(self.receiver(f'after_reading: move, move_to: "{done}"'),
                               exporter=exporter.replace("SINK", sink.url)) as process:
                server.wait_until(lambda: not path.exists(), what="the file to go")
                self.wait_for_files(process, "ok", 1)
                self.assertEqual(self.files(process, "refused"), 1)
            self.assertEqual((pathlib.Path(done) / "a.pb").read_bytes(), recording("mutex"))
            self.assertEqual(len(sink.accepted()), 1)

    def test_moved_files_of_one_name(self):
        """No file replaces another."""
        self.put("a/x.pb", recording("mutex"))
        self.put("b/x.pb", recording("goroutine"))
        with tempfile.TemporaryDirectory() as done:
            with plain_profcol(self.receiver(f'after_reading: move, move_to: "{done}"')) as process:
                self.wait_for_files(process, "ok", 2)
            moved = [path.read_bytes() for path in pathlib.Path(done).iterdir()]
            self.assertEqual(sorted(moved), sorted([recording("mutex"), recording("goroutine")]))

    def to_sink(self, sink, more):
        """Return a pipeline that forwards at once, and gives the sink's verdict to the receiver."""
        exporter = f'otlp_http: {{endpoint: "{sink.url}", sending_queue: {{enabled: false}}, retry_on_failure: {{enabled: false}}}}'
        return plain_profcol(self.receiver(more), exporter=exporter)

    def test_one_that_is_never_taken_keeps_no_other_waiting(self):
        class Sink(backend.Backend):
            def on_request(self, received):
                if b"never" in received.payload:
                    self.answers.appendleft(backend.Answer(status=503))
                return super().on_request(received)

        never = self.put("a/x.pb", recording("mutex"))
        others = [self.put(f"{name}/x.pb", recording("mutex")) for name in "bc"]
        with Sink() as sink, self.to_sink(sink, "after_reading: delete, labels: {service_name: never}, "
                                                "pattern: '/((?<service>[^a])|a)/x.pb$'") as process:
            server.wait_until(lambda: not any(path.exists() for path in others), what="the others to go")
            server.wait_until(lambda: self.files(process, "refused") >= 1, what="a refusal")
            self.assertTrue(never.exists())

    def test_replaced_while_it_is_forwarded(self):
        """A file that was not read is not deleted."""
        path = self.put("a.pb", recording("mutex"))
        with backend.Backend() as sink:
            sink.answers.append(backend.Answer(delay=1))
            with self.to_sink(sink, "after_reading: delete") as process:
                sink.wait_for(lambda: len(sink.of()) == 1)
                self.put("a.pb", recording("goroutine"))
                sink.wait(2)
                server.wait_until(lambda: not path.exists(), what="the file to go")
                self.wait_for_files(process, "ok", 2)
            self.assertNotEqual(*(received.payload for received in sink.of()))

    def test_the_folder_may_be_a_link(self):
        self.put("real/a.pb", recording("mutex"))
        (self.folder / "link").symlink_to("real")
        self.folder = self.folder / "link"
        with plain_profcol(self.receiver("watch: false")) as process:
            process.wait_for_log('All files of the folder have been read.*"files": 1')
            self.assertEqual(self.files(process, "ok"), 1)

    def test_recording_of_java(self):
        recordings = sorted((DATA.parent / "pyroscope").glob("async-profiler/files/*.jfr"))
        self.assertTrue(recordings)
        self.put("x.jfr", recordings[0].read_bytes())
        with plain_profcol(self.receiver("watch: false")) as process:
            process.wait_for_log('All files of the folder have been read.*"files": 1')
            totals = uploads.totals_of_otlp(written(process)[0])
        with open(DATA.parent / "jfr" / "expected.txt", encoding="utf-8") as file:
            name = f"pyroscope/async-profiler/files/{recordings[0].name} "
            want = [line.removeprefix(name).rstrip("\n") for line in file if line.startswith(name)]
        self.assertEqual(list(uploads.jfr_lines(totals)), want)


class ConfigTest(unittest.TestCase):
    """Settings that cannot work are reported at the start."""

    def test_errors(self):
        for receiver, text in (
                ("{}", "must specify at least one of scrape, push and files"),
                ("{scrape: {targets: [{endpoint: localhost}]}}", "scrape::targets::0::endpoint"),
                ('{scrape: {interval: 5s, profiles: {cpu: {seconds: 5}}, targets: [{endpoint: "http://a:1"}]}}',
                 "must be below the interval"),
                ('{scrape: {profile: {}, targets: [{endpoint: "http://a:1"}]}}', "profiles"),
                ("{files: {directory: /a, pattern: '('}}", "not a regular expression, at character 2"),
                ("{files: {directory: /a, after_reading: move}}", "is needed for after_reading: move"),
                ("{files: {directory: /a, after_reading: move, move_to: /a/b}}", "must not be inside `directory`")):
            with self.subTest(receiver), self.assertRaises(server.Failed) as failed, \
                    plain_profcol(receiver, expect_exit=None):
                pass
            self.assertIn(text, str(failed.exception))


if __name__ == "__main__":
    testing.main()
