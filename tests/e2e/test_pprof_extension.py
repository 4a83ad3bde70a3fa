"""Extension pprof: profiles of profcol itself, and what ends one before its time."""

import collections
import contextlib
import gzip
import http.client
import os
import pathlib
import signal
import socket
import sys
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import canonical, client, connections, make, outputs, server, testing
from tests.oracle.background import Repeating
from tests.oracle.pprof import Message

CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}}
processors: {batch: {timeout: 10ms}}
exporters: {file: {path: "@dir@/out"}}
extensions: {pprof: {endpoint: "127.0.0.1:@pprof@", SETTINGS}}
service: {extensions: [pprof], pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [file]}}}
"""
HOLDING = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}}
exporters: {otlp_http: {endpoint: "http://127.0.0.1:@nobody@", compression: none}}
extensions: {pprof: {endpoint: "127.0.0.1:@pprof@"}}
service: {extensions: [pprof], pipelines: {traces: {receivers: [otlp], exporters: [otlp_http]}}}
"""
SCRAPING = """
receivers:
  pprof:
    scrape:
      interval: 2s
      timeout: 30s
      profiles: {goroutine: {enabled: false}, block: {enabled: false}}
      targets: [{endpoint: "http://TARGET", labels: {service_name: profcol}}]
exporters: {file: {path: "@dir@/out", format: proto}}
service: {pipelines: {profiles: {receivers: [pprof], exporters: [file]}}}
"""
SPANS = make.traces([{"span_id": f"{i:016x}", "name": "a name"} for i in range(1, 2001)])


def profcol_of(template=CONFIG, settings="mutex_profile_fraction: 1", **options):
    """Return a process with two workers."""
    return server.Profcol(template.replace("SETTINGS", settings), arguments=["--workers", "2"],
                          listen=["grpc", "pprof"], **options)


def get(profcol, path, host=None, method="GET"):
    """Return status, text or bytes of an answer."""
    connection = http.client.HTTPConnection(profcol.address("pprof"), timeout=120)
    with contextlib.closing(connection):
        connection.request(method, path, headers={"Host": host} if host else {})
        answer = connection.getresponse()
        return answer.status, answer.read()


def begin_long(profcol):
    """Begin a profile of five minutes; return its connection once the process has timers for it."""
    connection = http.client.HTTPConnection(profcol.address("pprof"), timeout=120)
    connection.request("GET", "/debug/pprof/profile?seconds=300")
    timers = pathlib.Path(f"/proc/{profcol.process.pid}/timers")
    server.wait_until(timers.read_text, what="timers of the profile")
    return connection


class Load(Repeating):
    """Sends spans until the end of the block."""

    def __init__(self, profcol, may_end=False):
        self.profcol, self.may_end = profcol, may_end
        super().__init__(self.send)

    def send(self):
        try:
            client.export("grpc", self.profcol.address("grpc"), SPANS)
        except OSError:
            if not self.may_end:
                raise


class Profile:
    """A pprof: its types, and for each the sums of a function, alone and with what it calls."""

    def __init__(self, data):
        self.root = Message(gzip.decompress(data))
        self.strings = [text.decode() for text in self.root.fields[6]]
        functions = {f.one(1): self.strings[f.one(2)] for f in self.root.messages(5)}
        self.mappings = {m.one(1): m for m in self.root.messages(3)}
        self.locations = {location.one(1): [functions[line.one(1)] for line in location.messages(4)]
                          for location in self.root.messages(4)}
        self.types = [self.strings[t.one(1)] for t in self.root.messages(1)]
        self.samples = [(sample.numbers(1), sample.numbers(2), self.labels(sample))
                        for sample in self.root.messages(2)]

    def labels(self, sample):
        return {self.strings[label.one(1)]: self.strings[label.one(2)] for label in sample.messages(3)}

    def sums(self, name):
        """Return the sums of a sample type by function."""
        number, sums = self.types.index(name), collections.Counter()
        for stack, values, _labels in self.samples:
            for function in {function for location in stack for function in self.locations[location]}:
                sums[function] += values[number]
        return sums

    def default(self):
        return self.strings[self.root.one(14)]


class Profiles(unittest.TestCase):
    def test_processor_time_has_the_names_of_functions_and_threads(self):
        with profcol_of() as profcol:
            def profile_of_json():
                """Return a profile that has the function; of a busy machine's two seconds, it may get little."""
                status, data = get(profcol, "/debug/pprof/profile?seconds=2")
                self.assertEqual(status, 200)
                profile = Profile(data)
                return profile if "packing_print_json" in profile.sums("cpu") else None
            with Load(profcol):
                profile = server.wait_until(profile_of_json, timeout=60, what="the function in a profile")
            self.assertEqual(profile.types, ["samples", "cpu"])
            sums = profile.sums("cpu")
            self.assertTrue({labels["thread"] for _, _, labels in profile.samples} & {"worker 0", "worker 1"})
            self.assertEqual(profile.sums("samples")["packing_print_json"] * 10_000_000, sums["packing_print_json"])
            program = profile.mappings[1]
            self.assertEqual(pathlib.Path(profile.strings[program.one(5)]), pathlib.Path(profcol.binary).resolve())
            self.assertRegex(profile.strings[program.one(6)], "^[0-9a-f]{40}$")
            self.assertEqual(profile.root.one(12), 10_000_000)
            self.assertGreater(profile.root.one(10), 10**9)

    def test_memory_in_use_and_allocated(self):
        with profcol_of(HOLDING, expect_exit=None) as profcol:
            for _ in range(200):  # 35 MB, which the queue holds: some 70 samples
                self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), SPANS)))
            heap = Profile(get(profcol, "/debug/pprof/heap")[1])
            self.assertEqual(heap.types, ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"])
            self.assertEqual(heap.default(), "inuse_space")
            self.assertGreater(heap.sums("inuse_space")["buffer_new_charged"] + heap.sums("inuse_space")["buffer_new"],
                               10_000_000)
            allocs = Profile(get(profcol, "/debug/pprof/allocs")[1])
            self.assertEqual(allocs.default(), "alloc_space")
            self.assertGreaterEqual(sum(v[1] for _, v, _ in allocs.samples), sum(v[1] for _, v, _ in heap.samples))
            for _stack, values, _labels in allocs.samples:
                self.assertLessEqual(values[3], values[1])
            profcol.kill()

    def test_only_what_is_allocated_in_some_seconds(self):
        with profcol_of(HOLDING, expect_exit=None) as profcol:
            def hold(requests):
                for _ in range(requests):
                    self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), SPANS)))

            def allocated(path):
                profile = Profile(get(profcol, path)[1])
                return profile.root.one(10), sum(values[1] for _, values, _ in profile.samples)

            hold(200)
            before, all_before = allocated("/debug/pprof/heap")
            duration, idle = allocated("/debug/pprof/heap?seconds=1")
            self.assertEqual(before or 0, 0)
            self.assertGreaterEqual(duration, 10**9)
            self.assertLess(idle, all_before / 4)
            connection = http.client.HTTPConnection(profcol.address("pprof"), timeout=120)
            with contextlib.closing(connection):
                connection.request("GET", "/debug/pprof/allocs?seconds=5")
                hold(100)
                busy = Profile(connection.getresponse().read())
            self.assertGreater(sum(values[3] for _, values, _ in busy.samples), 0)
            self.assertEqual(get(profcol, "/debug/pprof/mutex?seconds=1")[0], 200)
            profcol.kill()

    def test_half_closed_client_gets_its_profile_and_nothing_else(self):
        with profcol_of() as profcol, connections.connect(profcol.address("pprof")) as connection:
            connection.sendall(b"GET /debug/pprof/profile?seconds=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
            self.assertTrue(answer.startswith(b"HTTP/1.1 200 OK\r\n"), answer[:100])
            self.assertNotIn(b"100 Continue", answer)
            self.assertEqual(Profile(answer.split(b"\r\n\r\n", 1)[1]).types, ["samples", "cpu"])

    def test_waits_for_mutexes(self):
        for settings in "mutex_profile_fraction: 1", "mutex_profile_fraction: 0":
            with profcol_of(settings=settings) as profcol:
                status, data = get(profcol, "/debug/pprof/mutex")
                self.assertEqual(status, 200)
                self.assertEqual(Profile(data).types, ["contentions", "delay"])

    def test_whole_run_is_saved(self):
        with profcol_of(settings='save_to_file: "@dir@/cpu.pb.gz"') as profcol:
            with Load(profcol):
                status, text = get(profcol, "/debug/pprof/profile?seconds=1")
                self.assertEqual((status, text),
                                 (500, b"Could not enable CPU profiling: cpu profiling already in use\n"))
                server.wait_until(lambda: profcol.metric("otelcol_receiver_accepted_spans") > 1_000_000, timeout=120)
            profcol.stop()
            profile = Profile((profcol.directory / "cpu.pb.gz").read_bytes())
            self.assertGreater(sum(values[0] for _, values, _ in profile.samples), 0)
            # Of a short run, no single function need be in it.
            self.assertTrue({"on_poll", "packing_print_json"} & set(profile.sums("samples")), profile.sums("samples"))

    def test_another_profcol_scrapes_it(self):
        with profcol_of() as target, Load(target):
            with server.Profcol(SCRAPING.replace("TARGET", target.address("pprof")), listen=["metrics"]) as scraper:
                def results(kind):
                    return scraper.metric("profcol_receiver_scrapes", profile=kind, result="ok") or 0
                server.wait_until(lambda: results("cpu") > 0 and results("heap") > 1 and results("mutex") > 0,
                                  timeout=60, what="scrapes")

                def texts():
                    return {text for record in outputs.records(scraper.directory / "out", "proto", is_growing=True)
                            for text in canonical.decode(record, "profiles").dictionary.string_table}
                server.wait_until(lambda: {"packing_print_json", "cpu", "inuse_space", "alloc_space"} <= texts(), timeout=60,
                                  what="the names")
                self.assertEqual(scraper.metric("profcol_receiver_scrapes", result="failed") or 0, 0)


class Refusals(unittest.TestCase):
    def test_what_is_no_profile(self):
        with profcol_of() as profcol:
            for path, status in (("/debug/pprof/goroutine", 404), ("/", 404), ("/debug/pprof/heap?debug=1", 400),
                                 ("/debug/pprof/profile?seconds=301", 400), ("/debug/pprof/", 200),
                                 ("/debug/pprof/heap?seconds=301", 400), ("/debug/pprof/heap?seconds=0", 400),
                                 ("/debug/pprof/mutex?seconds=x", 400), ("/debug/pprof/allocs?seconds=", 200),
                                 ("/debug/pprof", 200), ("/debug/pprof/heap?debug=0", 200)):
                self.assertEqual(get(profcol, path)[0], status, path)
            self.assertEqual(get(profcol, "/debug/pprof/heap", host="evil.example")[0], 403)
            self.assertEqual(get(profcol, "/debug/pprof/heap", method="POST")[0], 405)
            status, text = get(profcol, "/debug/pprof/cmdline")
            self.assertEqual((status, text.decode()), (200, str(pathlib.Path(profcol.binary).resolve())))

    def test_one_profile_of_the_processor_at_a_time(self):
        with profcol_of() as profcol:
            with contextlib.closing(begin_long(profcol)):
                self.assertEqual(get(profcol, "/debug/pprof/profile?seconds=1")[0], 500)
                self.assertEqual(get(profcol, "/debug/pprof/heap")[0], 200)
            # The client has gone: the sampling ends long before its time.
            server.wait_until(lambda: get(profcol, "/debug/pprof/profile?seconds=1")[0] == 200)


class Ends(unittest.TestCase):
    def test_end_of_the_process(self):
        with profcol_of() as profcol, Load(profcol, may_end=True):
            with contextlib.closing(begin_long(profcol)):
                profcol.stop()

    def test_reload(self):
        with profcol_of() as profcol, Load(profcol):
            for fraction in 2, 3, 4:
                with contextlib.closing(begin_long(profcol)) as connection:
                    template = CONFIG.replace("SETTINGS", f"mutex_profile_fraction: {fraction}")
                    profcol.config_path.write_text(profcol.render(template))
                    profcol.signal(signal.SIGHUP)
                    with contextlib.suppress(ConnectionError, http.client.HTTPException):
                        self.assertEqual(connection.getresponse().status, 503)
                server.wait_until(lambda: self.works(profcol), timeout=30)
            self.assertEqual(profcol.metric("profcol_config_reloads", result="applied"), 3)

    def works(self, profcol):
        try:
            return get(profcol, "/debug/pprof/profile?seconds=1")[0] == 200
        except (ConnectionError, http.client.HTTPException):
            return False

    def test_reload_without_the_extension_ends_all_sampling(self):
        without = CONFIG.replace("extensions: [pprof], ", "").replace("SETTINGS", "")
        with profcol_of(settings='save_to_file: "@dir@/cpu.pb.gz"') as profcol, Load(profcol):
            profcol.config_path.write_text(profcol.render(without))
            profcol.signal(signal.SIGHUP)
            server.wait_until(lambda: (profcol.directory / "cpu.pb.gz").stat().st_size > 0, timeout=30)


if __name__ == "__main__":
    testing.main()
