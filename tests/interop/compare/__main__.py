"""profcol beside the Collector: run.sh compare [configurations|requests] [--verbose] [--only TEXT]

Exit code 1: a difference that expected.yaml does not explain, or an entry there that explains nothing any more.
$PROFCOL and $OTELCOL are the binaries.
"""

import argparse
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[2])]

import configuration_cases  # noqa: E402
import expectations  # noqa: E402
import request_cases  # noqa: E402
import results  # noqa: E402


def main():
    parser = argparse.ArgumentParser(prog="compare", description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["configurations", "requests", "all"], default="all")
    parser.add_argument("--verbose", action="store_true", help="also print the differences that are pending")
    parser.add_argument("--only", default="", help="only the cases whose name has this text in it")
    options = parser.parse_args()
    expected, found = expectations.Expectations(), results.Results()
    if options.what in ("configurations", "all"):
        profcol, collector = (configuration_cases.Program(os.environ[name]) for name in ("PROFCOL", "OTELCOL"))
        for case in configuration_cases.read():
            if options.only in case.name:
                configuration_cases.compare(case, profcol, collector, expected, found)
    if options.what in ("requests", "all"):
        request_cases.compare_all(options.only, expected, found)
    found.print(options.verbose)
    gone, flipped = expected.unneeded(found.names) if options.what == "all" and not options.only else ([], [])
    for entry in flipped:
        print(f"\nno longer pending, remove it from expected.yaml: {entry}")
    for entry in gone:
        print(f"\nexpected.yaml explains nothing with: {entry}")
    sys.exit(1 if found.unexpected or gone else 0)


main()
