"""Spans of given durations on a few threads, traced by OpenTelemetry and profiled by Pyroscope's SDK."""

import concurrent.futures
import hashlib
import os
import time

import pyroscope
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pyroscope.otel import PyroscopeSpanProcessor

provider = TracerProvider()
provider.add_span_processor(PyroscopeSpanProcessor())
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("complete")
pyroscope.configure(application_name=os.environ["PYROSCOPE_APPLICATION_NAME"], server_address=os.environ["PYROSCOPE_SERVER_ADDRESS"])


def seconds(name):
    return int(os.environ[name]) / 1000


def spin(busy):
    digest, end = b"", time.monotonic() + busy
    while time.monotonic() < end:
        digest = hashlib.sha256(digest).digest()


def work(duration):
    with tracer.start_as_current_span("work"):
        end = time.monotonic() + duration
        while time.monotonic() < end:
            spin(seconds("BUSY_MS"))
            time.sleep(seconds("IDLE_MS"))


with concurrent.futures.ThreadPoolExecutor(int(os.environ["WORKERS"])) as workers:
    list(workers.map(work, [int(text) / 1000 for text in os.environ["SPANS_MS"].split(",")]))
time.sleep(seconds("LINGER_MS"))
provider.shutdown()
pyroscope.shutdown()
