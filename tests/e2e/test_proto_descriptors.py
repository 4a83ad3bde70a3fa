"""Compares the files below proto/ with the published opentelemetry-proto package.

Every message, field, enum and service method must be the same on both sides: what ours lacks is
as wrong as what it has too much.
"""
import importlib
import os
import subprocess
import sys
import tempfile

from google.protobuf import any_pb2, descriptor_pb2, duration_pb2

ROOT = os.path.join(os.environ["PROFCOL_SOURCE"], "proto")
PACKAGES = [
    "common/v1/common",
    "resource/v1/resource",
    "trace/v1/trace",
    "metrics/v1/metrics",
    "logs/v1/logs",
    "profiles/v1development/profiles",
    "collector/trace/v1/trace_service",
    "collector/metrics/v1/metrics_service",
    "collector/logs/v1/logs_service",
    "collector/profiles/v1development/profiles_service",
]
FILES = ["opentelemetry/proto/" + name + ".proto" for name in PACKAGES]
GOOGLE = {"google/protobuf/any.proto": any_pb2, "google/protobuf/duration.proto": duration_pb2}


def compile_ours():
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "set")
        subprocess.run(
            ["protoc", "-I", ROOT, "--descriptor_set_out=" + out, "--include_imports"]
            + FILES + list(GOOGLE), check=True)
        with open(out, "rb") as file:
            found = descriptor_pb2.FileDescriptorSet.FromString(file.read())
    return {file.name: file for file in found.file}


def published():
    modules = dict(GOOGLE)
    for file in FILES:
        name = file[: -len(".proto")].replace("/", ".") + "_pb2"
        modules[file] = importlib.import_module(name)
    result = {}
    for name, module in modules.items():
        result[name] = descriptor_pb2.FileDescriptorProto.FromString(
            module.DESCRIPTOR.serialized_pb)
    return result


def json_name(field):
    """protoc fills it in, a serialized descriptor may leave it out: the default is lowerCamel."""
    if field.json_name:
        return field.json_name
    head, *tail = field.name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in tail)


def describe_enum(facts, prefix, enum):
    for value in enum.value:
        facts[prefix + "." + enum.name + ":" + value.name] = value.number


def describe_message(facts, prefix, message):
    path = prefix + "." + message.name
    facts[path] = {
        "reserved": [(r.start, r.end) for r in message.reserved_range] + list(
            message.reserved_name),
        "oneofs": [oneof.name for oneof in message.oneof_decl],
    }
    for field in message.field:
        in_oneof = field.HasField("oneof_index")
        facts[path + "." + field.name] = {
            "number": field.number,
            "label": field.label,
            "type": field.type,
            "type_name": field.type_name,
            "json_name": json_name(field),
            "oneof": message.oneof_decl[field.oneof_index].name if in_oneof else None,
            # A oneof of its own is the same; protobuf-c 1.4 does not know `optional`.
            "optional": field.proto3_optional or (
                in_oneof and message.oneof_decl[field.oneof_index].name == "_" + field.name),
            "packed": field.options.packed if field.options.HasField("packed") else None,
        }
    for enum in message.enum_type:
        describe_enum(facts, path, enum)
    for nested in message.nested_type:
        describe_message(facts, path, nested)


def describe(file):
    facts = {"syntax": file.syntax, "package": file.package}
    for message in file.message_type:
        describe_message(facts, file.package, message)
    for enum in file.enum_type:
        describe_enum(facts, file.package, enum)
    for service in file.service:
        for method in service.method:
            facts[file.package + "." + service.name + "/" + method.name] = {
                "input": method.input_type,
                "output": method.output_type,
                "streaming": (method.client_streaming, method.server_streaming),
            }
    return facts


def main():
    ours, theirs = compile_ours(), published()
    passed = failed = 0
    for name in sorted(theirs):
        left, right = describe(ours[name]), describe(theirs[name])
        for key in sorted(left.keys() | right.keys()):
            if left.get(key) == right.get(key):
                passed += 1
            else:
                failed += 1
                print(f"{name}: {key}\n  ours      {left.get(key)}\n  published {right.get(key)}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
