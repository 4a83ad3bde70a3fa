"""OTTL beside the Collector: run.sh ottl [conditions|statements|random...] [--only TEXT] [--count N] [--seed N]

    conditions    each is evaluated on one span: true, false, an error when it is evaluated, or invalid at start
    statements    those of statements.txt are executed on spans: the same spans afterwards, as many errors, or invalid at start
    random        N random statements on random spans, in the same way

The order of attributes does not count. Exit code 1: a difference that expected.yaml and EXPECTED do not explain. $OTTL_VERDICTS, $OTTL_RESULTS and
$OTELCOL are the binaries.
"""

import argparse
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[3])]

import conditions  # noqa: E402
import statements  # noqa: E402

PARTS = ["conditions", "statements", "random"]


def run(part, options, expectations):
    if part == "conditions":
        return conditions.compare(options.only)
    cases = statements.written_cases() if part == "statements" else statements.random_cases(options.count, options.seed)
    return statements.compare([case for case in cases if options.only in str(case)], expectations)


def main():
    parser = argparse.ArgumentParser(prog="ottl", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="of the three, all by default")
    parser.add_argument("--only", default="", help="only conditions and statements with this text in them")
    parser.add_argument("--count", type=int, default=20000, help="of random cases")
    parser.add_argument("--seed", type=int, default=1, help="of the random cases")
    options = parser.parse_args()
    expectations, unexpected = statements.Expectations(), []
    for part in options.parts or PARTS:
        print(part, flush=True)
        found = run(part, options, expectations)
        print("\n".join(found), flush=True)
        unexpected += found
    if not options.parts and not options.only:
        print("".join(f"nothing needs the expectation {text}\n" for text in expectations.unneeded()), end="")
    sys.exit(1 if unexpected else 0)


main()
