"""OTLP requests as a program sees them that does not check UTF-8: texts are bytes. A statement may cut a letter in two."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2


def _request_class():
    pool = descriptor_pool.DescriptorPool()
    for module in (common_pb2, resource_pb2, trace_pb2, trace_service_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        del file.service[:]
        todo = list(file.message_type)
        while todo:
            message = todo.pop()
            todo += message.nested_type
            for field in message.field:
                if field.type == field.TYPE_STRING:
                    field.type = field.TYPE_BYTES
        pool.Add(file)
    name = trace_service_pb2.ExportTraceServiceRequest.DESCRIPTOR.full_name
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


Request = _request_class()


def plain(message):
    """Return the message as a tree that compares equal for equal data: attributes by key, absent messages like empty ones."""
    is_value = message.DESCRIPTOR.name == "AnyValue"
    tree = {}
    for field, value in message.ListFields():
        if field.message_type is None:
            tree[field.name] = list(map(_scalar, value)) if field.is_repeated else _scalar(value)
        elif field.is_repeated:
            items = [plain(item) for item in value]
            tree[field.name] = sorted(items, key=lambda item: item.get("key", "")) if field.message_type.name == "KeyValue" else items
        else:
            inner = plain(value)
            if inner or is_value:
                tree[field.name] = inner
    return tree


def _scalar(value):
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return repr(value) if isinstance(value, float) else value
