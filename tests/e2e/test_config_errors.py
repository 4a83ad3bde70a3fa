"""The exact output of `profcol validate` for files with a mistake.

Each tests/data/config_errors/NN-*.yaml has a .txt with the expected stderr. --update rewrites these; review the diff.
"""
import difflib
import glob
import os
import subprocess
import sys

FOLDER = "data/config_errors"
TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def validate(path):
    """Run profcol in tests/, so that file names in messages do not depend on the location of the source."""
    environment = {"PATH": os.environ.get("PATH", "")}
    for name, value in os.environ.items():
        if name.endswith("SAN_OPTIONS"):
            environment[name] = value
    return subprocess.run(
        [os.environ["PROFCOL"], "validate", "--config", path], cwd=TESTS, env=environment,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)


def problems(path, result, expected):
    if result.returncode != 1:
        yield f"{path}: exit code {result.returncode} instead of 1"
    if result.stdout:
        yield f"{path}: says something on stdout: {result.stdout}"
    diff = difflib.unified_diff(
        expected.splitlines(), result.stderr.splitlines(), "expected", "said", lineterm="")
    for line in diff:
        yield f"{path}: {line}"


def main():
    update = sys.argv[1:] == ["--update"]
    passed = failed = 0
    for file in sorted(glob.glob(os.path.join(TESTS, FOLDER, "*.yaml"))):
        path = FOLDER + "/" + os.path.basename(file)
        golden = file[: -len(".yaml")] + ".txt"
        result = validate(path)
        if update:
            with open(golden, "w", encoding="utf-8") as out:
                out.write(result.stderr)
        with open(golden, encoding="utf-8") as text:
            found = list(problems(path, result, text.read()))
        print("\n".join(found) if found else f"{path}: ok")
        passed, failed = passed + (not found), failed + bool(found)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
