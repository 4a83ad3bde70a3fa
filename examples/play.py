#!/usr/bin/env python3
"""Send the recording in this folder to an OTLP/HTTP server, with times moved to the present.

    examples/play.py [--http http://127.0.0.1:4318] [--speed 10] [RECORDING...]

Needs only Python's standard library. Spans and profiles are sent in their recorded order, and at their recorded
intervals divided by --speed. Their timestamps are moved so that the newest is the present; they are
fixed-width numbers, so this changes no length.
"""

import argparse
import json
import pathlib
import struct
import sys
import time
import urllib.error
import urllib.request

RECORDING = pathlib.Path(__file__).resolve().parent / "recording"
PATH = {"traces": "/v1/traces", "profiles": "/v1development/profiles"}
ATTEMPTS = 30

# Where the timestamps stand: field numbers from the request down; TIME marks fixed64, alone or packed.
TIME = "time"
TIMES_IN = {
    "traces": {1: {2: {2: {7: TIME, 8: TIME, 11: {1: TIME}}}}},    # span: start, end; event: time
    "profiles": {1: {2: {2: {3: TIME, 2: {5: TIME}}}}},            # profile: time; sample: timestamps
}

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def varint(data, at):
    """(value, next offset) of the varint at `at`."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data, at, end):
    """(number, wire type, begin, end) of each field's content in a protobuf message."""
    while at < end:
        key, at = varint(data, at)
        kind, begin = key & 7, at
        if kind == VARINT:
            _, at = varint(data, at)
        elif kind == BYTES:
            length, begin = varint(data, at)
            at = begin + length
        else:
            at += {FIXED64: 8, FIXED32: 4}[kind]
        yield key >> 3, kind, begin, at


def times(data, tree, at=0, end=None):
    """The offsets of all timestamps that are set."""
    for number, kind, begin, stop in fields(data, at, len(data) if end is None else end):
        inside = tree.get(number)
        if inside is TIME and kind in (FIXED64, BYTES):
            yield from (place for place in range(begin, stop, 8) if any(data[place:place + 8]))
        elif isinstance(inside, dict) and kind == BYTES:
            yield from times(data, inside, begin, stop)


def newest(data, signal):
    """The latest timestamp in a request, in Unix nanoseconds; 0 where it has none."""
    return max((struct.unpack_from("<Q", data, place)[0] for place in times(data, TIMES_IN[signal])), default=0)


def shifted(data, signal, delta_ns):
    """The same request with every timestamp moved by delta_ns."""
    out = bytearray(data)
    for place in times(data, TIMES_IN[signal]):
        struct.pack_into("<Q", out, place, struct.unpack_from("<Q", data, place)[0] + delta_ns)
    return bytes(out)


def count(data, signal):
    """How many spans or samples a request has."""
    def inside(path, begin, end):
        found = [(at, stop) for number, kind, at, stop in fields(data, begin, end)
                 if number == path[0] and kind == BYTES]
        return len(found) if len(path) == 1 else sum(inside(path[1:], at, stop) for at, stop in found)

    return inside([1, 2, 2] if signal == "traces" else [1, 2, 2, 2], 0, len(data))


def load(directory):
    """The requests of a recording as (entry of recording.json, bytes), in the order of their arrival."""
    entries = json.loads((directory / "recording.json").read_text())["requests"]
    entries.sort(key=lambda entry: entry["offset_ms"])
    return [(entry, (directory / entry["file"]).read_bytes()) for entry in entries]


def post(url, content_type, body):
    """Send one request; wait and send it again when the server says that it is busy."""
    for attempt in range(ATTEMPTS):
        request = urllib.request.Request(url, body, {"Content-Type": content_type})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            if error.code not in (429, 502, 503, 504) or attempt == ATTEMPTS - 1:
                raise
            time.sleep(float(error.headers.get("Retry-After", 1)))
    return None


def play(recording, base, speed, say=print):
    """Send a recording as load() gives it."""
    now = time.time_ns()
    delta = now - max(newest(body, entry["signal"]) for entry, body in recording)
    start, first = time.monotonic(), recording[0][0]["offset_ms"]
    sent = {"traces": 0, "profiles": 0}
    for entry, body in recording:
        signal = entry["signal"]
        due = (entry["offset_ms"] - first) / 1000 / speed if speed else 0
        time.sleep(max(0, start + due - time.monotonic()))
        post(base.rstrip("/") + PATH[signal], entry["content_type"], shifted(body, signal, delta))
        items = count(body, signal)
        sent[signal] += items
        say(f"{time.monotonic() - start:6.1f} s  {items:5d} {'spans' if signal == 'traces' else 'samples':7s}  "
            f"{entry['file']}")
    say(f"sent {sent['traces']} spans and {sent['profiles']} samples to {base}")


def main():
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--http", default="http://127.0.0.1:4318", metavar="URL", help="where the server listens")
    parser.add_argument("--speed", type=float, default=10, help="times faster than recorded; 0: without pauses")
    parser.add_argument("recording", nargs="*", type=pathlib.Path, default=[RECORDING])
    options = parser.parse_args()
    try:
        for directory in options.recording:
            play(load(directory), options.http, options.speed)
    except urllib.error.HTTPError as error:
        sys.exit(f"{error.url}: HTTP {error.code}: {error.read(500)!r}")
    except OSError as error:
        sys.exit(f"cannot send to {options.http}: {error}")


if __name__ == "__main__":
    main()
