"""The processes that a measurement starts, their ports and their configuration. Used by bench/compare and bench/instructions."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for probe in sockets:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in sockets]
    for probe in sockets:
        probe.close()
    return ports


def accepts(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def write_config(directory, yaml, ports):
    """Writes config.yaml with each @name@ replaced by the port of that name; returns its path."""
    path = pathlib.Path(directory) / "config.yaml"
    path.write_text(re.sub(r"@(\w+)@", lambda match: str(ports[match[1]]), yaml))
    return path


def wait_until_listening(name, process, port, log, seconds=15):
    """Ends the program, with the server's log, when the server does not listen."""
    until = time.monotonic() + seconds
    while not accepts(port):
        if time.monotonic() > until or process.child.poll() is not None:
            log.seek(0)
            sys.exit(f"{name} does not listen:\n{log.read().decode(errors='replace')}")
        time.sleep(0.02)


class Process:
    """A child that is ended with the block."""

    def __init__(self, command, **options):
        self.child = subprocess.Popen(command, **options)
        self.pid = self.child.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.terminate()
        try:
            self.child.wait(30)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


class Listener(Process):
    """bench_sink or bench_relay: prints its port."""

    def __init__(self, command):
        super().__init__(command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.child.stdout.readline())

    def totals(self):
        os.kill(self.pid, signal.SIGUSR1)
        return json.loads(self.child.stdout.readline())
