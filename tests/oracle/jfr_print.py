#!/usr/bin/env python3
"""Writes tests/data/jfr/expected.txt: our JFR recordings as the JDK reads them.

    tests/oracle/jfr_print.py > tests/data/jfr/expected.txt     (needs `jfr` of a JDK, 17 was used)

`jfr print` decodes the recording. The conversion of events to profiles is implemented a second time here, after
grafana/jfr-parser (pprof/parser.go, parser/symbols.go). tests/unit/test_jfr_read.c compares. A line is

    <recording> <metric> <type> <unit> <total> <samples> <hash>

samples: of different stack, span and labels. hash: the sum, modulo 2^64, of value * FNV-1a of
"frame:line;...;frame:line;|key=value|...", leaf first, ids as span_id and trace_id, keys sorted.
"""
import collections
import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import wire  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"

GENERATED = [
    (r"^(jdk/internal/reflect/GeneratedMethodAccessor)(\d+)$", r"\1_"),
    (r"^(.+\$\$Lambda)(\$?\d*[./](0x)?[\da-f]+|\d+)$", r"\1_"),
    (r"^(\.?/tmp/)?(libzstd-jni-\d+\.\d+\.\d+-)(\d+)(\.so)( \(deleted\))?$", "libzstd-jni-_.so"),
    (r"^(\.?/tmp/)?(lib)?(amazonCorrettoCryptoProvider)(NativeLibraries\.)?([0-9a-f]{16})"
     r"(/libcrypto|/libamazonCorrettoCryptoProvider)?(\.so)( \(deleted\))?$",
     "libamazonCorrettoCryptoProvider_.so"),
    (r"^(\.?/tmp/)?(libasyncProfiler)-(linux-arm64|linux-musl-x64|linux-x64|macos)-([0-9a-f]+)(\.so)"
     r"( \(deleted\))?$", "libasyncProfiler-_.so"),
    (r"^(.+\$\$EnhancerBySpringCGLIB\$\$)(.*)$", r"\1_"),
]
TWO = {
    "jdk.ObjectAllocationInNewTLAB": ("memory", "alloc_in_new_tlab", "tlabSize"),
    "jdk.ObjectAllocationOutsideTLAB": ("memory", "alloc_outside_tlab", "allocationSize"),
    "jdk.ObjectAllocationSample": ("memory", "alloc_sample", "weight"),
    "jdk.JavaMonitorEnter": ("mutex", None, "duration"),
    "jdk.ThreadPark": ("block", None, "duration"),
}


def settled(symbol):
    for pattern, to in GENERATED:
        symbol = re.sub(pattern, to, symbol)
    return symbol


def fnv1a(text):
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return value


def nanos(duration):
    """Return the nanoseconds of "PT1H2M3.456S"."""
    hours, minutes, seconds, fraction = re.fullmatch(
        r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?", duration).groups(default="0")
    return (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * 10**9 + int(fraction.ljust(9, "0"))


def parts(body):
    """Return the decompressed files of a multipart body by name."""
    boundary = body[:body.index(b"\r\n")]
    found = {}
    for part in body.split(boundary)[1:-1]:
        head, content = part.split(b"\r\n\r\n", 1)
        content = content[:-2]
        name = re.search(rb'name="(\w+)"', head).group(1).decode()
        found[name] = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    return found


def entry(data, begin, end):
    pair = {1: 0, 2: 0}
    for number, kind, value, start, stop in wire.fields(data, begin, end):
        pair[number] = (start, stop) if kind == wire.BYTES else value
    return pair[1], pair[2]


def labels_of(snapshot):
    """Return the contexts (id to labels) and strings of a LabelsSnapshot."""
    strings, contexts = {}, {}
    for number, _, _, start, stop in wire.fields(snapshot):
        key, (begin, end) = entry(snapshot, start, stop)
        if number == 2:
            strings[key] = snapshot[begin:end].decode()
        else:
            contexts[key] = [entry(snapshot, b, e) for _, _, _, b, e in wire.fields(snapshot, begin, end)]
    named = {key: {strings[k]: strings[v] for k, v in pairs} for key, pairs in contexts.items()}
    return named, strings


def stack_of(values):
    trace = values.get("stackTrace")
    if not trace:
        return None
    text = ""
    for frame in trace["frames"]:
        method = frame["method"]
        if method and method["type"]:
            name = settled(method["type"]["name"] or "") + "." + settled(method["name"] or "")
            text += f"{name}:{max(frame['lineNumber'], 0)};"
    return text


def sample_of(values, contexts, strings):
    labels = dict(contexts.get(values.get("contextId", 0), {}))
    if strings.get(values.get("spanName", 0)):
        labels["span_name"] = strings[values["spanName"]]
    if values.get("spanId"):
        labels["span_id"] = f"{values['spanId'] % 2**64:016x}"
    trace = values.get("traceIdHi", 0) % 2**64 << 64 | values.get("traceIdLo", 0) % 2**64
    if trace:
        labels["trace_id"] = f"{trace:032x}"
    return "|" + "".join(f"{key}={value}|" for key, value in sorted(labels.items()))


def profiles_of(events, snapshot, period):
    contexts, strings = labels_of(snapshot)
    totals = collections.defaultdict(lambda: collections.defaultdict(int))
    for event in events:
        kind, values = event["type"], event["values"]
        stack = stack_of(values)
        if stack is None:
            continue
        sample = stack + sample_of(values, contexts, strings)
        if kind == "jdk.ExecutionSample" and values["state"] not in (None, "STATE_SLEEPING"):
            totals["process_cpu", "cpu", "nanoseconds"][sample] += period
        if kind not in TWO:
            continue
        metric, prefix, amount = TWO[kind]
        amount = nanos(values[amount]) if amount == "duration" else values[amount]
        count_type = f"{prefix}_objects" if prefix else "contentions"
        amount_type = (f"{prefix}_bytes", "bytes") if prefix else ("delay", "nanoseconds")
        totals[metric, count_type, "count"][sample] += 1
        totals[(metric, *amount_type)][sample] += amount
    return totals


def print_recording(name, recording, snapshot, period):
    with tempfile.NamedTemporaryFile(suffix=".jfr") as file:
        file.write(recording)
        file.flush()
        text = subprocess.run(["jfr", "print", "--json", "--stack-depth", "100000", "--events",
                               ",".join(["jdk.ExecutionSample", *TWO]), file.name],
                              check=True, stdout=subprocess.PIPE).stdout
    events = json.loads(text)["recording"]["events"]
    for key, samples in sorted(profiles_of(events, snapshot, period).items()):
        checked = sum(value * fnv1a(text) for text, value in samples.items()) % 2**64
        print(name, *key, sum(samples.values()), len(samples), f"{checked:016x}")


def main():
    for path in sorted(DATA.glob("pyroscope/java-grpc-jfr/pyroscope-ingest/*.body")):
        files = parts(path.read_bytes())
        print_recording(str(path.relative_to(DATA)), files["jfr"], files.get("labels", b""), 10**7)
    path = DATA / "pyroscope/async-profiler/files/ap-itimer-alloc-lock.jfr"
    print_recording(str(path.relative_to(DATA)), path.read_bytes(), b"", 10**7)
    path = DATA / "jfr/jdk17.jfr.gz"
    print_recording(str(path.relative_to(DATA)), gzip.decompress(path.read_bytes()), b"", 2 * 10**7)


if __name__ == "__main__":
    main()
