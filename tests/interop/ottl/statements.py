"""Statements beside the Collector: those of statements.txt on the written request and on a recorded one, and random ones."""

import collections
import pathlib
import random
import re

import differential
import random_statements
import case_requests
import yaml

from tests.oracle import canonical

HERE = pathlib.Path(__file__).resolve().parent


def read_written():
    """(context, statements) for each line of the file."""
    context, found = "span", []
    for line in (HERE / "statements.txt").read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"\[(\w+)\]", line):
            context = match[1]
        elif line and not line.startswith("#"):
            found.append((context, line.split(" ;; ")))
    return found


def written_cases():
    first, recorded = case_requests.written(), case_requests.recorded()
    cases = []
    for index, (context, texts) in enumerate(read_written()):
        cases += [differential.Case(context, texts, request) for request in (first, recorded[index % len(recorded)])]
    return cases


def random_cases(count, seed):
    chance = random.Random(seed)
    made = [case_requests.random_request(chance) for _ in range(200)]
    return [differential.Case(*random_statements.make(chance), chance.choice(made)) for _ in range(count)]


def without_empty(node):
    """Leave out attributes without a value."""
    if isinstance(node, dict):
        return {name: without_empty(child) for name, child in node.items()}
    if isinstance(node, list):
        return [without_empty(child) for child in node if not (isinstance(child, dict) and set(child) == {"key"})]
    return node


def repaired(node):
    """Replace bytes that are no UTF-8, which the Collector sends, and U+FFFD, which profcol sends for them, by the same."""
    if isinstance(node, dict):
        return {name: repaired(child) for name, child in node.items()}
    if isinstance(node, list):
        return [repaired(child) for child in node]
    return re.sub(r"(\\x[89a-f][0-9a-f]|\ufffd)+", "\ufffd", node) if isinstance(node, str) else node


def joined(node):
    """Name what flatten makes of a list in a list as the Collector does: l.20, and not l.2.0."""
    if isinstance(node, dict):
        return {name: re.sub(r"(?<=\d)\.(?=\d)", "", child) if name == "key" else joined(child) for name, child in node.items()}
    return [joined(child) for child in node] if isinstance(node, list) else node


APART = {"empty attributes": without_empty, "invalid UTF-8": repaired, "lists in lists": joined}


class Expectations:
    """The differences that are known: expected.yaml."""

    def __init__(self):
        self.rows = yaml.safe_load((HERE / "expected.yaml").read_text(encoding="utf-8"))["statements"]
        self.needed = collections.Counter()

    def reason_for(self, case, own, other):
        for index, row in enumerate(self.rows):
            if (re.search(row["statement"], str(case), re.DOTALL) and re.fullmatch(row["profcol"], str(own)) and re.fullmatch(row["Collector"], str(other))
                    and re.search(row.get("says", ""), own.why) and re.search(row.get("Collector says", ""), other.why) and self.is_alike(row, own, other)):
                self.needed[index] += 1
                return row["reason"]
        return None

    @staticmethod
    def is_alike(row, own, other):
        simplify = APART.get(row.get("apart from"))
        return not simplify or simplify(own.result) == simplify(other.result)

    def unneeded(self):
        return [row["statement"] for index, row in enumerate(self.rows) if not self.needed[index]]


def describe(case, own, other):
    lines = [str(case), f"    profcol {own}: {own.why}", f"    the Collector {other}: {other.why}"]
    if own.kind == other.kind == "ran" and own.result != other.result:
        lines.append("    " + str(canonical.difference(own.result, other.result)))
    return "\n".join(lines)


def compare(cases, expectations):
    """Print how many outcomes there are of each kind; return the differences that nothing explains."""
    differential.number(cases)
    counts, unexpected = collections.Counter(), []
    outcomes = differential.ours(cases)
    for case, own, other in zip(cases, outcomes, differential.theirs(cases, outcomes)):
        reason = None
        if (str(own), own.result) == (str(other), other.result):
            counts[f"both {own.kind}" + (", failed" if own.failures else "")] += 1
        elif reason := expectations.reason_for(case, own, other):
            counts[f"explained: {reason}"] += 1
        else:
            counts["unexpected"] += 1
            unexpected.append(describe(case, own, other))
    for outcome, count in sorted(counts.items()):
        print(f"{count:6} {outcome}")
    return unexpected
