"""Builds small requests for tests from their content.

    profiles(samples=[{"values": [1], "attributes": {"span_id": "00..."}}])
    traces(spans=[{"span_id": "00...", "name": "GET /"}])

The results are messages of the published classes (or of the v1.9 layout), to be changed further or serialized.
"""

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from . import layout

TABLES = ("mapping_table", "location_table", "function_table", "link_table", "attribute_table", "stack_table")


class ProfilesBuilder:
    """An ExportProfilesServiceRequest with one resource, one scope, one profile, and its dictionary."""

    def __init__(self, version="v1.10"):
        self.request = layout.REQUEST[version]()
        tables = self.request.dictionary
        for table in TABLES:
            getattr(tables, table).add()
        tables.string_table.append("")
        self.strings = {"": 0}
        self.resource = self.request.resource_profiles.add()
        self.scope = self.resource.scope_profiles.add()
        self.profile = self.add_profile("samples", "count")

    def add_profile(self, kind, unit):
        """Add another profile to the same scope."""
        profile = self.scope.profiles.add(time_unix_nano=1_000_000_000_000, duration_nano=10_000_000_000)
        profile.sample_type.type_strindex = self.string(kind)
        profile.sample_type.unit_strindex = self.string(unit)
        return profile

    def string(self, text):
        """Return its index in the string table."""
        if text not in self.strings:
            self.strings[text] = len(self.strings)
            self.request.dictionary.string_table.append(text)
        return self.strings[text]

    def attribute(self, key, value):
        """Add an entry to the attribute table and return its index; value is a str or an int."""
        row = self.request.dictionary.attribute_table.add(key_strindex=self.string(key))
        set_value(row.value, value)
        return len(self.request.dictionary.attribute_table) - 1

    def link(self, span_id="", trace_id=""):
        """Add an entry to the link table and return its index."""
        self.request.dictionary.link_table.add(span_id=bytes.fromhex(span_id), trace_id=bytes.fromhex(trace_id))
        return len(self.request.dictionary.link_table) - 1

    def stack(self, *functions):
        """Add a stack of functions, leaf first, to the stack table and return its index."""
        tables = self.request.dictionary
        locations = []
        for name in functions:
            tables.function_table.add(name_strindex=self.string(name))
            tables.location_table.add().lines.add(function_index=len(tables.function_table) - 1, line=7)
            locations.append(len(tables.location_table) - 1)
        tables.stack_table.add(location_indices=locations)
        return len(tables.stack_table) - 1

    def sample(self, *, profile=None, stack=0, values=(), timestamps=(), link=None, attributes=None):
        """Add a sample; `link` is (span id, trace id) in hex, `attributes` a dict."""
        return (profile or self.profile).samples.add(
            stack_index=stack, values=values, timestamps_unix_nano=timestamps,
            link_index=self.link(*link) if link else 0,
            attribute_indices=[self.attribute(*pair) for pair in (attributes or {}).items()])


def set_value(value, content):
    """Put a str, int, float, bool or bytes into an AnyValue."""
    kinds = {str: "string_value", bool: "bool_value", int: "int_value", float: "double_value", bytes: "bytes_value"}
    setattr(value, kinds[type(content)], content)


def set_attributes(owner, attributes):
    """Set the attributes of a resource, scope or span from a dict."""
    for key, content in attributes.items():
        set_value(owner.attributes.add(key=key).value, content)


def profiles(samples=(), *, version="v1.10", profile=None, resource=None):
    """Return a request with these samples, and attributes of the profile and the resource."""
    builder = ProfilesBuilder(version)
    for sample in samples:
        builder.sample(**sample)
    builder.profile.attribute_indices.extend(builder.attribute(*pair) for pair in (profile or {}).items())
    set_attributes(builder.resource.resource, resource or {})
    return builder.request


def traces(spans=(), *, resource=None):
    """Return a request with these spans: span_id and trace_id in hex, name, kind, start, end, status, attributes."""
    request = trace_service_pb2.ExportTraceServiceRequest()
    group = request.resource_spans.add()
    set_attributes(group.resource, resource or {"service.name": "tested"})
    scope = group.scope_spans.add()
    for given in spans:
        span = scope.spans.add(
            span_id=bytes.fromhex(given["span_id"]), trace_id=bytes.fromhex(given.get("trace_id", "")),
            parent_span_id=bytes.fromhex(given.get("parent_span_id", "")), name=given.get("name", ""),
            kind=given.get("kind", 2), start_time_unix_nano=given.get("start", 1_000_000_000_000),
            end_time_unix_nano=given.get("end", 1_001_000_000_000))
        span.status.code = given.get("status", 0)
        set_attributes(span, given.get("attributes", {}))
    return request
