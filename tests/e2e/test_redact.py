"""`profcol redact --dry-run`: what the processor redaction would change in a file."""

import gzip
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from google.protobuf import json_format  # noqa: E402

from tests.oracle import make, testing  # noqa: E402

CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:4317"}}}}
processors: {redaction/a: {allow_all_keys: true, blocked_values: ["work"]}, redaction/b: {allowed_keys: [route]}}
exporters: {nop: {}}
service: {pipelines: {profiles: {receivers: [otlp], processors: [redaction/a, redaction/b], exporters: [nop]}}}
"""


def redact(*arguments):
    return subprocess.run([os.environ["PROFCOL"], "redact", *arguments], capture_output=True, text=True, timeout=60, check=False)


def request():
    built = make.ProfilesBuilder()
    make.set_attributes(built.resource.resource, {"api_token": "t"})
    built.sample(stack=built.stack("getPassword", "tokenize", "work"), values=[3], attributes={"route": "/a", "password": "hunter2"})
    return built.request


class Redact(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def file(self, data, name="file"):
        path = self.directory / name
        path.write_bytes(data)
        return str(path)

    def check(self, data):
        result = redact("--dry-run", self.file(data))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertEqual(sorted(lines[:-1]), ["attribute\tsecret_words: password\tpassword=hunter2", "attribute\tsecret_words: token\tapi_token=t",
                                              "function\tsecret_words: password\tgetPassword"])
        self.assertEqual(lines[-1], "3 matches")

    def test_formats(self):
        data = request().SerializeToString()
        self.check(data)
        self.check(gzip.compress(data))
        self.check(json_format.MessageToJson(request()).encode())

    def test_pprof(self):
        result = redact("--dry-run", str(pathlib.Path(os.environ["PROFCOL_SOURCE"], "tests/data/pprof/go-cpu.pb.gz")))
        self.assertEqual((result.returncode, result.stderr, result.stdout), (0, "", "0 matches\n"))

    def test_rules_of_a_configuration(self):
        config, data = self.file(CONFIG.encode(), "config.yaml"), self.file(request().SerializeToString())
        result = redact("--dry-run", "--config", config, "--processor", "redaction/a", data)
        self.assertEqual(result.stdout, "function\tblocked_values: work\twork\n1 match\n")
        result = redact("--dry-run", "--config", config, "--processor=redaction/b", data)
        self.assertEqual(result.stdout.splitlines()[-1], "2 matches")
        self.assertIn("attribute\tallowed_keys\tapi_token=t\n", result.stdout)
        result = redact("--dry-run", "--config", config, data)
        self.assertEqual(result.returncode, 1)
        self.assertIn("several processors redaction", result.stderr)
        result = redact("--dry-run", "--config", config, "--processor", "redaction/c", data)
        self.assertIn("there is no processor redaction/c in the configuration", result.stderr)

    def test_mistakes(self):
        self.assertIn("needs --dry-run and a file", redact(self.file(b"")).stderr)
        self.assertIn("No such file", redact("--dry-run", str(self.directory / "none")).stderr)
        self.assertIn("neither traces", redact("--dry-run", self.file(b"\x0a\xff")).stderr)
        self.assertEqual(redact("--dry-run", self.file(b"{]")).returncode, 1)


if __name__ == "__main__":
    testing.main()
