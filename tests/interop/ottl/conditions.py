"""Conditions beside the Collector: those of conditions.txt, comparisons of all kinds of operands, and arithmetic, on one span."""

import collections
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from tests.oracle import backend, client, server

HERE = pathlib.Path(__file__).resolve().parent

OPERANDS = [
    "nil", "true", "false", "0", "1", "-1", "5", "9007199254740993", "9007199254740992.0", "1.0", "1.5", '""', '"text"', '"5"', "0x01", "0x0102",
    "[]", "[1]", '[1, "x"]', '[1.0, "x"]', "{}", '{"a": 1}', 'attributes["s"]', 'attributes["empty"]', 'attributes["i"]', 'attributes["big"]',
    'attributes["d"]', 'attributes["t"]', 'attributes["bytes"]', 'attributes["nan"]', 'attributes["none"]', 'attributes["gone"]', 'attributes["list"]',
    'attributes["maps"]', 'attributes["map"]', 'attributes["map"]["in"]', "attributes", "resource.attributes", "name", "kind", "trace_id", "span_id",
    "parent_span_id", "start_time", "end_time", "end_time - start_time", 'Duration("2.5s")', "SPAN_KIND_SERVER", "status.code", "trace_state",
    'Split("a,b", ",")', "start_time_unix_nano", "Len(name)", 'Concat([name], "")',
]
COMPARISONS = ["==", "!=", "<", "<=", ">", ">="]
NUMBERS = ["0", "2", "-3", "1.5", "0.0", 'attributes["i"]', 'attributes["d"]', 'attributes["gone"]', 'attributes["s"]', 'attributes["min"]', "start_time",
           'Duration("1s")', "9223372036854775807"]

# Conditions that differ, each with its reason: (a part of the condition, profcol's verdict, the Collector's, why).
EXPECTED = [
    (r"\[1 2 3\]", "invalid", "true|false", "the Collector takes a list without commas by mistake until 0.159"),
    (r'Int\("', "invalid", "true|false", "0.158 returns nil for a text that is no number, 0.160 fails"),
    (r"Is(String|Map|Int|Double|Bool)\(", "true|false", "invalid", "a question about a literal has an answer"),
    (r"Split.*(==|!=|<|>).*Split", "true|false", "error|down", "the Collector panics"),
    (r"IsMatch\(.*, (name|attributes)", "invalid", "true|false|error", "a pattern must be a literal"),
]


def read_written():
    """The conditions of the file."""
    return [line for line in (HERE / "conditions.txt").read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]


def conditions():
    """All conditions, without comparisons of two results of Split, which stop a Collector."""
    found = read_written()
    found += [f"{a} {operator} {b}" for a, b in itertools.product(OPERANDS, OPERANDS) for operator in COMPARISONS
              if not ("Split" in a and "Split" in b)]
    found += [f"{a} {operator} {b} {comparison} 1" for a, b in itertools.product(NUMBERS, NUMBERS) for operator in "+-*/" for comparison in ("==", "<")]
    return list(dict.fromkeys(found))


def kind_of(verdict):
    return verdict.split(":")[0]


def ours(texts):
    """Return profcol's verdict for each condition."""
    result = subprocess.run([os.environ["OTTL_VERDICTS"], str(HERE / "request.json")], input="\n".join(texts) + "\n", stdout=subprocess.PIPE, text=True,
                            check=True, encoding="utf-8")
    return dict(zip(texts, result.stdout.splitlines()))


CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:PORT"}}}}
exporters: {otlp_grpc: {endpoint: "BACKEND", tls: {insecure: true}, sending_queue: {enabled: false}}}
processors:
  transform: {error_mode: silent, trace_statements: [{context: span, statements: STATEMENTS}]}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], processors: [transform], exporters: [otlp_grpc]}}
"""


def statements(texts):
    """Two statements for each condition: an attribute of the scope says that it is true, another one that its opposite is."""
    for number, text in enumerate(texts):
        yield f'set(instrumentation_scope.attributes["t{number}"], true) where {text}'
        yield f'set(instrumentation_scope.attributes["f{number}"], true) where not ({text})'


def write_config(folder, texts, port, target):
    escaped = json.dumps([statement.replace("$", "$$") for statement in statements(texts)])
    path = folder / "config.yaml"
    path.write_text(CONFIG.replace("PORT", str(port)).replace("BACKEND", target.address).replace("STATEMENTS", escaped), encoding="utf-8")
    return path


def is_valid(text):
    """Whether the Collector accepts the condition at start. It names only the first mistake of a file, so each is a file."""
    with tempfile.TemporaryDirectory() as name, backend.Backend("grpc") as target:
        config = write_config(pathlib.Path(name), [text], 1, target)
        return subprocess.run([os.environ["OTELCOL"], "validate", "--config", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              check=False).returncode == 0


def theirs(texts):
    """Return the Collector's verdict for each condition: the written ones are validated, then all valid ones run at once."""
    written = set(read_written())
    verdicts = {text: "invalid" for text in texts if text in written and not is_valid(text)}
    left = [text for text in texts if text not in verdicts]
    with tempfile.TemporaryDirectory() as name, backend.Backend("grpc") as target:
        output, attributes = run_collector(pathlib.Path(name), left, target)
    if attributes is None:
        sys.exit(f"the Collector does not start:\n{output[-3000:]}")
    for number, text in enumerate(left):
        is_true, is_false = f"t{number}" in attributes, f"f{number}" in attributes
        verdicts[text] = "true" if is_true else "false" if is_false else "error"
    return verdicts


def run_collector(folder, texts, target):
    """Return (what it printed, the attributes of the scope that it sent; None: it did not start)."""
    port = server.free_port()
    config = write_config(folder, texts, port, target)
    with open(folder / "log", "w+", encoding="utf-8") as log:
        process = subprocess.Popen([os.environ["OTELCOL"], "--config", str(config)], stderr=log, stdout=log)
        try:
            answer = send(process, port)
        finally:
            process.terminate()
            process.wait()
        log.seek(0)
        output = log.read()
    if not answer:
        return output, None
    (received,) = target.accepted("traces")
    return output, {a.key for a in received.message().resource_spans[0].scope_spans[0].scope.attributes}


def send(process, port):
    """Send the request as soon as the Collector listens; return False if it ends before."""
    request = json_format.Parse((HERE / "request.json").read_text(encoding="utf-8"), trace_service_pb2.ExportTraceServiceRequest())
    fix_ids(request)
    while process.poll() is None:
        try:
            return client.succeeded(client.export("grpc", f"127.0.0.1:{port}", request, timeout=120))
        except OSError:
            time.sleep(0.2)
    return False


def fix_ids(request):
    """OTLP's JSON has ids in hex, which the JSON of protobuf reads as base64."""
    text = json.loads((HERE / "request.json").read_text(encoding="utf-8"))
    span = text["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    message = request.resource_spans[0].scope_spans[0].spans[0]
    message.trace_id, message.span_id = bytes.fromhex(span["traceId"]), bytes.fromhex(span["spanId"])


def reason_for(condition, own, other):
    for pattern, wanted, collector, reason in EXPECTED:
        if re.search(pattern, condition) and re.fullmatch(wanted, own) and re.fullmatch(collector, other):
            return reason
    return None


def compare(only):
    """Print how many verdicts there are of each kind; return the differences that EXPECTED does not explain."""
    texts = [text for text in conditions() if only in text]
    own, other = ours(texts), theirs(texts)
    counts, unexpected = collections.Counter(), []
    for text in texts:
        pair = kind_of(own[text]), other[text]
        reason = None if pair[0] == pair[1] else reason_for(text, *pair)
        outcome = "both " + pair[0] if pair[0] == pair[1] else f"explained: {reason}" if reason else "unexpected"
        counts[outcome] += 1
        if outcome == "unexpected":
            unexpected.append(f"{text}\n    profcol {own[text]}, the Collector {pair[1]}")
    for outcome, count in sorted(counts.items()):
        print(f"{count:6} {outcome}")
    return unexpected
