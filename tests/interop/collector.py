"""profcol -> Collector -> profcol: nothing is lost, and nothing is changed but what was configured.

The first profcol sends over one protocol; the Collector passes everything on three times, over gRPC, HTTP with protobuf and HTTP
with JSON; the second profcol writes each of the three into files of its own. $OTELCOL is the Collector's binary.
"""

import functools
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import canonical, client, decode, join, make, outputs, replay, server, testing

LAST = """
receivers:
  otlp/grpc: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}
  otlp/http: {protocols: {http: {endpoint: "127.0.0.1:@http@"}}}
  otlp/json: {protocols: {http: {endpoint: "127.0.0.1:@json@"}}}
exporters:
""" + "".join(f'  file/{way}-{signal}: {{path: "@dir@/{way}-{signal}.proto", format: proto}}\n'
              for way in ("grpc", "http", "json") for signal in ("traces", "profiles")) + """
service:
  pipelines:
""" + "".join(f"    {signal}/{way}: {{receivers: [otlp/{way}], exporters: [file/{way}-{signal}]}}\n"
              for way in ("grpc", "http", "json") for signal in ("traces", "profiles"))

COLLECTOR = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:@grpc@", max_recv_msg_size_mib: 64}
      http: {endpoint: "127.0.0.1:@http@"}
processors:
  batch: {timeout: 100ms}
exporters:
  debug:
  otlp_grpc: {endpoint: "GRPC", tls: {insecure: true}, compression: zstd}
  otlp_http: {endpoint: "http://HTTP", compression: snappy}
  otlp_http/json: {endpoint: "http://JSON", encoding: json}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [batch], exporters: [otlp_grpc, otlp_http, otlp_http/json, debug]}
    profiles: {receivers: [otlp], exporters: [otlp_grpc, otlp_http, otlp_http/json, debug]}
"""

FIRST = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:@grpc@", max_recv_msg_size_mib: 64}
      http: {endpoint: "127.0.0.1:@http@"}
processors: {PROCESSORS}
exporters:
  EXPORTER
service:
  pipelines:
    traces: {receivers: [otlp], processors: [NAMES], exporters: [NAME]}
    profiles: {receivers: [otlp], processors: [NAMES], exporters: [NAME]}
"""

# How the first profcol sends: name, settings.
LEGS = {
    "gRPC, gzip": ("otlp_grpc", 'endpoint: "@collector_grpc@", tls: {insecure: true}'),
    "gRPC, snappy": ("otlp_grpc", 'endpoint: "@collector_grpc@", tls: {insecure: true}, compression: snappy'),
    "gRPC, zstd": ("otlp_grpc", 'endpoint: "@collector_grpc@", tls: {insecure: true}, compression: zstd'),
    "HTTP, protobuf, zstd": ("otlp_http", 'endpoint: "http://@collector_http@", compression: zstd'),
    "HTTP, protobuf, lz4": ("otlp_http", 'endpoint: "http://@collector_http@", compression: lz4'),
    "HTTP, JSON, gzip": ("otlp_http", 'endpoint: "http://@collector_http@", encoding: json'),
    "HTTP, JSON": ("otlp_http", 'endpoint: "http://@collector_http@", encoding: json, compression: none'),
}
CLIENTS = ("go-grpc", "python-http-json", "node-http-json", "java-http-otlp-profiles", "ebpf-profiler",
           "ebpf-profiler-obi-links", "pprof-to-otlp", "async-profiler")


class Collector(server.Profcol):
    """The Collector, run and stopped like profcol."""

    def __init__(self, text):
        super().__init__(text, binary=os.environ["OTELCOL"], arguments=["--feature-gates=service.profilesSupport"])
        self.own_metrics = False


@functools.cache
def everything():
    """A request of each signal that uses what the protocol has."""
    span_id, trace_id = "00000000000000a1", "c3" * 16
    traces = make.traces([{"span_id": span_id, "trace_id": trace_id, "parent_span_id": "00000000000000b2", "name": "\u00e9\u20ac",
                           "kind": 5, "status": 2, "attributes": {
                               "text": "x", "empty": "", "number": -(1 << 63), "zero": 0, "yes": True, "no": False,
                               "real": 1.5e300, "bytes": b"\0\xff"}}], resource={"service.name": "all", "n": 7})
    span = traces.resource_spans[0].scope_spans[0].spans[0]
    span.trace_state, span.flags, span.status.message = "a=b", 0x301, "went wrong"
    span.dropped_attributes_count = span.dropped_events_count = span.dropped_links_count = 3
    event = span.events.add(name="event", time_unix_nano=1, dropped_attributes_count=1)
    make.set_attributes(event, {"k": "v"})
    link = span.links.add(trace_id=bytes.fromhex(trace_id), span_id=bytes.fromhex(span_id), trace_state="s", flags=1)
    make.set_attributes(link, {"k": 1})
    values = span.attributes.add(key="list").value.array_value.values
    values.add().int_value = 1
    values.add().kvlist_value.values.add(key="inside").value.double_value = -0.25
    scope = traces.resource_spans[0].scope_spans[0]
    scope.scope.name, scope.scope.version, scope.schema_url = "scope", "1.2", "https://example.com/schema"
    traces.resource_spans[0].schema_url = "https://example.com/other"

    builder = make.ProfilesBuilder()
    make.set_attributes(builder.resource.resource, {"service.name": "all", "n": 7})
    tables = builder.request.dictionary
    tables.mapping_table.add(memory_start=1 << 62, memory_limit=1 << 63, file_offset=4, filename_strindex=builder.string("a.so"),
                             attribute_indices=[builder.attribute("build_id", "abc")])
    stack = builder.stack("leaf \u00e9", "root")
    tables.location_table[1].mapping_index, tables.location_table[1].address = 1, (1 << 64) - 1
    tables.location_table[1].lines.add(function_index=2, line=3, column=4)
    tables.function_table[1].system_name_strindex = builder.string("_leaf")
    tables.function_table[1].filename_strindex = builder.string("a.c")
    tables.function_table[1].start_line = 17
    tables.attribute_table.add(key_strindex=builder.string("allocated"), unit_strindex=builder.string("By")).value.int_value = 4096
    builder.sample(stack=stack, values=[1, -2], timestamps=[3, 4], link=(span_id, trace_id), attributes={"thread.id": 7})
    builder.profile.samples[0].attribute_indices.append(len(tables.attribute_table) - 2)
    builder.sample(timestamps=[5, 6])
    builder.profile.period_type.type_strindex, builder.profile.period_type.unit_strindex = builder.string("cpu"), builder.string("nanoseconds")
    builder.profile.period, builder.profile.profile_id = 10_000_000, b"\1" * 16
    builder.profile.dropped_attributes_count = 2
    builder.profile.original_payload_format, builder.profile.original_payload = "pprof", b"\x1f\x8b\0"
    builder.sample(profile=builder.add_profile("alloc_space", "bytes"), stack=stack, values=[1 << 62])
    return [traces, builder.request]


@functools.cache
def requests():
    """The recorded requests of both signals, spans first."""
    found = [capture for name in CLIENTS for capture in decode.in_directory(decode.CAPTURES / name)
             if capture.signal in canonical.OPENED]
    return sorted(found, key=lambda capture: capture.signal == "profiles")


@functools.cache
def forms_sent():
    """The canonical forms of all that is sent."""
    return [canonical.of(capture) for capture in requests()] + [canonical.canonical(message) for message in everything()]


class CollectorTest(unittest.TestCase):
    """See the module."""

    maxDiff = 3000

    def check_leg(self, leg, processors=None, expected=lambda forms: forms):
        name, settings = LEGS[leg]
        captures, made, forms = requests(), everything(), forms_sent()
        spans = sum(canonical.counts(form).get("spans", 0) for form in forms)
        samples = sum(canonical.counts(form).get("samples", 0) for form in forms)
        with server.Profcol(LAST) as last:
            text = COLLECTOR.replace("GRPC", last.address("grpc")).replace("HTTP", last.address("http"))
            with Collector(text.replace("JSON", last.address("json"))) as collector:
                settings = settings.replace("@collector_grpc@", collector.address("grpc")).replace(
                    "@collector_http@", collector.address("http"))
                processors = processors or {}
                first_text = FIRST.replace("EXPORTER", f"{name}: {{{settings}}}").replace("NAMES", ", ".join(processors))
                first_text = first_text.replace("NAME", name).replace(
                    "PROCESSORS", ", ".join(f"{key}: {{{value}}}" for key, value in processors.items()))
                with server.Profcol(first_text) as first:
                    results = replay.send(captures, grpc=first.address("grpc"), http=first.address("http"))
                    self.assertEqual([result.problem() for result in results if not result.ok], [])
                    for message in made:
                        answer = client.export("grpc", first.address("grpc"), message)
                        self.assertTrue(client.succeeded(answer))
                    self.assertEqual(first.stop(), 0)
                collector.stop()
            self.assertEqual(last.metric("otelcol_receiver_accepted_spans"), 3 * spans)
            self.assertEqual(last.metric("otelcol_receiver_accepted_profile_samples"), 3 * samples)
            self.assertFalse(last.metric("profcol_receiver_invalid_requests"))
            last.stop()
            got = {(way, signal): outputs.forms(last.directory / f"{way}-{signal}.proto", signal, "proto")
                   for way in ("grpc", "http", "json") for signal in ("traces", "profiles")}
        forms = expected(forms)
        want_spans = canonical.flat_spans(*(form for form in forms if "traces" in form))
        want_profiles = canonical.flat_profiles(*(form for form in forms if "profiles" in form))
        for way in ("grpc", "http", "json"):
            with self.subTest(leg, back=way):
                self.assertEqual(canonical.difference(canonical.flat_spans(*got[way, "traces"]), want_spans), "")
                self.assertEqual(canonical.difference(canonical.flat_profiles(*got[way, "profiles"]), want_profiles), "")

    def test_legs(self):
        for leg in LEGS:
            with self.subTest(leg):
                self.check_leg(leg)

    def test_joined(self):
        """The join before the Collector: what it adds arrives, and nothing else is changed."""
        def joined(forms):
            index = join.SpanIndex(form for form in forms if "traces" in form)
            return [join.expected(form, index) if "profiles" in form else form for form in forms]

        self.check_leg("gRPC, gzip", {"spanjoin": "samples: {wait: 1s}"}, joined)

    def test_version(self):
        """A real Collector is what this is run against."""
        result = subprocess.run([os.environ["OTELCOL"], "--version"], capture_output=True, text=True, timeout=30, check=True)
        self.assertRegex(result.stdout, r"otelcol version")
        print(result.stdout.strip(), file=sys.stderr)


if __name__ == "__main__":
    testing.main()
