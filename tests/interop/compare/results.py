"""What the comparison found: counts, a table of the differences, and whether anything was unexpected."""

import collections


class Results:
    """Filled case by case by one thread."""

    def __init__(self):
        self.counts = collections.Counter()
        self.by_file = collections.Counter()
        self.rows = []
        self.names = set()

    def _count(self, case, what):
        self.names.add(case.name)
        self.by_file[case.file] += 1
        self.counts[what] += 1

    def same(self, case, how):
        self._count(case, f"the same: {how}")

    def different(self, case, what, detail, reason, pending):
        kind = "unexpected" if reason is None else "pending" if pending else "expected"
        self._count(case, f"{kind} difference")
        self.rows.append((kind, case.file, case.name, what, detail, reason or ""))

    def print(self, verbose):
        """A table; without verbose, differences that are pending are only counted by what they wait for."""
        print("| cases | file |\n|---|---|")
        for file, count in sorted(self.by_file.items()):
            print(f"| {count} | {file} |")
        print(f"| {len(self.names)} | all |\n\n| cases | outcome |\n|---|---|")
        for what, count in sorted(self.counts.items()):
            print(f"| {count} | {what} |")
        waiting = collections.Counter(reason for kind, *_, reason in self.rows if kind == "pending")
        for reason, count in sorted(waiting.items()):
            print(f"| {count} | {reason} |")
        shown = [row for row in self.rows if verbose or row[0] != "pending"]
        if shown:
            print("\n| difference | case | what | reason |\n|---|---|---|---|")
        for kind, file, name, what, detail, reason in sorted(shown, key=lambda row: (row[0] != "unexpected", row)):
            print(f"| {kind} | {file}: {name} | {what}: {detail} | {reason} |".replace("\n", " "))

    @property
    def unexpected(self):
        return self.counts["unexpected difference"]
