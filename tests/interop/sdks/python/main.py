"""Sends the same traces, metrics and logs in each run, but for times and ids. The OTEL_ variables say where and how."""

import importlib
import logging
import os

from opentelemetry import metrics, trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

SCOPE, VERSION, SCHEMA = "interop", "1.2.3", "https://example.com/schema"


def exporter(module, name):
    package = "grpc" if os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] == "grpc" else "http"
    return getattr(importlib.import_module(f"opentelemetry.exporter.otlp.proto.{package}.{module}"), name)()


def start():
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(name)s: %(message)s")
    logging.captureWarnings(True)
    spans, logs = TracerProvider(), LoggerProvider()
    spans.add_span_processor(BatchSpanProcessor(exporter("trace_exporter", "OTLPSpanExporter")))
    logs.add_log_record_processor(BatchLogRecordProcessor(exporter("_log_exporter", "OTLPLogExporter")))
    points = MeterProvider([PeriodicExportingMetricReader(exporter("metric_exporter", "OTLPMetricExporter"))],
                           views=[View(instrument_name="interop.exponential", aggregation=ExponentialBucketHistogramAggregation())])
    return spans, points, logs


class Instruments:
    def __init__(self, provider):
        meter = provider.get_meter(SCOPE, VERSION, SCHEMA)
        self.requests = meter.create_counter("interop.requests", "{request}", "Requests.")
        self.active = meter.create_up_down_counter("interop.active")
        self.duration = meter.create_histogram("interop.duration", "s")
        self.exponential = meter.create_histogram("interop.exponential")
        self.temperature = meter.create_gauge("interop.temperature")
        meter.create_observable_counter("interop.observed", [lambda _: [metrics.Observation(17, {"yes": True})]])

    def record(self):
        for value in range(5):
            attributes = {"route": f"/{value % 2}"}
            self.requests.add(value, attributes)
            self.duration.record(value / 10, attributes)
            self.exponential.record(value, attributes)
        self.active.add(-1)
        self.temperature.set(36.6)


def emit(logger, number, severity, body, **context):
    logger.emit(LogRecord(timestamp=1, severity_number=severity, severity_text=severity.name, body=body, **context,
                          attributes={"round": number, "bytes": b"\0\xff", "map": {"a": "b"}, "none": None}))


def play(number, tracer, instruments, logger, previous):
    links = [trace.Link(previous, {"previous": number - 1})] if previous else []
    attributes = {"text": "é€", "empty": "", "number": -(1 << 63), "no": False, "real": 1.5e300, "texts": ["a", ""], "numbers": [0, 1]}
    with tracer.start_as_current_span(f"round {number}", kind=trace.SpanKind.SERVER, attributes=attributes, links=links) as span:
        with tracer.start_as_current_span(f"work {number}", kind=trace.SpanKind.CLIENT) as child:
            child.add_event("event", {"k": "v"})
            child.set_status(trace.StatusCode.ERROR, "failed on purpose")
        instruments.record()
        emit(logger, number, SeverityNumber.INFO, f"line {number}, é€")
        emit(logger, number, SeverityNumber.ERROR, {"n": number, "list": [True]})
    emit(logger, number, SeverityNumber.WARN, None)
    return span.get_span_context()


def main():
    spans, points, logs = providers = start()
    instruments, tracer = Instruments(points), spans.get_tracer(SCOPE, VERSION, None, {"scope": "a"})
    logger, previous = logs.get_logger(SCOPE, VERSION), None
    for number in range(3):
        previous = play(number, tracer, instruments, logger, previous)
        assert all(provider.force_flush() for provider in providers)
    for provider in providers:
        provider.shutdown()


main()
