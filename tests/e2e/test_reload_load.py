"""Reloads under load: SIGHUP again and again, each third file broken, each kind of change in turn.

PROFCOL_RELOADS sets their number: `PROFCOL_RELOADS=200 ctest --preset release -R e2e_test_reload_load`.
"""

import collections
import os
import pathlib
import signal
import ssl
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, certificates, client, connections, outputs, pipelines, server, testing

RELOADS = int(os.environ.get("PROFCOL_RELOADS", "24"))
INDEX_BYTES = 264     # of a span, at most: docs/deployment.md

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}, http: {endpoint: "127.0.0.1:@http@"}}}
  otlp/changed:
    protocols:
      grpc: {endpoint: "127.0.0.1:@cgrpc@", max_recv_msg_size_mib: LISTENER}
      http: {endpoint: "127.0.0.1:@chttp@", max_request_body_size: LISTENER000000}
  otlp/half:
    protocols:
      grpc: {endpoint: "127.0.0.1:@hgrpc@"}
      http: {endpoint: "127.0.0.1:@hhttp@", max_request_body_size: HALF000000}
  otlp/moved: {protocols: {http: {endpoint: "127.0.0.1:@MOVED@"}}}     # @one@ or @two@
  otlp/tls: {protocols: {http: {endpoint: "127.0.0.1:@tls@", tls: {cert_file: "TLS.pem", key_file: "TLS.key"}}}}
processors:
  batch: {timeout: 20ms}
  resource: {attributes: [{key: seen, value: once, action: insert}]}
  resource/second: {attributes: [{key: seen.twice, value: once, action: insert}]}
  spanjoin: {window: WINDOW}
exporters:
  file: {path: "@dir@/out"}
  nop:
  otlp_http: {endpoint: "BACKEND", compression: COMPRESSION, sending_queue: {queue_size: QUEUE}}
service:
  pipelines:
    traces: {receivers: [otlp, otlp/changed, otlp/half, otlp/moved, otlp/tls], processors: [ORDER], exporters: [file, otlp_http]}
    profiles: {receivers: [otlp], processors: [spanjoin], exporters: [nop]}
MORE
"""
# The values of each kind of change, between which the reloads alternate.
CHANGES = {
    "LISTENER": ("5", "6"),
    "HALF": ("5", "6"),
    "MOVED": ("one", "two"),
    "COMPRESSION": ("gzip", "none"),
    "QUEUE": ("5000", "6000"),
    "ORDER": ("spanjoin, resource, batch, resource/second", "spanjoin, resource/second, resource, batch"),
    "WINDOW": ("10m", "11m"),
    "MORE": ("", "    metrics: {receivers: [otlp], exporters: [nop]}"),
    "TLS": ("one", "two"),
}
BROKEN = CONFIG.replace("timeout: 20ms", "timeout: soon")


class Sender(threading.Thread):
    """Sends requests one after the other and keeps what failed."""

    def __init__(self, numbers, send):
        super().__init__(daemon=True)
        self.numbers, self.send = numbers, send
        self.sent, self.failures = [], []
        self.ends = threading.Event()
        self.start()

    def run(self):
        while not self.ends.is_set():
            number = next(self.numbers)
            try:
                answer = self.send(number)
                if client.succeeded(answer):
                    self.sent.append(number)
                else:
                    self.failures.append((number, client.status(answer)))
            except Exception as error:  # pylint: disable=broad-except
                self.failures.append((number, repr(error)))
                time.sleep(0.1)
            time.sleep(0.004)


class Load:
    """Clients of all listeners. Those of the unchanged one keep their connections for the whole test."""

    def __init__(self, profcol, tls):
        self.profcol, self.tls = profcol, tls
        self.lock = threading.Lock()
        self.next = 0
        self.grpc = connections.Http2(profcol.address("grpc"))
        self.http = connections.Http1(profcol.address("http"))
        self.joins = connections.Http2(profcol.address("grpc"))
        self.half = connections.Http2(profcol.address("hgrpc"))
        self.changed = None
        self.senders = [Sender(self, send) for send in (
            self.send_grpc, self.send_http, self.send_changed_grpc, self.send_changed_http, self.send_half_grpc,
            self.send_half_http, self.send_moved, self.send_tls, self.send_joined)]

    def __next__(self):
        with self.lock:
            self.next += 1
            return self.next

    def end(self):
        for sender in self.senders:
            sender.ends.set()
        for sender in self.senders:
            sender.join()

    def sent(self):
        return sorted(number for sender in self.senders for number in sender.sent)

    def failures(self):
        return [failure for sender in self.senders for failure in sender.failures]

    def send_grpc(self, number):
        return client.export("grpc", self.profcol.address("grpc"), pipelines.span(number), connection=self.grpc)

    def send_http(self, number):
        return client.export("http", self.profcol.address("http"), pipelines.span(number), connection=self.http)

    def send_changed_grpc(self, number):
        return client.export("grpc", self.profcol.address("cgrpc"), pipelines.span(number))

    def send_changed_http(self, number):
        """A client that keeps its connection until the server says that it closes it."""
        if not self.changed or not self.changed.open:
            self.changed = connections.Http1(self.profcol.address("chttp"))
        return client.export("http", self.profcol.address("chttp"), pipelines.span(number), connection=self.changed)

    def send_half_grpc(self, number):
        return client.export("grpc", self.profcol.address("hgrpc"), pipelines.span(number), connection=self.half)

    def send_half_http(self, number):
        return client.export("http", self.profcol.address("hhttp"), pipelines.span(number))

    def send_moved(self, number):
        """A client that looks where the listener is. Once it is connected, it must get its answer."""
        for _ in range(100):
            for name in CHANGES["MOVED"]:
                try:
                    connection = connections.Http1(self.profcol.address(name))
                except ConnectionRefusedError:
                    continue
                try:
                    return client.export("http", self.profcol.address(name), pipelines.span(number), connection=connection)
                finally:
                    connection.close()
            time.sleep(0.01)
        raise ConnectionRefusedError("at both addresses")

    def send_tls(self, number):
        connection = connections.Http1(self.profcol.address("tls"))
        connection.socket = self.tls.wrap_socket(connection.socket, server_hostname="127.0.0.1")
        connection.reader = connection.socket.makefile("rb")
        try:
            return client.export("http", self.profcol.address("tls"), pipelines.span(number), connection=connection)
        finally:
            connection.close()

    def send_joined(self, number):
        """A span, then a sample that names it."""
        address = self.profcol.address("grpc")
        answer = client.export("grpc", address, pipelines.span(number), connection=self.joins)
        if client.succeeded(answer):
            sample = client.export("grpc", address, pipelines.sample(number, number), connection=self.joins)
            return answer if client.succeeded(sample) else sample
        return answer


def numbers_in(forms):
    """Return how often each span arrived."""
    return collections.Counter(int(name.split()[1]) for name in pipelines.names_in(forms))


class UnderLoad(unittest.TestCase):
    maxDiff = 2000

    def setUp(self):
        self.values = {name: 0 for name in CHANGES}

    def text(self, template, directory, target):
        for name, values in CHANGES.items():
            value = values[self.values[name]]
            template = template.replace(name + ".", f"{directory}/{value}.") if name == "TLS" else template.replace(name, value)
        return template.replace("BACKEND", target.url)

    def resources(self, profcol):
        """Return resident bytes without those of the spans in the index, and the number of descriptors."""
        index = (profcol.metric("profcol_spanjoin_entries") or 0) * INDEX_BYTES
        return profcol.rss_bytes() - int(index), len(os.listdir(f"/proc/{profcol.process.pid}/fd"))

    def reload(self, profcol, number, directory, target):
        """Change one thing, or break the file; wait until the reload is done. Return the expected result."""
        is_broken = number % 3 == 2
        if not is_broken:
            kind = list(CHANGES)[(number - number // 3) % len(CHANGES)]
            self.values[kind] ^= 1
        result = "refused" if is_broken else "applied"
        before = (profcol.metric("profcol_config_reloads", result=result) or 0)
        profcol.config_path.write_text(profcol.render(self.text(BROKEN if is_broken else CONFIG, directory, target)))
        profcol.signal(signal.SIGHUP)
        server.wait_until(lambda: (profcol.metric("profcol_config_reloads", result=result) or 0) == before + 1, 60,
                          f"reload {number} {result}")
        return result

    def wait_until_drained(self, profcol):
        server.wait_until(lambda: profcol.metric("profcol_config_retired_components") == 0, 60, "the drain")

    def run_reloads(self, profcol, directory, target):
        early = None
        for number in range(RELOADS):
            self.reload(profcol, number, directory, target)
            time.sleep(0.05)
            if number == min(10, RELOADS // 2):
                self.wait_until_drained(profcol)
                early = self.resources(profcol)
        return early

    def test_nothing_is_lost_and_no_request_fails(self):
        files = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in CHANGES["TLS"]:
            (files / name).mkdir()
            made = certificates.Certificates(files / name)
            for end in ("pem", "key"):
                (files / f"{name}.{end}").write_bytes(pathlib.Path(made.server[end == "key"]).read_bytes())
        tls = ssl.create_default_context(cafile=str(files / "one" / "ca.pem"))
        tls.load_verify_locations(cafile=str(files / "two" / "ca.pem"))
        with backend.Backend("http") as target:
            text = self.text(CONFIG, files, target)
            with server.Profcol(text, arguments=["--workers", "2"], listen=["grpc", "http", "tls", "metrics"]) as profcol:
                load = Load(profcol, tls)
                early = self.run_reloads(profcol, files, target)
                load.end()
                self.assertEqual(load.failures(), [])
                self.assertTrue(load.grpc.open and load.http.open and load.joins.open and load.half.open)
                self.wait_until_drained(profcol)
                late = self.resources(profcol)
                self.assertLess(late[1], early[1] + 10)     # connections of the moment differ
                if not os.environ.get("PROFCOL_SANITIZER"):
                    self.assertLess(late[0], early[0] + (4 << 20))
                samples = len(load.senders[-1].sent)
                joined = profcol.metric("profcol_spanjoin_samples_joined")
                self.assertEqual(joined, samples)
                profcol.stop()
                written = numbers_in(outputs.forms(profcol.directory / "out", "traces"))
            received = numbers_in(target.forms("traces"))
        expected = {number: 1 for number in load.sent()}
        self.assertEqual({n: c for n, c in written.items() if expected.get(n) != c}, {})
        self.assertEqual(set(expected) - set(written), set())
        self.assertEqual({n: c for n, c in received.items() if expected.get(n) != c}, {})
        self.assertEqual(set(expected) - set(received), set())
        print(f"{RELOADS} reloads, {len(expected)} requests, joined {joined} of {samples}, "
              f"memory and descriptors {early} -> {late}", file=sys.stderr)


if __name__ == "__main__":
    testing.main()
