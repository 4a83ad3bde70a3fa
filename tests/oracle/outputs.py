"""Reads the output of exporter `file`.

    forms(path, "profiles", "json")         the canonical form of each record, in the order of the file
"""

import pathlib

from . import canonical


def records(path, form, is_growing=False):
    """Return the records of a file: lines of JSON, or protobuf messages after their length.

    A last record that is cut off raises ValueError; with is_growing, as the process still writes, it is left out.
    """
    data = pathlib.Path(path).read_bytes()
    whole = data[:data.rfind(b"\n") + 1] if form == "json" else data[:_end_of_records(data)]
    if len(whole) < len(data) and not is_growing:
        raise ValueError(f"{path}: the record at {len(whole)} is cut off")
    return whole.splitlines() if form == "json" else list(_messages(whole))


def _messages(data):
    at = 0
    while at < len(data):
        length = int.from_bytes(data[at:at + 4], "big")
        yield data[at + 4:at + 4 + length]
        at += 4 + length


def _end_of_records(data):
    at = 0
    while at + 4 <= len(data) and (end := at + 4 + int.from_bytes(data[at:at + 4], "big")) <= len(data):
        at = end
    return at


def forms(path, signal, form="json", is_growing=False):
    """Return the canonical form of each record."""
    content = "json" if form == "json" else "protobuf"
    return [canonical.canonical(canonical.decode(record, signal, content)) for record in records(path, form, is_growing)]
