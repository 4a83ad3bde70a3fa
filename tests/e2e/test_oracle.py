"""Checks the oracle (tests/oracle) itself, so that a failing comparison elsewhere means the server is wrong."""

import collections
import os
import socket
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import (backend, canonical, client, connections, decode, expected, join, layout, make, replay, server,
                          testing)

SPAN, OTHER = "00000000000000a1", "00000000000000b2"
TRACE, OTHER_TRACE = "0" * 30 + "c3", "0" * 30 + "d4"

CAPTURES = [c for directory in decode.clients() for c in decode.in_directory(directory)]
PROFILES = [c for c in CAPTURES if c.signal == "profiles"]


def capture(name):
    """Return one recorded request by its name."""
    return next(c for c in CAPTURES if c.name == name)


def form(request):
    """Return the canonical form of the request after encoding it to bytes, as a server would see it."""
    return canonical.canonical(canonical.decode(request.SerializeToString(), client.signal_of(request)))


class LayoutTest(unittest.TestCase):
    """v1.9 and v1.10 use the same numbers for different fields of Sample."""

    ATTRIBUTES = {"thread.name": "main", "thread.id": "7"}
    # (name, samples, version that writes, expected version)
    CASES = [
        ("values only", [{"values": [5]}], "v1.10", "v1.10"),
        ("values only", [{"values": [5]}], "v1.9", "v1.9"),
        ("with attributes", [{"values": [5], "attributes": ATTRIBUTES}], "v1.10", "v1.10"),
        ("with attributes", [{"values": [5], "attributes": ATTRIBUTES}], "v1.9", "v1.9"),
        ("value and link", [{"values": [500], "link": (SPAN, TRACE)}], "v1.10", "v1.10"),
        ("value and link", [{"values": [500], "link": (SPAN, TRACE)}], "v1.9", "v1.9"),
        ("timestamps", [{"timestamps": [1, 2], "attributes": ATTRIBUTES}], "v1.10", "v1.10"),
        ("timestamps", [{"timestamps": [1, 2], "attributes": ATTRIBUTES}], "v1.9", "v1.9"),
        ("pairs", [{"values": [9, 9], "timestamps": [1, 2]}], "v1.10", "v1.10"),
        ("pairs", [{"values": [9, 9], "timestamps": [1, 2]}], "v1.9", "v1.9"),
        ("no samples", [], "v1.9", "v1.10"),
        ("one clear sample decides for all",
         [{"values": [0], "link": (SPAN, TRACE)}, {"values": [5], "attributes": ATTRIBUTES}], "v1.9", "v1.9"),
        ("a large value", [{"values": [1 << 40], "link": (SPAN, TRACE)}], "v1.9", "v1.9"),
        ("a negative value", [{"values": [-1], "link": (SPAN, TRACE)}], "v1.9", "v1.9"),
    ]

    def test_decision(self):
        for what, samples, written, found in self.CASES:
            with self.subTest(what, written=written):
                data = make.profiles(samples, version=written).SerializeToString()
                self.assertEqual(layout.decide(data), found, layout.problems(data, "v1.10"))

    def test_same_data_in_both_layouts(self):
        for what, samples, written, found in self.CASES:
            if written == found == "v1.9":
                with self.subTest(what):
                    self.assertEqual(form(make.profiles(samples, version="v1.9")),
                                     form(make.profiles(samples, version="v1.10")))

    def test_what_fits_both_is_current(self):
        # 0 and 1 are valid indices into the attribute table, as well as values.
        request = make.profiles([{"values": [1], "timestamps": [1], "attributes": {"a": "b"}}])
        del request.resource_profiles[0].scope_profiles[0].profiles[0].samples[0].values[:]
        data = request.SerializeToString()
        self.assertEqual(layout.problems(data, "v1.9"), [])
        self.assertEqual(layout.decide(data), "v1.10")

    def test_what_fits_neither_is_refused(self):
        request = make.profiles([{"values": [1, 2, 3], "timestamps": [1, 2], "stack": 99}])
        data = request.SerializeToString()
        self.assertTrue(layout.problems(data, "v1.9"))
        self.assertEqual(layout.decide(data), "v1.10")
        with self.assertRaises(canonical.Invalid):
            form(request)

    def test_unpacked_values(self):
        # The Java agent writes one varint field per value.
        request = make.profiles([{"values": [700, 300], "timestamps": [1, 2], "attributes": {"a": "b"}}])
        packed, unpacked = b"\x22\x04\xbc\x05\xac\x02", b"\x20\xbc\x05\x20\xac\x02"
        data = request.SerializeToString()
        self.assertEqual(data.count(packed), 1)
        other = data.replace(packed, unpacked)    # equally long, so no outer length changes
        self.assertEqual(layout.decide(other), "v1.10")
        self.assertEqual(canonical.canonical(canonical.decode(other, "profiles")), form(request))

    def test_recordings(self):
        for c in PROFILES:
            if c.content == "protobuf":
                with self.subTest(c.name):
                    self.assertEqual(layout.decide(c.payload), "v1.10")
                    self.assertEqual(layout.problems(c.payload, "v1.10"), [])
                    self.assertNotEqual(layout.problems(c.payload, "v1.9"), [])


class CanonicalTest(unittest.TestCase):
    """Forms are equal if and only if the data is equal."""

    def test_reencoded(self):
        for c in CAPTURES:
            if c.signal in canonical.OPENED and len(c.payload) < 60_000:
                with self.subTest(c.name):
                    message = canonical.decode(c.payload, c.signal, c.content)
                    want = canonical.canonical(message)
                    self.assertEqual(form(message), want)
                    text = canonical.encode_json(message)
                    self.assertEqual(canonical.canonical(canonical.decode(text, c.signal, "json")), want)

    def test_all_compressions_of_the_collector_carry_the_same(self):
        requests = expected.load()["requests"]
        groups = collections.defaultdict(list)
        for name, entry in requests.items():
            if name.startswith("otelcol/"):
                groups[entry["sha256"]].append(name)
        self.assertEqual(sorted(len(names) for names in groups.values()), [13, 13, 13, 13])

    def test_order_of_the_dictionary(self):
        for name in ("pprof-to-otlp/files/cpu.pb", "ebpf-profiler-obi-links/otlp-grpc/005"):
            with self.subTest(name):
                c = capture(name)
                message = canonical.decode(c.payload, c.signal)
                want = canonical.canonical(message)
                reverse_dictionary(message)
                self.assertNotEqual(message.SerializeToString(), c.payload)
                self.assertEqual(canonical.canonical(message), want)

    def test_attribute_order_does_not_matter(self):
        one = make.profiles([{"values": [1], "attributes": {"a": "1", "b": 2}}], resource={"x": "1", "y": True})
        two = make.profiles([{"values": [1], "attributes": {"b": 2, "a": "1"}}], resource={"y": True, "x": "1"})
        self.assertEqual(form(one), form(two))

    def test_every_change_shows(self):
        def build():
            builder = make.ProfilesBuilder()
            builder.sample(stack=builder.stack("leaf", "root"), values=[3], link=(SPAN, TRACE),
                           attributes={"key": "value"})
            make.set_attributes(builder.resource.resource, {"service.name": "a"})
            return builder.request

        def profile(request):
            return request.resource_profiles[0].scope_profiles[0].profiles[0]

        changes = {
            "value": lambda r: profile(r).samples[0].values.__setitem__(0, 4),
            "pairs": lambda r: profile(r).samples[0].timestamps_unix_nano.append(1),
            "no link": lambda r: setattr(profile(r).samples[0], "link_index", 0),
            "other link": lambda r: setattr(r.dictionary.link_table[1], "span_id", bytes.fromhex(OTHER)),
            "no stack": lambda r: setattr(profile(r).samples[0], "stack_index", 0),
            "turned stack": lambda r: r.dictionary.stack_table[1].location_indices.reverse(),
            "line": lambda r: setattr(r.dictionary.location_table[1].lines[0], "line", 8),
            "name": lambda r: r.dictionary.string_table.__setitem__(4, "other"),
            "type of an attribute": lambda r: make.set_value(r.dictionary.attribute_table[1].value, 1),
            "unit": lambda r: setattr(r.dictionary.attribute_table[1], "unit_strindex", 1),
            "attribute gone": lambda r: profile(r).samples[0].ClearField("attribute_indices"),
            "sample twice": lambda r: profile(r).samples.append(profile(r).samples[0]),
            "sample gone": lambda r: profile(r).ClearField("samples"),
            "time": lambda r: setattr(profile(r), "time_unix_nano", 1),
            "resource": lambda r: make.set_attributes(r.resource_profiles[0].resource, {"more": ""}),
            "scope": lambda r: setattr(r.resource_profiles[0].scope_profiles[0].scope, "version", "2"),
        }
        seen = {canonical.digest(form(build()))}
        for what, change in changes.items():
            with self.subTest(what):
                request = build()
                change(request)
                found = canonical.digest(form(request))
                self.assertNotIn(found, seen)
                seen.add(found)

    def test_every_change_of_a_span_shows(self):
        changes = {
            "name": lambda s: setattr(s, "name", "x"), "kind": lambda s: setattr(s, "kind", 3),
            "flags": lambda s: setattr(s, "flags", 1), "state": lambda s: setattr(s, "trace_state", "a=b"),
            "status": lambda s: setattr(s.status, "code", 2), "event": lambda s: s.events.add(name="e"),
            "link": lambda s: s.links.add(span_id=bytes.fromhex(SPAN)),
            "attribute": lambda s: make.set_attributes(s, {"k": 1.5}),
            "nested": lambda s: s.attributes.add(key="k").value.kvlist_value.values.add(key="in"),
            "empty text": lambda s: make.set_attributes(s, {"k": ""}),
            "no value": lambda s: s.attributes.add(key="k"),
            "unknown field": lambda s: s.MergeFromString(b"\xa0\x06\x01"),
        }
        seen = {canonical.digest(form(make.traces([{"span_id": SPAN}])))}
        for what, change in changes.items():
            with self.subTest(what):
                request = make.traces([{"span_id": SPAN}])
                change(request.resource_spans[0].scope_spans[0].spans[0])
                found = canonical.digest(form(request))
                self.assertNotIn(found, seen)
                seen.add(found)

    def test_unknown_fields_stay(self):
        request = make.profiles([{"values": [1]}])
        profile = request.resource_profiles[0].scope_profiles[0].profiles[0]
        profile.MergeFromString(b"\xa2\x06\x03abc")
        profile.samples[0].MergeFromString(b"\xa8\x06\x2a")
        found = form(request)["profiles"][0]["scopes"][0]["profiles"][0]
        self.assertEqual(found["unknown"], [[100, 2, b"abc".hex()]])
        self.assertEqual(found["samples"][0]["unknown"], [[101, 0, "42"]])

    def test_references(self):
        inline = make.profiles([{"values": [1]}], resource={"service.name": "shop"})
        by_index = make.profiles([{"values": [1]}])
        by_index.dictionary.string_table.extend(["service.name", "shop"])
        pair = by_index.resource_profiles[0].resource.attributes.add(key_strindex=3)
        pair.value.string_value_strindex = 4
        self.assertEqual(form(inline), form(by_index))
        pair.value.string_value_strindex = 0
        self.assertEqual(form(by_index), form(make.profiles([{"values": [1]}], resource={"service.name": ""})))

    def test_references_inside_lists_and_maps(self):
        def build(fill):
            request = make.profiles([{"values": [1]}])
            request.dictionary.string_table.extend(["inner", "text"])
            value = request.resource_profiles[0].resource.attributes.add(key="outer").value
            fill(value.array_value.values.add().kvlist_value.values.add())
            return form(request)

        def inline(pair):
            pair.key = "inner"
            pair.value.string_value = "text"

        def by_index(pair):
            pair.key_strindex = 3
            pair.value.string_value_strindex = 4

        self.assertEqual(build(inline), build(by_index))

    def test_invalid(self):
        def set_key_twice(request):
            request.resource_profiles[0].resource.attributes.add(key="a", key_strindex=1)

        def sample(request):
            return request.resource_profiles[0].scope_profiles[0].profiles[0].samples[0]

        changes = {
            "key and key_strindex": set_key_twice,
            "key_strindex outside": lambda r: r.resource_profiles[0].resource.attributes.add(key_strindex=99),
            "link outside": lambda r: setattr(sample(r), "link_index", 9),
            "negative stack": lambda r: setattr(sample(r), "stack_index", -1),
            "attribute outside": lambda r: sample(r).attribute_indices.append(9),
            "span id of 7 bytes": lambda r: setattr(r.dictionary.link_table[1], "span_id", b"1234567"),
            "profile id of 8 bytes": lambda r: setattr(
                r.resource_profiles[0].scope_profiles[0].profiles[0], "profile_id", b"12345678"),
        }
        for what, change in changes.items():
            with self.subTest(what), self.assertRaises(canonical.Invalid):
                request = make.profiles([{"values": [1], "link": (SPAN, TRACE)}])
                change(request)
                form(request)

    def test_bytes_that_are_no_request(self):
        for data, content in ((b"\xff", "protobuf"), (b"\x0a\x05a", "protobuf"), (b"{", "json"),
                              (b'{"resourceSpans": 5}', "json"),
                              (b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"spanId":"xy"}]}]}]}', "json")):
            for signal in canonical.OPENED:
                if (content, signal) != ("json", "profiles") or data == b"{":
                    with self.subTest(data=data, signal=signal), self.assertRaises(canonical.Invalid):
                        canonical.decode(data, signal, content)

    def test_references_mean_nothing_in_traces(self):
        request = make.traces([{"span_id": SPAN}])
        request.resource_spans[0].scope_spans[0].spans[0].attributes.add(key="k").value.string_value_strindex = 5
        span = next(canonical.spans(form(request)))[2]
        self.assertEqual(span["attributes"], [["k", {"string_value_strindex": 5}]])

    def test_difference(self):
        cases = [
            ({"a": [1, 2]}, {"a": [1, 2]}, ""),
            ({"a": [1, 2]}, {"a": [1, 3]}, "$['a'][1]: have 2, want 3"),
            ({"a": [1]}, {"a": [1, 3]}, "$['a'][1]: have nothing, the other is 3"),
            ({"a": 1, "b": 2}, {"a": 1}, "$['b']: want nothing, the other is 2"),
            ({"a": 1}, {"a": "1"}, "$['a']: have 1, want \"1\""),
            ({"a": 1}, [1], "$: have {\"a\": 1}, want [1]"),
        ]
        for have, want, text in cases:
            with self.subTest(text):
                self.assertEqual(canonical.difference(have, want), text)

    def test_totals(self):
        builder = make.ProfilesBuilder()
        stack = builder.stack("f")
        builder.sample(stack=stack, values=[3])
        builder.sample(stack=stack, timestamps=[1, 2])
        builder.sample(stack=stack, values=[4, 5], timestamps=[1, 2])
        builder.sample(values=[1])
        (stacks,) = canonical.totals(form(builder.request)).values()
        self.assertEqual(sorted(stacks.values()), [1, 14])
        twice = canonical.totals(form(builder.request), form(builder.request))
        self.assertEqual(sorted(next(iter(twice.values())).values()), [2, 28])


def reverse_dictionary(message):
    """Reverse every table except for entry 0, and adjust all indices."""
    tables = message.dictionary
    names = ("mapping_table", "location_table", "function_table", "link_table", "attribute_table",
             "stack_table", "string_table")
    length = {name: len(getattr(tables, name)) for name in names}

    def turn(owner, field, table):
        value = getattr(owner, field)
        if isinstance(value, int):
            if value:
                setattr(owner, field, length[table] - value)
        else:
            value[:] = [length[table] - i if i else 0 for i in value]

    owners = [*tables.mapping_table, *tables.location_table, *tables.function_table, *tables.attribute_table,
              *tables.stack_table, *(line for row in tables.location_table for line in row.lines)]
    for group in message.resource_profiles:
        for scope in group.scope_profiles:
            for profile in scope.profiles:
                owners += [profile, profile.sample_type, profile.period_type, *profile.samples]
    table_of = {"stack_index": "stack_table", "link_index": "link_table", "mapping_index": "mapping_table",
                "function_index": "function_table", "attribute_indices": "attribute_table",
                "location_indices": "location_table"}
    for owner in owners:
        for field in owner.DESCRIPTOR.fields:
            table = "string_table" if field.name.endswith("strindex") else table_of.get(field.name)
            if table:
                turn(owner, field.name, table)
    for name in names:
        rows = list(getattr(tables, name))
        rows = rows[:1] + rows[:0:-1]
        tables.ClearField(name)
        getattr(tables, name).extend(rows)


class RecordingTest(unittest.TestCase):
    """The files match their headers."""

    def test_lengths(self):
        for c in CAPTURES:
            if c.meta:
                with self.subTest(c.name):
                    prefix = 5 if c.transport == "grpc" else 0
                    self.assertEqual(c.meta["body_len"], len(c.body))
                    self.assertEqual(int(c.header("content-length", len(c.body) + prefix)), len(c.body) + prefix)
                    self.assertEqual(sum(c.meta.get("chunk_sizes", [len(c.body)])), len(c.body))

    def test_compressions(self):
        found = {(c.transport, c.encoding) for c in CAPTURES}
        self.assertLessEqual({("grpc", name) for name in ("", "gzip", "zstd", "snappy")}, found)
        self.assertLessEqual({("http", name) for name in ("", "gzip", "zstd", "zlib", "deflate", "snappy",
                                                          "x-snappy-framed", "lz4")}, found)
        for c in CAPTURES:
            with self.subTest(c.name):
                again = decode.compress(c.payload, c.encoding, framed=c.transport == "grpc")
                self.assertEqual(decode.decompress(again, c.encoding), c.payload)
        with self.assertRaises(ValueError):
            decode.decompress(b"", "br")


class ExpectedTest(unittest.TestCase):
    """Tests of the committed figures."""

    def test_is_current(self):
        self.assertEqual(expected.compute(), expected.load())

    def test_agrees_with_the_record_of_the_recordings(self):
        clients = expected.load()["clients"]
        spans = {"go-grpc": 1326, "go-pprof-endpoint": 576, "python-http-protobuf": 342, "python-grpc-gzip": 216,
                 "python-http-json": 194, "node-http-protobuf": 245, "node-http-json": 446, "node-grpc-gzip": 110,
                 "java-grpc-jfr": 838, "java-http-otlp-profiles": 550, "rust-grpc": 352,
                 "rust-http-protobuf": 202, "ebpf-profiler": 1304, "ebpf-profiler-obi-links": 202,
                 "otelcol": 13 * 130}
        self.assertEqual({name: clients[name]["spans"] for name in spans}, spans)
        self.assertEqual(clients["ebpf-profiler"]["samples_joined"], 65)
        self.assertEqual(clients["ebpf-profiler-obi-links"]["samples_joined"], 94)
        self.assertEqual(clients["otelcol"]["samples_joined"], 4472)

    def test_metrics_are_of_an_unknown_service(self):
        metrics = [name for name, entry in expected.load()["requests"].items() if entry.get("unknown_service")]
        self.assertEqual(len(metrics), 5)


class JoinTest(unittest.TestCase):
    """Tests the model of the join on the cases of the contract."""

    SPANS = make.traces([
        {"span_id": SPAN, "trace_id": TRACE, "name": "GET /a", "status": 2, "attributes": {"http.route": "/a"}},
        {"span_id": OTHER, "trace_id": TRACE, "name": "work", "kind": 1},
        {"span_id": OTHER, "trace_id": OTHER_TRACE, "name": "later", "kind": 4,
         "start": 2_000_000_000_000, "end": 2_001_000_000_000},
    ])
    INDEX = join.SpanIndex([form(SPANS)])
    ADDED = {"span_name": "GET /a", "span_kind": "server", "span_status": "error", "http.route": "/a"}

    def joined(self, samples, **levels):
        """Return (form before, form after, verdicts)."""
        before = form(make.profiles(samples, **levels))
        after = join.expected(before, self.INDEX)
        self.assertEqual(canonical.totals(before), canonical.totals(after))
        return before, after, [row[4] for row in join.verdicts(before, self.INDEX)]

    @staticmethod
    def texts(attributes):
        return {row[0]: next(iter(row[1].values())) for row in attributes}

    def test_where_the_id_is_found(self):
        upper, zero = "00000000000000A1", "0" * 16
        cases = [    # attributes of sample, profile, resource; level, source
            ({"span_id": SPAN}, {}, {}, "sample", "span_id"),
            ({"profile_id": SPAN}, {}, {}, "sample", "profile_id"),
            ({"span_id": upper}, {}, {}, "sample", "span_id"),
            ({"process.context.label.span_id": SPAN}, {}, {}, "sample", "process.context.label.span_id"),
            ({"otel.span_id": SPAN, "span.id": OTHER}, {}, {}, "sample", "span.id"),
            ({"span id": str(0xA1)}, {}, {}, "sample", "span id"),
            ({"span id": 0xA1}, {}, {}, "sample", "span id"),
            ({"local root span id": str(0xA1)}, {}, {}, "sample", "local root span id"),
            ({"span_id": "12"}, {"span_id": SPAN}, {}, "profile", "span_id"),
            ({"span_id": zero}, {}, {"span_id": SPAN}, "resource", "span_id"),
            ({"span_id": str(0xA1)}, {}, {}, None, None),
            ({"span id": SPAN[:-1] + "x"}, {}, {}, None, None),
            ({"span id": "18446744073709551616"}, {}, {}, None, None),
            ({"trace_id": TRACE}, {}, {}, None, None),
        ]
        for sample, profile, resource, level, source in cases:
            with self.subTest(sample=sample, profile=profile, resource=resource):
                _, _, (found,) = self.joined([{"values": [1], "attributes": sample}],
                                             profile=profile, resource=resource)
                self.assertEqual((found.level, found.source), (level, source))
                self.assertEqual(found.joined, level is not None)

    def test_link(self):
        _, after, (found,) = self.joined([{"values": [1], "link": (SPAN, TRACE), "attributes": {"keep": "me"}}])
        sample = next(canonical.samples(after))[3]
        self.assertEqual(found.level, "link")
        self.assertEqual(self.texts(sample["attributes"]), {**self.ADDED, "keep": "me"})
        self.assertEqual(sample["link"], {"span_id": SPAN, "trace_id": TRACE})

    def test_zero_link_is_none(self):
        _, after, (found,) = self.joined([{"values": [1], "link": ("0" * 16, "0" * 32)}])
        self.assertFalse(found.named)
        self.assertIsNone(next(canonical.samples(after))[3]["link"])

    def test_link_without_a_trace_takes_the_spans(self):
        _, after, _ = self.joined([{"values": [1], "link": (SPAN, "")}])
        self.assertEqual(next(canonical.samples(after))[3]["link"]["trace_id"], TRACE)

    def test_trace_ids_must_agree(self):
        _, after, (found,) = self.joined([{"values": [1], "link": (SPAN, OTHER_TRACE)}])
        self.assertTrue(found.named)
        self.assertFalse(found.joined)
        self.assertEqual(next(canonical.samples(after))[3]["link"]["trace_id"], OTHER_TRACE)

    def test_same_id_in_two_traces(self):
        cases = [    # trace id of the sample, timestamps; name, ambiguous
            (TRACE, [], "work", False), (OTHER_TRACE, [], "later", False),
            ("", [1_000_500_000_000], "work", True), ("", [2_000_500_000_000], "later", True),
            ("", [9_000_000_000_000], "later", True),
        ]
        for trace, timestamps, name, ambiguous in cases:
            with self.subTest(trace=trace, timestamps=timestamps):
                _, after, (found,) = self.joined([{"timestamps": timestamps or [1], "link": (OTHER, trace)}])
                self.assertEqual(self.texts(next(canonical.samples(after))[3]["attributes"])["span_name"], name)
                self.assertEqual(found.ambiguous, ambiguous)

    def test_promoted_attributes_go(self):
        given = {"span_id": SPAN, "trace_id": TRACE, "span_name": "as the client says", "keep": "me"}
        _, after, _ = self.joined([{"values": [1], "attributes": given}])
        sample = next(canonical.samples(after))[3]
        self.assertEqual(self.texts(sample["attributes"]), {**self.ADDED, "keep": "me"})
        self.assertEqual(sample["link"], {"span_id": SPAN, "trace_id": TRACE})

    def test_promoted_without_a_span(self):
        unknown = "00000000000000ff"
        _, after, (found,) = self.joined([{"values": [1], "attributes": {"span_id": unknown, "span_name": "mine"}}])
        sample = next(canonical.samples(after))[3]
        self.assertFalse(found.joined)
        self.assertEqual(sample["link"], {"span_id": unknown, "trace_id": ""})
        self.assertEqual(self.texts(sample["attributes"]), {"span_name": "mine"})

    def test_upload_label(self):
        _, after, _ = self.joined([{"values": [1]}, {"values": [2]}], resource={"span_id": SPAN, "service.name": "s"})
        for group, _, _, sample in canonical.samples(after):
            self.assertEqual(sample["link"], {"span_id": SPAN, "trace_id": TRACE})
            self.assertEqual(self.texts(group["resource"]["attributes"]), {"service.name": "s"})

    def test_present_attribute_is_kept(self):
        _, after, _ = self.joined([{"values": [1], "link": (SPAN, TRACE), "attributes": {"http.route": 5}}])
        self.assertEqual(self.texts(next(canonical.samples(after))[3]["attributes"])["http.route"], 5)

    def test_nothing_to_join_changes_nothing(self):
        before, after, _ = self.joined([{"values": [1], "attributes": {"a": "b"}}, {"timestamps": [1]}])
        self.assertEqual(before, after)


class ReplayTest(unittest.TestCase):
    """The requests that a server gets from a replay."""

    @classmethod
    def setUpClass(cls):
        cls.requests = [c for c in CAPTURES if c.signal in canonical.OPENED]

    def test_bodies_arrive_as_recorded(self):
        with backend.Backend("h2") as h2, backend.Backend("http") as http:
            h1 = [c for c in self.requests if c.transport in ("http", "file")]
            rest = [c for c in self.requests if c.transport in ("grpc", "h2c")]
            results = replay.send(h1, http=http.address) + replay.send(rest, grpc=h2.address, http=h2.address)
            self.assertEqual([(r.capture.name, r.problem()) for r in results if not r.ok], [])
            sent, received = collections.Counter(), collections.Counter()
            sent.update(c.body for c in h1 + rest)
            received.update(r.body for r in http.requests + h2.requests)
            self.assertEqual(sent == received, True)

    def test_grpc_by_a_strict_server(self):
        todo = [c for c in self.requests if c.transport == "grpc" and c.encoding in ("", "gzip")]
        with backend.Backend("grpc") as strict:
            results = replay.send(todo, grpc=strict.address)
            self.assertEqual([(r.capture.name, r.problem()) for r in results if not r.ok], [])
            self.assertEqual(len(strict.requests), len(todo))

    def test_http1_head_and_chunks(self):
        for name in ("node-http-json/otlp-http-json/001", "java-http-otlp-profiles/otlp-http-protobuf/006",
                     "python-http-protobuf/otlp-http-protobuf/001"):
            with self.subTest(name):
                c = capture(name)
                raw = receive_one(c)
                head, _, body = raw.partition(b"\r\n\r\n")
                lines = head.decode().split("\r\n")
                self.assertEqual(lines[0], f"POST {c.meta['path']} HTTP/1.1")
                want = [f"{k}: {v}" for k, v in c.meta["headers"] if k.lower() != "host"]
                self.assertEqual([line for line in lines[1:] if not line.lower().startswith("host:")], want)
                if sizes := c.meta.get("chunk_sizes"):
                    at = 0
                    for size, line in zip(sizes, c.meta["chunk_size_lines"]):
                        start = at + len(line) + 2
                        self.assertEqual(body[at:start], line.encode() + b"\r\n")
                        at = start + size + 2
                    self.assertEqual(body[at:], b"0\r\n\r\n")
                else:
                    self.assertEqual(body, c.body)

    def test_expect(self):
        cases = [(b"HTTP/1.1 100 Continue\r\n\r\n", b"body", 200), (b"", b"", 417)]
        for interim, arrives, status in cases:
            with self.subTest(status), socket.create_server(("127.0.0.1", 0)) as listener:
                seen = []

                def serve():
                    connection, _ = listener.accept()
                    with connection:
                        connection.recv(1000)
                        connection.sendall(interim)
                        seen.append(connection.recv(1000) if interim else b"")
                        connection.sendall(b"HTTP/1.1 %d X\r\nContent-Length: 2\r\n\r\nok" % status)

                thread = threading.Thread(target=serve)
                thread.start()
                client = connections.Http1("127.0.0.1:%d" % listener.getsockname()[1])
                answer = client.request(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\n\r\n", b"body", True)
                thread.join()
                client.close()
                self.assertEqual((answer.status, answer.body, seen), (status, b"ok", [arrives]))

    def test_shifted_to_now(self):
        names = ("node-http-json/otlp-http-json/001", "go-grpc/otlp-grpc/001", "otelcol/otlp-http-json/046",
                 "java-http-otlp-profiles/otlp-http-protobuf/006", "otelcol/otlp-grpc/043")
        now = 1_800_000_000_000_000_000
        for name in names:
            with self.subTest(name):
                c = capture(name)
                (moved,) = replay.shifted_to_now([c], now)
                self.assertEqual(replay.newest(moved.payload, c.signal, c.content), now)
                self.assertEqual(len(moved.payload), len(c.payload))
                self.assertEqual(decode.decompress(moved.body, c.encoding), moved.payload)
                (back,) = replay.shifted_to_now([moved], replay.newest(c.payload, c.signal, c.content))
                self.assertEqual(back.payload, c.payload)
                self.assertEqual(timeless(canonical.of(moved)), timeless(canonical.of(c)))

    def test_pace(self):
        some = [c for c in decode.in_directory(decode.CAPTURES / "rust-grpc") if c.transport == "grpc"]
        recorded = (some[-1].arrival_ns - some[0].arrival_ns) / 1e9
        for concurrent in (False, True):
            with self.subTest(concurrent=concurrent), backend.Backend("h2") as sink:
                begin = time.monotonic()    # the first one may be sent late
                results = replay.send(some, grpc=sink.address, speed=100, concurrent=concurrent)
                self.assertGreaterEqual(results[-1].sent_at - begin, 0.95 * recorded / 100)

    def test_problems_are_told(self):
        c = capture("go-grpc/otlp-grpc/001")
        with backend.Backend("h2") as sink:
            sink.answers += [backend.Answer(grpc_status=8, message="full", retry_after=1.5),
                             backend.Answer(reset=8), backend.Answer(drop=True)]
            texts = [replay.send([c], grpc=sink.address)[0].problem() for _ in range(3)]
        self.assertEqual(texts[0], "grpc-status 8 full")
        self.assertIn("reset, code 8", texts[1])
        self.assertIn("ConnectionError", texts[2])


def timeless(node):
    """Return a canonical form without times, and without anything sorted or named by times."""
    if isinstance(node, dict):
        node = {k: timeless(v) for k, v in node.items() if "unix_nano" not in k and k != "key"}
        if "samples" in node:
            node["samples"] = canonical.sort_samples(node["samples"])
        return node
    return [timeless(item) for item in node] if isinstance(node, list) else node


def receive_one(c):
    """Replay one request to a bare socket and return the bytes that arrived."""
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=replay.send, args=([c],),
                              kwargs={"http": "127.0.0.1:%d" % listener.getsockname()[1]})
    thread.start()
    with listener, listener.accept()[0] as connection:
        connection.settimeout(10)
        data = b""
        while not (data.endswith(b"0\r\n\r\n") if c.meta.get("chunk_sizes") else data.endswith(c.body)):
            data += connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    thread.join()
    return data


class BackendTest(unittest.TestCase):
    """The sinks give the answers that they were told to give."""

    def test_answers_in_order(self):
        c = capture("python-http-protobuf/otlp-http-protobuf/001")
        with backend.Backend("http") as sink:
            sink.answers += [backend.Answer(status=503, retry_after=2, message="busy"), backend.Answer(drop=True)]
            results = [replay.send([c], http=sink.address)[0] for _ in range(3)]
            self.assertEqual([r.status for r in results], [503, 0, 200])
            self.assertEqual(results[0].response.header("retry-after"), "2")
            self.assertEqual(len(sink.of("traces")), 3)
            self.assertEqual(len(sink.accepted("traces")), 1)
            self.assertEqual(sink.wait(1)[0].form(), canonical.of(c))
            with self.assertRaises(TimeoutError):
                sink.wait(2, timeout=0.1)

    def test_retry_info(self):
        self.assertEqual(
            backend.status_message(14, "later", 1.5),
            b"\x08\x0e\x12\x05later\x1a\x36\n\x28type.googleapis.com/google.rpc.RetryInfo\x12\x0a\n\x08\x08\x01\x10"
            b"\x80\xca\xb5\xee\x01")


class ServerTest(unittest.TestCase):
    """Tests the process helper with a shell script instead of profcol."""

    def script(self, text):
        path = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "fake")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        return path

    def listener(self, first, then=""):
        """Return a program that does something first, then listens, which is when it has started, and then something else."""
        python = ("import signal,socket,sys,time\n"
                  f"{first}\n"
                  "port = int(open(sys.argv[2]).read().split('port=')[1].split()[0])\n"
                  "s = socket.create_server(('127.0.0.1', port))\n"
                  f"{then}\n"
                  "time.sleep(60)\n")
        return self.script(f"exec '{sys.executable}' -c \"{python}\" \"$@\"\n")

    def test_start_and_stop(self):
        binary = self.listener("signal.signal(15, lambda *_: sys.exit(0)); print('ready', flush=True)")
        with server.Profcol("port=@grpc@ \ndir=@dir@\n", binary=binary, metrics=False) as process:
            process.wait_for_log("ready")
            self.assertTrue(server.accepts(process.ports["grpc"]))
            self.assertNotIn("@", process.config_path.read_text())
            self.assertGreater(process.rss_bytes(), 1_000_000)
        self.assertEqual(process.exit_code, 0)

    def test_metrics(self):
        then = ("import http.server\n"
                "class Page(http.server.BaseHTTPRequestHandler):\n"
                "    def do_GET(self):\n"
                "        self.send_response(200)\n"
                "        self.end_headers()\n"
                "        self.wfile.write(b'# HELP a_total x\\na_total{x=\\'1\\',y=\\'2\\'} 3\\n'\n"
                "            b'a_total{x=\\'1\\',y=\\'}\\'} 4e0\\nb 5\\nLAST_COMES 1\\n'.replace(bytes([39]), bytes([34])))\n"
                "port = int(sys.argv[4].split('port: ')[1].split('}')[0].split(',')[0])\n"
                "http.server.HTTPServer(('127.0.0.1', port), Page).serve_forever()").replace("LAST_COMES", server.LAST_COMES)
        with server.Profcol("port=@grpc@ \n", binary=self.listener("signal.signal(15, lambda *_: sys.exit(0))", then)) as process:
            self.assertEqual(process.metric("a_total"), 7)
            self.assertEqual(process.metric("a_total", x="1", y="2"), 3)
            self.assertEqual(process.metric("b"), 5)
            self.assertIsNone(process.metric("c"))

    def test_wrong_exit_code(self):
        binary = self.listener("signal.signal(15, lambda *_: sys.exit(3))")
        with self.assertRaisesRegex(server.Failed, "exit code 3"):
            with server.Profcol("port=@grpc@ \n", binary=binary, metrics=False):
                pass

    def test_sanitizer_report(self):
        report = "ERROR: AddressSanitizer: heap-use-after-free"
        binary = self.listener(f"signal.signal(15, lambda *_: sys.exit(0)); print('{report}', flush=True)")
        with self.assertRaisesRegex(server.Failed, "sanitizer"):
            with server.Profcol("port=@grpc@ \n", binary=binary, metrics=False):
                pass

    def test_does_not_start(self):
        binary = self.script("echo 'bad configuration' >&2; exit 1\n")
        with self.assertRaisesRegex(server.Failed, "(?s)exit code 1.*bad configuration"):
            server.Profcol("port=@grpc@ \n", binary=binary, metrics=False).start()

    def test_port_is_nobody_elses(self):
        ports = [server.free_port() for _ in range(100)]
        self.assertEqual(len(set(ports)), 100)
        for port in ports:
            self.assertFalse(server.accepts(port))
        for port, address in zip(ports, ("127.0.0.1", "0.0.0.0", "127.0.0.2")):
            with self.subTest(address), socket.socket() as listener:
                with self.assertRaises(OSError):    # a server that wants it must set SO_REUSEADDR
                    listener.bind((address, port))
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind((address, port))
                listener.listen()
                self.assertEqual(server.accepts(port), address != "127.0.0.2")


if __name__ == "__main__":
    testing.main()
