"""A second implementation of the join's effect on a profile.

This models which span a sample belongs to by the contract of the `spanjoin` processor, and what the sample gains: by
ids in links and in attributes, with every span of the recording known. Time (window, wait), threads, keep and
top_functions are left out and tested case by case.

    index = SpanIndex(canonical forms of traces)
    verdicts(form, index)          one Verdict per sample
    expected(form, index)          the canonical form that should leave the processor

Words: kind is unspecified, internal, server, client, producer or consumer; status is unset, ok or error. Choices where
the contract leaves room: A source whose value is not an id is skipped. A negative integer is an unsigned id in a signed
field. A promoted sample loses all attributes of `sources` and `trace_sources`; its profile and resource lose those in
which the id or the trace id was found. The span's name is removed only from the sample, and only if the join adds one.
Of several spans with one id, a span covers a sample if their times overlap.
"""

import collections
import dataclasses
import re

from . import canonical

KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
STATUSES = ("unset", "ok", "error")
DECIMAL_SOURCES = ("span id", "local root span id")


@dataclasses.dataclass
class Configuration:
    """The processor's defaults."""

    attributes: tuple = (
        ("span_name", "span.name"),
        ("span_kind", "span.kind"),
        ("span_status", "span.status.code"),
        ("http.route", 'span.attributes["http.route"]'),
    )
    sources: tuple = ("span_id", "profile_id", "span.id", "otel.span_id",
                      "process.context.label.span_id", "span id", "local root span id")
    trace_sources: tuple = ("trace_id", "otel.traceid", "process.context.label.trace_id")
    span_name_labels: tuple = ("span_name", "span.name", "otel.span_name",
                               "process.context.label.span_name")
    clock_skew_ns: int = 5_000_000_000


@dataclasses.dataclass
class Verdict:
    """The result for one sample. `level` is where the span id was: link, sample, profile or resource."""

    level: str | None = None
    source: str | None = None
    span_id: str = ""
    trace_id: str = ""
    trace_level: str | None = None
    match: tuple | None = None          # (resource group, scope group, span) of canonical forms
    ambiguous: bool = False

    @property
    def named(self):
        """Return whether the sample names a span."""
        return bool(self.span_id)

    @property
    def joined(self):
        """Return whether that span is known."""
        return self.match is not None


class SpanIndex:
    """Spans by id, in the order in which they arrived."""

    def __init__(self, forms):
        self.by_id = collections.defaultdict(list)
        for form in forms:
            for where in canonical.spans(form):
                span = where[2]
                same = [w for w in self.by_id[span["span_id"]] if w[2]["trace_id"] == span["trace_id"]]
                if not same:
                    self.by_id[span["span_id"]].append(where)

    def find(self, span_id, trace_id, times, skew_ns):
        """Return (match, ambiguous). Span ids must be equal, and trace ids as well if both sides have one."""
        found = [where for where in self.by_id.get(span_id, [])
                 if not trace_id or not where[2]["trace_id"] or where[2]["trace_id"] == trace_id]
        if len(found) < 2 or trace_id:
            return (found[-1] if found else None), False
        covering = [where for where in found if _covers(where[2], times, skew_ns)]
        return (covering or found)[-1], True


def _covers(span, times, skew_ns):
    """Return whether the times of sample and span overlap. A profile without timestamps may be longer than any span in
    it."""
    first, last = times
    return span["start_time_unix_nano"] - skew_ns <= last and first <= span["end_time_unix_nano"] + skew_ns


def verdict(group, profile, sample, index, config=Configuration()):
    """Return the Verdict on one sample of a canonical form."""
    out = Verdict()
    levels = (("sample", sample["attributes"]), ("profile", profile["attributes"]),
              ("resource", group["resource"]["attributes"]))
    if sample["link"] and sample["link"]["span_id"]:
        out.level = "link"
        out.span_id, out.trace_id = sample["link"]["span_id"], sample["link"]["trace_id"]
    else:
        for name, attributes in levels:
            out.source, out.span_id = _first_id(attributes, config.sources, _span_id)
            if out.span_id:
                out.level = name
                break
        for name, attributes in levels if out.span_id else ():
            _, out.trace_id = _first_id(attributes, config.trace_sources, _trace_id)
            if out.trace_id:
                out.trace_level = name
                break
    if out.span_id:
        times = sample["timestamps_unix_nano"] or [
            profile["time_unix_nano"], profile["time_unix_nano"] + profile["duration_nano"]]
        out.match, out.ambiguous = index.find(
            out.span_id, out.trace_id, (min(times), max(times)), config.clock_skew_ns)
    return out


def _first_id(attributes, sources, parse):
    values = {row[0]: row[1] for row in attributes}
    for source in sources:
        found = parse(source, values.get(source, {}))
        if found:
            return source, found
    return None, ""


def _span_id(source, value):
    if source in DECIMAL_SOURCES:
        number = value.get("int_value")
        if number is not None:
            number %= 1 << 64       # an unsigned id in a signed field
        elif re.fullmatch(r"[0-9]+", value.get("string_value", "")):
            number = int(value["string_value"])
        return f"{number:016x}" if number is not None and 0 < number < 1 << 64 else ""
    return _hex(value, 16)


def _trace_id(_source, value):
    return _hex(value, 32)


def _hex(value, digits):
    text = value.get("string_value", "").lower()
    return text if re.fullmatch(f"[0-9a-f]{{{digits}}}", text) and text.strip("0") else ""


def verdicts(form, index, config=Configuration()):
    """Yield (resource group, scope group, profile, sample, Verdict) for every sample."""
    for group, scope, profile, sample in canonical.samples(form):
        yield group, scope, profile, sample, verdict(group, profile, sample, index, config)


def added_attributes(match, config=Configuration()):
    """Return [key, value, unit] of each configured attribute that the span has."""
    rows = [[key, value_at(path, match), ""] for key, path in config.attributes]
    return [row for row in rows if row[1]]


def value_at(path, match):
    """Return the typed value of a path in (resource group, scope group, span), or {}."""
    group, scope, span = match
    if bracket := re.fullmatch(r'(span|resource)\.attributes\["(.*)"\]', path):
        attributes = span["attributes"] if bracket[1] == "span" else group["resource"]["attributes"]
        return next((row[1] for row in attributes if row[0] == bracket[2]), {})
    texts = {
        "span.name": span["name"],
        "span.kind": KINDS[span["kind"]],
        "span.id": span["span_id"],
        "span.trace_id": span["trace_id"],
        "span.parent_id": span["parent_span_id"],
        "span.status.code": STATUSES[span["status"]["code"]],
        "span.status.message": span["status"]["message"],
        "scope.name": scope["scope"]["name"],
    }
    numbers = {
        "span.start_time": span["start_time_unix_nano"],
        "span.duration_ns": span["end_time_unix_nano"] - span["start_time_unix_nano"],
    }
    if path in numbers:
        return {"int_value": numbers[path]}
    return {"string_value": texts[path]} if texts[path] else {}


def expected(form, index, config=Configuration()):
    """Return the canonical form of a profiles request after the join."""
    out = []
    for group in form["profiles"]:
        group_verdicts = []
        scopes = []
        for scope in group["scopes"]:
            profiles = [_expected_profile(group, profile, index, config, group_verdicts)
                        for profile in scope["profiles"]]
            scopes.append({**scope, "profiles": profiles})
        resource = {**group["resource"], "attributes": _after_promotion(
            group["resource"]["attributes"], "resource", group_verdicts, config)}
        out.append({**group, "resource": resource, "scopes": scopes})
    return {**form, "profiles": out}


def _expected_profile(group, profile, index, config, group_verdicts):
    samples, own = [], []
    for sample in profile["samples"]:
        found = verdict(group, profile, sample, index, config)
        own.append(found)
        samples.append(_expected_sample(sample, found, config))
    group_verdicts.extend(own)
    attributes = _after_promotion(profile["attributes"], "profile", own, config)
    return {**profile, "attributes": attributes, "samples": canonical.sort_samples(samples)}


def _expected_sample(sample, found, config):
    if not found.named:
        return sample
    link = {"trace_id": found.trace_id, "span_id": found.span_id}
    if found.match and not found.trace_id:
        link["trace_id"] = found.match[2]["trace_id"]
    attributes = _after_promotion(sample["attributes"], "sample", [found], config)
    if found.match:
        present = {row[0] for row in attributes}
        attributes = attributes + [row for row in added_attributes(found.match, config)
                                   if row[0] not in present]
    return {**sample, "attributes": sorted(attributes, key=lambda row: row[0]),
            "link": {**(sample["link"] or {}), **link}}


def _after_promotion(attributes, level, found, config):
    """Return the remaining attributes of one level after promotion. A sample keeps none that could name a span; the
    levels around it keep those that were not used. A sample loses the span's name if the join adds one.
    """
    gone = set()
    if level == "sample":
        (verdict,) = found
        if verdict.level != "link":
            gone.update(config.sources, config.trace_sources)
            if verdict.joined and verdict.match[2]["name"] and any(path == "span.name" for _, path in config.attributes):
                gone.update(config.span_name_labels)
    else:
        if any(v.level == level for v in found):
            gone.update(config.sources, config.trace_sources)
        if any(v.trace_level == level for v in found):
            gone.update(config.trace_sources)
    return [row for row in attributes if row[0] not in gone]
