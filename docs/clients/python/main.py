"""Work in spans for half a minute, traced by OpenTelemetry and profiled by Pyroscope's SDK."""

import hashlib
import os
import time

import pyroscope
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pyroscope.otel import PyroscopeSpanProcessor

provider = TracerProvider()                                             # service.name is $OTEL_SERVICE_NAME
provider.add_span_processor(PyroscopeSpanProcessor())                   # labels samples with the span's ids
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))     # http://localhost:4318
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("example")
pyroscope.configure(application_name=os.environ["OTEL_SERVICE_NAME"],   # the same name
                    server_address=os.environ["PYROSCOPE_SERVER_ADDRESS"])


def work(name):
    with tracer.start_as_current_span(name):
        digest, end = b"", time.monotonic() + 0.1
        while time.monotonic() < end:
            digest = hashlib.sha256(digest).digest()


stop = time.monotonic() + 30
while time.monotonic() < stop:
    work("checkout")
    work("search")
provider.shutdown()
pyroscope.shutdown()
