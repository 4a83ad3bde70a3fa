"""Compares the join with a second implementation of its contract. Generated requests name spans in every way, right and
wrong.

The output of the process must be equal, attribute by attribute, to the result of tests/oracle/join.py. The number of a
failing subtest is its seed.
"""

import os
import random
import sys
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import canonical, client, join, layout, make, outputs, server, testing, uploads, wire

SEEDS = range(100 if os.environ.get("PROFCOL_SANITIZER") else 300)
SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}, http: {endpoint: "127.0.0.1:@http@"}}}
processors:
  spanjoin: {samples: {wait: 0sATTRIBUTES}, service_from: profile}
exporters:
  file: {path: "@dir@/out.proto", format: proto}
  nop:
service:
  pipelines:
    traces: {receivers: [otlp], processors: [spanjoin], exporters: [nop]}
    profiles: {receivers: [otlp], processors: [spanjoin], exporters: [file]}
"""
ALL_PATHS = (
    ("n", "span.name"), ("k", "span.kind"), ("i", "span.id"), ("t", "span.trace_id"), ("p", "span.parent_id"),
    ("c", "span.status.code"), ("m", "span.status.message"), ("s", "span.start_time"), ("d", "span.duration_ns"),
    ("r", 'span.attributes["http.route"]'), ("z", 'span.attributes["number"]'), ("l", 'span.attributes["list"]'),
    ("h", 'resource.attributes["host.name"]'), ("o", "scope.name"), ("x", 'span.attributes["nowhere"]'))
# Trace ids without spans. There are few, because the index keeps at most eight traces for one span id.
FOREIGN = ["a1" * 16, "b2" * 16, "c3" * 16]
SOURCES = join.Configuration().sources
TRACE_SOURCES = join.Configuration().trace_sources


def span_ids(rng):
    """Return a pool of spans as dicts for make.traces. Some span ids are in two traces."""
    spans = []
    for number in range(24):
        begin = START + rng.randrange(100) * SECOND
        spans.append({
            "span_id": f"{rng.getrandbits(63) | 1:016x}", "trace_id": f"{rng.getrandbits(127) | 1:032x}",
            "parent_span_id": rng.choice(["", "00000000000000aa"]), "name": rng.choice(["", f"span {number}", "\u00e9"]),
            "kind": rng.randrange(6), "status": rng.randrange(3), "start": begin, "end": begin + rng.choice([0, 1, 5, 30]) * SECOND,
            "attributes": rng.choice([{}, {"http.route": f"/{number}"}, {"http.route": "", "number": -number}, {"number": 1.5}])})
    for number in range(4):
        begin = START + (200 + 100 * number) * SECOND
        spans.append({**spans[number], "trace_id": f"{rng.getrandbits(127) | 1:032x}", "name": f"twin {number}",
                      "start": begin, "end": begin + SECOND})
    return spans


def traces(rng, spans):
    """Return the pool as a request."""
    message = make.traces(spans, resource=rng.choice([{"service.name": "a"}, {"host.name": "h", "n": 1}]))
    message.resource_spans[0].scope_spans[0].scope.name = rng.choice(["", "scope"])
    for span in message.resource_spans[0].scope_spans[0].spans:
        span.status.message = rng.choice(["", "oops"])
        if rng.random() < 0.2:
            span.attributes.add(key="list").value.array_value.values.add().string_value = "x"
    return message


def id_attributes(rng, spans):
    """Return the attributes of one level. Usually none of them names a span."""
    out = {}
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
        span, source = rng.choice(spans), rng.choice(SOURCES)
        known = span["span_id"] if rng.random() < 0.85 else f"{rng.getrandbits(63) | 1:016x}"
        if source in join.DECIMAL_SOURCES:
            number = int(known, 16)
            out[source] = rng.choice([str(number), number if number < 1 << 63 else str(number), "0", 0, -1, "x1", "",
                                      str(1 << 64), "00" + str(number)])
        else:
            out[source] = rng.choice([known, known, known, known.upper(), known[1:], known + "0", "", "0" * 16, "g" * 16, 17])
        if rng.random() < 0.6:
            trace_id = span["trace_id"] if rng.random() < 0.85 else rng.choice(FOREIGN)
            out[rng.choice(TRACE_SOURCES)] = rng.choice([trace_id, trace_id, trace_id.upper(), trace_id[:31], "", "0" * 32])
    if rng.random() < 0.3:
        out[rng.choice(join.Configuration().span_name_labels)] = rng.choice(["label", ""])
    if rng.random() < 0.2:
        out[rng.choice(["span_kind", "http.route", "n", "c"])] = "here before"
    if rng.random() < 0.3:
        out["thread.name"] = "main"
    return out


def profiles(rng, spans):
    """Return a request with several profiles of a few samples each."""
    builder = make.ProfilesBuilder()
    for resource in range(rng.choice([1, 1, 2])):
        if resource:
            builder.resource = builder.request.resource_profiles.add()
            builder.scope = builder.resource.scope_profiles.add()
            builder.profile = builder.add_profile("cpu", "nanoseconds")
        make.set_attributes(builder.resource.resource, {"service.name": "s", **(id_attributes(rng, spans) if rng.random() < 0.3 else {})})
        for extra in range(rng.choice([1, 1, 2])):
            profile = builder.add_profile("wall", "nanoseconds") if extra else builder.profile
            profile.time_unix_nano = START + rng.randrange(500) * SECOND
            profile.duration_nano = rng.choice([0, 1, 10]) * SECOND
            if rng.random() < 0.3:
                profile.attribute_indices.extend(builder.attribute(*pair) for pair in id_attributes(rng, spans).items())
            for _ in range(rng.choice([0, 1, 3, 6])):
                add_sample(rng, builder, profile, spans)
    return builder.request


def add_sample(rng, builder, profile, spans):
    """Add one sample."""
    span = rng.choice(spans)
    link = rng.choice([None, None, None, (span["span_id"], span["trace_id"]), (span["span_id"], ""), ("", span["trace_id"]),
                       (span["span_id"], rng.choice(FOREIGN)), ("0" * 16, "0" * 32), ("", ""),
                       (f"{rng.getrandbits(63) | 1:016x}", span["trace_id"])])
    stamps = [START + rng.randrange(500) * SECOND for _ in range(rng.choice([0, 0, 1, 2]))]
    values = [rng.randrange(1, 9) for _ in stamps] if stamps and rng.random() < 0.5 else [] if stamps else [rng.randrange(9)]
    stack = builder.stack("leaf", "root") if rng.random() < 0.5 else 0
    builder.sample(profile=profile, stack=stack, values=values, timestamps=stamps, link=link, attributes=id_attributes(rng, spans))


def labelled_pprof(labels):
    """Return a pprof of one sample with these labels."""
    texts = ["", "cpu", "nanoseconds", *(text for pair in labels.items() for text in pair)]
    pairs = b"".join(wire.put_bytes(3, bytes([8, texts.index(key), 16, texts.index(text)])) for key, text in labels.items())
    return (wire.put_bytes(1, bytes([8, 1, 16, 2])) + wire.put_bytes(2, wire.put_bytes(1, b"\x01") + wire.put_bytes(2, b"\x07") + pairs)
            + wire.put_bytes(4, bytes([8, 1])) + b"".join(wire.put_bytes(6, text.encode()) for text in texts))


class LabelsTest(unittest.TestCase):
    """The labels of a pprof, of which its receiver makes Links."""

    def test_the_name_next_to_the_id_goes(self):
        config = CONFIG.replace("ATTRIBUTES", "").replace("\nprocessors:", '\n  pyroscope: {endpoint: "127.0.0.1:@uploads@"}\nprocessors:\n  batch: {timeout: 0s}')
        config = config.replace("profiles: {receivers: [otlp], processors: [", "profiles: {receivers: [pyroscope], processors: [batch, ")
        with server.Profcol(config, arguments=["--workers", "1"]) as profcol:
            span = {"span_id": "00000000000000a1", "trace_id": "b2" * 16, "name": "GET /cart"}
            self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), make.traces([span]))))
            for key in ("span_name", "span.name", "otel.span_name"):
                body = labelled_pprof({"span_id": span["span_id"], key: "GET"})
                self.assertTrue(client.succeeded(client.post(profcol.address("uploads"), "/ingest?name=shop&format=pprof", body, content_type="x/y")))
            profcol.stop()
            names = [{key: value for key, value, *_ in sample["attributes"] if "name" in key}
                     for form in outputs.forms(profcol.directory / "out.proto", "profiles", "proto") for *_, sample in canonical.samples(form)]
        self.assertEqual(names, 3 * [{"span_name": {"string_value": "GET /cart"}}])


def pprof(kind, unit, *, value=None, start=START):
    """Return a pprof of 10 s with one sample; without a value it has none."""
    sample = wire.put_bytes(2, wire.put_bytes(2, bytes([value]))) if value else b""
    return (wire.put_bytes(1, bytes([8, 1, 16, 2])) + sample + b"".join(wire.put_bytes(6, text) for text in (b"", kind, unit))
            + wire.put_varint(9 << 3) + wire.put_varint(start) + wire.put_varint(10 << 3) + wire.put_varint(10 * SECOND + 1))


def push(**pprofs):
    """Return a push.v1.PushRequest with a series for each metric, as Python's SDK sends it."""
    def label(name, value):
        return wire.put_bytes(1, wire.put_bytes(1, name) + wire.put_bytes(2, value))
    return b"".join(wire.put_bytes(1, label(b"__name__", metric.encode()) + label(b"service_name", b"tested") + wire.put_bytes(2, wire.put_bytes(1, body)))
                    for metric, body in pprofs.items())


def recording_without(*events):
    """Return a recording of a Java program in which no reader knows these events."""
    jfr = uploads.plain(uploads.form_files(uploads.captures("java-grpc-jfr")[4])["jfr"])
    for event in events:
        jfr = jfr.replace(event, b"x" + event[1:])
    return jfr


CPU_EVENTS = (b"jdk.ExecutionSample", b"profiler.WallClockSample")
EVENTS = CPU_EVENTS + (b"jdk.ObjectAllocation", b"jdk.JavaMonitorEnter", b"jdk.ThreadPark", b"profiler.LiveObject", b"profiler.Malloc")
EMPTY_CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}, http: {endpoint: "127.0.0.1:@http@"}}}
  pyroscope: {endpoint: "127.0.0.1:@pyroscope@"}
  pprof: {push: {endpoint: "127.0.0.1:@push@", labels: {service_name: tested}}}
processors:
  memory_limiter: {check_interval: 1s, limit_mib: 500}
  resource: {attributes: [{key: service.instance.id, value: "1", action: upsert}]}
  batch:
  spanjoin: {window: 10m, samples: {wait: 0s}, spans: {wait: 10m}}
exporters:
  file/traces: {path: "@dir@/traces.proto", format: proto}
  file/profiles: {path: "@dir@/profiles.proto", format: proto}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [resource, spanjoin], exporters: [file/traces]}
    profiles: {receivers: [otlp, pyroscope, pprof], processors: [memory_limiter, resource, spanjoin], exporters: [file/profiles]}
    profiles/all: {receivers: [otlp, pyroscope, pprof], processors: [memory_limiter, batch], exporters: [file/profiles]}
"""


class EmptyUploadTest(unittest.TestCase):
    """Uploads without samples say that there were none; they end at the join."""

    def upload(self, *, large=False):
        """Return an upload of CPU time without samples."""
        message = make.profiles(resource={"service.name": "tested"})
        message.dictionary.string_table[1:3] = ["cpu", "nanoseconds"]
        profile = message.resource_profiles[0].scope_profiles[0].profiles[0]
        profile.time_unix_nano, profile.duration_nano = START, 10 * SECOND + 1
        if large:
            message.dictionary.string_table.append("x" * (1 << 20))
        return message

    def check(self, send):
        """Send an upload that covers a span which waits."""
        span = {"span_id": "00000000000000a1", "trace_id": "0" * 31 + "1", "start": START, "end": START + 5 * SECOND}
        with server.Profcol(EMPTY_CONFIG, arguments=["--workers", "1"]) as profcol:
            self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), make.traces([span]))))
            self.assertEqual(profcol.metric("profcol_spanjoin_held_requests"), 1)
            answer = send(profcol)
            self.assertTrue(client.succeeded(answer) or answer.status == 204, answer)
            server.wait_until(lambda: not profcol.metric("profcol_spanjoin_held_requests"), what="the span to leave")
            profcol.stop()
            self.assertEqual(outputs.forms(profcol.directory / "profiles.proto", "profiles", "proto"), [])
            self.assertEqual(len(outputs.forms(profcol.directory / "traces.proto", "traces", "proto")), 1)

    def test_grpc(self):
        self.check(lambda profcol: client.export("grpc", profcol.address("grpc"), self.upload()))

    def upload_to_pyroscope(self, profcol, form, body):
        end = START + 10 * SECOND + 1
        return client.post(profcol.address("pyroscope"), f"/ingest?name=tested&from={START}&until={end}&format={form}", body, content_type="x/y")

    def test_pyroscope_pprof(self):
        self.check(lambda profcol: self.upload_to_pyroscope(profcol, "pprof", pprof(b"cpu", b"nanoseconds")))

    def test_pyroscope_folded(self):
        self.check(lambda profcol: self.upload_to_pyroscope(profcol, "folded", b""))

    def test_pyroscope_jfr(self):
        self.check(lambda profcol: self.upload_to_pyroscope(profcol, "jfr", recording_without(*EVENTS)))

    def test_pprof_push(self):
        self.check(lambda profcol: client.post(profcol.address("push"), "/v1/pprof", pprof(b"cpu", b"nanoseconds"), content_type="x/y"))

    def check_beside_others(self, send):
        """Send an upload without samples of CPU time, but with others. What was empty does not leave."""
        span = {"span_id": "00000000000000a1", "trace_id": "0" * 31 + "1", "start": START, "end": START + 5 * SECOND}
        with server.Profcol(EMPTY_CONFIG[:EMPTY_CONFIG.index("    profiles/all")], arguments=["--workers", "1"]) as profcol:
            before = pprof(b"cpu", b"nanoseconds", value=7, start=START - 20 * SECOND)
            self.assertTrue(client.succeeded(self.upload_to_pyroscope(profcol, "pprof", before)))
            self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), make.traces([span]))))
            self.assertEqual(profcol.metric("profcol_spanjoin_held_requests"), 1)
            self.assertTrue(client.succeeded(send(profcol)))
            server.wait_until(lambda: not profcol.metric("profcol_spanjoin_held_requests"), what="the span to leave")
            profcol.stop()
            _, after = (layout.REQUEST["v1.10"].FromString(record) for record in outputs.records(profcol.directory / "profiles.proto", "proto"))
        profiles = [p for resource in after.resource_profiles for scope in resource.scope_profiles for p in scope.profiles]
        self.assertTrue(profiles)
        self.assertTrue(all(p.samples for p in profiles))
        self.assertNotIn("cpu", after.dictionary.string_table)

    def test_pyroscope_jfr_of_allocations(self):
        self.check_beside_others(lambda profcol: self.upload_to_pyroscope(profcol, "jfr", recording_without(*CPU_EVENTS)))

    def test_pyroscope_push_of_memory(self):
        body = push(process_cpu=pprof(b"cpu", b"nanoseconds"), memory=pprof(b"inuse_space", b"bytes", value=7))
        self.check_beside_others(lambda profcol: client.post(profcol.address("pyroscope"), "/push.v1.PusherService/Push", body, content_type="application/proto"))

    def test_http_large(self):
        self.check(lambda profcol: client.export("http", profcol.address("http"), self.upload(large=True)))


class InvalidTest(unittest.TestCase):
    """What is invalid is refused as a whole, and what comes after it is joined."""

    def test_links(self):
        span = {"span_id": "00000000000000a1", "trace_id": "b2" * 16}
        good = make.ProfilesBuilder()
        good.sample(values=[1], link=(span["span_id"], span["trace_id"]))
        outside, short = (layout.REQUEST["v1.10"].FromString(good.request.SerializeToString()) for _ in range(2))
        outside.resource_profiles[0].scope_profiles[0].profiles[0].samples[0].link_index = 2
        short.dictionary.link_table[1].span_id = b"\xa1"
        with server.Profcol(CONFIG.replace("ATTRIBUTES", ""), arguments=["--workers", "1"]) as profcol:
            self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), make.traces([span]))))
            for protocol in ("grpc", "http"):
                address = profcol.address(protocol)
                for message, text in (outside, "link_index: 2 is outside the link_table"), (short, "has 1 bytes, must have 8 or none"):
                    answer = client.export(protocol, address, message)
                    self.assertEqual((answer.status, client.status(answer).code), (200 if protocol == "grpc" else 400, 3))
                    self.assertIn(text, client.status(answer).message)
                self.assertTrue(client.succeeded(client.export(protocol, address, good.request)))
            self.assertEqual(profcol.metric("profcol_spanjoin_samples_joined"), 2)


class JoinTest(unittest.TestCase):
    """See the module."""

    def check(self, attributes, configuration):
        rng = random.Random(4711)
        spans = span_ids(rng)
        with server.Profcol(CONFIG.replace("ATTRIBUTES", attributes), arguments=["--workers", "1"]) as profcol:
            sent = [traces(rng, spans[:12]), traces(rng, spans[12:])]
            for message in sent:
                self.assertTrue(client.succeeded(client.export("grpc", profcol.address("grpc"), message)))
            index = join.SpanIndex(canonical.canonical(message) for message in sent)
            before, joined, ambiguous = [], 0, 0
            for seed in SEEDS:
                message = profiles(random.Random(seed), spans)
                form = canonical.canonical(message)
                answer = client.export(("grpc", "http")[seed % 2], profcol.address(("grpc", "http")[seed % 2]), message)
                self.assertTrue(client.succeeded(answer), answer)
                if canonical.counts(form)["samples"]:
                    before.append((seed, form))
                    found = [row[4] for row in join.verdicts(form, index, configuration)]
                    joined += sum(verdict.joined for verdict in found)
                    ambiguous += sum(verdict.joined and verdict.ambiguous for verdict in found)
            evicted = profcol.metric("profcol_spanjoin_evicted", reason="same_id")
            counted = (profcol.metric("profcol_spanjoin_samples_joined"), profcol.metric("profcol_spanjoin_ambiguous"))
            profcol.stop()
            after = outputs.forms(profcol.directory / "out.proto", "profiles", "proto")
        self.assertEqual(len(after), len(before))
        for (seed, form), have in zip(before, after):
            with self.subTest(seed):
                self.assertEqual(canonical.difference(have, join.expected(form, index, configuration)), "")
                self.assertEqual(canonical.totals(have), canonical.totals(form))
        self.assertGreater(joined, len(SEEDS))
        self.assertEqual(counted, (joined, ambiguous), f"{evicted} left the index because of the same id")

    def test_defaults(self):
        self.check("", join.Configuration())

    def test_every_path(self):
        attributes = ", ".join(f"{{key: {key}, from: '{path}'}}" for key, path in ALL_PATHS)
        self.check(f", attributes: [{attributes}]", join.Configuration(attributes=ALL_PATHS))


if __name__ == "__main__":
    testing.main()
