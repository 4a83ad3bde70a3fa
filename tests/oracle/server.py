"""profcol as a process under test.

    config = '''
    receivers:
      otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}, http: {endpoint: "127.0.0.1:@http@"}}}
    ...'''
    with Profcol(config) as profcol:
        replay.send(captures, grpc=profcol.address("grpc"), http=profcol.address("http"))
        profcol.wait_for_log("joined")
    # ended by SIGTERM; a crash, a sanitizer report or a wrong exit code raises

Each `@name@` in the YAML becomes a free port; the process counts as started when all of them accept connections and its
metrics, if it has any, show that every component runs. If the YAML has no `telemetry:`, the metrics get a free port, too,
because tests run in parallel.
"""

import atexit
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from . import log_lines

SANITIZER_REPORT = re.compile(r"(AddressSanitizer|LeakSanitizer|ThreadSanitizer|MemorySanitizer)|runtime error:")
METRIC = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)", re.MULTILINE)
LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
# The metric that comes when all components run.
LAST_COMES = "profcol_config_last_reload_successful"
# A sanitizer makes it up to twenty times slower, and a busy machine even more.
PATIENCE = 5 if os.environ.get("PROFCOL_SANITIZER") else 1


_reserved = contextlib.ExitStack()     # the sockets that hold the ports of free_port()
atexit.register(_reserved.close)


def _socket_on_all_addresses():
    """Return a TCP socket bound to a port that is free on all addresses of the machine, IPv6 included if there is any."""
    try:
        holder, address = socket.socket(socket.AF_INET6), "::"
        holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    except OSError:
        holder, address = socket.socket(), "0.0.0.0"
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((address, 0))
    return holder


def free_port():
    """Return a TCP port on which nobody listens, and which nobody else gets while this process runs.

    A bound socket that does not listen holds it: the system gives the port to no other socket that asks for any port, but
    a server that sets SO_REUSEADDR can bind this port by its number. A connection to it is refused until then. It is held
    on all addresses, because servers under test listen on 0.0.0.0, too, and clients of other tests come from 127.0.0.2.
    """
    return _reserved.enter_context(_socket_on_all_addresses()).getsockname()[1]


def accepts(port):
    """Return whether somebody listens on that port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(condition, timeout=10, what="condition"):
    """Poll until condition() is true and return its result; raise TimeoutError after the timeout."""
    deadline = time.monotonic() + timeout * PATIENCE
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout} s")
        time.sleep(0.02)


class Failed(RuntimeError):
    """The process did not start, crashed, reported a bug or exited with the wrong code. The text has its log."""


class Profcol:
    """One process with its configuration, in its own directory, which is deleted at the end.

    `@dir@` in the YAML is that directory. `binary` defaults to $PROFCOL. `expect_exit` is the expected exit code in
    stop(); None accepts any.
    """

    def __init__(self, config, *, binary=None, arguments=(), environment=None, listen=None,
                 start_timeout=30, expect_exit=0, metrics=True):
        self.template = config
        self.binary = binary or os.environ["PROFCOL"]
        self.arguments = list(arguments)
        self.environment = {**os.environ, **(environment or {})}
        self.listen = listen
        self.start_timeout = start_timeout
        self.expect_exit = expect_exit
        self.own_metrics = metrics and "telemetry:" not in config
        self.ports = {}
        self.process = None
        self.exit_code = None
        self._directory = tempfile.TemporaryDirectory(prefix="profcol-test-")
        self.directory = pathlib.Path(self._directory.name)
        self.config_path = self.directory / "config.yaml"

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, _error, _trace):
        try:
            if kind is None:
                self.stop()
            else:
                self.kill()
                if not issubclass(kind, Failed):     # the text of that has the log
                    print(f"--- log of {self.binary}\n{self.log()[-8000:]}", file=sys.stderr)
        finally:
            self._directory.cleanup()

    def start(self):
        """Start it and wait until it listens."""
        names = set(re.findall(r"@(\w+)@", self.template)) - {"dir"}
        self.ports = {name: free_port() for name in names | ({"metrics"} if self.own_metrics else set())}
        self.config_path.write_text(self.render(self.template))
        self._spawn()
        if self._wait_until_listening():
            return self
        try:
            self._fail(f"did not start (exit code {self.exit_code})")
        finally:
            self._directory.cleanup()

    def render(self, template):
        """Return the YAML with ports and directory filled in. Tests that rewrite the file and reload also use it."""
        for name, port in self.ports.items():
            template = template.replace(f"@{name}@", str(port))
        return template.replace("@dir@", str(self.directory))

    def _spawn(self):
        self.exit_code = None
        arguments = self.arguments
        if self.own_metrics:
            reader = f"{{pull: {{exporter: {{prometheus: {{host: 127.0.0.1, port: {self.ports['metrics']}}}}}}}}}"
            arguments = ["--set", f"service.telemetry.metrics.readers=[{reader}]", *arguments]
        with open(self.directory / "out", "wb") as out, open(self.directory / "err", "wb") as err:
            self.process = subprocess.Popen(
                [self.binary, "--config", str(self.config_path), *arguments],
                stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=self.environment, cwd=self.directory)

    def _wait_until_listening(self):
        names = self.ports if self.listen is None else self.listen

        def settled():
            return self._exited() or all(accepts(self.ports[name]) for name in names) and self._is_ready(names)

        try:
            wait_until(settled, self.start_timeout, "listening")
        except TimeoutError:
            self.kill()
        return self.exit_code is None

    def _is_ready(self, names):
        """Return whether all components run; connections are accepted before, and wait for them."""
        if not self.own_metrics and "metrics" not in names:
            return True
        try:
            return LAST_COMES in self.metrics_text()
        except OSError:
            return False

    def _exited(self):
        self.exit_code = self.process.poll()
        return self.exit_code is not None

    def address(self, name):
        """Return HOST:PORT of a marker in the YAML."""
        return f"127.0.0.1:{self.ports[name]}"

    def url(self, name):
        """Return the same as an http URL."""
        return f"http://{self.address(name)}"

    def output(self):
        """Return its standard output so far."""
        return (self.directory / "out").read_text(errors="replace")

    def log(self):
        """Return all its output so far, standard error first."""
        return (self.directory / "err").read_text(errors="replace") + self.output()

    def wait_for_log(self, pattern, timeout=10):
        """Wait for a line that matches the regular expression; return the match."""
        return wait_until(lambda: re.search(pattern, self.log()), timeout, f"log line {pattern!r}")

    def log_records(self, encoding="console"):
        """Return the records of its log so far, as tools read them; raise ValueError if a line cannot be read."""
        return log_lines.parse((self.directory / "err").read_text(), encoding)

    def wait_for_record(self, message, timeout=10, encoding="console", **fields):
        """Wait for a record with this message and these fields ("." in a name is written "__"); return it."""
        wanted = {name.replace("__", "."): value for name, value in fields.items()}

        def found():
            for record in self.log_records(encoding):
                if record.message == message and wanted.items() <= record.fields.items():
                    return record
            return None
        return wait_until(found, timeout, f"record {message!r} {wanted}")

    def metrics_text(self):
        """Return its metrics as Prometheus reads them."""
        with urllib.request.urlopen(self.url("metrics") + "/metrics", timeout=10 * PATIENCE) as answer:
            return answer.read().decode()

    def metric(self, name, **labels):
        """Return the sum of a metric over all series with these labels, or None if there is none."""
        values = [float(value) for found, inside, value in METRIC.findall(self.metrics_text())
                  if found == name and labels.items() <= dict(LABEL.findall(inside)).items()]
        return sum(values) if values else None

    def signal(self, number):
        """Send a signal, for example signal.SIGHUP."""
        self.process.send_signal(number)

    def rss_bytes(self):
        """Return its resident memory."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", text).group(1)) * 1024

    def stop(self, timeout=30):
        """End it with SIGTERM and return its exit code; raise Failed if something was wrong."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.exit_code = self.process.wait(timeout * PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            self._fail(f"was still running {timeout} s after SIGTERM")
        if SANITIZER_REPORT.search(self.log()):
            self._fail("a sanitizer reported a bug")
        if self.expect_exit is not None and self.exit_code != self.expect_exit:
            self._fail(f"exit code {self.exit_code}, expected {self.expect_exit}")
        return self.exit_code

    def kill(self):
        """End it with SIGKILL, without any checks."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.exit_code = self.process.wait()

    def _fail(self, text):
        raise Failed(f"{self.binary} {text}\n--- log\n{self.log()[-8000:]}\n--- configuration\n"
                     f"{self.config_path.read_text()}")
