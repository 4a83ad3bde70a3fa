#!/usr/bin/env python3
"""How many public Collector configurations profcol accepts, and what stops the rest.

    report.py FOLDER                 reads FOLDER/OWNER/NAME/PATH for each line of files.tsv
    report.py --copy CLONES FOLDER   first copies these files from the git repositories CLONES/OWNER+NAME (bare ones too,
                                     or in CLONES/OWNER+NAME/repo), at the commit of the list
    --verbose                        also prints each file's first error

files.tsv lists repository, path and commit; the files belong to their authors and are not part of this repository. Each file
goes through `validate`, as it is and with `--signals traces,profiles`, in its own folder. The variables of its author's
environment are not known: each one that the file names gets a value that its name suggests (VARIABLES).
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PROFCOL = os.environ.get("PROFCOL", str(HERE.parents[2] / "build/release/profcol"))
LINE = re.compile(r"^.*?:\d+:\d+: (warning|error): (.*)$")
# A value for a variable by its name, first match first.
VARIABLES = [
    (r"MIB|LIMIT|SIZE|PERCENT|RATIO|COUNT|NUM", "64"),
    (r"PORT", "4317"),
    (r"INTERVAL|TIMEOUT|DURATION", "5s"),
    (r"INSECURE|ENABLE", "true"),
    (r"LEVEL", "info"),
    (r"VERBOSITY", "basic"),
    (r"URL|URI|ENDPOINT", "http://localhost:4317"),
    (r"", "localhost"),
]
# What an error is about, first match first. The groups name the component or the setting.
CAUSES = [
    (r'in "(\w+)[/\w.-]*" id: profcol carries', "signal {0}"),
    (r"^(\w+): unknown \w+ type \"([^\"]+)\"", "{0}: {1}"),
    (r"^connectors: profcol has no connectors", "connectors"),
    (r"references (receiver|exporter|processor|extension|connector) \"([\w]+)[^\"]*\" which is not configured", "reference to a {0} that is not configured"),
    (r"^(receivers|processors|exporters|connectors|extensions)::([\w]+)[^:]*(?:::([\w:\[\]]+))?: (.*)$", "{0}::{1}::{2}: {3}"),
    (r"^(service::telemetry[\w:]*): (.*)$", "{0}: {1}"),
    (r"^(.*)$", "{0}"),
]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--copy", metavar="CLONES", type=pathlib.Path)
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args()


def listed():
    """(repository, path, commit) of each line of the list."""
    lines = (HERE / "files.tsv").read_text().splitlines()
    return [tuple(line.split("\t")) for line in lines if line and not line.startswith("#")]


def copy(clones, folder):
    for repository, path, commit in listed():
        clone = clones / repository.replace("/", "+", 1)
        clone = clone / "repo" if (clone / "repo").is_dir() else clone
        shown = subprocess.run(["git", "-C", clone, "show", f"{commit}:{path}"], capture_output=True, check=False)
        if shown.returncode:
            print(f"not there: {repository} {path}", file=sys.stderr)
            continue
        target = folder / repository / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(shown.stdout)


def value_of(name, text):
    """A plausible value of a variable; only a host where a scheme precedes it or a port follows, a URL where it is all of an endpoint."""
    if re.search(r"(://|@)\$\{(env:)?" + name + r"\}|\$\{(env:)?" + name + r"\}:[\d$]", text):
        return "localhost"
    if re.search(r"endpoint:\s*[\"']?\$\{(env:)?" + name + r"\}[\"']?\s*$", text, re.MULTILINE):
        return "http://localhost:4317"
    return next(value for pattern, value in VARIABLES if re.search(pattern, name.upper()))


def environment(path):
    text = path.read_text(errors="replace")
    values = {name: value_of(name, text) for name in set(re.findall(r"\$\{(?:env:)?(\w+)[}:]", text))}
    return {**values, **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}}


def validate(path, signals):
    """Whether profcol accepts the file, and its errors."""
    command = [PROFCOL, "validate", "--config", path.name, *(["--signals", "traces,profiles"] if signals else [])]
    done = subprocess.run(command, cwd=path.parent, env=environment(path), capture_output=True, text=True, check=False, timeout=60)
    errors = []
    for line in (done.stderr + done.stdout).splitlines():
        match = LINE.match(line)
        if not match:
            if done.returncode and not errors:
                errors.append(line)
        elif match[1] == "error":
            errors.append(match[2])
    if done.returncode not in (0, 1):
        errors = [f"exit code {done.returncode}"]
    return done.returncode == 0, errors


def cause(error):
    """The short name of what an error is about."""
    for pattern, name in CAUSES:
        if (match := re.search(pattern, error)):
            return re.sub(r'"[^"]*"', '"..."', name.format(*(group or "" for group in match.groups())))[:110]
    raise AssertionError(error)


def table(title, causes, alone):
    print(f"\n{title}\n\n| cause | files | repositories | files with no other cause |\n|---|---|---|---|")
    rows = [(len({repository for repository, _ in files}), len(files), name) for name, files in causes.items()]
    for repositories, files, name in sorted(rows, key=lambda row: (-row[0], -row[1], row[2])):
        print(f"| {name} | {files} | {repositories} | {alone.get(name, 0)} |")


def survey(files, signals, verbose):
    accepted, known, causes, alone = [], 0, collections.defaultdict(set), collections.Counter()
    for repository, path in files:
        is_valid, errors = validate(path, signals)
        if is_valid:
            accepted.append(repository)
            continue
        names = {cause(error) for error in errors}
        # A component that is unknown is also missing where pipelines refer to it.
        if any("unknown" in error or "no connectors" in error for error in errors):
            names = {name for name in names if not name.startswith("reference to")} or names
        known += not any(re.match(r"signal |\w+: |connectors$", name) for name in names)
        for name in names:
            causes[name].add((repository, path))
        if len(names) == 1:
            alone[next(iter(names))] += 1
        if verbose:
            print(f"{path}: {errors[0] if errors else 'no error was printed'}", file=sys.stderr)
    how = "with --signals traces,profiles" if signals else "as it is"
    print(f"\n{how}: {len(accepted)} of {len(files)} files ({100 * len(accepted) / len(files):.0f} %), {len(set(accepted))} of "
          f"{len({repository for repository, _ in files})} repositories; {len(accepted) + known} use only components and signals that profcol has")
    table(f"What stops the rest, {how}:", causes, alone)


def main():
    options = arguments()
    if options.copy:
        copy(options.copy, options.folder)
    files = [(repository, options.folder / repository / path) for repository, path, _ in listed()]
    missing = [path for _, path in files if not path.is_file()]
    if missing:
        print(f"{len(missing)} of {len(files)} files are not in {options.folder}, the first is {missing[0]}", file=sys.stderr)
    files = [(repository, path) for repository, path in files if path.is_file()]
    if not files:
        sys.exit(2)
    for signals in (False, True):
        survey(files, signals, options.verbose)


if __name__ == "__main__":
    main()
