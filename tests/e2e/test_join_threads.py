"""Joins recordings of real programs by thread and time, with the spans that their profilers named as the truth.

Everything that names a span is taken out of the profiles first. What comes out is compared with what comes out when the
profiles are sent as they were recorded.
"""

import collections
import concurrent.futures
import dataclasses
import gzip
import http.client
import os
import sys
import time
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from tests.oracle import canonical, decode, outputs, reloading, replay, server, spanless, stack_kinds, testing, uploads

CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}, http: {endpoint: "127.0.0.1:@http@"}}}
  pyroscope: {endpoint: "127.0.0.1:@pyroscope@"}
processors:
  spanjoin: {window: 10m, samples: {wait: 300ms}}
exporters:
  file: {path: "@dir@/profiles.proto", format: proto}
  nop:
service:
  pipelines:
    traces: {receivers: [otlp], processors: [spanjoin], exporters: [nop]}
    profiles: {receivers: [otlp, pyroscope], processors: [spanjoin], exporters: [file]}
"""
PLAIN = CONFIG.replace("processors: [spanjoin], exporters: [file]", "exporters: [file]")

# Beside the join, a pipeline without one.
BESIDE = CONFIG.replace("  nop:", "  file/other: {path: \"@dir@/other.proto\", format: proto}\n  nop:") + """
    profiles/other: {receivers: [pyroscope], exporters: [file/other]}
"""
# The same, but a connector divides the profiles.
BESIDE_CONNECTED = BESIDE.replace("[otlp, pyroscope]", "[otlp, forward]").replace("[pyroscope]", "[forward]") + """
    profiles/in: {receivers: [pyroscope], exporters: [forward]}
connectors: {forward: {}}
"""

# Requests with recordings of two services, one of which goes to the pipeline without the join.
BESIDE_ROUTED = BESIDE.replace("[otlp, pyroscope]", "[otlp, routing]").replace("[pyroscope]", "[routing]").replace(
    "processors:\n", "processors:\n  batch: {timeout: 500ms}\n", 1) + """
    profiles/in: {receivers: [pyroscope], processors: [batch], exporters: [routing]}
connectors:
  routing:
    default_pipelines: [profiles]
    table: [{condition: 'attributes["service.name"] == "other"', pipelines: [profiles/other]}]
"""

CHILDREN = CONFIG.replace("{window: 10m,", "{window: 10m, attribute_children: true,")

# The receiver pprof instead of pyroscope. A file has no sender, so only ids say which process it is of.
PPROF = CONFIG.replace('pyroscope: {endpoint: "127.0.0.1:@pyroscope@"}', """pprof:
    push: {endpoint: "127.0.0.1:@push@", labels: {service_name: cap-java}}
    files: {directory: "@dir@", pattern: 'jfr$', interval: 100ms,
            labels: {service_name: cap-java, service.instance.id: d28be809-8e75-488e-a1fc-4ffa0a9b9bef}}""").replace("[otlp, pyroscope]", "[otlp, pprof]")

# Spans of 100 ms and less, and samples without a span, are folded; beside it the same as a dry run.
KEEP = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}
  pyroscope: {endpoint: "127.0.0.1:@pyroscope@"}
processors:
  spanjoin/real: &join
    samples: {wait: 300ms, attributes: [{key: span_name, from: span.name}, {key: took, from: span.duration_ns}]}
    keep: &keep {span_detail_when: [{duration_above: 100ms}, {cpu_above: 50ms}], unjoined: fold}
  spanjoin/dry: {<<: *join, keep: {<<: *keep, dry_run: true}}
exporters:
  file: {path: "@dir@/profiles.proto", format: proto}
  file/dry: {path: "@dir@/dry.proto", format: proto}
  nop:
service:
  pipelines:
    traces/real: {receivers: [otlp], processors: [spanjoin/real], exporters: [nop]}
    traces/dry: {receivers: [otlp], processors: [spanjoin/dry], exporters: [nop]}
    profiles/real: {receivers: [pyroscope], processors: [spanjoin/real], exporters: [file]}
    profiles/dry: {receivers: [pyroscope], processors: [spanjoin/dry], exporters: [file/dry]}
"""


def spans_of(captures):
    """Return {span id: local root's id} of recorded spans."""
    return spanless.roots_of(canonical.decode(c.payload, c.signal, c.content) for c in captures)


def spans_in(capture):
    """Return the spans of a recorded request."""
    message = canonical.decode(capture.payload, capture.signal, capture.content)
    return [span for resource in message.resource_spans for scope in resource.scope_spans for span in scope.spans]


def to_pyroscope(profcol, capture, files):
    """Send a recording to the receiver pyroscope, as it was sent."""
    status = spanless.post_recording(profcol.address("pyroscope"), capture, files)
    assert status == 200, status


def push_pprof(profcol, _, files):
    """Send a recording to the receiver pprof."""
    connection = http.client.HTTPConnection(profcol.address("push"), timeout=30)
    connection.request("POST", "/v1/pprof", files["jfr"])
    status = connection.getresponse().status
    connection.close()
    assert status == 204, status


def put_file(profcol, _, files):
    """Let the receiver pprof read a recording from its folder."""
    before = profcol.metric("profcol_receiver_files", result="ok") or 0
    path = profcol.directory / f"{before:g}.jfr"
    path.write_bytes(files["jfr"])
    os.utime(path, (1, 1))
    server.wait_until(lambda: profcol.metric("profcol_receiver_files", result="ok") > before, what="the file to be read")


class Java:
    """The recording of a Java program: the agent's spans, and its profiler's recordings."""

    def __init__(self):
        self.traces = [c for c in decode.in_directory(decode.CAPTURES / "java-grpc-jfr") if c.signal == "traces"]
        self.uploads = uploads.captures("java-grpc-jfr")
        self.roots = spans_of(self.traces)
        self.other = []     # what left by a pipeline beside the join in the last run

    def run(self, change, config=CONFIG, send=to_pyroscope):
        """Return the output as {(type, stack): {local root or "": value}}, the messages, the output's samples."""
        with server.Profcol(config) as profcol:
            for result in replay.send(self.traces, grpc=profcol.address("grpc")):
                assert result.ok, result.problem()
            for capture in self.uploads:
                send(profcol, capture, change(uploads.form_files(capture)))
            server.wait_until(lambda: not profcol.metric("profcol_spanjoin_held_requests"), what="requests to leave")
            counts = {"joined": profcol.metric("profcol_spanjoin_samples_joined"),
                      "by thread": profcol.metric("profcol_spanjoin_samples_joined_by_thread"),
                      "to children": profcol.metric("profcol_spanjoin_samples_to_children") or 0,
                      "ambiguous": profcol.metric("profcol_spanjoin_samples_unjoined", reason="ambiguous_thread")}
            profcol.stop()
            messages = requests_in(profcol.directory / "profiles.proto")
            self.other = requests_in(profcol.directory / "other.proto")
        return messages, counts

    def totals(self, messages):
        """Return {(metric, type, stack): {local root's id or "": value}}."""
        return spanless.totals(messages, self.roots)


def requests_in(path):
    """Return the profiles requests that the exporter `file` has written; none if there is no such file."""
    return [profiles_service_pb2.ExportProfilesServiceRequest.FromString(record)
            for record in outputs.records(path, "proto")] if path.exists() else []


def same(files):
    """Return the files of an upload as they are."""
    return files


def samples_of(messages):
    """Return all samples."""
    return [sample for message in messages for profile in profiles_of(message) for sample in profile.samples]


def burnt_in(messages, names, functions):
    """Return {(function, name of its sample's span): value} of samples of `burn`, which these functions call in spans of their own."""
    found = collections.Counter()
    for message in messages:
        dictionary = message.dictionary
        for sample in samples_of([message]):
            frames = [function for function, _ in stack_kinds.frames_of(sample, dictionary)]
            called_by = [function for function in frames if function in functions]
            if "burn" in frames and called_by:
                span = dictionary.link_table[sample.link_index].span_id.hex()
                found[called_by[0], names.get(span, "")] += sum(sample.values)
    return found


# --- spans that last longer than samples wait

LONG = CONFIG.replace("exporters: [nop]", "exporters: [file/traces]").replace(
    "  nop:\n", "  file/traces: {path: \"@dir@/traces.proto\", format: proto}\n")
SECOND = 10**9


def post(address, path, message):
    """Send an OTLP request."""
    connection = http.client.HTTPConnection(address, timeout=30)
    connection.request("POST", path, message.SerializeToString(), {"Content-Type": "application/x-protobuf"})
    assert connection.getresponse().status == 200
    connection.close()


def set_process(resource):
    """Name the process of spans and profiles."""
    for key, value in (("service.name", "shop"), ("service.instance.id", "shop-1")):
        resource.attributes.add(key=key).value.string_value = value


def long_spans(*spans):
    """Return a request of spans (id, parent, start and end in ns) on one thread."""
    message = trace_service_pb2.ExportTraceServiceRequest()
    resource_spans = message.resource_spans.add()
    set_process(resource_spans.resource)
    resource_spans.resource.attributes.add(key="telemetry.sdk.language").value.string_value = "cpp"
    scope = resource_spans.scope_spans.add()
    for number, parent, start, end in spans:
        span = scope.spans.add(trace_id=b"t" * 16, span_id=number.to_bytes(8, "big"), name=f"span {number}",
                               start_time_unix_nano=start, end_time_unix_nano=end)
        span.parent_span_id = parent.to_bytes(8, "big") if parent else b""
        span.attributes.add(key="thread.id").value.int_value = 31
    return message


def long_upload(start, values):
    """Return an upload of 5 s with a sample of the thread in the middle of each second."""
    message = profiles_service_pb2.ExportProfilesServiceRequest()
    dictionary = message.dictionary
    dictionary.string_table.extend(["", "cpu", "nanoseconds", "thread.id"])
    for table in ("mapping", "location", "function", "link", "stack", "attribute"):
        getattr(dictionary, table + "_table").add()
    dictionary.attribute_table.add(key_strindex=3).value.int_value = 31
    resource_profiles = message.resource_profiles.add()
    set_process(resource_profiles.resource)
    profile = resource_profiles.scope_profiles.add().profiles.add(time_unix_nano=start, duration_nano=5 * SECOND + 1)
    profile.sample_type.type_strindex, profile.sample_type.unit_strindex = 1, 2
    for i, value in enumerate(values):
        profile.samples.add(attribute_indices=[1], values=[value], timestamps_unix_nano=[start + i * SECOND + SECOND // 2])
    return message


# --- eBPF


def value_of(pair):
    """Return the value of a KeyValue."""
    kind = pair.value.WhichOneof("value")
    return getattr(pair.value, kind) if kind else None


def profiles_of(message):
    """Return all profiles of a request."""
    return [p for resource in message.resource_profiles for scope in resource.scope_profiles for p in scope.profiles]


def observations(message):
    """Return {(thread id, time): id of the span that the sample names, or ""}."""
    found, dictionary = {}, message.dictionary
    keys = [dictionary.string_table[entry.key_strindex] for entry in dictionary.attribute_table]
    for sample in (sample for profile in profiles_of(message) for sample in profile.samples):
        attributes = {keys[i]: value_of(dictionary.attribute_table[i]) for i in sample.attribute_indices}
        span = attributes.get("process.context.label.span_id", "")
        if sample.link_index:
            span = dictionary.link_table[sample.link_index].span_id.hex()
        found.update({(attributes.get("thread.id"), time): span for time in sample.timestamps_unix_nano})
    return found


def changed(capture, message):
    """Return the capture with another message."""
    payload = message.SerializeToString()
    body = decode.compress(payload, capture.encoding, framed=capture.transport == "grpc")
    return dataclasses.replace(capture, payload=payload, body=body)


def without_links(capture):
    """Return a profiles request whose samples have no Link."""
    message = canonical.decode(capture.payload, capture.signal, capture.content)
    for sample in (sample for profile in profiles_of(message) for sample in profile.samples):
        sample.link_index = 0
    return changed(capture, message)


def with_threads(capture, threads, language, name):
    """Return a traces request whose spans say on which thread they ran, as the agents of some languages do."""
    message = canonical.decode(capture.payload, capture.signal, capture.content)
    for resource in message.resource_spans:
        for pair in resource.resource.attributes:
            if pair.key == "telemetry.sdk.language":
                pair.value.string_value = language
        for span in (span for scope in resource.scope_spans for span in scope.spans):
            if (thread := threads.get(span.span_id.hex())) is not None:
                span.attributes.add(key="thread.id").value.int_value = thread
                span.attributes.add(key="thread.name").value.string_value = name(thread)
    return changed(capture, message)


def with_names(capture, name):
    """Return a profiles request in which each thread has a name of its own."""
    message = canonical.decode(capture.payload, capture.signal, capture.content)
    dictionary = message.dictionary
    keys = [dictionary.string_table[entry.key_strindex] for entry in dictionary.attribute_table]
    for sample in (sample for profile in profiles_of(message) for sample in profile.samples):
        thread = next(dictionary.attribute_table[i].value.int_value for i in sample.attribute_indices if keys[i] == "thread.id")
        entry = dictionary.attribute_table.add(key_strindex=keys_index(dictionary, "thread.name"))
        entry.value.string_value = name(thread)
        kept = [i for i in sample.attribute_indices if keys[i] != "thread.name"]
        sample.attribute_indices[:] = kept + [len(dictionary.attribute_table) - 1]
    return changed(capture, message)


def keys_index(dictionary, key):
    """Return the index of a string of a dictionary."""
    return list(dictionary.string_table).index(key)


class Ebpf:
    """A recording of an eBPF profiler, and which span ran on which thread."""

    def __init__(self, client):
        captures = decode.in_directory(decode.CAPTURES / client)
        self.traces = [c for c in captures if c.signal == "traces"]
        self.profiles = [c for c in captures if c.signal == "profiles"]
        spans = spans_of(self.traces)
        self.truth, self.threads = {}, {}
        for capture in self.profiles:
            seen = observations(canonical.decode(capture.payload, capture.signal, capture.content))
            self.truth.update({key: span for key, span in seen.items() if span in spans})
        for (thread, _), span in sorted(self.truth.items(), key=lambda item: item[0][1]):
            self.threads.setdefault(span, thread)

    @staticmethod
    def run(traces, profiles):
        """Return {(thread id, time): span id} of what comes out."""
        with server.Profcol(CONFIG) as profcol:
            for result in replay.send(traces + profiles, grpc=profcol.address("grpc"), http=profcol.address("http")):
                assert result.ok, result.problem()
            server.wait_until(lambda: not profcol.metric("profcol_spanjoin_held_requests"), what="requests to leave")
            profcol.stop()
            joined = {}
            for record in outputs.records(profcol.directory / "profiles.proto", "proto"):
                message = profiles_service_pb2.ExportProfilesServiceRequest.FromString(record)
                joined.update(observations(message))
        return joined


class Container:
    """A Java program in a container, and an eBPF profiler of the host: tests/interop/run.sh ebpf PROFILER --container."""

    def __init__(self):
        directory = decode.CAPTURES.parent / "ebpf_container"
        bodies = [gzip.decompress((directory / f"{signal}.pb.gz").read_bytes()) for signal in ("traces", "profiles")]
        self.traces = trace_service_pb2.ExportTraceServiceRequest.FromString(bodies[0])
        self.profiles = profiles_service_pb2.ExportProfilesServiceRequest.FromString(bodies[1])
        self.spans = stack_kinds.spans_of([self.traces])

    def run(self):
        """Return how many times of samples in spans were joined to a span of the right kind, to another one, and to none."""
        with server.Profcol(CONFIG) as profcol:
            for path, message in (("/v1/traces", self.traces), ("/v1development/profiles", self.profiles)):
                connection = http.client.HTTPConnection(profcol.address("http"), timeout=30)
                connection.request("POST", path, message.SerializeToString(), {"Content-Type": "application/x-protobuf"})
                assert connection.getresponse().status == 200
                connection.close()
            server.wait_until(lambda: not profcol.metric("profcol_spanjoin_held_requests"), what="requests to leave")
            profcol.stop()
            messages = requests_in(profcol.directory / "profiles.proto")
        right, wrong, unjoined = 0, 0, 0
        for _, kind, span_id, times in stack_kinds.samples_of(messages):
            span = self.spans.get(span_id)
            is_right = span and stack_kinds.is_right(span, kind, times)
            right += len(times) if is_right else 0
            wrong += len(times) if span and not is_right else 0
            unjoined += 0 if span else len(times)
        return right, wrong, unjoined


class JoinThreads(unittest.TestCase):
    """See the module."""

    def check(self, what, truth, joined, least, most_wrong):
        """Print and check the shares of the values whose span is known."""
        known, right, wrong = spanless.compare(truth, joined)
        print(f"{what}: {right / known:.2%} of {known} joined, {wrong / known:.2%} to another span")
        self.assertGreaterEqual(right / known, least, what)
        self.assertLessEqual(wrong / known, most_wrong, what)

    def check_no_threads(self, messages):
        for text in (text for message in messages for text in message.dictionary.string_table):
            self.assertNotIn("profcol.thread", text)
        for sample in samples_of(messages):
            self.assertEqual(len(sample.timestamps_unix_nano), 0)

    def test_java_recordings(self):
        java = Java()
        plain, _ = java.run(same, PLAIN)
        messages, counts = java.run(spanless.without_spans)
        self.check_no_threads(messages)
        truth, joined = java.totals(plain), java.totals(messages)
        self.assertEqual(spanless.sums(joined), spanless.sums(truth))
        self.assertEqual(counts["joined"], counts["by thread"])
        for metric in sorted({key[:2] for key in truth}):
            of_metric = [{key: spans for key, spans in totals.items() if key[:2] == metric} for totals in (truth, joined)]
            self.check(" ".join(metric), *of_metric, 0.99, 0.001)
        # One sample for each stack and span, as if they had named it.
        self.assertLess(len(samples_of(messages)), 1.2 * len(samples_of(plain)))

    def test_recordings_at_the_receiver_pprof(self):
        java = Java()
        java.uploads = java.uploads[3:5]
        messages, counts = java.run(spanless.without_spans)
        self.assertGreater(counts["by thread"], 0)
        for send in (push_pprof, put_file):
            of_pprof, of_pprof_counts = java.run(spanless.without_spans, PPROF, send)
            self.check_no_threads(of_pprof)
            self.assertEqual(of_pprof_counts, counts, send.__name__)
            self.assertEqual(spanless.sums(java.totals(of_pprof)), spanless.sums(java.totals(messages)))

    def test_recordings_that_name_their_spans(self):
        java = Java()
        plain, _ = java.run(same, PLAIN)
        messages, _ = java.run(same)
        self.check_no_threads(messages)
        truth, joined = java.totals(plain), java.totals(messages)
        self.assertEqual(spanless.sums(joined), spanless.sums(truth))
        self.check("named", truth, joined, 1, 0)

    def test_recordings_that_name_their_root_go_on_to_children(self):
        java, functions = Java(), ("slowQuery", "render")
        java.uploads = java.uploads[4:7]
        names = {span.span_id.hex(): span.name for capture in java.traces for span in spans_in(capture)}
        plain, _ = java.run(same)
        before = burnt_in(plain, names, functions)
        self.assertGreater(before["slowQuery", "GET /slow"], 0)
        for config in (CHILDREN, CHILDREN.replace("{wait: 300ms}", "{wait: 300ms, by_thread: false}")):
            messages, counts = java.run(same, config)
            self.check_no_threads(messages)
            self.assertGreater(counts["to children"], 0)
            after = burnt_in(messages, names, functions)
            moved, known = after["slowQuery", "slowQuery"], sum(value for (function, _), value in before.items() if function == "slowQuery")
            print(f"{moved} of {known} in slowQuery went on to it")
            self.assertEqual(moved, known)
            self.assertFalse(set(after) - {("slowQuery", "slowQuery"), ("render", "render"), ("render", "GET /slow"), ("render", "")})
            self.assertEqual(spanless.sums(java.totals(messages)), spanless.sums(java.totals(plain)))
            if config == CHILDREN:    # all joined by thread have their own
                self.assertEqual(java.totals(messages), java.totals(plain))
                self.assertLess(len(samples_of(messages)), 1.1 * len(samples_of(plain)))

    def test_keep_folds_recordings_as_a_dry_run_says(self):
        java = Java()
        with server.Profcol(KEEP, arguments=["--workers", "1"]) as profcol:
            for result in replay.send(java.traces, grpc=profcol.address("grpc")):
                self.assertTrue(result.ok, result.problem())
            for number, capture in enumerate(java.uploads):
                files = uploads.form_files(capture)
                spanless.post_recording(profcol.address("pyroscope"), capture, files if number % 2 else spanless.without_spans(files))
            server.wait_until(lambda: not profcol.metric("profcol_spanjoin_held_requests", spanjoin="spanjoin/real")
                              and not profcol.metric("profcol_spanjoin_held_requests", spanjoin="spanjoin/dry"), what="requests to leave")
            counts, dry_counts = ({result: profcol.metric("profcol_spanjoin_keep_samples", spanjoin=f"spanjoin/{which}", result=result)
                                   for result in ("kept", "folded", "combined", "dropped")} for which in ("real", "dry"))
            profcol.stop()
            real, dry = (requests_in(profcol.directory / name) for name in ("profiles.proto", "dry.proto"))
        self.assertEqual(counts, dry_counts)
        self.assertGreater(counts["kept"] * counts["combined"], 0)
        self.assertLess(len(samples_of(real)), len(samples_of(dry)))
        self.assertEqual(spanless.sums(java.totals(real)), spanless.sums(java.totals(dry)))
        self.check_no_threads(real)
        self.check_no_threads(dry)

    def check_spans(self, what, truth, joined, least):
        """Print and check the shares of samples whose span is known."""
        right = sum(joined[key] == span for key, span in truth.items())
        wrong = sum(joined[key] not in ("", span) for key, span in truth.items())
        print(f"{what}: {right} of {len(truth)} samples joined, {wrong} to another span")
        self.assertGreaterEqual(right, least)
        self.assertEqual(wrong, 0)

    def test_ebpf_by_label(self):
        ebpf = Ebpf("ebpf-profiler")
        self.check_spans("eBPF, Go, by label", ebpf.truth, ebpf.run(ebpf.traces, ebpf.profiles), 65)

    def test_ebpf_by_link(self):
        ebpf = Ebpf("ebpf-profiler-obi-links")
        self.check_spans("eBPF, Python, by Link", ebpf.truth, ebpf.run(ebpf.traces, ebpf.profiles), 94)

    def by_thread(self, what, language, rename=None):
        """Join all samples by thread and time, but those of one request, which show whose process it is."""
        ebpf = Ebpf("ebpf-profiler-obi-links")
        name = rename or (lambda _: "python")
        traces = [with_threads(capture, ebpf.threads, language, name) for capture in ebpf.traces]
        joining = [number for number, capture in enumerate(ebpf.profiles) if any(
            key in ebpf.truth for key in observations(canonical.decode(capture.payload, "profiles", capture.content)))]
        first, *others = [ebpf.profiles[number] for number in joining]
        profiles = [first] + [without_links(capture) for capture in others]
        if rename:
            profiles = [with_names(capture, rename) for capture in profiles]
        named = observations(canonical.decode(first.payload, "profiles", first.content))
        truth = {key: span for key, span in ebpf.truth.items() if key not in named}
        self.check_spans(what, truth, ebpf.run(traces, profiles), 0.9 * len(truth))

    def test_ebpf_by_thread(self):
        self.by_thread("eBPF, by thread and time", "cpp")

    def test_ebpf_by_name_of_thread(self):
        self.by_thread("eBPF, by name of thread and time", "python", "worker-{}".format)

    def test_ebpf_of_a_container(self):
        container = Container()
        right, wrong, unjoined = container.run()
        print(f"eBPF, Java in a container: {right} of {right + wrong + unjoined} joined, {wrong} to another kind of span")
        self.assertGreaterEqual(right, 0.98 * (right + wrong + unjoined))
        self.assertLessEqual(wrong, 0.01 * right)

    def test_ebpf_of_another_container(self):
        container = Container()
        for pair in container.profiles.resource_profiles[0].resource.attributes:
            if pair.key == "container.id":
                pair.value.string_value = pair.value.string_value[::-1]
        self.assertEqual(container.run()[:2], (0, 0))

    def test_ebpf_of_two_processes_of_a_container(self):
        container = Container()
        second = container.profiles.resource_profiles.add()
        second.CopyFrom(container.profiles.resource_profiles[0])
        for pair in second.resource.attributes:
            if pair.key == "process.pid":
                pair.value.int_value += 1
        self.assertEqual(container.run()[:2], (0, 0))

    def test_a_span_of_14_s_gets_three_uploads_that_left_before(self):
        start = time.time_ns() - 60 * SECOND
        with server.Profcol(LONG) as profcol:
            address = profcol.address("http")
            post(address, "/v1/traces", long_spans((1, 0, start - 2 * SECOND, start - SECOND)))
            for i in range(3):
                post(address, "/v1development/profiles", long_upload(start + 5 * i * SECOND, [10**i] * 5))
                server.wait_until(lambda: not profcol.metric("profcol_spanjoin_held_requests"), what="the upload to leave")
            self.assertEqual(profcol.metric("profcol_spanjoin_samples_joined"), 0)
            post(address, "/v1/traces", long_spans((2, 0, start, start + 14 * SECOND), (3, 2, start + 6 * SECOND, start + 9 * SECOND)))
            open_spans = profcol.metric("profcol_spanjoin_samples_unjoined", reason="span_open")
            profcol.stop()
            spans = {span.span_id[-1]: {pair.key: value_of(pair) for pair in span.attributes}
                     for record in outputs.records(profcol.directory / "traces.proto", "proto")
                     for resource in trace_service_pb2.ExportTraceServiceRequest.FromString(record).resource_spans
                     for scope in resource.scope_spans for span in scope.spans}
        self.assertEqual(open_spans, 14)
        self.assertEqual({number: span.get("profile.cpu_ns") for number, span in spans.items()}, {1: None, 2: 425, 3: 30})
        self.assertEqual([span.get("profile.samples") for span in spans.values()], [None, 11, 3])
        self.assertNotIn("profile.complete", spans[2])

    def test_a_path_without_the_join_gets_no_threads(self):
        """The one with the join joins as if it were alone. Both are behind a connector, or beside it."""
        java = Java()
        java.uploads = java.uploads[3:5]
        alone, expected = java.run(spanless.without_spans)
        for config in (BESIDE, BESIDE_CONNECTED):
            messages, counts = java.run(spanless.without_spans, config)
            self.assertEqual(counts, expected)
            self.assertEqual(java.totals(messages), java.totals(alone))
            self.check_no_threads(messages)
            self.check_no_threads(java.other)
            self.assertEqual(spanless.sums(java.totals(java.other)), spanless.sums(java.totals(alone)))
            for message in java.other:      # one sample for each stack
                self.assertEqual(len(samples_of([message])), len(java.totals([message])))

    def test_a_part_of_a_request_for_a_path_without_the_join_has_no_threads(self):
        capture = Java().uploads[3]
        files = uploads.form_files(capture)
        with server.Profcol(BESIDE_ROUTED, arguments=["--workers", "1"]) as profcol:
            def send(service):
                path = f"/ingest?name={service}&format=jfr"
                to_pyroscope(profcol, dataclasses.replace(capture, meta={**capture.meta, "path": path}), files)
            with concurrent.futures.ThreadPoolExecutor() as pool:
                list(pool.map(send, ("joined", "other")))
            server.wait_until(lambda: not profcol.metric("profcol_spanjoin_held_requests"), what="requests to leave")
            profcol.stop()
            other = requests_in(profcol.directory / "other.proto")
        self.assertEqual(len(other), 1)
        self.check_no_threads(other)

    def test_a_reload_takes_the_join_away_and_brings_it_back(self):
        java = Java()
        with reloading.Reloading(CONFIG, arguments=["--workers", "1"]) as profcol:
            for result in replay.send(java.traces, grpc=profcol.address("grpc")):
                self.assertTrue(result.ok, result.problem())
            joined = []
            for config in (None, PLAIN, CONFIG.replace("{wait: 300ms}", "{wait: 300ms, by_thread: false}"), CONFIG):
                if config:
                    profcol.reload(config)
                before = profcol.metric("profcol_spanjoin_samples_joined_by_thread") or 0
                capture = java.uploads[4]
                spanless.post_recording(profcol.address("pyroscope"), capture,
                                        spanless.without_spans(uploads.form_files(capture)))
                server.wait_until(lambda: not profcol.metric("profcol_spanjoin_held_requests"), what="requests to leave")
                joined.append((profcol.metric("profcol_spanjoin_samples_joined_by_thread") or 0) - before > 0)
            profcol.stop()
            messages = requests_in(profcol.directory / "profiles.proto")
        self.assertEqual(len(messages), 4)
        self.check_no_threads(messages)
        totals = [spanless.sums(java.totals([message])) for message in messages]
        self.assertEqual(totals, totals[:1] * 4)
        self.assertEqual(joined[:3], [True, False, False])


if __name__ == "__main__":
    testing.main()
