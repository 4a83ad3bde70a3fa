"""The documentation: links lead somewhere, every page is in the index."""

import os
import pathlib
import re
import sys
import unittest

import yaml

SOURCE = pathlib.Path(os.environ["PROFCOL_SOURCE"])
sys.path.insert(0, str(SOURCE))

from tests.oracle import error_texts, log_messages, testing

DOCS = SOURCE / "docs"
LINK = re.compile(r"\[(?:[^][]|\[[^][]*\])*\]\(([^()\s]+)\)")


def pages():
    """Return all Markdown files of the source tree."""
    skipped = {".git", "build", "recording", "node_modules"}
    return sorted(path for path in SOURCE.rglob("*.md") if not skipped & set(path.relative_to(SOURCE).parts))


def without_code(text):
    """Return the text without blocks of code and `code`, where brackets are no links."""
    text = re.sub(r"(?ms)^```.*?^```", "", text)
    text = re.sub(r"(?m)^    .*$", "", text)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(path):
    """Return the anchors of a page, as GitHub makes them from its headings."""
    found, text = {}, re.sub(r"(?ms)^```.*?^```", "", path.read_text())
    for heading in re.findall(r"(?m)^#+ +(.+?) *$", text):
        heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        name = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
        count = found.get(name, 0)
        found[name] = count + 1
        if count:
            found[f"{name}-{count}"] = 1
    return set(found) | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def links(path):
    """Return the relative links of a page: (file, anchor), with None for what is missing."""
    found = []
    for target in LINK.findall(without_code(path.read_text())):
        if not re.match(r"[a-z]+:", target):
            name, _, anchor = target.partition("#")
            found.append(((path.parent / name).resolve() if name else path, anchor))
    return found


class LinksTest(unittest.TestCase):
    def test_links_lead_to_files_and_headings(self):
        known, broken = {}, []
        for page in pages():
            for target, anchor in links(page):
                if not target.exists():
                    broken.append(f"{page.relative_to(SOURCE)}: {os.path.relpath(target, page.parent)} does not exist")
                elif anchor and anchor not in known.setdefault(target, anchors(target)):
                    broken.append(f"{page.relative_to(SOURCE)}: {target.name} has no heading #{anchor}")
        self.assertEqual(broken, [])

    def test_headings_have_githubs_anchors(self):
        page = DOCS / "reference.md"
        self.assertLessEqual({"otlp-receiver", "tls-of-servers", "resource_detection-processor"}, anchors(page))

    def test_the_index_has_every_page(self):
        linked = {target for target, _ in links(DOCS / "README.md")}
        self.assertEqual([path.name for path in sorted(DOCS.glob("*.md")) if path.resolve() not in linked | {DOCS / "README.md"}], [])


class QuestionsTest(unittest.TestCase):
    def test_thirty_questions_have_one_answer_each(self):
        rows = re.findall(r"(?m)^\| ([^*|].*\?) \| (.+) \|$", (DOCS / "questions.md").read_text())
        self.assertGreaterEqual(len(rows), 30)
        for question, answer in rows:
            self.assertTrue(LINK.search(answer), question)


class AlertsTest(unittest.TestCase):
    """examples/prometheus/alerts.yaml: rules about metrics that exist, with names that docs/metrics.md has."""

    @staticmethod
    def documented():
        """Return the names of all metrics in docs/metrics.md."""
        found = set()
        for name in re.findall(r"(?m)^\| `([\w{}]+)` \|", (DOCS / "metrics.md").read_text()):
            items = ["spans", "profile_samples", "metric_points", "log_records"] if "{items}" in name else [""]
            found |= {name.replace("{items}", item) for item in items}
        return found

    def test_metrics_of_the_sources_are_documented(self):
        text = "".join(path.read_text() for folder in error_texts.FOLDERS for path in (SOURCE / folder).rglob("*.c"))
        page = (DOCS / "metrics.md").read_text()
        missing = [name for name in sorted(set(re.findall(r'"((?:otelcol|profcol)_[a-z_]+(?:%s)?)"', text)))
                   if f"`{name.replace('%s', '{items}')}`" not in page and not name.endswith("_")]
        self.assertEqual(missing, [])

    def test_operators_pages_name_metrics_that_exist(self):
        documented = self.documented()
        for page in ["troubleshooting", "tuning", "deployment", "upgrading"]:
            text = (DOCS / f"{page}.md").read_text()
            for name, rest in re.findall(r"\b((?:otelcol|profcol)_\w+)(\*?)", text):
                with self.subTest(f"{page}.md: {name}{rest}"):
                    if rest:
                        self.assertTrue(any(other.startswith(name) for other in documented))
                    elif not name.endswith("_"):
                        self.assertIn(re.sub("_(bucket|count)$", "", name), documented)

    def test_rules_name_metrics_and_are_documented(self):
        page, documented = (DOCS / "metrics.md").read_text(), self.documented()
        rules = yaml.safe_load((SOURCE / "examples/prometheus/alerts.yaml").read_text())["groups"][0]["rules"]
        for rule in rules:
            with self.subTest(rule["alert"]):
                names = {re.sub("_(bucket|count)$", "", name) for name in re.findall(r"\b(?:otelcol|profcol)_\w+", rule["expr"])}
                self.assertEqual(names - documented, set())
                self.assertTrue(names or rule["alert"] == "ProfcolDown")
        self.assertEqual(set(re.findall(r"`(Profcol\w+)`", page)), {rule["alert"] for rule in rules})


# Errors of requests that name the part that is wrong are not listed one by one.
FORMATS = re.compile(r"^(receivers/(pyroscope|pprof)/|extensions/health_check/|core/pipeline/otlp_request.c)")


def section(text, title):
    """Return what is below a heading of level 2, up to the next one."""
    return re.search(rf"(?ms)^## {title}\n(.*?)(?=^## |\Z)", text)[1]


def first_cells(text):
    """Return the `code` in the first cells of the rows of all tables."""
    rows = re.findall(r"(?m)^\| (`.*?`(?:, `.*?`)*) \|", text)
    return {code for row in rows for code in re.findall(r"`(.*?)`(?:, |$)", row)}


class TroubleshootingTest(unittest.TestCase):
    """docs/troubleshooting.md has what the program can log, and nothing else."""

    def setUp(self):
        self.page = (DOCS / "troubleshooting.md").read_text()
        self.logged = {(message.level, message.text.replace("`", "")): message.place for message in log_messages.every(SOURCE)}

    def test_it_has_every_warning_and_error(self):
        known = first_cells(section(self.page, "Log messages"))
        self.assertGreater(len(self.logged), 40)
        missing = [f"{where}: {text}" for (level, text), where in self.logged.items() if level in ("warn", "error") and text not in known]
        self.assertEqual(missing, [], "add a row to docs/troubleshooting.md")

    def test_what_it_has_is_in_the_program(self):
        texts = {text for _, text in self.logged}
        self.assertEqual(sorted(first_cells(section(self.page, "Log messages")) - texts), [], "remove or correct the row")

    def test_it_has_the_reasons_for_which_connections_are_closed(self):
        names = re.search(r"reason_names\[CLOSE_REASON_COUNT\] = \{(.*?)\};", (SOURCE / "core/net/server.c").read_text(), re.DOTALL)[1]
        listed = self.page.split("### Connections are closed")[1].split("\n### ")[0]
        self.assertEqual(set(re.findall(r'"(\w+)"', names)), first_cells(listed))

    def test_it_has_the_errors_of_the_pipeline(self):
        known = first_cells(section(self.page, "Errors"))
        missing = [f"{path}:{line}: {text}" for path, line, _, text in error_texts.calls("verdict_of|verdict_try_later")
                   if re.search("[a-z]", text) and not FORMATS.match(str(path))
                   and not any(text in code for code in known)]
        self.assertEqual(missing, [], "add a row to docs/troubleshooting.md")


if __name__ == "__main__":
    testing.main()
