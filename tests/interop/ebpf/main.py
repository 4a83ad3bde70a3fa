"""Spans of four functions on eight threads, traced by OpenTelemetry; it profiles nothing itself."""

import concurrent.futures
import ctypes
import hashlib
import socket
import sys
import threading
import time

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import ProcessResourceDetector, Resource, get_aggregated_resources
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


class Threads(SpanProcessor):
    """Says on which thread a span began."""

    def on_start(self, span, parent_context=None):
        span.set_attributes({"thread.id": threading.get_native_id(), "thread.name": threading.current_thread().name})


PR_SET_NAME = 15


def name_thread():
    """Tells the operating system the name of the thread, as Python does from 3.14 on."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, threading.current_thread().name.encode())


provider = TracerProvider(resource=get_aggregated_resources([ProcessResourceDetector()],
                                                            Resource.create({"host.name": socket.gethostname()})))
provider.add_span_processor(Threads())
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("ebpf")


def burn(milliseconds):
    digest, end = b"", time.monotonic() + milliseconds / 1000
    while time.monotonic() < end:
        digest = hashlib.sha256(digest).digest()


def traced(function):
    with tracer.start_as_current_span(function.__name__):
        function()


def query():
    burn(20)


def cart():
    burn(5)


def search():
    burn(10)
    traced(query)
    burn(5)


def report():
    for _ in range(8):
        traced(query)
    burn(100)


def ask(end):
    number = 0
    while time.monotonic() < end:
        traced(report if number % 20 == 0 else search if number % 3 == 0 else cart)
        time.sleep(0.02)
        number += 1


with concurrent.futures.ThreadPoolExecutor(8, "asker", name_thread) as pool:
    list(pool.map(ask, [time.monotonic() + float(sys.argv[1])] * 8))
provider.shutdown()
