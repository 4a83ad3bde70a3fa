#!/usr/bin/env python3
"""Which spans cost what: a table and a flame graph from what profcol's file exporter wrote.

    examples/report.py FILE... [--html flame.html] [--rows 12]

FILE holds OTLP/JSON, one request per line, traces or profiles or both. Needs nothing but Python's standard library.
"""

import argparse
import collections
import html
import json
import pathlib
import shutil
import sys

TITLE = "profcol: code under a span"


# --- reading

class Telemetry:
    """What the files hold: spans by id, and what the linked samples add up to per span."""

    def __init__(self):
        self.spans = {}             # span id -> Span
        self.samples = 0
        self.linked = []            # span id of each sample that names one
        self.costs = collections.defaultdict(Cost)

    @property
    def joined(self):
        """How many samples name a span that is here."""
        return sum(span_id in self.spans for span_id in self.linked)

    def add(self, request):
        """Take in one export request."""
        for group in request.get("resourceSpans", []):
            service = attribute(group.get("resource", {}), "service.name") or "?"
            for scope in group.get("scopeSpans", []):
                for span in scope.get("spans", []):
                    self.spans[span.get("spanId", "").lower()] = Span(service, span)
        dictionary = Dictionary(request.get("dictionary", {}))
        for group in request.get("resourceProfiles", []):
            for scope in group.get("scopeProfiles", []):
                self._add_profiles(scope.get("profiles", []), dictionary)

    def _add_profiles(self, profiles, dictionary):
        profiles = [profile for profile in profiles if profile.get("samples")]
        for profile, measure in zip(profiles, measures_of([dictionary.measure(profile) for profile in profiles])):
            for sample in profile["samples"]:
                self.samples += 1
                span_id = dictionary.span_id(int(sample.get("linkIndex", 0)))
                if not span_id:
                    continue
                self.linked.append(span_id)
                count, total = amount(sample.get("values", []), sample.get("timestampsUnixNano", []))
                cost = self.costs[span_id]
                cost.samples += measure.observations(count, total)
                if measure.adds_cpu_time:
                    cost.add(dictionary.stack(sample), total * measure.ns_per_value)


class Span:
    """What the table says of a span."""

    def __init__(self, service, span):
        self.service = service
        self.name = span.get("name", "")
        self.start_ns = int(span.get("startTimeUnixNano", 0))
        self.duration_ns = max(0, int(span.get("endTimeUnixNano", 0)) - self.start_ns)
        self.trace_id = span.get("traceId", "")


class Cost:
    """The samples of one span: how many, and CPU time by stack."""

    def __init__(self):
        self.samples = 0
        self.cpu_ns = 0
        self.stacks = collections.Counter()

    def add(self, stack, cpu_ns):
        self.cpu_ns += cpu_ns
        self.stacks[stack] += cpu_ns

    def merge(self, other):
        self.samples += other.samples
        for stack, value in other.stacks.items():
            self.add(stack, value)

    def hottest(self):
        """The function with the most time of its own."""
        own = collections.Counter()
        for stack, value in self.stacks.items():
            if stack:
                own[stack[0]] += value
        return own.most_common(1)[0][0][0] if own else ""


class Operation:
    """All spans of one service and name together."""

    def __init__(self, service, name):
        self.service, self.name = service, name
        self.spans = self.sampled = 0
        self.cost = Cost()


class Dictionary:
    """The tables of one profiles request."""

    def __init__(self, tables):
        self.tables = tables
        self.stacks = {}

    def row(self, table, index):
        rows = self.tables.get(table, [])
        return rows[index] if 0 <= index < len(rows) else {}

    def string(self, index):
        return self.row("stringTable", int(index)) or ""

    def value_type(self, entry):
        """(type, unit)"""
        return self.string(entry.get("typeStrindex", 0)), self.string(entry.get("unitStrindex", 0))

    def measure(self, profile):
        """What the values of a profile measure."""
        return Measure(self.value_type(profile.get("sampleType", {})), self.value_type(profile.get("periodType", {})),
                       int(profile.get("period", 0)), int(profile.get("timeUnixNano", 0)))

    def span_id(self, index):
        """The linked span id, "" for none."""
        span_id = self.row("linkTable", index).get("spanId", "").lower() if index else ""
        return span_id if span_id.strip("0") else ""

    def stack(self, sample):
        """Frames as (function, place), leaf first; inlined functions are frames."""
        index = int(sample.get("stackIndex", 0))
        if index not in self.stacks:
            locations = self.row("stackTable", index).get("locationIndices", [])
            self.stacks[index] = tuple(frame for at in locations
                                       for frame in self._frames(self.row("locationTable", int(at))))
        return self.stacks[index]

    def _frames(self, location):
        lines = location.get("lines", [])
        for line in lines:
            function = self.row("functionTable", int(line.get("functionIndex", 0)))
            name = (self.string(function.get("nameStrindex", 0))
                    or self.string(function.get("systemNameStrindex", 0)) or "?")
            place = self.string(function.get("filenameStrindex", 0))
            yield name, f"{place}:{line['line']}" if place and int(line.get("line", 0)) else place
        if not lines:
            mapping = self.row("mappingTable", int(location.get("mappingIndex", 0)))
            file = self.string(mapping.get("filenameStrindex", 0))
            yield f"{file.rpartition('/')[2] or '?'} {int(location.get('address', 0)):#x}", file


def attribute(owner, key):
    """The text of an attribute."""
    for entry in owner.get("attributes", []):
        if entry.get("key") == key:
            return str(next(iter(entry.get("value", {}).values()), ""))
    return ""


def read(paths):
    """Read files of JSON lines; a last line that is still being written is left out."""
    telemetry = Telemetry()
    for path in paths:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                telemetry.add(json.loads(line))
            except ValueError as error:
                if number == len(lines) and not line.endswith("\n"):
                    continue
                raise SystemExit(f"{path}:{number}: not OTLP/JSON: {error}") from error
    return telemetry


def slowest(telemetry, rows):
    """(span id, Span, Cost) of the slowest spans that have samples."""
    found = [(span_id, telemetry.spans[span_id], cost) for span_id, cost in telemetry.costs.items()
             if span_id in telemetry.spans]
    found.sort(key=lambda row: (-row[1].duration_ns, row[0]))
    return found[:rows]


def operations(telemetry, rows):
    """The operations with the most CPU time."""
    found = {}
    for span_id, span in telemetry.spans.items():
        one = found.setdefault((span.service, span.name), Operation(span.service, span.name))
        one.spans += 1
        if span_id in telemetry.costs:
            one.sampled += 1
            one.cost.merge(telemetry.costs[span_id])
    sampled = [one for one in found.values() if one.sampled]
    sampled.sort(key=lambda one: (-one.cost.cpu_ns, one.service, one.name))
    return sampled[:rows]


# --- CPU time: the rule of docs/spanjoin.md

CPU_NAMES = ("cpu", "ctimer", "itimer")     # the first one is preferred
UNITS = {unit: (rank, 1000 ** rank) for rank, units in enumerate((
    ("nanoseconds", "ns", "nanosecond"), ("microseconds", "us", "microsecond", "\u00b5s"),
    ("milliseconds", "ms", "millisecond"), ("seconds", "s", "second", "sec"))) for unit in units}
SIBLINGS = 16


class Measure:
    """What the values of a profile are, and what of it counts beside the other profiles of its upload."""

    def __init__(self, value_type, period_type, period, time):
        self.period_type, self.time = period_type, time
        self.rank, self.ns_per_value = cpu_time(value_type, period_type, period)
        self.counts = 2 if value_type == ("samples", "count") else int(self.is_cpu_time and value_type[1] == "count")
        self.yields_cpu = self.yields_samples = False

    @property
    def is_cpu_time(self):
        """Whether the values are CPU time."""
        return self.rank is not None

    @property
    def adds_cpu_time(self):
        """Whether they are, and no other profile of the upload has it."""
        return self.is_cpu_time and not self.yields_cpu

    def yield_to(self, other, is_later):
        """Compare with another profile of the upload, which may measure the same."""
        if self.is_cpu_time and other.is_cpu_time and other.rank < self.rank:
            self.yields_cpu = True
        if self._has_same_samples(other):
            self.yields_samples |= other.counts > self.counts or (other.counts == self.counts == 0 and is_later)

    def _has_same_samples(self, other):
        if self.period_type[0] and other.period_type[0]:
            return self.period_type == other.period_type
        return self._may_be_of_cpu() and other._may_be_of_cpu()

    def _may_be_of_cpu(self):
        return self.is_cpu_time or (self.counts > 0 and not self.period_type[0])

    def observations(self, count, total):
        """How many observations a sample stands for."""
        return 0 if self.yields_samples else total if self.counts else count


def cpu_time(value_type, period_type, period):
    """(rank, nanoseconds for each value); of several in an upload, those of the lowest rank count. (None, 0): no CPU time."""
    name, unit = value_type
    if value_type == ("samples", "count") or (name in CPU_NAMES and unit == "count"):
        period_name, period_unit = period_type
        if period_name in CPU_NAMES and period_unit in UNITS and period > 0:
            own = CPU_NAMES.index(name) if name in CPU_NAMES else len(CPU_NAMES)
            return (1, CPU_NAMES.index(period_name), own), period * UNITS[period_unit][1]
    elif name in CPU_NAMES and unit in UNITS:
        return (0, CPU_NAMES.index(name), UNITS[unit][0]), UNITS[unit][1]
    return None, 0


def measures_of(measures):
    """The measures of the profiles of a scope, after each was compared with the others of its upload."""
    for at, own in enumerate(measures):
        for k in range(max(0, at - SIBLINGS), min(len(measures), at + SIBLINGS + 1)):
            if k != at and measures[k].time == own.time:
                own.yield_to(measures[k], k < at)
    return measures


def amount(values, timestamps):
    """(observations, sum) of a sample; without values, each timestamp counts 1."""
    count = len(timestamps) or len(values)
    return count, sum(map(int, values)) if values else count


# --- the tables

def table(rows, width):
    """The rows as text of at most `width` columns."""
    head = ("SERVICE", "OPERATION", "DURATION", "SAMPLES", "CPU", "HOTTEST FUNCTION")
    cells = [(span.service, span.name, duration(span.duration_ns), str(cost.samples),
              duration(cost.cpu_ns), cost.hottest()) for _, span, cost in rows]
    return grid(head, cells, width, right=(2, 3, 4))


def operation_table(rows, width):
    """The same for operations()."""
    head = ("SERVICE", "OPERATION", "SPANS", "SAMPLES", "CPU", "HOTTEST FUNCTION")
    cells = [(row.service, row.name, f"{row.sampled}/{row.spans}", str(row.cost.samples),
              duration(row.cost.cpu_ns), row.cost.hottest()) for row in rows]
    return grid(head, cells, width, right=(2, 3, 4))


def grid(head, cells, width, right):
    """Aligned columns; the first two and the last give way when the terminal is narrow."""
    cells = [tuple(printable(cell) for cell in row) for row in cells]
    widths = [max(len(row[i]) for row in [head, *cells]) for i in range(len(head))]
    widths[0], widths[1] = min(widths[0], 20), min(widths[1], 28)
    widths[5] = max(16, min(widths[5], width - sum(widths[:5]) - 10))
    return "\n".join("  ".join(fit(cell, widths[i], right=i in right) for i, cell in enumerate(row)).rstrip()
                     for row in [head, *cells])


def fit(text, width, right=False):
    """Text in exactly `width` columns; the end of a function's name says more than its start."""
    if len(text) > width:
        text = "~" + text[len(text) - width + 1:]
    return text.rjust(width) if right else text.ljust(width)


def printable(text):
    """Names come from outside: nothing in them may steer a terminal."""
    return "".join(char if char.isprintable() else "?" for char in text)


def duration(nanoseconds):
    """A duration in the unit that reads best."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            value = nanoseconds / size
            return f"{value:.0f} {unit}" if value >= 99.5 else f"{value:.3g} {unit}"
    return f"{nanoseconds} ns"


def summary(telemetry):
    """One line of figures."""
    samples, named, joined = telemetry.samples, len(telemetry.linked), telemetry.joined
    share = f" ({100 * joined / named:.1f} %)" if named else ""
    return (f"{len(telemetry.spans)} spans, {samples} samples: {named} name a span, {joined} of them joined{share}; "
            f"{sum(span_id in telemetry.spans for span_id in telemetry.costs)} spans have samples")


# --- the flame graph

def flame_tree(stacks):
    """Stacks merged from the root as flat rows [parent, function, place, total, own]; no depth is too deep."""
    rows, children = [[-1, "all", "", 0, 0]], {}
    for stack, value in stacks.items():
        at = 0
        rows[0][3] += value
        for function, place in reversed(stack):
            key = at, function
            if key not in children:
                children[key] = len(rows)
                rows.append([at, function, place, 0, 0])
            at = children[key]
            rows[at][3] += value
        rows[at][4] += value
    return rows


def page(rows, of_operations):
    """A self-contained HTML page with the flame graphs of these spans and operations, the first one shown."""
    graphs = [{"title": f"{span.service}: {span.name}, {duration(span.duration_ns)}",
               "facts": f"took {duration(span.duration_ns)}; span {span_id}, trace {span.trace_id}",
               "rows": flame_tree(cost.stacks)}
              for span_id, span, cost in rows if cost.stacks]
    graphs += [{"title": f"{one.service}: {one.name}, all {one.sampled} spans with samples",
                "facts": f"{one.sampled} of {one.spans} spans have samples", "rows": flame_tree(one.cost.stacks)}
               for one in of_operations if one.cost.stacks]
    data = json.dumps(graphs, ensure_ascii=True)
    # Inside <script> only these three can end it or start something else.
    data = data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return PAGE.replace("@TITLE@", html.escape(TITLE)).replace("@DATA@", data)


PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>@TITLE@</title>
<style>
:root { color-scheme: light dark; --back: #fff; --text: #1c1c1c; --dim: #666; --line: #ccc; --light: 68%; --mark: #b5179e; }
@media (prefers-color-scheme: dark) { :root { --back: #16181c; --text: #e8e8e8; --dim: #a0a4ab; --line: #3a3f47; --light: 42%; --mark: #ff7be5; } }
body { margin: 1rem; background: var(--back); color: var(--text); font: 14px/1.4 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; }
select, input, header button { font: inherit; color: inherit; background: var(--back); border: 1px solid var(--line); border-radius: 4px; padding: .25rem .5rem; }
select { max-width: 100%; }
#facts, #detail { color: var(--dim); margin: .5rem 0; min-height: 1.4em; overflow-wrap: anywhere; }
#graph { position: relative; }
.frame { position: absolute; height: 17px; box-sizing: border-box; border: 1px solid var(--back); border-radius: 2px; padding: 0 3px; overflow: hidden;
  white-space: nowrap; font: 11px/15px ui-monospace, monospace; text-align: left; color: var(--text); cursor: pointer; }
.frame:hover, .frame:focus-visible { outline: 2px solid var(--text); z-index: 1; }
.frame.found { background: var(--mark) !important; color: var(--back); }
.frame.around { opacity: .55; }
</style>
</head>
<body>
<header>
<select id="choice" aria-label="Span"></select>
<input id="search" type="search" placeholder="Search functions" aria-label="Search functions">
<button id="reset" type="button">Reset zoom</button>
<span id="found" role="status"></span>
</header>
<div id="facts"></div>
<div id="graph"></div>
<div id="detail"></div>
<script type="application/json" id="data">@DATA@</script>
<script>
"use strict";
const graphs = JSON.parse(document.getElementById("data").textContent);
const [choice, search, reset, found, facts, graph, detail] =
  ["choice", "search", "reset", "found", "facts", "graph", "detail"].map(id => document.getElementById(id));
const PARENT = 0, NAME = 1, PLACE = 2, TOTAL = 3, OWN = 4, ROW_HEIGHT = 18;
let rows = [], children = [], zoomed = 0;

function time(ns) {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]])
    if (ns >= size) return (ns / size).toPrecision(3) + " " + unit;
  return ns + " ns";
}

function color(name) {
  let hash = 0;
  for (const char of name) hash = (hash * 31 + char.codePointAt(0)) >>> 0;
  return `hsl(${hash % 55} ${55 + hash % 30}% var(--light))`;
}

function frame(index, left, width, depth, extra) {
  const row = rows[index], box = document.createElement("button");
  box.type = "button";
  box.className = "frame" + extra;
  box.style.cssText = `left:${left * 100}%;width:${width * 100}%;top:${depth * ROW_HEIGHT}px;background:${color(row[NAME])}`;
  box.textContent = row[NAME];
  const text = `${row[NAME]}${row[PLACE] ? " (" + row[PLACE] + ")" : ""}: ${time(row[TOTAL])}, ` +
    `${(100 * row[TOTAL] / rows[0][TOTAL]).toFixed(1)} %, of its own ${time(row[OWN])}`;
  box.title = text;
  box.setAttribute("aria-label", text);
  box.onclick = () => { zoomed = index; draw(); };
  box.onmouseenter = box.onfocus = () => { detail.textContent = text; };
  graph.append(box);
}

function draw() {
  graph.replaceChildren();
  const word = search.value.toLowerCase(), path = [];
  let deepest = 0, hits = 0;
  const mark = index => word && rows[index][NAME].toLowerCase().includes(word) ? " found" : "";
  for (let at = rows[zoomed][PARENT]; at >= 0; at = rows[at][PARENT]) path.unshift(at);
  path.forEach((index, depth) => frame(index, 0, 1, depth, " around" + mark(index)));
  const todo = [[zoomed, 0, 1, path.length]];
  while (todo.length) {
    const [index, left, width, depth] = todo.pop();
    deepest = Math.max(deepest, depth);
    frame(index, left, width, depth, mark(index));
    let x = left;
    for (const child of children[index]) {
      const share = width * rows[child][TOTAL] / rows[index][TOTAL];
      if (share > 0.0005) todo.push([child, x, share, depth + 1]);
      x += share;
    }
  }
  graph.style.height = (deepest + 1) * ROW_HEIGHT + "px";
  if (word) {
    const inside = new Array(rows.length).fill(false);
    rows.forEach((row, index) => {
      const covered = row[PARENT] >= 0 && inside[row[PARENT]], hit = row[NAME].toLowerCase().includes(word);
      if (hit && !covered) hits += row[TOTAL];
      inside[index] = hit || covered;
    });
  }
  found.textContent = word ? `${(100 * hits / rows[0][TOTAL]).toFixed(1)} % of the time` : "";
}

function show(number) {
  const one = graphs[number];
  rows = one.rows;
  children = rows.map(() => []);
  rows.forEach((row, index) => { if (row[PARENT] >= 0) children[row[PARENT]].push(index); });
  children.forEach(list => list.sort((a, b) => rows[b][TOTAL] - rows[a][TOTAL]));
  zoomed = 0;
  facts.textContent = `${time(rows[0][TOTAL])} on the CPU; ${one.facts}`;
  detail.textContent = "";
  draw();
}

graphs.forEach((one, number) => choice.add(new Option(one.title, number)));
choice.onchange = () => show(Number(choice.value));
search.oninput = draw;
reset.onclick = () => { zoomed = 0; draw(); };
if (graphs.length) show(0);
else facts.textContent = "No span here has CPU samples.";
</script>
</body>
</html>
"""


def main():
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--html", type=pathlib.Path, help="write flame graphs, of the slowest span first")
    parser.add_argument("--rows", type=int, default=12, help="how many spans to show")
    options = parser.parse_args()
    try:
        telemetry = read(options.files)
        rows, by_operation = slowest(telemetry, options.rows), operations(telemetry, options.rows)
        if rows:
            width = shutil.get_terminal_size((120, 24)).columns
            print("Slowest spans that have samples\n" + table(rows, width) + "\n")
            print("Operations by CPU time (spans with samples / all spans)\n"
                  + operation_table(by_operation, width) + "\n")
        print(summary(telemetry))
        if options.html:
            options.html.write_text(page(rows, by_operation), encoding="utf-8")
            print(f"flame graph: {options.html}")
    except OSError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
