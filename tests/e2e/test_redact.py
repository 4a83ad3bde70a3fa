"""`profcol redact --dry-run`: what the processor redaction would change in a file."""

import gzip
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
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


class Answers(threading.Thread):
    """A server that sends these answers, byte for byte, and closes the connection."""

    def __init__(self, answers):
        super().__init__()
        self.answers = answers
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.join()
        self.listener.close()

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as lines:
                path = lines.readline().split()[1].decode()
                while lines.readline() != b"\r\n":
                    pass
                if path in self.answers:
                    status, headers, body = self.answers[path]
                    connection.sendall(b"HTTP/1.1 %s\r\n%s\r\n%s" % (status.encode(), headers, body))


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
        self.check_result(redact("--dry-run", self.file(data)))

    def check_result(self, result):
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertEqual(sorted(lines[:-1]), ["attribute\tsecret_words: password\tpassword=hunter2", "attribute\tsecret_words: token\tapi_token=t",
                                              "function\tsecret_words: password\tgetPassword"])
        self.assertEqual(lines[-1], "3 matches")

    def test_urls(self):
        data = gzip.compress(request().SerializeToString())
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(data[i:i + 100]), data[i:i + 100]) for i in range(0, len(data), 100))
        wrong = {"/none": ("404 Not Found", b"", b""), "/short": ("200 OK", b"Content-Length: 9\r\n", b"short"),
                 "/cut": ("200 OK", b"Transfer-Encoding: chunked\r\n", chunks + b"0\r\n"),
                 "/moved": ("302 Found", b"Location: /length\r\n", b"")}
        right = {"/length": ("200 OK", b"content-length: %d\r\n" % len(data), data), "/end": ("200 OK", b"", data),
                 "/chunked?seconds=1": ("200 OK", b"Transfer-Encoding: Chunked\r\n", chunks + b"0\r\n\r\n")}
        with Answers(wrong | right) as server:
            for path in right:
                self.check_result(redact("--dry-run", server.url + path))
            for path, why in (("/none", "status 404 Not Found"), ("/short", "the answer is incomplete"), ("/cut", "the answer is incomplete"),
                              ("/moved", "status 302 Found"), ("/nothing", "no answer")):
                result = redact("--dry-run", server.url + path)
                self.assertEqual((result.returncode, result.stderr), (1, f"Error: {server.url}{path}: {why}\n"))
        self.assertIn("Connection refused", redact("--dry-run", server.url + "/length").stderr)
        self.assertIn("must start with http://", redact("--dry-run", "ftp://127.0.0.1/").stderr)

    def test_what_leaves_the_dictionary_and_originals(self):
        message = request()
        message.dictionary.string_table.extend(["myApiKey", "unused"])
        profile = message.resource_profiles[0].scope_profiles[0].profiles[0]
        profile.original_payload_format, profile.original_payload = "pprof", b"\x1f\x8b\0"
        result = redact("--dry-run", self.file(message.SerializeToString()))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertEqual(lines[-1], "5 matches")
        self.assertIn("unused\tsecret_words: api_key\tmyApiKey", lines)
        self.assertIn("original\talways removed\tpprof, 3 bytes", lines)

    def test_what_changes_the_direction_of_text_is_escaped(self):
        message = request()
        message.dictionary.string_table[:] = [text.replace("getPassword", "getPassword\u202edrowssap\u2066") for text in message.dictionary.string_table]
        result = redact("--dry-run", self.file(message.SerializeToString()))
        self.assertIn("function\tsecret_words: hidden characters\tgetPassword\\u202edrowssap\\u2066", result.stdout.splitlines())

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
        self.assertIn("needs --dry-run and a file or URL", redact(self.file(b"")).stderr)
        self.assertIn("No such file", redact("--dry-run", str(self.directory / "none")).stderr)
        self.assertEqual(redact("--dry-run", self.file(b"")).stderr, "Error: there is no data\n")
        self.assertEqual(redact("--dry-run", self.file(b'{"a": 1}')).stderr, "Error: the JSON has neither resourceSpans nor resourceProfiles\n")
        self.assertIn("neither traces", redact("--dry-run", self.file(b"\x0a\xff")).stderr)
        self.assertEqual(redact("--dry-run", self.file(b"{]")).returncode, 1)


if __name__ == "__main__":
    testing.main()
