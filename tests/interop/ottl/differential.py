"""Executes OTTL statements in profcol and in a Collector, and says where the results differ.

Each case has a request of its own, of which it is the only one that changes something: each statement asks for the number that is in the request's
resources. So one Collector executes all of them, a few hundred for each request that it gets.
"""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import loose

from tests.oracle import backend, client, server

FIRST = 1_000_000     # of the numbers; no statement sets such a value
CHUNK = 250           # cases of a request, and statements of a group
GATES = "--feature-gates=ottl.functions.enableLambda"
GUARD = "resource.dropped_attributes_count"
NAMED = "unable to parse OTTL statement"
UNNAMED = "statement has invalid syntax"
NUMBER = re.compile(GUARD + r" == (\d+)")


@dataclasses.dataclass(eq=False)
class Case:
    """Statements that are executed one after the other on the items of a context."""

    context: str
    statements: list
    request: object     # its message
    number: int = 0

    def __str__(self):
        return f"[{self.context}] " + " ;; ".join(self.statements)

    def guarded(self):
        return [guard(statement, self.number) for statement in self.statements]


@dataclasses.dataclass
class Outcome:
    """What came of a case: "invalid", or "ran" with the number of executions that failed; "stopped" for a Collector that ended."""

    kind: str
    failures: int = 0
    why: str = ""
    result: object = None

    def __str__(self):
        return f"failed {self.failures}" if self.failures else self.kind


def split_where(statement):
    """Return (editor, condition or None)."""
    outside = re.sub(r'"(?:[^"\\]|\\.)*"', lambda found: "x" * len(found[0]), statement, flags=re.DOTALL)
    at = outside.rfind(" where ")
    return (statement, None) if at < 0 else (statement[:at], statement[at + 7:])


def guard(statement, number):
    editor, condition = split_where(statement)
    return f"{editor} where {GUARD} == {number}" + (f" and ({condition})" if condition is not None else "")


def number(cases):
    """Give each case its number, and its request."""
    for index, case in enumerate(cases):
        case.number = FIRST + index
        request = type(case.request)()
        request.CopyFrom(case.request)
        case.request = request
        for group in request.resource_spans:
            group.resource.dropped_attributes_count = case.number


# ---- profcol ----

def ours(cases):
    lines = ["\t".join([case.request.SerializeToString().hex(), case.context, *case.guarded()]) for case in cases]
    result = subprocess.run([os.environ["OTTL_RESULTS"], "traces"], input="\n".join(lines) + "\n", stdout=subprocess.PIPE, text=True, check=True,
                            encoding="utf-8", errors="replace")
    found = [line.split("\t") for line in result.stdout.splitlines()]
    if len(found) != len(cases):
        sys.exit(f"ottl_results stopped after {len(found)} cases")
    return [Outcome("invalid", why=fields[1]) if fields[0] == "invalid" else Outcome("ran", int(fields[1]), fields[2], form(bytes.fromhex(fields[3])))
            for fields in found]


def form(payload):
    return [loose.plain(group) for group in loose.Request.FromString(payload).resource_spans]


# ---- the Collector ----

def chunks(cases):
    return [cases[start:start + CHUNK] for start in range(0, len(cases), CHUNK)]


def config(parts, port, target):
    """parts: lists of cases; each is one request, and a group for each context."""
    groups = []
    for some in parts:
        for context in sorted({case.context for case in some}):
            groups.append({"context": context, "conditions": [f"{GUARD} >= {some[0].number} and {GUARD} <= {some[-1].number}"],
                           "statements": [text.replace("$", "$$") for case in some if case.context == context for text in case.guarded()]})
    return json.dumps({
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": f"127.0.0.1:{port}", "max_recv_msg_size_mib": 64}}}},
        "processors": {"transform": {"error_mode": "ignore", "trace_statements": groups}},
        "exporters": {"otlp_http": {"endpoint": target.url, "compression": "none", "sending_queue": {"enabled": False}, "retry_on_failure": {"enabled": False}}},
        "service": {"telemetry": {"metrics": {"level": "none"}, "logs": {"encoding": "json", "sampling": {"enabled": False}}},
                    "pipelines": {"traces": {"receivers": ["otlp"], "processors": ["transform"], "exporters": ["otlp_http"]}}},
    })


def validate(cases, folder, target):
    """Return what `validate` says of the cases, "" if all are valid."""
    path = folder / "config.yaml"
    path.write_text(config(chunks(cases), 1, target), encoding="utf-8")
    result = subprocess.run([os.environ["OTELCOL"], "validate", GATES, "--config", str(path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                            encoding="utf-8", errors="replace")
    return result.stdout or "no reason" if result.returncode else ""


def without_number(cases, folder, target):
    """The cases that the Collector refuses without saying which: those that it cannot parse."""
    said = validate(cases, folder, target) if cases else ""
    if not said or NAMED in said and UNNAMED not in said:
        return []
    if len(cases) == 1:
        return [(cases[0], said)]
    half = len(cases) // 2
    return without_number(cases[:half], folder, target) + without_number(cases[half:], folder, target)


def refused(cases, suspects, folder, target):
    """Return why the Collector refuses cases, by number. What it finds later, it says when those are gone. suspects: those that profcol refuses."""
    found = {}
    for some in suspects, [case for case in cases if case not in suspects]:
        found |= {case.number: why for case, why in without_number(some, folder, target)}
    while said := validate([case for case in cases if case.number not in found], folder, target):
        for text in said.split(NAMED)[1:]:
            if match := NUMBER.search(text):
                found[int(match[1])] = text[match.end():].strip()
        if NAMED not in said:
            sys.exit(f"the Collector does not start:\n{said[-3000:]}")
    return found


def theirs(cases, own):
    """own: the outcomes in profcol."""
    texts = {str(case): case for case in cases}    # one case for each text
    suspects = [case for case, outcome in zip(cases, own) if outcome.kind == "invalid" and texts[str(case)] is case]
    with tempfile.TemporaryDirectory() as name, backend.Backend("http") as target:
        folder = pathlib.Path(name)
        found = refused(list(texts.values()), suspects, folder, target)
        invalid = {text: found[case.number] for text, case in texts.items() if case.number in found}
        results, failures = execute([case for case in cases if str(case) not in invalid], folder, target)
    outcomes = []
    for case in cases:
        if str(case) in invalid:
            outcomes.append(Outcome("invalid", why=invalid[str(case)]))
        elif case.number not in results:
            outcomes.append(Outcome("stopped"))
        else:
            errors = failures.get(case.number, [])
            outcomes.append(Outcome("ran", len(errors), "; ".join(sorted(set(errors))), results[case.number]))
    return outcomes


def execute(cases, folder, target):
    """Return the results and the errors, by the number of the case. A case that stops the Collector has no result; it is found by halving."""
    todo, results, failures = chunks(cases), {}, {}
    while todo:
        done = run(todo, folder, target, results)
        failures |= logged(folder / "log")
        broken, todo = todo[done:done + 1], todo[done + 1:]
        for some in broken:
            half = len(some) // 2
            todo[:0] = [some[:half], some[half:]] if half else []
    return results, failures


def run(parts, folder, target, results):
    """Execute the cases of the parts, one request for each, until the Collector stops; return for how many it did not."""
    port = server.free_port()
    path = folder / "config.yaml"
    path.write_text(config(parts, port, target), encoding="utf-8")
    with open(folder / "log", "wb") as output:
        process = subprocess.Popen([os.environ["OTELCOL"], GATES, "--config", str(path)], stderr=output, stdout=output)
        try:
            for done, some in enumerate(parts):
                if not send(process, port, some):
                    return done
                groups = iter(form(target.requests[-1].payload))
                for case in some:
                    results[case.number] = [next(groups) for _ in case.request.resource_spans]
        finally:
            process.terminate()
            process.wait()
    return len(parts)


def send(process, port, cases):
    """Send the requests of the cases as one, as soon as the Collector listens; return False if it stops."""
    request = type(cases[0].request)()
    for case in cases:
        request.resource_spans.extend(case.request.resource_spans)
    listens = False
    while process.poll() is None:
        try:
            listens = listens or server.accepts(port)
            if listens:
                return client.succeeded(client.export("grpc", f"127.0.0.1:{port}", request, timeout=300))
        except (OSError, RuntimeError):
            return False
        time.sleep(0.1)
    return False


def logged(log):
    failures = {}
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if '"failed to execute statement"' in line:
            entry = json.loads(line)
            failures.setdefault(int(NUMBER.search(entry["statement"])[1]), []).append(entry["error"])
    return failures
