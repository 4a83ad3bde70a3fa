"""Reads the output of exporter `file`.

    forms(path, "profiles", "json")         the canonical form of each record, in the order of the file
"""

import pathlib

from . import canonical


def records(path, form):
    """Return the records of a file: lines of JSON, or protobuf messages after their length."""
    data = pathlib.Path(path).read_bytes()
    if form == "json":
        if data and not data.endswith(b"\n"):
            raise ValueError(f"{path}: the last line is cut off")
        return data.splitlines()
    out, at = [], 0
    while at < len(data):
        length = int.from_bytes(data[at:at + 4], "big")
        if at + 4 + length > len(data):
            raise ValueError(f"{path}: the record at {at} is cut off")
        out.append(data[at + 4:at + 4 + length])
        at += 4 + length
    return out


def forms(path, signal, form="json"):
    """Return the canonical form of each record."""
    content = "json" if form == "json" else "protobuf"
    return [canonical.canonical(canonical.decode(record, signal, content)) for record in records(path, form)]
