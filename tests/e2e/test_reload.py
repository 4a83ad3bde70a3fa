"""Reloading the configuration: SIGHUP, --watch, and what `validate --diff` says about it."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import client, make, server, testing

CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}}}}
processors: {batch: {timeout: 10ms}}
exporters: {file: {path: "@dir@/out"}}
extensions: {health_check: {http: {endpoint: "127.0.0.1:@health@", status: {enabled: true}}}}
service: {extensions: [health_check], pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [file]}}}
"""
BAD = CONFIG.replace("timeout: 10ms", "timeout: soon")


class Reloading(server.Profcol):
    """A process whose configuration file the test rewrites."""

    def write(self, template):
        """Replace the file as a ConfigMap is replaced: all at once."""
        path = self.config_path.with_suffix(".new")
        path.write_text(self.render(template))
        path.rename(self.config_path)

    def count(self, result):
        return self.metric("profcol_config_reloads", result=result)

    def reload(self, template, result):
        """Write the file, send SIGHUP and wait until the reload has had this result."""
        before = self.count(result)
        self.write(template)
        self.signal(signal.SIGHUP)
        server.wait_until(lambda: self.count(result) == before + 1, what=f"reload: {result}")

    def health(self):
        with urllib.request.urlopen(self.url("health") + "/status?verbose", timeout=30) as answer:
            return answer.read().decode()


class Loading(unittest.TestCase):
    def test_a_bad_file_changes_nothing_and_says_so(self):
        with Reloading(CONFIG) as profcol:
            self.assertEqual(profcol.metric("profcol_config_last_reload_successful"), 1)
            profcol.reload(BAD, "refused")
            profcol.wait_for_log(r"config\.yaml:3:\d+: error: processors::batch::timeout: ")
            self.assertEqual(profcol.metric("profcol_config_last_reload_successful"), 0)
            self.assertIn('"configuration"', profcol.health())
            self.assertIn("StatusRecoverableError", profcol.health())
            answer = client.export("grpc", profcol.address("grpc"), make.traces([{"span_id": "00000000000000a1"}]))
            self.assertTrue(client.succeeded(answer))
            profcol.reload("", "refused")
            profcol.reload(CONFIG, "unchanged")
            self.assertEqual(profcol.metric("profcol_config_last_reload_successful"), 1)
            self.assertNotIn("configuration", profcol.health())

    def test_a_file_that_is_gone_is_an_error(self):
        with Reloading(CONFIG) as profcol:
            profcol.config_path.unlink()
            profcol.signal(signal.SIGHUP)
            server.wait_until(lambda: profcol.count("refused") == 1, what="the reload")
            profcol.reload(CONFIG, "unchanged")

    def test_watch(self):
        """A file, a file of a placeholder, and a symbolic link that is exchanged."""
        with Reloading(CONFIG, arguments=["--watch"]) as profcol:
            profcol.write(BAD)
            server.wait_until(lambda: profcol.count("refused") == 1, what="a reload without SIGHUP")
            profcol.write(CONFIG.replace("timeout: 10ms", 'timeout: "${file:@dir@/timeout}"'))
            server.wait_until(lambda: profcol.count("refused") == 2, what="a reload of a missing file")
            (profcol.directory / "timeout").write_text("10ms")
            server.wait_until(lambda: profcol.count("unchanged") == 1, what="a reload of the placeholder's file")
            for name, text in (("one", CONFIG), ("two", BAD)):
                (profcol.directory / name).write_text(profcol.render(text))
            link = profcol.directory / "link"
            for target, result, count in (("one", "unchanged", 2), ("two", "refused", 3)):
                link.symlink_to(target)
                link.rename(profcol.config_path)
                server.wait_until(lambda r=result, c=count: profcol.count(r) == c, what=f"the link to {target}")

    def test_sighup_without_watch_only(self):
        with Reloading(CONFIG) as profcol:
            profcol.write(BAD)
            profcol.reload(BAD, "refused")
            self.assertEqual(profcol.count("refused"), 1)


class Diff(unittest.TestCase):
    def run_diff(self, *arguments):
        return subprocess.run([os.environ["PROFCOL"], "validate", "--diff", *arguments], capture_output=True, text=True,
                              timeout=60, check=False, stdin=subprocess.DEVNULL)

    def test_diff(self):
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            texts = {"old": CONFIG, "new": CONFIG.replace("10ms", "20ms"), "bad": BAD}
            for file, text in texts.items():
                (directory / file).write_text(text.replace("@grpc@", "1").replace("@health@", "2"))
            old, new, bad = (str(directory / file) for file in texts)
            same = self.run_diff(old, old)
            self.assertEqual((same.returncode, same.stdout, same.stderr), (0, "A reload changes nothing.\n", ""))
            changed = self.run_diff(old, new)
            self.assertEqual((changed.returncode, changed.stderr), (0, ""))
            self.assertEqual(changed.stdout.splitlines(), [
                "receiver otlp: unchanged, goes on",
                "processor batch: changed, a new one starts and the old one drains (timeout differs)",
                "exporter file: unchanged, goes on",
                "extension health_check: unchanged, goes on",
                "pipeline traces: unchanged"])
            wrong = self.run_diff(old, bad)
            self.assertEqual((wrong.returncode, wrong.stdout), (1, ""))
            self.assertIn("processors::batch::timeout", wrong.stderr)
            self.assertIn("needs two configurations", self.run_diff(old).stderr)


if __name__ == "__main__":
    testing.main()
