"""Reads the protobuf wire format where the oracle needs it.

The generated classes hide two things that matter here: which of two layouts the sender used (a wrong wire type becomes
an "unknown field", a large varint is truncated to 32 bits), and where in the buffer a value is. This module keeps both.
"""

VARINT, FIXED64, BYTES, START_GROUP, END_GROUP, FIXED32 = range(6)


class WireError(ValueError):
    """The bytes are not a protobuf message."""


def varint(data, at, end):
    """Return (value, next offset) of the varint at `at`."""
    value = shift = 0
    while True:
        if at >= end:
            raise WireError("varint runs past the end")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift >= 70:
            raise WireError("varint longer than 10 bytes")


def put_varint(value):
    """Return a varint as bytes."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def put_bytes(number, content):
    """Return a length-delimited field as bytes."""
    return put_varint(number << 3 | BYTES) + put_varint(len(content)) + content


def fields(data, start=0, end=None):
    """Yield (number, wire type, value, offset of the value, offset after it). The value is an int for varints and fixed
    numbers; for length-delimited fields it is None, and the two offsets delimit the content. Groups are refused: OTLP
    has none.
    """
    at = start
    end = len(data) if end is None else end
    while at < end:
        key, at = varint(data, at, end)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise WireError("field number 0")
        if kind == VARINT:
            begin = at
            value, at = varint(data, at, end)
            yield number, kind, value, begin, at
        elif kind == BYTES:
            length, at = varint(data, at, end)
            if length > end - at:
                raise WireError("length runs past the end")
            yield number, kind, None, at, at + length
            at += length
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
            if size > end - at:
                raise WireError("fixed number runs past the end")
            yield number, kind, int.from_bytes(data[at:at + size], "little"), at, at + size
            at += size
        else:
            raise WireError(f"wire type {kind}")


def signed(value):
    """Return a varint's 64 bits as the signed number of int32 and int64 fields."""
    return value - (1 << 64) if value >> 63 else value


def packed_varints(data, start, end):
    """Return the signed numbers in a packed field."""
    out = []
    while start < end:
        value, start = varint(data, start, end)
        out.append(signed(value))
    return out
