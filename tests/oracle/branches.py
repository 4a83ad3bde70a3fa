"""A dead backend does not affect others: the cases that bench/branches prints and tests/e2e/test_branches.py checks.

    outcome = dead_backend_behind_batch("grpc", binary="build/release/profcol")
    outcome.ok, str(outcome)        # True, "seen 40 of 40 accepted, ... wanted ..."

Two exporters get the same data. One backend is dead, and its queue is full after one request; the other one must get
everything once. A client retries refused requests, like an SDK.
"""

import collections
import dataclasses
import socket

from . import backend, canonical, client, server
from .pipelines import config, grpc_exporter, http_exporter, sample, span

ITEMS = 40
ATTEMPTS = 3
DRAIN = ["--drain-timeout", "3s"]
ONE_EACH = "send_batch_size: 1"     # `batch` sends each item as a request
FULL_AFTER_ONE = "sending_queue: {queue_size: 1}"


class DeadBackend:
    """A port that refuses connections, and that no other process can use."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))     # nobody listens
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.url = f"http://{self.address}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


@dataclasses.dataclass
class Outcome:
    """The result for `sent` items at the healthy backend; `arrived` counts how often each item arrived."""

    sent: int
    accepted: int                       # the client got success
    refusals: int                       # answers with an error, even if a later attempt succeeded
    arrived: collections.Counter
    exit_code: int
    wanted_exit_code: int = 1           # the dead backend's queue still has acknowledged data

    @property
    def unique(self):
        """Return the items that arrived."""
        return len(self.arrived)

    @property
    def twice(self):
        """Return the items that arrived more than once."""
        return sum(count > 1 for count in self.arrived.values())

    @property
    def ok(self):
        """Return whether everything was accepted, and arrived once."""
        return (self.accepted == self.unique == self.sent and self.refusals == self.twice == 0
                and self.exit_code == self.wanted_exit_code)

    def __str__(self):
        times = f" (at most {max(self.arrived.values())} times)" if self.twice else ""
        return (f"seen {self.accepted} of {self.sent} accepted, {self.refusals} refusals, {self.unique} unique, {self.twice} twice"
                f"{times}, exit code {self.exit_code}; wanted {self.sent} accepted, 0 refusals, {self.sent} unique, 0 twice, "
                f"exit code {self.wanted_exit_code}")


class Client:
    """Sends requests, retries refused ones, and counts."""

    def __init__(self, profcol):
        self.profcol = profcol
        self.accepted = 0
        self.refusals = 0

    def send(self, protocol, message):
        """Send a request. Return whether one of a few attempts was accepted."""
        for _ in range(ATTEMPTS):
            if client.succeeded(client.export(protocol, self.profcol.address(protocol), message)):
                self.accepted += 1
                return True
            self.refusals += 1
        return False


def two_exporters(protocol, healthy, dead, dead_settings=FULL_AFTER_ONE):
    """Return the settings of two exporters by name, for "grpc" or "http"."""
    exporter = grpc_exporter if protocol == "grpc" else http_exporter
    return {f"otlp_{protocol}/healthy": exporter(healthy), f"otlp_{protocol}/dead": exporter(dead, dead_settings)}


def span_names(target):
    """Return how often each span arrived."""
    return collections.Counter(row["name"] for form in target.forms("traces") for _, _, row in canonical.spans(form))


def sample_values(target):
    """Return how often each sample of pipelines.sample arrived, by its value."""
    return collections.Counter(tuple(row["values"]) for form in target.forms("profiles")
                               for *_, row in canonical.samples(form))


def send_spans_and_stop(text, healthy, binary):
    """Send spans in a request each, and SIGTERM right after the last answer. Return the outcome."""
    with server.Profcol(text, binary=binary, arguments=DRAIN, expect_exit=None) as profcol:
        sender = Client(profcol)
        for number in range(ITEMS):
            sender.send("grpc", span(number))
        code = profcol.stop()
    return Outcome(ITEMS, sender.accepted, sender.refusals, span_names(healthy), code)


# ---- the cases

def dead_backend_behind_batch(protocol, binary=None):
    """Two exporters behind `batch`: data that the dead one refuses must not arrive twice at the other one."""
    with backend.Backend(protocol) as healthy, DeadBackend() as dead:
        text = config(two_exporters(protocol, healthy, dead), {"batch": ONE_EACH})
        return send_spans_and_stop(text, healthy, binary)


def dead_pipeline(processors, binary=None):
    """One receiver in two pipelines, each with its own exporter; `processors` as in config()."""
    with backend.Backend("http") as healthy, DeadBackend() as dead:
        pipelines = {"traces/healthy": ["otlp_http/healthy"], "traces/dead": ["otlp_http/dead"]}
        text = config(two_exporters("http", healthy, dead), processors, pipelines)
        return send_spans_and_stop(text, healthy, binary)


def dead_backend_behind_join(binary=None):
    """Samples through `spanjoin` and `batch`, each after its span."""
    with backend.Backend("http") as healthy, DeadBackend() as dead:
        text = config(two_exporters("http", healthy, dead), {"spanjoin": "", "batch": ONE_EACH})
        with server.Profcol(text, binary=binary, arguments=DRAIN, expect_exit=None) as profcol:
            sender = Client(profcol)
            for number in range(ITEMS):
                sender.send("grpc", span(number))
            for number in range(ITEMS):
                sender.send("http", sample(number, span_number=number))
            code = profcol.stop()
        arrived = span_names(healthy) + sample_values(healthy)
    return Outcome(2 * ITEMS, sender.accepted, sender.refusals, arrived, code)


BEHIND_FORWARD = """
connectors: {forward: , forward/2: }
service:
  pipelines:
    traces: {receivers: [otlp], processors: [batch], exporters: [otlp_http/healthy, forward]}
    traces/forward: {receivers: [forward], exporters: [LAST]}
"""


def dead_backend_behind_forward(levels=1, binary=None):
    """The dead backend stands behind one connector or two. Return the outcome, and how many requests were kept."""
    with backend.Backend("http") as healthy, DeadBackend() as dead:
        text = config(two_exporters("http", healthy, dead), {"batch": ONE_EACH}).partition("service:")[0]
        text += BEHIND_FORWARD.replace("LAST", "otlp_http/dead" if levels == 1 else "forward/2")
        if levels == 1:
            text = text.replace(", forward/2: ", "")
        else:
            text += "    traces/last: {receivers: [forward/2], exporters: [otlp_http/dead]}\n"
        with server.Profcol(text, binary=binary, arguments=DRAIN, expect_exit=None) as profcol:
            sender = Client(profcol)
            for number in range(ITEMS):
                sender.send("grpc", span(number))
            healthy.wait_for_items("traces", ITEMS)
            kept = profcol.metric("profcol_branch_kept_requests", to="exporter otlp_http/dead")
            code = profcol.stop()
        return Outcome(ITEMS, sender.accepted, sender.refusals, span_names(healthy), code), kept
