"""docs/data.md shows exactly the examples that tests/unit/test_data_examples.c compiles and runs.

Each block of C in the page follows `<!-- example: NAME -->`; the test has it between `/* example: NAME */` and `/* end
*/`. --update copies the examples from the test to the page.
"""
import os
import pathlib
import re
import sys
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import testing

SOURCE = pathlib.Path(os.environ["PROFCOL_SOURCE"])
PAGE = SOURCE / "docs" / "data.md"
CODE = SOURCE / "tests" / "unit" / "test_data_examples.c"
IN_CODE = re.compile(r"^/\* example: (.+?) \*/\n(.*?)^/\* end \*/$", re.MULTILINE | re.DOTALL)
IN_PAGE = re.compile(r"^<!-- example: (.+?) -->\n```c\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Examples(unittest.TestCase):
    maxDiff = None

    def test_the_page_shows_what_is_tested(self):
        tested = dict(IN_CODE.findall(CODE.read_text()))
        shown = dict(IN_PAGE.findall(PAGE.read_text()))
        self.assertEqual(list(shown), list(tested), "the names of the examples")
        self.assertTrue(tested)
        for name, code in tested.items():
            self.assertEqual(shown[name], code, f"{name}: tests/e2e/test_data_examples.py --update")

    def test_every_block_of_the_page_is_an_example(self):
        self.assertEqual(PAGE.read_text().count("```c\n"), len(IN_PAGE.findall(PAGE.read_text())))


def update():
    """Write the tested examples into the page."""
    tested = dict(IN_CODE.findall(CODE.read_text()))
    PAGE.write_text(IN_PAGE.sub(
        lambda found: f"<!-- example: {found[1]} -->\n```c\n{tested[found[1]]}```", PAGE.read_text()))


if __name__ == "__main__":
    update() if sys.argv[1:] == ["--update"] else testing.main()
