"""Configurations through `validate` and `print-config` of profcol and of the Collector: the same verdict, the same effective
settings where both have them. The cases are in configurations/*.yaml, one feature or one mistake each.

A file is a list of groups. In a group with a `frame`, CASE stands in the frame for the text of the case; without, the
text is the whole configuration. A case that needs more than text is a map: config, environment, arguments.
"""

import os
import pathlib
import re
import subprocess
import tempfile

import yaml

FOLDER = pathlib.Path(__file__).resolve().parent / "configurations"
ERROR = re.compile(r"^(?:.*?:\d+:\d+: )?error: (.*)$", re.MULTILINE)
DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+")
UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
GATES = ["--feature-gates=service.profilesSupport"]


class Case:
    def __init__(self, file, name, content, frame):
        content = content if isinstance(content, dict) else {"config": content}
        self.file = file
        self.name = name
        self.text = in_frame(frame, content.get("config") or "")
        self.arguments = content.get("arguments", [])
        self.environment = {key: str(value) for key, value in content.get("environment", {}).items()}
        self.files = content.get("files", {})


def in_frame(frame, text):
    """The text of a case where the frame says CASE: in the line, or with the line's indentation."""
    if frame is None:
        return text

    def indented(match):
        return "\n".join(match[1] + line for line in text.rstrip("\n").split("\n"))

    whole = re.sub(r"^( *)CASE$", indented, frame, flags=re.MULTILINE)
    return whole.replace("CASE", text.strip())


def read():
    """All cases, in the order of the files."""
    cases = []
    for path in sorted(FOLDER.glob("*.yaml")):
        for group in yaml.safe_load(path.read_text()):
            cases += [Case(path.stem, name, content, group.get("frame")) for name, content in group["cases"].items()]
    names = [case.name for case in cases]
    doubled = {name for name in names if names.count(name) > 1}
    assert not doubled, f"two cases of one name: {sorted(doubled)}"
    return cases


class Program:
    """profcol or the Collector, asked about one configuration in a directory of its own."""

    def __init__(self, binary):
        self.binary = binary

    def ask(self, command, case, directory):
        environment = {"PATH": os.environ["PATH"], "HOME": str(directory), **case.environment}
        arguments = [argument.replace("DIRECTORY", str(directory)) for argument in case.arguments] or ["--config", "config.yaml"]
        return subprocess.run([self.binary, command, *arguments, *GATES], cwd=directory, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False)


def prepare(case, directory):
    (directory / "config.yaml").write_text(case.text.replace("DIRECTORY", str(directory)))
    for name, content in case.files.items():
        (directory / name).write_text(content)


def flatten(node, path=""):
    """{path: scalar} of a configuration; headers, which are a map or a list of {name, value}, are a map here."""
    if isinstance(node, dict):
        return {key: value for name, child in node.items() for key, value in flatten(child, f"{path}::{name}" if path else str(name)).items()}
    if isinstance(node, list):
        if node and all(isinstance(item, dict) and set(item) == {"name", "value"} for item in node):
            return flatten({item["name"].lower(): item["value"] for item in node}, path)
        if all(not isinstance(item, (dict, list)) for item in node):
            return {path: [plain(item) for item in node]}
        return {key: value for i, child in enumerate(node) for key, value in flatten(child, f"{path}::{i}").items()}
    return {path: plain(node)}


def plain(value):
    """A scalar such that both programs' ways to write the same value are equal."""
    if isinstance(value, str) and DURATION.fullmatch(value):
        parts = re.findall(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)", value)
        return round(sum(float(number) * UNITS[unit] for number, unit in parts))
    if value in (None, "", False, 0):
        return None
    return value.lower() if isinstance(value, str) else value


def unescape(value):
    if isinstance(value, list):
        return [unescape(item) for item in value]
    return value.replace("$$", "$") if isinstance(value, str) else value


def is_empty(value):
    return value in (None, [], "none")


def settings_that_differ(case, ours, theirs):
    """(path, what profcol has, what the Collector has): settings of both, and settings of the case that profcol does not know."""
    # profcol writes $ as $$, so that its output can be read again.
    mine = {path: unescape(value) for path, value in flatten(ours).items()}
    other = flatten(theirs)
    try:
        written = flatten(yaml.safe_load(case.text) or {})
    except yaml.YAMLError:
        written = {}
    mine_lower, written_lower = ({path.lower() for path in paths} for paths in (mine, written))
    for path, value in other.items():
        if path in mine:
            if mine[path] != value and not (is_empty(mine[path]) and is_empty(value)):
                yield path, mine[path], value
        elif path.lower() in written_lower and path.lower() not in mine_lower and not is_empty(value):
            yield path, "(nothing)", value


def compare(case, profcol, collector, expected, results):
    """Runs one case and tells the results what came out."""
    with tempfile.TemporaryDirectory(prefix="compare-") as name:
        directory = pathlib.Path(name)
        prepare(case, directory)
        ours, theirs = profcol.ask("validate", case, directory), collector.ask("validate", case, directory)
        if (ours.returncode == 0) != (theirs.returncode == 0) or ours.returncode not in (0, 1):
            compare_verdicts(case, ours, theirs, expected, results)
        elif theirs.returncode == 0:
            compare_settings(case, profcol, collector, directory, expected, results)
        else:
            results.same(case, "both refuse it")


def first_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if not line.endswith(":") and "error(s)" not in line), lines[0] if lines else "")[:150]


def compare_verdicts(case, ours, theirs, expected, results):
    errors = ERROR.findall(ours.stderr)
    accepts = ours.returncode == 0
    reason, pending = expected.of_case(case.name)
    if reason is None and not accepts:
        reason, pending = expected.of_refusal(errors)
    told = first_line(theirs.stderr) if accepts else (errors or [first_line(ours.stderr)])[0][:150]
    if ours.returncode not in (0, 1):
        told, reason = f"exit code {ours.returncode}", None
    results.different(case, "only profcol accepts it" if accepts else "only the Collector accepts it", told, reason, pending)


def compare_settings(case, profcol, collector, directory, expected, results):
    ours, theirs = (program.ask("print-config", case, directory) for program in (profcol, collector))
    if ours.returncode or theirs.returncode:
        program = "profcol" if ours.returncode else "the Collector"
        failed = ours if ours.returncode else theirs
        results.different(case, f"print-config of {program} fails", first_line(failed.stderr), *expected.of_case(case.name))
        return
    unexplained, explained = [], []
    for path, mine, other in settings_that_differ(case, yaml.safe_load(ours.stdout), yaml.safe_load(theirs.stdout)):
        reason, pending = expected.of_setting(path, mine)
        (explained if reason else unexplained).append((f"{path}: profcol {mine}, the Collector {other}", reason, pending))
    if unexplained:
        results.different(case, "another value", "; ".join(row[0] for row in unexplained)[:300], *expected.of_case(case.name))
    elif explained:
        results.different(case, "another value", *explained[0])
    else:
        results.same(case, "both accept it")
