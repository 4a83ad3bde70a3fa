"""Runs the unittest cases of a test file and prints the result in one line."""

import sys
import unittest


def main():
    """Run all cases of the calling script; the last line is `N passed, N failed`."""
    program = unittest.main(module="__main__", exit=False, argv=[sys.argv[0], *sys.argv[1:]])
    result = program.result
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    passed = max(0, result.testsRun - failed - len(result.skipped))
    skipped = f", {len(result.skipped)} skipped" if result.skipped else ""
    sys.stderr.flush()
    print(f"{passed} passed, {failed} failed{skipped}", flush=True)
    sys.exit(1 if failed or not result.testsRun else 0)
