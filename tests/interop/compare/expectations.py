"""The differences between profcol and the Collector that are known: expected.yaml.

One owner: main() reads the file once; each comparison asks it about what it found. An entry that explained nothing at
the end has had its day, and is reported.
"""

import collections
import pathlib
import re

import yaml

FILE = pathlib.Path(__file__).resolve().parent / "expected.yaml"


class Expectations:
    """Answers why a difference is expected, and remembers which entries were needed."""

    def __init__(self):
        table = yaml.safe_load(FILE.read_text())
        self.cases = {name: reason for group in table["cases"] for name, reason in group.items()}
        self.refusals = table["refused by profcol"]
        self.settings = table["settings"]
        self.answers = [{**row, "both": row["profcol"] + row["Collector"]} for row in table["answers"]]
        self.needed = collections.Counter()

    def of_case(self, name):
        """(reason for a difference in this case or None, is pending)"""
        reason = self.cases.get(name)
        if reason:
            self.needed[("case", name)] += 1
        return reason, bool(reason) and reason.startswith("pending: ")

    def of_refusal(self, errors):
        """(reason, is pending) if each error of profcol is one that is expected, else (None, False)."""
        found = [next((row for row in self.refusals if re.search(row["says"], error)), None) for error in errors]
        if not found or None in found:
            return None, False
        for row in found:
            self.needed[("refusal", row["says"])] += 1
        waiting = [row["pending"] for row in found if "pending" in row]
        if waiting:
            return "pending: " + ", ".join(sorted(set(waiting))), True
        return found[0]["reason"], False

    def of_answer(self, name, ours, theirs):
        """(reason why this request is answered in another way or None, is pending)"""
        reason, pending = self.of_case(name)
        if reason:
            return reason, pending
        for row in self.answers:
            if re.search(row["profcol"], ours) and re.search(row["Collector"], theirs):
                self.needed[("answer", row["both"])] += 1
                return ("pending: " + row["pending"], True) if "pending" in row else (row["reason"], False)
        return None, False

    def of_setting(self, path, value):
        """(reason why a setting differs in the effective configuration or None, is pending)"""
        for row in self.settings:
            if re.search(row["setting"], path) and re.search(row.get("profcol", ""), str(value)):
                self.needed[("setting", row["setting"])] += 1
                return ("pending: " + row["pending"], True) if "pending" in row else (row["reason"], False)
        return None, False

    def unneeded(self, names):
        """(entries that explained nothing, entries that are no longer pending), of the cases that ran."""
        gone, flipped = [], []

        def report(entry, is_pending):
            (flipped if is_pending else gone).append(entry)

        for name, reason in self.cases.items():
            if name not in names:
                gone.append(f"case {name}: there is no such case")
            elif not self.needed[("case", name)]:
                report(f"case {name}", reason.startswith("pending: "))
        for kind, key, rows in (("setting", "setting", self.settings), ("refusal", "says", self.refusals), ("answer", "both", self.answers)):
            for row in rows:
                if not self.needed[(kind, row[key])]:
                    report(f"{kind} {row[key]}", "pending" in row)
        return gone, flipped
