"""One form for every way to write the same telemetry.

Two requests have equal canonical forms if and only if they carry the same data, however they were
encoded: protobuf or JSON, either layout of `Sample`, any order of a dictionary, strings inline or
by reference. The forms are made of dicts, lists, strings, numbers and None only, so a difference can be
printed and searched.

    decode(data, signal, content)   bytes -> message (raises Invalid)
    encode_json(message)            message -> OTLP/JSON
    canonical(message)              message -> form
    digest(form)                    form -> sha256, in hex
    counts(form)                    how many resources, spans, profiles, samples
    totals(form)                    what must be equal before and after the server
    difference(have, want)          where two forms differ first

Rules that are choices rather than protocol: attributes are sorted by key; an absent sub-message equals
an empty one; a link without a span id and trace id is no link; ids of zero bytes only are empty.
"""

import base64
import collections
import hashlib
import json

from google.protobuf import json_format, unknown_fields
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from . import layout, wire

MESSAGES = {
    "traces": trace_service_pb2.ExportTraceServiceRequest,
    "profiles": profiles_service_pb2.ExportProfilesServiceRequest,
    "metrics": metrics_service_pb2.ExportMetricsServiceRequest,
    "logs": logs_service_pb2.ExportLogsServiceRequest,
}
OPENED = ("traces", "profiles")         # the signals that have a canonical form
ID_FIELDS = {"traceId", "spanId", "parentSpanId", "profileId",
             "trace_id", "span_id", "parent_span_id", "profile_id"}


class Invalid(ValueError):
    """The request must be refused: it does not parse, or an index or an id is wrong."""


# --- bytes -> message


def decode(data, signal, content="protobuf"):
    """The message in `data`, an export request of `signal` as `content` (protobuf or json)."""
    try:
        if content == "json":
            message = MESSAGES[signal]()
            tree = _map_ids(json.loads(data), lambda text: base64.b64encode(bytes.fromhex(text)).decode())
            json_format.ParseDict(tree or {}, message, ignore_unknown_fields=True)
            return message
        kind = layout.REQUEST[layout.decide(data)] if signal == "profiles" else MESSAGES[signal]
        return kind.FromString(data)
    except (DecodeError, json_format.ParseError, wire.WireError, ValueError) as error:
        raise Invalid(str(error)) from error


def encode_json(message):
    """The message as one line of OTLP/JSON: ids in hex, enums as numbers."""
    tree = json_format.MessageToDict(message, use_integers_for_enums=True)
    return json.dumps(_map_ids(tree, lambda text: base64.b64decode(text).hex()), separators=(",", ":"))


def of(capture):
    """The canonical form of a recorded request (decode.Capture)."""
    return canonical(decode(capture.payload, capture.signal, capture.content))


def _map_ids(node, convert):
    """The same JSON tree with every id converted: hex in OTLP/JSON, base64 in protobuf's own mapping."""
    if isinstance(node, list):
        return [_map_ids(item, convert) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: convert(value) if key in ID_FIELDS and isinstance(value, str) else _map_ids(value, convert)
            for key, value in node.items()}


# --- message -> form


def canonical(message):
    """The canonical form of an export request of traces or profiles."""
    if hasattr(message, "resource_spans"):
        return {"traces": [_resource(group, None, "scope_spans", _scope_of_spans)
                           for group in message.resource_spans], **_unknown(message)}
    dictionary = _Dictionary(message.dictionary)
    return {"profiles": [_resource(group, dictionary, "scope_profiles", _scope_of_profiles)
                         for group in message.resource_profiles], **_unknown(message)}


def _resource(group, dictionary, children, scope):
    return {
        "resource": {
            "attributes": _attributes(group.resource.attributes, dictionary),
            "dropped_attributes_count": group.resource.dropped_attributes_count,
            "entity_refs": [_plain(ref) for ref in group.resource.entity_refs],
            **_unknown(group.resource),
        },
        "schema_url": group.schema_url,
        "scopes": [{
            "scope": {
                "name": child.scope.name,
                "version": child.scope.version,
                "attributes": _attributes(child.scope.attributes, dictionary),
                "dropped_attributes_count": child.scope.dropped_attributes_count,
                **_unknown(child.scope),
            },
            "schema_url": child.schema_url,
            **scope(child, dictionary),
            **_unknown(child),
        } for child in getattr(group, children)],
        **_unknown(group),
    }


def _scope_of_spans(group, _):
    return {"spans": [_span(span) for span in group.spans]}


def _span(span):
    out = _plain(span)
    out["trace_id"] = _id(span.trace_id, 16, "trace_id")
    out["span_id"] = _id(span.span_id, 8, "span_id")
    out["parent_span_id"] = _id(span.parent_span_id, 8, "parent_span_id")
    for link, message in zip(out["links"], span.links):
        link["trace_id"] = _id(message.trace_id, 16, "link.trace_id")
        link["span_id"] = _id(message.span_id, 8, "link.span_id")
    return out


def _scope_of_profiles(group, dictionary):
    profiles = [_profile(profile, dictionary) for profile in group.profiles]
    seen = collections.Counter()
    for profile in profiles:
        key = "{type}/{unit}".format(**profile["sample_type"]) + f"@{profile['time_unix_nano']}"
        profile["key"] = f"{key}#{seen[key]}"
        seen[key] += 1
    return {"profiles": profiles}


def _profile(profile, dictionary):
    samples = [_sample(sample, dictionary) for sample in profile.samples]
    return {
        "sample_type": dictionary.value_type(profile.sample_type),
        "period_type": dictionary.value_type(profile.period_type),
        "period": profile.period,
        "time_unix_nano": profile.time_unix_nano,
        "duration_nano": profile.duration_nano,
        "profile_id": _id(profile.profile_id, 16, "profile_id"),
        "dropped_attributes_count": profile.dropped_attributes_count,
        "original_payload_format": profile.original_payload_format,
        "original_payload": profile.original_payload.hex(),
        "attributes": dictionary.attributes(profile.attribute_indices),
        "samples": sort_samples(samples),
        **_unknown(profile),
    }


def _sample(sample, dictionary):
    return {
        "stack": dictionary.stack(sample.stack_index),
        "attributes": dictionary.attributes(sample.attribute_indices),
        "link": dictionary.link(sample.link_index),
        "values": list(sample.values),
        "timestamps_unix_nano": list(sample.timestamps_unix_nano),
        **_unknown(sample),
    }


def sort_samples(samples):
    """Samples of one profile are a multiset: this puts them into an order of their own."""
    hashes = {}

    def key(sample):
        stack = sample["stack"]
        if id(stack) not in hashes:
            hashes[id(stack)] = digest(stack)
        rest = {name: value for name, value in sample.items() if name != "stack"}
        return hashes[id(stack)], json.dumps(rest, sort_keys=True)

    return sorted(samples, key=key)


class _Dictionary:
    """A request's tables, with every index resolved; equal stacks are one Python object."""

    def __init__(self, tables):
        self.tables = tables
        self.cache = {}

    def entry(self, table, index):
        """The table's entry; None for index 0 of an empty table, which means "not set"."""
        rows = getattr(self.tables, table)
        if index == 0 and not rows:
            return None
        if not 0 <= index < len(rows):
            raise Invalid(f"index {index} is outside of {table} ({len(rows)} entries)")
        return rows[index]

    def resolved(self, table, index, resolve):
        """resolve(entry), once per entry."""
        where = table, index
        if where not in self.cache:
            entry = self.entry(table, index)
            self.cache[where] = None if entry is None else resolve(entry)
        return self.cache[where]

    def string(self, index):
        """Index 0 is the empty string, whatever a sender left in that place."""
        self.entry("string_table", index)
        return self.tables.string_table[index] if index else ""

    def value_type(self, message):
        """A ValueType as its two words."""
        return {"type": self.string(message.type_strindex), "unit": self.string(message.unit_strindex),
                **_unknown(message)}

    def attributes(self, indices):
        """Attributes as [key, value, unit] sorted by key."""
        rows = [self.resolved("attribute_table", index, self._attribute) for index in indices]
        if None in rows:
            raise Invalid("attribute index 0 without an attribute table")
        return sorted(rows, key=lambda row: row[0])

    def _attribute(self, entry):
        return [self.string(entry.key_strindex), any_value(entry.value, self),
                self.string(entry.unit_strindex)]

    def link(self, index):
        """The two ids in hex; None for no link and for one that names nothing."""
        found = self.resolved("link_table", index, lambda entry: {
            "trace_id": _id(entry.trace_id, 16, "link.trace_id"),
            "span_id": _id(entry.span_id, 8, "link.span_id"),
            **_unknown(entry)})
        return found if index and any(found.values()) else None

    def stack(self, index):
        """Frames from the leaf on."""
        found = self.resolved("stack_table", index, lambda entry: [
            self.resolved("location_table", location, self._frame)
            for location in entry.location_indices])
        return found if index else []

    def _frame(self, entry):
        return {
            "mapping": self._or_none("mapping_table", entry.mapping_index, self._mapping),
            "address": entry.address,
            "lines": [{
                "function": self._or_none("function_table", line.function_index, self._function),
                "line": line.line,
                "column": line.column,
                **_unknown(line),
            } for line in entry.lines],
            "attributes": self.attributes(entry.attribute_indices),
            **_unknown(entry),
        }

    def _or_none(self, table, index, resolve):
        found = self.resolved(table, index, resolve)
        return found if index else None

    def _mapping(self, entry):
        return {
            "memory_start": entry.memory_start,
            "memory_limit": entry.memory_limit,
            "file_offset": entry.file_offset,
            "filename": self.string(entry.filename_strindex),
            "attributes": self.attributes(entry.attribute_indices),
            **_unknown(entry),
        }

    def _function(self, entry):
        return {
            "name": self.string(entry.name_strindex),
            "system_name": self.string(entry.system_name_strindex),
            "filename": self.string(entry.filename_strindex),
            "start_line": entry.start_line,
            **_unknown(entry),
        }


def any_value(value, dictionary=None):
    """An AnyValue as {kind: content}; {} where it has no content."""
    kind = value.WhichOneof("value")
    if kind is None:
        return _unknown(value)
    content = getattr(value, kind)
    if kind == "array_value":
        content = [any_value(item, dictionary) for item in content.values]
    elif kind == "kvlist_value":
        content = _attributes(content.values, dictionary)
    elif kind == "bytes_value":
        content = content.hex()
    elif kind == "string_value_strindex" and dictionary:
        kind, content = "string_value", dictionary.string(content)
    return {kind: content, **_unknown(value)}


def _attributes(pairs, dictionary):
    """KeyValue list -> [key, value] sorted by key; references are resolved where there is a dictionary."""
    rows = []
    for pair in pairs:
        key, index = pair.key, getattr(pair, "key_strindex", 0)
        row = [key, any_value(pair.value, dictionary)]
        if index and dictionary:
            if key:
                raise Invalid(f"attribute has both key {key!r} and key_strindex {index}")
            row[0] = dictionary.string(index)
        elif index:
            row.append({"key_strindex": index})    # means nothing in traces, but is not lost
        rows.append(row + ([_unknown(pair)] if _unknown(pair) else []))
    return sorted(rows, key=lambda row: row[0])


def _plain(message):
    """All fields of a message by name, with defaults; for spans and what is inside of them."""
    out = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type and field.message_type.name == "KeyValue":
            out[field.name] = _attributes(value, None)
        elif field.message_type:
            out[field.name] = [_plain(item) for item in value] if field.is_repeated else _plain(value)
        elif field.is_repeated:
            out[field.name] = list(value)
        else:
            out[field.name] = value.hex() if isinstance(value, bytes) else value
    return {**out, **_unknown(message)}


def _id(value, size, name):
    """Hex of an id, "" for none."""
    if len(value) not in (0, size):
        raise Invalid(f"{name} has {len(value)} bytes")
    return value.hex() if any(value) else ""


def _unknown(message):
    """{"unknown": [[number, wire type, content]...]} for fields the schema does not know, else {}."""
    rows = [[field.field_number, field.wire_type,
             field.data.hex() if isinstance(field.data, bytes) else str(field.data)]
            for field in unknown_fields.UnknownFieldSet(message)]
    return {"unknown": rows} if rows else {}


# --- form -> figures


def digest(form):
    """sha256 of a canonical form (or of a part of one)."""
    text = json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def spans(form):
    """Every span with the resource and scope around it."""
    for group in form.get("traces", []):
        for scope in group["scopes"]:
            for span in scope["spans"]:
                yield group, scope, span


def samples(form):
    """Every sample with the resource, scope and profile around it."""
    for group in form.get("profiles", []):
        for scope in group["scopes"]:
            for profile in scope["profiles"]:
                for sample in profile["samples"]:
                    yield group, scope, profile, sample


def counts(form):
    """How many resources, and spans, or profiles and samples."""
    signal = "traces" if "traces" in form else "profiles"
    out = {"resources": len(form[signal])}
    if signal == "traces":
        out["spans"] = sum(1 for _ in spans(form))
    else:
        out["profiles"] = sum(len(scope["profiles"]) for group in form[signal] for scope in group["scopes"])
        out["samples"] = sum(1 for _ in samples(form))
    return out


def weight(sample):
    """What a sample adds to its profile: the sum of its values; a timestamp without a value counts 1."""
    return sum(sample["values"]) if sample["values"] else len(sample["timestamps_unix_nano"])


def totals(*forms):
    """{profile: {stack: sum}} over one or several requests.

    A profile is named by what the server may not change (sample type, period type, time, duration, id), a
    stack by its digest, so the result is equal before and after a join, a merge or a split.
    """
    out = collections.defaultdict(collections.Counter)
    names = {}
    for form in forms:
        for _, _, profile, sample in samples(form):
            stack = sample["stack"]
            if id(stack) not in names:
                names[id(stack)] = digest(stack), stack    # keeps the stack alive, so the id is its own
            out[profile_name(profile)][names[id(stack)][0]] += weight(sample)
    return {name: dict(stacks) for name, stacks in out.items()}


def profile_name(profile):
    """A profile by the fields that no processor changes."""
    return "{} {} {} {} {} {}".format(
        "{type}/{unit}".format(**profile["sample_type"]), "{type}/{unit}".format(**profile["period_type"]),
        profile["period"], profile["time_unix_nano"], profile["duration_nano"], profile["profile_id"])


def flat_spans(*forms):
    """Spans with their resource and scope as a sorted list: equal however they were batched."""
    rows = [[_without(group, "scopes"), _without(scope, "spans"), span]
            for form in forms for group, scope, span in spans(form)]
    return sorted(rows, key=lambda row: (row[2]["span_id"], json.dumps(row, sort_keys=True)))


def flat_profiles(*forms):
    """Profiles with their resource and scope as a sorted list: equal however they were batched."""
    rows = [[_without(group, "scopes"), _without(scope, "profiles"), _without(profile, "key")]
            for form in forms for group in form["profiles"]
            for scope in group["scopes"] for profile in scope["profiles"]]
    return sorted(rows, key=digest)


def difference(have, want, path="$"):
    """Where two forms differ first, as "path: have ..., want ..."; "" where they are equal."""
    if type(have) is type(want) and isinstance(have, (dict, list)):
        keys = sorted({*have, *want}) if isinstance(have, dict) else range(max(len(have), len(want)))
        for key in keys:
            missing = [name for name, node in (("have", have), ("want", want))
                       if (key not in node if isinstance(node, dict) else key >= len(node))]
            if missing:
                other = want if missing == ["have"] else have
                return f"{path}[{key!r}]: {missing[0]} nothing, the other is {_short(other[key])}"
            found = difference(have[key], want[key], f"{path}[{key!r}]") if have[key] != want[key] else ""
            if found:
                return found
        return ""
    return "" if have == want else f"{path}: have {_short(have)}, want {_short(want)}"


def _short(node):
    text = json.dumps(node)
    return text if len(text) < 300 else text[:300] + "..."


def _without(node, name):
    return {key: value for key, value in node.items() if key != name}
