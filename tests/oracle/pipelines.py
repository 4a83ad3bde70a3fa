"""Short configurations, distinct requests, and a backend that holds its answers.

    with Held() as target, server.Profcol(config({"otlp_http": http_exporter(target)})) as profcol:
        target.hold()
        call = InBackground("grpc", profcol.address("grpc"), span(1))
        target.release()
        client.succeeded(call.result())
        names(target)               # ["span 1"]
"""

import threading

from . import backend, canonical, client, make
from .background import Background

TRACE = "0" * 30 + "c3"
RETRY_SOON = "{initial_interval: 50ms, max_interval: 200ms}"

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:@grpc@"}
      http: {endpoint: "127.0.0.1:@http@"}
PROCESSORS
exporters:
EXPORTERS
service:
  pipelines:
PIPELINES
"""


def config(exporters, processors=None, pipelines=None):
    """Return YAML with these exporters and processors, as {id: settings}, for both signals. `pipelines` is {id: names
    of its exporters} if not every pipeline has all of them.
    """
    processors = processors or {}
    pipelines = pipelines or {"traces": exporters, "profiles": exporters}

    def section(items):
        return "".join(f"  {name}: {{{settings}}}\n" for name, settings in items.items())

    text = CONFIG.replace("PROCESSORS\n", "processors:\n" + section(processors) if processors else "")
    text = text.replace("EXPORTERS\n", section(exporters))
    return text.replace("PIPELINES\n", "".join(
        f"    {name}: {{receivers: [otlp], processors: [{', '.join(processors)}], exporters: [{', '.join(to)}]}}\n"
        for name, to in pipelines.items()))


def grpc_exporter(target, *more):
    """Return settings of otlp_grpc for a backend."""
    return ", ".join([f'endpoint: "{target.address}"', "tls: {insecure: true}", f"retry_on_failure: {RETRY_SOON}", *more])


def http_exporter(target, *more):
    """Return settings of otlp_http for a backend."""
    return ", ".join([f'endpoint: "{target.url}"', f"retry_on_failure: {RETRY_SOON}", *more])


NO_QUEUE, NO_RETRY = "sending_queue: {enabled: false}", "retry_on_failure: {enabled: false}"


def span(number):
    """Return a request with one span whose name has this number."""
    return make.traces([{"span_id": f"{number + 1:016x}", "trace_id": TRACE, "name": f"span {number}"}])


def sample(number, span_number=None):
    """Return a request with one sample, which names a span if span_number is given."""
    attributes = {} if span_number is None else {"span_id": f"{span_number + 1:016x}", "trace_id": TRACE}
    return make.profiles([{"values": [number + 1], "attributes": {"thread.id": str(number), **attributes}}])


def names_in(forms):
    """Return the sorted names of the spans of these canonical forms."""
    return sorted(row["name"] for form in forms for _, _, row in canonical.spans(form))


def names(target):
    """Return the sorted names of the spans that a backend accepted."""
    return names_in(target.forms("traces"))


def expected_names(numbers):
    """Return the names for the numbers that were sent, sorted in the same way."""
    return sorted(f"span {number}" for number in numbers)


class Held(backend.Backend):
    """A backend that a test can stop from answering: hold() and release()."""

    def __init__(self, protocol="http", **options):
        self.open = threading.Event()
        self.open.set()
        super().__init__(protocol, **options)

    def hold(self):
        """Let requests wait from now on."""
        self.open.clear()

    def release(self):
        """Answer waiting requests, and all later ones."""
        self.open.set()

    def on_request(self, received):
        answer = super().on_request(received)
        self.open.wait(60)
        return answer

    def stop(self):
        self.release()
        super().stop()


class InBackground(Background):
    """A request whose answer may be late."""

    def __init__(self, protocol, address, message):
        super().__init__(client.export, protocol, address, message, timeout=60)

    @property
    def answer(self):
        """Return the answer, or None if there is none yet."""
        if self.error:
            raise self.error
        return self.value
