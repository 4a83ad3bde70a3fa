"""From measurements to the table and the plot. Used by bench/compare."""
import math
import os
import pathlib
import platform
import re
import statistics
import subprocess


class Row:
    """value: what the target is about; None: not measured in this run."""

    def __init__(self, what, profcol, other, value, target, at_least=True, unit="", spread=None):
        self.what = what
        self.profcol = profcol
        self.other = other
        self.value = value
        self.target = target
        self.at_least = at_least
        self.unit = unit
        self.spread = spread

    @property
    def reached(self):
        if self.value is None or self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target


class Results:
    def __init__(self, results):
        self.results = results

    def median(self, run, server, key):
        values = self.results["rounds"].get((run, server), {}).get(key)
        return statistics.median(values) if values else None

    def spread(self, run, over, under, key):
        return self.spread_of((run, over, key), (run, under, key))

    def spread_of(self, over, under):
        """Smallest and largest ratio within a round; each is (run, server, measure)."""
        rounds = self.results["rounds"]
        if over[:2] not in rounds or under[:2] not in rounds:
            return None
        ratios = [a / b for a, b in zip(rounds[over[:2]][over[2]], rounds[under[:2]][under[2]]) if b]
        return (min(ratios), max(ratios)) if len(ratios) > 1 else None

    def micro(self, name):
        entry = self.results.get("micro", {}).get(name)
        return entry["value"] if entry else None


def divide(a, b):
    return a / b if a is not None and b else None


def show(value, unit=""):
    if value is None:
        return "-"
    digits = 0 if value >= 1000 else max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:,.{min(digits, 3)}f}{unit}"


def ratio_rows(results):
    """Collector / profcol, per item."""
    def row(what, run, target, key="cpu", unit=" s", other="collector"):
        a, b = results.median(run, other, key), results.median(run, "profcol", key)
        return Row(what, show(b, unit), show(a, unit), divide(a, b), target, spread=results.spread(run, other, "profcol", key))

    yield row("traces through (gRPC in, batch, OTLP/HTTP out): CPU per million spans", "traces", 10)
    for other in results.results["others"]:
        yield row(f"the same: {other} / profcol", "traces", {"rotel": 18, "fluent-bit": 25}.get(other.lower()), other=other)
    yield row("the same, 1,000 spans a request", "traces of 1,000", 10)
    relay, profcol = results.median("relay", "relay", "cpu_gb"), results.median("traces", "profcol", "cpu_gb")
    yield Row("the same: CPU per GB, profcol / a bare relay", show(profcol, " s"), show(relay, " s"), divide(profcol, relay), 2, False,
              spread=results.spread_of(("traces", "profcol", "cpu_gb"), ("relay", "relay", "cpu_gb")))
    for run, items in (("metrics", "data points"), ("logs", "log records")):
        yield row(f"{run} through, likewise: CPU per million {items}", run, 10)
        yield per_gb_row(results, run)
    yield row("profiles through, not batched: CPU per million samples", "profiles", 10)
    yield row("the same, 5,000 samples a request", "profiles of 5,000", 10)
    yield row("profiles batched (8,192 samples, dictionaries merged): CPU per million samples", "profiles batched", 12)
    yield row("spanjoin, every sample linked (the Collector only passes on): CPU per million spans and samples", "join", 8)
    rate = divide(1e6, results.median("join spans", "profcol", "cpu"))
    yield Row("spans per second of server CPU through spanjoin", show(rate), "-", rate, 2e6, unit="/s")
    yield from keep_rows(results)
    yield row("gzip in: CPU per million spans", "gzip in", 2)
    yield row("gzip out, profcol at level 7: CPU per million spans", "gzip out", 1)
    yield row("the same: bytes per span", "gzip out", 1, "out", " B")
    yield row("gzip out, both at their defaults: CPU per million spans", "gzip default", None)
    yield row("the same: bytes per span", "gzip default", None, "out", " B")
    yield row("OTLP/JSON in, protobuf out: CPU per million spans", "JSON in", 1)
    yield from processor_rows(results, row)
    one, two = results.median("one worker", "profcol", "cpu"), results.median("traces", "profcol", "cpu")
    yield Row("traces through: CPU per million spans, 2 workers / 1", show(two, " s"), show(one, " s (1 worker)"), divide(two, one), 1.1, False,
              spread=results.spread_of(("traces", "profcol", "cpu"), ("one worker", "profcol", "cpu")))
    yield from latency_rows(results)
    yield row("peak RSS at full speed", "traces", 4, "rss", " MiB")


def processor_rows(results, row):
    """Processors that change data; the Collector has no peer for those of samples."""
    yield row("filter, one condition on an attribute, 1 of 64 spans dropped: CPU per million spans", "filter", 12)
    yield row("transform, five statements: CPU per million spans", "transform", 5)
    yield row("attributes, two actions: CPU per million spans", "attributes", 8)
    yield row("probabilistic_sampler, 10 %: CPU per million spans", "sampler", 12)
    for run, what in (("tail sampling", "tail_sampling, traces of 40 spans in 4 requests"), ("tail sampling large", "the same, traces of 1,000 spans in 100 requests")):
        yield row(f"{what}: CPU per million spans", run, 4)
        yield row("the same: bytes per span that leave", run, None, "out", " B")
        yield row("the same: peak RSS", run, 3, "rss", " MiB")
    through = results.median("profiles", "profcol", "cpu")
    for run, what, target in (("filter samples", "filter on samples by the leaf's function", 2), ("filter stacks", "filter on samples by a regex on all functions", 2),
                              ("redaction", "redaction of function names", 1.3)):
        cpu = results.median(run, "profcol", "cpu")
        yield Row(f"{what}: CPU per million samples / passing through", show(cpu, " s"), "-", divide(cpu, through), target, False,
                  spread=results.spread_of((run, "profcol", "cpu"), ("profiles", "profcol", "cpu")))


def keep_rows(results):
    """Requests of an SDK, 4 samples for each span (bench/compare, SDK_LOAD); with `keep`, samples of 1 % of the traces keep their detail."""
    passing = results.median("both, of an SDK", "profcol", "cpu")
    for run, what, target in (("join, of an SDK", "spanjoin, few stacks", None), ("keep", "the same with keep, 1 % kept, the others folded", 1.3)):
        cpu = results.median(run, "profcol", "cpu")
        yield Row(f"{what}: CPU per million spans and samples / passing through", show(cpu, " s"), "-", divide(cpu, passing), target, False,
                  spread=results.spread_of((run, "profcol", "cpu"), ("both, of an SDK", "profcol", "cpu")))
    join, keep = (results.median(run, "profcol", "cpu") for run in ("join, of an SDK", "keep"))
    yield Row("the same: CPU with keep / without", show(keep, " s"), show(join, " s (spanjoin)"), divide(keep, join), None, False,
              spread=results.spread_of(("keep", "profcol", "cpu"), ("join, of an SDK", "profcol", "cpu")))
    traces = results.median("traces, of an SDK", "profcol", "out")

    def profile_bytes(run):
        """Per sample: what is left without the spans. Their number beside that of the samples differs from run to run."""
        rounds = results.results["rounds"].get((run, "profcol"))
        if not rounds or traces is None:
            return None
        return statistics.median((out - traces * (1 - part)) / part for out, part in zip(rounds["out"], rounds["samples"]))
    left, came = profile_bytes("keep"), profile_bytes("both, of an SDK")
    yield Row("the same: bytes of profiles that leave per sample", show(left, " B"), show(came, " B (passing)"), divide(left, came), 0.15, False)


def per_gb_row(results, run):
    """What a relayed signal costs beside traces, in profcol."""
    relayed, traces = results.median(run, "profcol", "cpu_gb"), results.median("traces", "profcol", "cpu_gb")
    return Row(f"the same: CPU per GB, {run} / traces", show(relayed, " s"), show(traces, " s (traces)"), divide(relayed, traces), 1, False,
               spread=results.spread_of((run, "profcol", "cpu_gb"), ("traces", "profcol", "cpu_gb")))


def latency_rows(results):
    p99 = {name: results.median("latency", name, "p99") for name in ("direct", "profcol", "collector")}
    if None in p99.values():
        return
    over = {name: p99[name] - p99["direct"] for name in ("profcol", "collector")}
    least = 0.1  # ms; below that it is noise
    text = {name: show(value, " ms") if value >= least else "< 0.1 ms" for name, value in over.items()}
    yield Row(f"p99 at 50,000 spans/s, over the {p99['direct']:.2f} ms of loader and sink alone", text["profcol"],
              text["collector"], max(over["collector"], least) / max(over["profcol"], least), 5)


def micro_rows(results):
    micro = results.micro
    for kind in ("inserts", "finds"):
        rate = micro(f"span index {kind}")
        yield Row(f"span index, 10 million live spans: {kind} per second on one core", show(rate), "-", rate, 5e6, unit="/s")
    memory = micro("span index memory")
    yield Row("the same: bytes per span", show(memory, " B"), "-", memory, 128, False, " B")
    one, two = micro("pipeline, 1 worker"), micro("pipeline, 2 workers")
    yield Row("memory to nop through spanjoin: throughput, 2 workers / 1", show(two, " spans/s"), show(one, " spans/s (1 worker)"),
              divide(two, one), 1.8)
    one, two = micro("pipeline, 1 worker, by CPU"), micro("pipeline, 2 workers, by CPU")
    yield Row("the same, extrapolated from CPU time alone (waiting for locks does not show)", show(two, "/s"), show(one, "/s (1 worker)"),
              2 * two / one if one and two else None, None)


def process_rows(results):
    idle, first = results.results["idle"], results.results["first"]
    yield Row(f"idle with sidecar.yaml: RssAnon (RSS {idle['profcol'][1]:.1f} and {idle['collector'][1]:.1f} MiB)",
              show(idle["profcol"][0], " MiB"), show(idle["collector"][0], " MiB"), idle["profcol"][0], 4, False, " MiB")
    size = results.results["stripped"]
    yield Row("stripped binary", show(size, " MiB"), "-", size, 3, False, " MiB")
    yield Row("exec to the first accepted request", show(first["profcol"], " ms"), show(first["collector"], " ms"), first["profcol"], 10,
              False, " ms")


def rows(raw):
    results = Results(raw)
    found = list(ratio_rows(results))
    if "micro" in raw:
        found += micro_rows(results)
    if "stripped" in raw:  # the last of them
        found += process_rows(results)
    return [row for row in found if row.value is not None]


# ---- Markdown ----

def target_text(row):
    if row.target is None:
        return "-"
    return ("≥ " if row.at_least else "≤ ") + f"{row.target:,g}{row.unit}"


def value_text(row):
    if row.unit:
        return "-"
    text = f"{row.value:.2f}" if row.value < 10 else f"{row.value:.1f}"
    return text + (f" ({row.spread[0]:.1f}-{row.spread[1]:.1f})" if row.spread else "")


def machine():
    info = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", info)
    memory = re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())
    return (f"{len(os.sched_getaffinity(0))} cores of {model[1] if model else platform.machine()}, {int(memory[1]) / 2**20:.0f} GiB, "
            f"Linux {platform.release()}")


def commit():
    git = subprocess.run(["git", "-C", str(pathlib.Path(__file__).parent), "describe", "--always", "--dirty"], capture_output=True, text=True)
    return git.stdout.strip() or "unknown"


def markdown(found, raw, options):
    lines = ["| what | profcol | Collector | ratio | target | reached |", "|---|---|---|---|---|---|"]
    for row in found:
        reached = {True: "yes", False: "**no**", None: ""}[row.reached]
        lines.append(f"| {row.what} | {row.profcol} | {row.other} | {value_text(row)} | {target_text(row)} | {reached} |")
    lines += ["", f"Medians of {options.rounds} rounds of {options.seconds} s; in brackets the smallest and largest ratio within a round. "
              f"profcol {commit()}; {machine()}."]
    if "micro" in raw:
        lines += ["", "| in process | |", "|---|---|"]
        lines += [f"| {name} | {show(entry['value'])} {entry['unit']} |" for name, entry in raw["micro"].items()]
    return "\n".join(lines) + "\n"


# ---- the plot ----

def svg(found):
    """How far beyond (right) or short of (left) its target each row is, on a logarithmic axis."""
    bars = [row for row in found if row.target]
    left, width, height = 560, 420, 22
    total = height * len(bars) + 60
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 90}" height="{total}" font-family="sans-serif" font-size="12">',
             '<rect width="100%" height="100%" fill="white"/>']
    middle = left + width / 2

    def x_of(score):
        return middle + max(-1, min(1, math.log(score) / math.log(8))) * width / 2

    for score, name in ((1 / 8, "8 times short"), (1 / 2, "2"), (1, "target"), (2, "2"), (8, "8 times better")):
        x = x_of(score)
        parts.append(f'<line x1="{x:.0f}" x2="{x:.0f}" y1="30" y2="{total - 20}" stroke="{"black" if score == 1 else "#ccc"}"/>')
        parts.append(f'<text x="{x:.0f}" y="22" text-anchor="middle">{name}</text>')
    for i, row in enumerate(bars):
        score = row.value / row.target if row.at_least else row.target / max(row.value, 1e-9)
        y = 36 + i * height
        a, b = sorted((middle, x_of(max(score, 1e-9))))
        colour = "#2a7f4f" if row.reached else "#b5532a"
        value = show(row.value, row.unit)
        parts.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{escape(shorten(row.what))}</text>')
        parts.append(f'<rect x="{a:.1f}" y="{y}" width="{max(b - a, 1):.1f}" height="{height - 6}" fill="{colour}"/>')
        parts.append(f'<text x="{left + width + 8}" y="{y + 13}">{escape(value)}</text>')
    return "\n".join(parts + ["</svg>", ""])


def shorten(text):
    return text if len(text) <= 84 else text[:81] + "..."


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
