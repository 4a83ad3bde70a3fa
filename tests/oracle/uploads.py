"""Reads recorded uploads of Pyroscope's SDKs without profcol, and replays them.

    captures(client)        as decode.Capture, so that replay.send() sends them as they were recorded
    totals_of(capture)      {key: sum of values} of what the client measured (pprof and folded text)
    totals_of_otlp(message) the same of an OTLP profiles request
    jfr_lines(totals)       the same in the words of tests/data/jfr/expected.txt, which the JDK's own reader wrote

A key is (service, metric name, sample type, unit, stack, labels, trace id, span id): all that a flame graph and a span
profile rest on. A stack is the frames, leaf first, as (function, line).
"""

import base64
import collections
import email.parser
import email.policy
import gzip
import json
import pathlib
import re
import urllib.parse

from . import decode, jfr_print
from .pprof import Message, Pprof

DATA = decode.CAPTURES.parent / "pyroscope"
KINDS = ("pyroscope-ingest", "pyroscope-push", "pyroscope-push-grpc")
SPAN_LABELS, TRACE_LABELS = ("span_id", "profile_id"), ("trace_id",)
# Uploads whose recording is also a file.
JFR_FILES = {"curl/pyroscope-ingest/005": "pyroscope/async-profiler/files/ap-itimer-alloc-lock.jfr"}
SPAN_ID, TRACE_ID = re.compile("[0-9a-f]{16}"), re.compile("[0-9a-f]{32}")


def clients(root=DATA):
    """Return the names of the clients of Pyroscope."""
    return sorted({path.parent.name for path in pathlib.Path(root).glob("*/pyroscope-*")})


def captures(client, root=DATA):
    """Return the uploads of a client in the order of arrival."""
    found = [load(path) for kind in KINDS for path in (pathlib.Path(root) / client / kind).glob("*.meta.json")]
    return sorted(found, key=lambda capture: capture.seq)


def load(path):
    """Read one upload. gRPC-Web is recorded without its frame. Changed bodies are recorded with their old chunk sizes."""
    meta = json.loads(path.read_text())
    body = path.with_name(path.name.removesuffix(".meta.json") + ".body").read_bytes()
    if meta.get("query"):
        meta["path"] += "?" + meta["query"]
    if "chunk_sizes_as_recorded" in meta:
        meta["chunk_sizes"] = meta["chunk_sizes_as_recorded"]
    is_h2 = meta["protocol"] == "HTTP/2"
    is_grpc = meta["kind"] == "pyroscope-push-grpc"
    transport = "grpc" if is_grpc and is_h2 else "h2c" if is_h2 else "http"
    name = f"{path.parent.parent.name}/{path.parent.name}/{path.name.removesuffix('.meta.json')}"
    capture = decode.Capture(name, path.parent.parent.name, "profiles", transport, "", "", body, body, meta)
    if is_grpc:
        capture.encoding = capture.header("grpc-encoding") if meta["grpc_compressed_flag"] else ""
    else:
        capture.encoding = capture.header("content-encoding")
    capture.payload = decode.decompress(body, capture.encoding)
    if is_grpc and not is_h2:
        capture.body = bytes([meta["grpc_compressed_flag"]]) + len(body).to_bytes(4, "big") + body
    return capture


# --- the content of an upload


def plain(data):
    """Return the data, decompressed if it is gzip."""
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def form_files(capture):
    """Return {name: bytes} of a multipart body, read by Python's mail parser."""
    head = f"Content-Type: {capture.header('content-type')}\r\n\r\n".encode()
    form = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + capture.payload)
    return {part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
            for part in form.iter_parts() if part.get_filename()}


def parse_name(name):
    """Return (application, {label: value})."""
    application, _, rest = name.partition("{")
    pairs = (pair.partition("=") for pair in rest.rstrip("}").split(",") if pair)
    return application, {key: value for key, _, value in pairs}


def ingest_name(capture):
    """Return (application, {label: value}, {parameter: value}) of an /ingest."""
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(capture.meta["path"]).query, keep_blank_values=True))
    return *parse_name(query["name"]), query


def push_series(capture):
    """Return [({label: value}, [pprof])] of a push."""
    if capture.header("content-type") == "application/json":
        for series in json.loads(capture.payload)["series"]:
            yield ({pair["name"]: pair["value"] for pair in series["labels"]},
                   [plain(base64.b64decode(sample["rawProfile"])) for sample in series["samples"]])
        return
    for series in Message(capture.payload).messages(1):
        yield ({pair.one(1).decode(): pair.one(2).decode() for pair in series.messages(1)},
               [plain(sample.one(1)) for sample in series.messages(2)])


def metric_name(types, config):
    """Return `__name__` as Pyroscope computes it for /ingest."""
    if "wall" in types:
        return "wall"
    if not config and "samples" in types:
        return "process_cpu"
    names = [config.get(kind, {}).get("display-name", kind) for kind in types]
    rules = [("cpu", "process_cpu"), ("alloc_", "memory"), ("inuse_", "memory"), ("space", "memory"), ("objects", "memory"),
             ("mutex_", "mutex"), ("block_", "block"), ("goroutines", "goroutines")]
    for name in names:
        for part, metric in rules:
            if part in name:
                return metric
    return names[-1]


def pprof_totals(data, service, metric):
    """Return the totals of one pprof."""
    totals, pprof = collections.Counter(), Pprof(data)
    types = [(pprof.string(kind, 1), pprof.string(kind, 2)) for kind in pprof.root.messages(1)]

    def frames(number):
        location = pprof.locations[number]
        lines = [(pprof.string(pprof.functions[line.one(1)], 2), line.one(2)) for line in location.messages(4)]
        return lines or [(f"{location.one(3):x}", 0)]

    for sample in pprof.root.messages(2):
        stack = tuple(frame for number in sample.numbers(1) for frame in frames(number))
        labels, span, trace = [], "", ""
        for label in sample.messages(3):
            key, text = pprof.string(label, 1), pprof.string(label, 2)
            if key in SPAN_LABELS and SPAN_ID.fullmatch(text):
                span = text
            elif key in TRACE_LABELS and TRACE_ID.fullmatch(text):
                trace = text
            else:
                labels.append((key, text or str(label.one(3))))
        for (kind, unit), value in zip(types, sample.numbers(2)):
            if value:
                totals[service, metric, kind, unit, stack, tuple(sorted(labels)), trace, span] += value
    return totals, types


def folded_totals(text, service, is_counted):
    """Return the totals of folded text, or of lines without a count: CPU at 100 Hz."""
    totals = collections.Counter()
    for line in text.decode().splitlines():
        stack, _, count = line.rpartition(" ") if is_counted else (line, "", "1")
        frames = tuple((name, 0) for name in reversed(stack.split(";")) if name)
        totals[service, "process_cpu", "cpu", "nanoseconds", frames, (), "", ""] += int(count) * 10_000_000
    return totals


def is_jfr(capture):
    """Return whether it is a recording of a Java VM, which besides profcol only `jfr print` reads."""
    return "format=jfr" in capture.meta["path"]


def jfr_lines(totals):
    """Return ["metric type unit total samples hash"]; see jfr_print.py."""
    groups = {}
    for (_, metric, kind, unit, stack, labels, trace, span), value in totals.items():
        pairs = [*labels, *([("span_id", span)] if span else []), *([("trace_id", trace)] if trace else [])]
        text = "".join(f"{name}:{line};" for name, line in stack) + "|" + "".join(f"{k}={v}|" for k, v in sorted(pairs))
        group = groups.setdefault((metric, kind, unit), collections.Counter())
        group[text] += value
    for key, samples in sorted(groups.items()):
        checked = sum(value * jfr_print.fnv1a(text) for text, value in samples.items()) % 2**64
        yield " ".join([*key, str(sum(samples.values())), str(len(samples)), f"{checked:016x}"])


def jfr_expected(capture):
    """Return the totals that the JDK read in an upload."""
    name = JFR_FILES.get(capture.name, f"pyroscope/{capture.name}.body")
    with open(DATA.parent / "jfr" / "expected.txt", encoding="utf-8") as file:
        return [line.removeprefix(name + " ").rstrip("\n") for line in file if line.startswith(name + " ")]


def totals_of(capture):
    """Return the totals of an upload that is not JFR."""
    if capture.meta["kind"] != "pyroscope-ingest":
        totals = collections.Counter()
        for labels, samples in push_series(capture):
            for sample in samples:
                totals += pprof_totals(sample, labels["service_name"], labels["__name__"])[0]
        return totals
    application, labels, query = ingest_name(capture)
    service = labels.get("service_name", application)
    if query.get("format") == "pprof":
        data, config = plain(capture.payload), {}
    elif capture.header("content-type").startswith("multipart/form-data"):
        files = form_files(capture)
        data, config = plain(files["profile"]), json.loads(files.get("sample_type_config", b"{}"))
    else:
        return folded_totals(capture.payload, service, query.get("format") != "lines")
    _, types = pprof_totals(data, service, "")
    return pprof_totals(data, service, metric_name([kind for kind, _ in types], config))[0]


# --- the output of profcol


def _value(any_value):
    kind = any_value.WhichOneof("value")
    return str(getattr(any_value, kind)) if kind else ""


class _Tables:
    def __init__(self, dictionary):
        self.dictionary = dictionary

    def string(self, index):
        return self.dictionary.string_table[index]

    def attributes(self, indices):
        table = self.dictionary.attribute_table
        return {self.string(table[i].key_strindex): _value(table[i].value) for i in indices}

    def stack(self, index):
        out = []
        for number in self.dictionary.stack_table[index].location_indices:
            location = self.dictionary.location_table[number]
            for line in location.lines:
                out.append((self.string(self.dictionary.function_table[line.function_index].name_strindex), line.line))
            if not location.lines:
                out.append((f"{location.address:x}", 0))
        return tuple(out)


def totals_of_otlp(message):
    """Return the totals of an ExportProfilesServiceRequest."""
    totals, tables = collections.Counter(), _Tables(message.dictionary)
    for resource in message.resource_profiles:
        attributes = {pair.key: _value(pair.value) for pair in resource.resource.attributes}
        for profile in (p for scope in resource.scope_profiles for p in scope.profiles):
            metric = tables.attributes(profile.attribute_indices)["__name__"]
            kind = tables.string(profile.sample_type.type_strindex)
            unit = tables.string(profile.sample_type.unit_strindex)
            for sample in profile.samples:
                link = message.dictionary.link_table[sample.link_index]
                ids = (part.hex() if any(part) else "" for part in (link.trace_id, link.span_id))
                labels = tuple(sorted(tables.attributes(sample.attribute_indices).items()))
                totals[attributes["service.name"], metric, kind, unit, tables.stack(sample.stack_index), labels,
                       *ids] += sum(sample.values)
    return totals
