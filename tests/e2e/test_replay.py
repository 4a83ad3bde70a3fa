"""Replays all recordings of real clients: they are accepted, counted, joined, and passed on unchanged except for the
join. Each recording is sent twice, each time to a new process, with its protocol, encoding and framing: with all spans
first, and in the order of arrival. The output is compared, as protobuf and as JSON, with the expectations of the oracle
(tests/oracle/join.py, expected.json).
"""

import collections
import os
import sys
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from examples import report
from tests.oracle import canonical, decode, expected, join, outputs, replay, server, testing

EXPECTED = expected.load()
KNOWN = set(canonical.OPENED)
CLIENTS = [path.name for path in decode.clients()]
# The recordings in which profilers named spans: the acceptance test of the join.
JOINED = {"ebpf-profiler": 65, "ebpf-profiler-obi-links": 94, "pprof-to-otlp": None}

CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:@grpc@", max_recv_msg_size_mib: 64}
      http: {endpoint: "127.0.0.1:@http@"}
processors:
  spanjoin:
    samples: {wait: WAIT}
    service_from: profile       # test_service_names.py is about names
exporters:
  file/joined-traces-proto: {path: "@dir@/joined-traces.proto", format: proto}
  file/joined-traces-json: {path: "@dir@/joined-traces.json"}
  file/joined-profiles-proto: {path: "@dir@/joined-profiles.proto", format: proto}
  file/joined-profiles-json: {path: "@dir@/joined-profiles.json"}
  file/plain-traces-proto: {path: "@dir@/plain-traces.proto", format: proto}
  file/plain-traces-json: {path: "@dir@/plain-traces.json"}
  file/plain-profiles-proto: {path: "@dir@/plain-profiles.proto", format: proto}
  file/plain-profiles-json: {path: "@dir@/plain-profiles.json"}
service:
  pipelines:
    traces:
      {receivers: [otlp], processors: [spanjoin], exporters: [file/joined-traces-proto, file/joined-traces-json]}
    traces/plain:
      {receivers: [otlp], exporters: [file/plain-traces-proto, file/plain-traces-json]}
    profiles:
      {receivers: [otlp], processors: [spanjoin], exporters: [file/joined-profiles-proto, file/joined-profiles-json]}
    profiles/plain:
      {receivers: [otlp], exporters: [file/plain-profiles-proto, file/plain-profiles-json]}
"""

CAPTURES, FORMS, DIGESTS = {}, {}, {}


def form_of(data, signal, content):
    """Return the canonical form of a request. Equal bytes, which are frequent in recordings, give the same object."""
    key = signal, content, data
    if key not in FORMS:
        FORMS[key] = canonical.canonical(canonical.decode(data, signal, content))
    return FORMS[key]


def digest_of(form):
    """Return the digest of a form, computed once per object."""
    if id(form) not in DIGESTS:
        DIGESTS[id(form)] = canonical.digest(form), form    # keeps the form alive, so its id is unique
    return DIGESTS[id(form)][0]


def captures_of(client):
    """Return the requests of a client, and the spans that were recorded with its profiles."""
    if client not in CAPTURES:
        found = decode.in_directory(decode.CAPTURES / client)
        if client in expected.SPANS_FROM:
            spans = decode.in_directory(decode.CAPTURES / expected.SPANS_FROM[client])
            found = [c for c in spans if c.signal == "traces"] + found
        CAPTURES[client] = [(c, form_of(c.payload, c.signal, c.content) if c.signal in KNOWN else None)
                            for c in found]
    return CAPTURES[client]


def spans_first(captures):
    """Return the captures with spans before profiles, otherwise in order."""
    return sorted(captures, key=lambda pair: pair[0].signal == "profiles")


# SHORT: all spans have arrived, so only samples without a span wait. LONG: waiting requests are sent in the drain.
SHORT, LONG = "200ms", "60s"


class Run:
    """One recording in one process: the answers, the counters, and the output as canonical forms."""

    def __init__(self, captures, wait):
        with server.Profcol(CONFIG.replace("WAIT", wait), arguments=["--workers", "1"]) as profcol:
            self.results = replay.send([capture for capture, _ in captures],
                                       grpc=profcol.address("grpc"), http=profcol.address("http"))
            self.accepted = {
                "traces": profcol.metric("otelcol_receiver_accepted_spans", receiver="otlp"),
                "profiles": profcol.metric("otelcol_receiver_accepted_profile_samples", receiver="otlp")}
            server.wait_until(lambda: wait != SHORT or not profcol.metric("profcol_spanjoin_held_requests"),
                              what="all requests to leave")
            self.joined = profcol.metric("profcol_spanjoin_samples_joined")
            profcol.stop()
            self.files = {
                (where, signal, form): [
                    form_of(record, signal, "json" if form == "json" else "protobuf")
                    for record in outputs.records(profcol.directory / f"{where}-{signal}.{form}", form)]
                for where in ("joined", "plain") for signal in KNOWN for form in ("proto", "json")}


def span_totals(profile_forms, index):
    """Return ({span id: samples}, {span id: CPU nanoseconds}) of the samples that name a span."""
    counts, cpu = collections.Counter(), {}
    for form in profile_forms:
        measures = measures_of(form)
        for _, _, profile, sample, found in join.verdicts(form, index):
            if not found.named:
                continue
            key, measure = found.span_id, measures[id(profile)]
            count, total = report.amount(sample["values"], sample["timestamps_unix_nano"])
            counts[key] += measure.observations(count, total)
            if measure.adds_cpu_time:
                cpu[key] = cpu.get(key, 0) + total * measure.ns_per_value
    return counts, cpu


def words(value_type):
    return value_type["type"], value_type["unit"]


def measures_of(form):
    """Return {id of a profile: what its values measure}."""
    out = {}
    for group in form["profiles"]:
        for scope in group["scopes"]:
            profiles = [profile for profile in scope["profiles"] if profile["samples"]]
            measures = [report.Measure(words(profile["sample_type"]), words(profile["period_type"]), profile["period"],
                                       profile["time_unix_nano"]) for profile in profiles]
            out.update(zip(map(id, profiles), report.measures_of(measures)))
    return out


class ReplayTest(unittest.TestCase):
    """See the module."""

    maxDiff = 2000

    def check_answers(self, run):
        for result in run.results:
            with self.subTest(result.capture.name):
                if result.capture.signal in KNOWN:
                    self.assertEqual(result.problem(), "")
                else:
                    self.assertTrue(result.unknown_service, f"HTTP {result.status}, not refused as unknown")

    def check_counts(self, run, captures):
        want = {"traces": 0, "profiles": 0}
        for capture, form in captures:
            if form is None:
                continue
            counts = canonical.counts(form)
            stated = EXPECTED["requests"][capture.name]
            self.assertEqual({key: stated[key] for key in counts}, counts, capture.name)
            want[capture.signal] += counts["spans" if capture.signal == "traces" else "samples"]
        self.assertEqual({signal: count or 0 for signal, count in run.accepted.items()}, want)

    def check_same(self, have, want, what):
        """Check that both are equal as multisets. Empty requests do not reach a pipeline."""
        want = [form for form in want if canonical.counts(form).get("spans", 0) + canonical.counts(form).get("samples", 0)]
        self.assertEqual(len(have), len(want), what)
        seen, wanted = (collections.Counter(map(digest_of, forms)) for forms in (have, want))
        if seen != wanted:
            odd = [form for form in have if digest_of(form) not in wanted]
            lost = [form for form in want if digest_of(form) not in seen]
            near = min((canonical.difference(odd[0], form) for form in lost), key=len, default="") if odd else ""
            self.fail(f"{what}: {len(odd)} of {len(have)} differ, {len(lost)} are missing; nearest: {near}")

    def check_plain(self, run, captures):
        for signal in KNOWN:
            want = [form for capture, form in captures if capture.signal == signal]
            for form in ("proto", "json"):
                self.check_same(run.files["plain", signal, form], want, f"plain {signal} as {form}")

    def check_joined_profiles(self, run, captures):
        index = join.SpanIndex(form for capture, form in captures if capture.signal == "traces")
        after = {}
        for capture, form in captures:
            if capture.signal == "profiles" and id(form) not in after:
                after[id(form)] = join.expected(form, index)
        want = [after[id(form)] for capture, form in captures if capture.signal == "profiles"]
        for form in ("proto", "json"):
            self.check_same(run.files["joined", "profiles", form], want, f"joined profiles as {form}")
        verdicts = [row[4] for capture, form in captures if capture.signal == "profiles"
                    for row in join.verdicts(form, index)]
        return verdicts

    def test_spans_first(self):
        for client in CLIENTS:
            with self.subTest(client):
                captures = spans_first(captures_of(client))
                run = Run(captures, SHORT)
                self.check_answers(run)
                self.check_counts(run, captures)
                self.check_plain(run, captures)
                verdicts = self.check_joined_profiles(run, captures)
                self.assertEqual(run.joined or 0, sum(v.joined for v in verdicts))
                stated = EXPECTED["clients"][client]
                self.assertEqual(sum(v.joined for v in verdicts), stated["samples_joined"])
                if client in JOINED:
                    self.assertTrue(verdicts)
                    self.assertEqual(sum(v.joined for v in verdicts), sum(v.named for v in verdicts))
                    self.assertEqual(run.joined, JOINED[client] or run.joined)
                for form in ("proto", "json"):
                    self.check_same(run.files["joined", "traces", form],
                                    [f for capture, f in captures if capture.signal == "traces"],
                                    f"joined traces as {form}: no samples were seen yet")

    def test_in_the_order_of_arrival(self):
        for client in CLIENTS:
            captures = captures_of(client)
            if len({capture.signal for capture, _ in captures if capture.signal in KNOWN}) < 2 or client == "otelcol":
                continue    # nothing to join: otelcol repeats its spans
            with self.subTest(client):
                run = Run(captures, LONG)
                self.check_answers(run)
                self.check_plain(run, captures)
                self.check_joined_profiles(run, captures)
                for form in ("proto", "json"):
                    self.check_spans_of_arrival(run.files["joined", "traces", form], captures)

    def check_spans_of_arrival(self, have, captures):
        """Check that spans which arrive after their samples get the samples' totals, and that nothing else changes."""
        index = join.SpanIndex(form for capture, form in captures if capture.signal == "traces")
        want, before, covered, complete = [], [], set(), set()
        for capture, form in captures:
            if capture.signal == "profiles":
                before.append(form)
                covered.update(spans_covered(form, index))
            elif capture.signal == "traces":
                want.append(enriched(form, *span_totals(before, index)))
                complete |= covered & {span["span_id"] for span in spans_of(form)}
        for form in have:
            for span in spans_of(form):
                self.check_complete(span, complete)
        self.check_same(have, want, "spans in the order of arrival")

    def check_complete(self, span, complete):
        """Check and remove the attribute that says that more samples may follow."""
        stated = [value for name, value in span["attributes"] if name == "profile.complete"]
        if not stated:
            return
        self.assertEqual(stated, [{"bool_value": False}])
        self.assertIn("profile.samples", [name for name, _ in span["attributes"]])
        self.assertNotIn(span["span_id"], complete)
        span["attributes"] = [row for row in span["attributes"] if row[0] != "profile.complete"]


def spans_of(form):
    return (span for group in form["traces"] for scope in group["scopes"] for span in scope["spans"])


def spans_covered(form, index):
    """Return the ids of the spans that a sample names whose profile ends a second after the span or later."""
    return {found.span_id for _, _, profile, _, found in join.verdicts(form, index) if found.joined and
            profile["time_unix_nano"] + profile["duration_nano"] >= found.match[2]["end_time_unix_nano"] + 10**9}


def enriched(form, counts, cpu):
    """Return the canonical form of spans with the attributes that the join adds by default."""
    def with_attributes(span):
        key = span["span_id"]
        if key not in counts:
            return span
        added = {"pyroscope.profile.id": {"string_value": key}, "profile.samples": {"int_value": counts[key]}}
        if key in cpu:
            added["profile.cpu_ns"] = {"int_value": cpu[key]}
        present = {row[0] for row in span["attributes"]}
        rows = span["attributes"] + [[name, value] for name, value in added.items() if name not in present]
        return {**span, "attributes": sorted(rows, key=lambda row: row[0])}

    return {**form, "traces": [
        {**group, "scopes": [{**scope, "spans": [with_attributes(span) for span in scope["spans"]]}
                             for scope in group["scopes"]]} for group in form["traces"]]}


if __name__ == "__main__":
    testing.main()
