"""One form for what arrives: a row for each span, data point and log record, equal in two runs of the same program.

    Forms(requests).rows("metrics")     the rows of a signal, sorted: [resource, scope, metric, point], each as text
    Forms(requests).last_points()       the same of metrics with the last point of each series only: equal also if they leave by a timer, without
                                        what depends on when that is: the SDK's counts of itself, collections of garbage, threads
    difference(have, want)              what one of two lists of rows has and the other has not, or ""

Not part of the form: which request, resource group or scope group a row came in, the order of attributes, whether an empty message is
sent or left out, whether an id is missing or all zeros (the Go SDK sends such ids in a link to no span: the Collector drops them, profcol
passes them on). Replaced, because each run has its own: times (by whether they are set), ids (by the names of the spans), process ids,
ports, the values and spans of exemplars (which are picked at random), and the values of metrics that are not the program's own.
"""

import collections
import json
import re

from google.protobuf import unknown_fields

GROUPS = {"traces": ("resource_spans", "scope_spans", "spans"), "metrics": ("resource_metrics", "scope_metrics", "metrics"),
          "logs": ("resource_logs", "scope_logs", "log_records")}
# Attributes whose values belong to the run.
VARYING = re.compile(r"^(process\.pid|service\.instance\.id|thread\.id|(server|client|network\.peer|network\.local)\.port)$")
VARYING_TEXT = [(re.compile(r"(127\.0\.0\.1|localhost):\d+"), r"\1:PORT"), (re.compile(r"0x[0-9a-f]{6,}|Lambda\$\d+"), "ADDRESS")]
OWN_METRICS = "interop."
IDS = ("trace_id", "span_id", "parent_span_id")
BY_CHANCE = re.compile(r"^(io\.opentelemetry\.(sdk|exporters)\..*|.* (jvm\.gc\.duration|jvm\.thread\.count))$")    # "scope metric"


class Forms:
    """All requests that arrived at one place, as {signal: messages}."""

    def __init__(self, messages):
        self.messages = messages
        self.spans = {span.span_id: span for _, _, span in self._items("traces")}

    def _items(self, signal):
        """(resource group, scope group, item) of each item of a signal."""
        resources, scopes, items = GROUPS[signal]
        for message in self.messages.get(signal, []):
            for resource in getattr(message, resources):
                for scope in getattr(resource, scopes):
                    for item in getattr(scope, items):
                        yield resource, scope, item

    def rows(self, signal):
        return sorted(as_text(row) for row, _ in self._points()) if signal == "metrics" else sorted(
            as_text([*self._head(signal, resource, scope), self._plain(item)]) for resource, scope, item in self._items(signal))

    def last_points(self):
        series = {}
        for row, point in self._points():
            _, scope, metric, _ = row
            key = as_text([*row[:3], self._attributes(point.attributes)])
            if not BY_CHANCE.match(f"{scope.get('scope', {}).get('name', '')} {metric['name']}"):
                series[key] = max(series.get(key, (0, "")), (point.time_unix_nano, as_text(row)))
        return sorted(row for _, row in series.values())

    def _head(self, signal, resource, scope):
        _, scopes, items = GROUPS[signal]
        return self._plain(resource, scopes), self._plain(scope, items)

    def _points(self):
        """(row, point) of each data point."""
        for resource, scope, metric in self._items("metrics"):
            kind = metric.WhichOneof("data")
            data = getattr(metric, kind)
            head = [*self._head("metrics", resource, scope), {**self._plain(metric, kind), kind: self._plain(data, "data_points")}]
            plain = self._plain if metric.name.startswith(OWN_METRICS) else self._shape
            for point in data.data_points:
                yield [*head, plain(point)], point

    def _shape(self, point):
        """A point without its values."""
        return {"attributes": self._attributes(point.attributes), "flags": point.flags}

    def _plain(self, message, without=None):
        """The fields that are set, by name."""
        out = {}
        for field, value in message.ListFields():
            if field.name == without:
                continue
            plain = self._field(field, value)
            if field.containing_oneof or plain != {} and not (field.name in IDS and plain == ""):
                out[field.name] = plain
        unknown = [[row.field_number, str(row.data)] for row in unknown_fields.UnknownFieldSet(message)]
        return {**out, "unknown": unknown} if unknown else out

    def _field(self, field, value):
        kind = field.message_type.name if field.message_type else None
        if kind == "KeyValue":
            return self._attributes(value)
        if kind == "Exemplar":
            return [self._exemplar(exemplar) for exemplar in value]
        if kind:
            return [self._plain(item) for item in value] if field.is_repeated else self._plain(value)
        if field.name.endswith("_unix_nano"):
            return "TIME"
        if field.name in IDS:
            return self._name(value) if field.name != "trace_id" else "TRACE" if any(value) else ""
        if field.is_repeated:
            return list(value)
        return value.hex() if isinstance(value, bytes) else without_run(value)

    def _exemplar(self, exemplar):
        kind = exemplar.WhichOneof("value")
        return {**self._plain(exemplar, kind), "kind": kind, "span_id": "A SPAN" if exemplar.span_id in self.spans else self._name(exemplar.span_id)}

    def _attributes(self, pairs):
        return sorted([pair.key, "VARIES" if VARYING.match(pair.key) else self._plain(pair.value)] for pair in pairs)

    def _name(self, span_id):
        """The names of a span and of those above it, in place of its id."""
        names = []
        while span_id in self.spans and len(names) < 20:
            names.append(self.spans[span_id].name)
            span_id = self.spans[span_id].parent_span_id
        return "/".join(reversed(names)) or ("a span that did not arrive" if any(span_id) else "")


def without_run(value):
    """A text without what differs from run to run."""
    if isinstance(value, str):
        for pattern, replacement in VARYING_TEXT:
            value = pattern.sub(replacement, value)
    return value


def as_text(row):
    return json.dumps(row, sort_keys=True, ensure_ascii=False)


def difference(have, want):
    """The rows that only one of the two has, or ""."""
    missing, more = (collections.Counter(a) - collections.Counter(b) for a, b in ((want, have), (have, want)))
    lines = [f"{sign} {row}" for sign, rows in (("-", missing), ("+", more)) for row in sorted(rows.elements())]
    return "\n".join([f"{missing.total()} rows only in want (-), {more.total()} only in have (+):", *lines[:8]]) if lines else ""
