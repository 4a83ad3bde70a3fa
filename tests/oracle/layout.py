"""The two layouts of `Sample` in use, and how to distinguish them.

Between v1.9 and v1.10 the protocol renumbered the fields of `Sample`, with the same package, path and gRPC method, and
without a mark in the message:

    field                 v1.9   v1.10
    values                 2      4
    attribute_indices      3      2
    link_index             4      3

One library writes a whole request, so the layout is decided once per request. It is v1.10, unless an index, a length or
a MUST of the proto is violated when it is read as v1.10, but not as v1.9.
"""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.profiles.v1development import profiles_pb2
from opentelemetry.proto.resource.v1 import resource_pb2

from . import wire

# stack_index is field 1 and timestamps_unix_nano field 5 in both.
FIELDS = {
    "v1.10": {2: "attribute_indices", 3: "link_index", 4: "values"},
    "v1.9": {2: "values", 3: "attribute_indices", 4: "link_index"},
}


def _build_v1_9():
    """Build ExportProfilesServiceRequest of v1.9: the published schema with the old field numbers."""
    pool = descriptor_pool.DescriptorPool()
    for module in (common_pb2, resource_pb2, profiles_pb2, profiles_service_pb2):
        schema = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(schema)
        for message in schema.message_type:
            if message.name == "Sample":
                numbers = {name: number for number, name in FIELDS["v1.9"].items()}
                for field in message.field:
                    field.number = numbers.get(field.name, field.number)
            elif message.name in ("KeyValue", "AnyValue"):
                kept = [f for f in message.field if not f.name.endswith("_strindex")]
                del message.field[:]
                message.field.extend(kept)
        pool.Add(schema)
    name = profiles_service_pb2.ExportProfilesServiceRequest.DESCRIPTOR.full_name
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


REQUEST = {
    "v1.10": profiles_service_pb2.ExportProfilesServiceRequest,
    "v1.9": _build_v1_9(),
}


def decide(data):
    """Return the layout of an ExportProfilesServiceRequest: "v1.10" or "v1.9"."""
    if not problems(data, "v1.10") or problems(data, "v1.9"):
        return "v1.10"
    return "v1.9"


def problems(data, layout):
    """Return, as texts, the errors in the samples of this request if they are read in this layout."""
    tables = _Tables(data)
    found = []
    for number, start, end in _samples(data):
        found.extend(f"sample {number}: {text}"
                     for text in _sample_problems(data, start, end, FIELDS[layout], tables))
    return found


class _Tables:
    """The tables that samples refer to: their lengths, and the key of each attribute."""

    def __init__(self, data):
        self.links = self.stacks = 0
        self.attribute_keys = []
        strings = []
        for start, end in _children(data, 0, len(data), 2):
            for number, kind, _, at, stop in wire.fields(data, start, end):
                if kind != wire.BYTES:
                    continue
                if number == 4:
                    self.links += 1
                elif number == 5:
                    strings.append(data[at:stop])
                elif number == 6:
                    key = [v for n, k, v, _, _ in wire.fields(data, at, stop) if n == 1 and k == wire.VARINT]
                    self.attribute_keys.append(key[-1] if key else 0)
                elif number == 7:
                    self.stacks += 1
        self.attribute_keys = [strings[i] if i < len(strings) else i for i in self.attribute_keys]


def _children(data, start, end, wanted):
    for number, kind, _, at, stop in wire.fields(data, start, end):
        if number == wanted and kind == wire.BYTES:
            yield at, stop


def _samples(data):
    count = 0
    for resource in _children(data, 0, len(data), 1):
        for scope in _children(data, *resource, 2):
            for profile in _children(data, *scope, 2):
                for sample in _children(data, *profile, 2):
                    yield count, *sample
                    count += 1


def _sample_problems(data, start, end, names, tables):
    read = {"stack_index": [0], "attribute_indices": [], "link_index": [0], "values": []}
    timestamps = 0
    for number, kind, value, at, stop in wire.fields(data, start, end):
        if number == 5:
            if kind == wire.FIXED64:
                timestamps += 1
            elif kind == wire.BYTES and (stop - at) % 8 == 0:
                timestamps += (stop - at) // 8
            else:
                yield "timestamps_unix_nano is not made of fixed64"
        elif 1 <= number <= 4:
            name = names.get(number, "stack_index")
            single = name in ("stack_index", "link_index")
            if kind == wire.VARINT:
                value = wire.signed(value)
                read[name] = [value] if single else read[name] + [value]
            elif kind == wire.BYTES and not single:
                read[name] = read[name] + wire.packed_varints(data, at, stop)
            else:
                yield f"{name} has wire type {kind}"

    if not 0 <= read["stack_index"][0] < max(tables.stacks, 1):
        yield f"stack_index {read['stack_index'][0]} is outside of the table"
    if not 0 <= read["link_index"][0] < max(tables.links, 1):
        yield f"link_index {read['link_index'][0]} is outside of the table"
    outside = [i for i in read["attribute_indices"] if not 0 <= i < len(tables.attribute_keys)]
    if outside:
        yield f"attribute index {outside[0]} is outside of the table"
    else:
        keys = [tables.attribute_keys[i] for i in read["attribute_indices"]]
        if len(set(keys)) != len(keys):
            yield "two attributes have the same key"

    values = len(read["values"])
    if not values and not timestamps:
        yield "neither values nor timestamps"
    elif values and timestamps and values != timestamps:
        yield f"{values} values for {timestamps} timestamps"
    elif values > 1 and not timestamps:
        yield f"{values} values without timestamps"
