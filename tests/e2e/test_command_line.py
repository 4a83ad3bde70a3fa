"""The command line: commands, options, exit codes, output, and that it never contains a secret."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import backend, client, make, server, testing

PROFCOL = os.environ["PROFCOL"]
SOURCE = pathlib.Path(os.environ["PROFCOL_SOURCE"])
UPDATE = "--update" in sys.argv
if UPDATE:
    sys.argv.remove("--update")
GOOD = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:4317"}}}}
processors: {batch: {timeout: 3s}}
exporters: {nop: }
service: {pipelines: {traces: {receivers: [otlp], processors: [batch], exporters: [nop]}}}
"""


def run(*arguments, environment=None, timeout=30):
    """Run profcol. Return the finished process."""
    return subprocess.run([PROFCOL, *arguments], capture_output=True, text=True, timeout=timeout, check=False,
                          env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL)


class FileTest(unittest.TestCase):
    """Tests with configuration files."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def file(self, text, name="config.yaml"):
        """Write a file with this text. Return its path."""
        path = self.directory / name
        path.write_text(text)
        return str(path)

    def fine(self, *arguments, **options):
        """Return the standard output of a run that must succeed without errors on stderr."""
        result = run(*arguments, **options)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def fails(self, *arguments, **options):
        """Return the standard error of a run that must exit with 1 and print nothing else."""
        result = run(*arguments, **options)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertTrue(result.stderr)
        return result.stderr


class CommandTest(FileTest):
    """The commands."""

    def test_version_and_help(self):
        for option in ("--version", "-v"):
            self.assertRegex(self.fine(option), r"^profcol version \d+\.\d+\.\d+\S*\n$")
        for option in ("--help", "-h"):
            text = self.fine(option)
            for word in ("validate", "print-config", "components", "reference", "schema", "--config", "--set", "--workers",
                         "--drain-timeout", "--version"):
                self.assertIn(word, text)

    def test_wrong_usage(self):
        self.assertIn('unknown command "validat", did you mean "validate"?', self.fails("validat"))
        self.assertIn("unknown command", self.fails("serve"))
        for command in ("validate", "print-config"):
            self.assertIn('unexpected argument "x.conf"; a configuration is given as --config x.conf\n', self.fails(command, "x.conf"))
        self.assertIn('unexpected argument "x.yaml"\n', self.fails("components", "x.yaml"))
        self.assertIn('unexpected argument "c.yaml"\n', self.fails("validate", "--diff", "a.yaml", "b.yaml", "c.yaml"))
        self.assertIn('unknown command "x.yaml"; a configuration is given as --config x.yaml\n', self.fails("x.yaml"))
        self.assertIn('unknown option "--nonsense"', self.fails("--nonsense"))
        self.assertIn('unknown option "--wrokers", did you mean "--workers"?', self.fails("--wrokers=2"))
        self.assertIn('unknown option "-x"', self.fails("-x"))
        self.assertIn('option "--watch" takes no value', self.fails("--watch=1"))
        self.assertIn("a run does not take the option --diff", self.fails("--diff"))
        self.assertIn("the command components does not take the option --config", self.fails("components", "--config", "x"))
        self.assertIn('unknown command "validat", did you mean "validate"?', self.fails("help", "validat"))
        for arguments in (["completion"], ["completion", "csh"], ["man", "intro"], ["completion", "bash", "zsh"]):
            self.assertIn("Run `profcol --help`", self.fails(*arguments))
        self.assertIn("--config", self.fails("--config"))
        self.assertIn("missing equal sign", self.fails("validate", "--set", "a.b"))
        for value in ("0", "65", "x", "-1", "1.5", ""):
            self.assertIn("--workers", self.fails("--workers", value))
        for value in ("x", "-1s", "5", "1y"):
            self.assertIn("--drain-timeout", self.fails("--drain-timeout", value))

    def test_validate(self):
        self.assertEqual(self.fine("validate", "--config", self.file(GOOD)), "")
        self.assertEqual(self.fine("validate"), "The built-in configuration is valid; --config names another one.\n")
        self.assertEqual(self.fine("validate", f"--config={self.file(GOOD)}", "--feature-gates", "service.profilesSupport"), "")
        self.assertEqual(self.fine("validate", "--config", f"file:{self.file(GOOD)}"), "")
        self.assertEqual(self.fine("validate", "--config", "env:GOOD", environment={"GOOD": GOOD}), "")
        self.assertEqual(self.fine("validate", "--config", "yaml:" + GOOD), "")

    def test_validate_looks_at_certificates(self):
        tls = "{cert_file: /nonexistent/cert.pem, key_file: /nonexistent/key.pem}"
        path = self.file(GOOD.replace('4317"', '4317", tls: ' + tls))
        text = "receivers::otlp::protocols::grpc::tls: cannot be used here: /nonexistent/cert.pem: No such file or directory\n"
        result = run("validate", "--config", path)
        self.assertEqual((result.returncode, result.stdout), (0, ""))
        self.assertTrue(result.stderr.endswith("warning: " + text), result.stderr)
        self.assertIn(text, self.fails("validate", "--strict", "--config", path))
        without_metrics = ("--set", "service.telemetry.metrics.level=none")     # their default port may be taken
        self.assertIn("/nonexistent/cert.pem", self.fails("--config", path, *without_metrics), "starting fails")
        self.assertNotIn("/nonexistent", run("print-config", "--config", path).stderr)

    def test_feature_gates(self):
        path = self.file(GOOD)
        self.assertEqual(self.fine("validate", "--config", path, "--feature-gates=+service.profilesSupport,"), "")
        result = run("validate", "--config", path, "--feature-gates=service.profilesSupport,-a.b,c")
        self.assertEqual((result.returncode, result.stdout), (0, ""))
        self.assertEqual(result.stderr, 'Warning: --feature-gates: profcol has no gate "-a.b"; ignored\n'
                                        'Warning: --feature-gates: profcol has no gate "c"; ignored\n')
        tail = "processor.tailsamplingprocessor."
        for gate, lacks in (("recordpolicy", "which policy sampled them"), ("usetracestate", "in tracestate")):
            for sign in ("", "+"):
                self.assertIn(lacks, self.fails("validate", "--config", path, f"--feature-gates={sign}{tail}{gate}"))
            self.assertEqual(self.fine("validate", "--config", path, f"--feature-gates=-{tail}{gate},{tail}metricstatcountspanssampled"), "")

    def test_every_mistake_is_named_with_its_place(self):
        text = self.fails("validate", "--config", self.file("""receivers:
  otlp:
    protocols:
      grpc:
        endpiont: 127.0.0.1:4317
processors:
  batch: {timeout: 3 seconds}
exporters:
  nop:
  otlp_htp:
service:
  pipelines:
    traces: {receivers: [otlp], processors: [batch, resource], exporters: [nop]}
"""))
        for place, words in ((":5:9", 'did you mean "endpoint"'), (":7:20", "timeout"), (":10:3", "otlp_http"),
                             (":13:", "resource")):
            self.assertTrue(any(place in line and words in line for line in text.splitlines()), f"{place} {words}\n{text}")

    def test_files_that_cannot_be_used(self):
        self.assertIn("nowhere.yaml", self.fails("validate", "--config", str(self.directory / "nowhere.yaml")))
        self.fails("validate", "--config", str(self.directory))
        for text in ("", "a: [", "- 1", "\0", "receivers: {a: 1}\nreceivers: {}", "&a [*a, *a]", "[" * 10_000):
            with self.subTest(text[:20]):
                self.fails("validate", "--config", self.file(text))
                self.fails("--config", self.file(text))

    def test_set(self):
        config = self.file(GOOD)

        def printed(*sets):
            return yaml.safe_load(self.fine("print-config", "--config", config, *sets))

        self.assertEqual(printed()["processors"]["batch"]["timeout"], "3s")
        self.assertEqual(printed("--set", "processors.batch.timeout=2s")["processors"]["batch"]["timeout"], "2s")
        tree = printed("--set", "exporters.debug.verbosity=detailed", "--set", "service.pipelines.traces.exporters=[nop, debug]")
        self.assertEqual(tree["exporters"]["debug"]["verbosity"], "detailed")
        self.assertEqual(tree["service"]["pipelines"]["traces"]["exporters"], ["nop", "debug"])
        self.assertIn("timeout", self.fails("validate", "--config", config, "--set", "processors.batch.timeout=soon"))

    def test_signals(self):
        config = self.file(GOOD.replace("{pipelines: {", "{pipelines: {metrics: {receivers: [hostmetrics], exporters: [nop]}, "))
        self.assertIn('references receiver "hostmetrics" which is not configured', self.fails("validate", "--config", config))
        result = run("print-config", "--config", config, "--signals", "traces")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("warning: service: --signals traces leaves out: pipeline metrics\n", result.stderr)
        self.assertEqual(list(yaml.safe_load(result.stdout)["service"]["pipelines"]), ["traces"])
        self.assertIn("must be a list of traces, profiles, metrics and logs", self.fails("validate", "--config", config, "--signals", "trace"))
        self.assertIn("leaves out all there is: pipelines metrics, traces",
                      self.fails("validate", "--config", config, "--signals", "profiles"))

    def test_several_files_are_merged(self):
        more = self.file("processors: {batch: {send_batch_size: 7}}", "more.yaml")
        tree = yaml.safe_load(self.fine("print-config", "--config", self.file(GOOD), "--config", more))
        self.assertEqual(tree["processors"]["batch"]["timeout"], "3s")
        self.assertEqual(tree["processors"]["batch"]["send_batch_size"], 7)

    def test_what_print_config_prints_is_a_configuration(self):
        for source in ([], *(["--config", str(path)] for path in sorted((SOURCE / "examples").glob("*.yaml")))):
            environment = {"ONEUPTIME_TOKEN": "secret"}
            first = run("print-config", *source, environment=environment)
            self.assertEqual(first.returncode, 0, first.stderr)
            second = run("print-config", "--config", self.file(first.stdout))
            self.assertEqual((second.returncode, second.stdout), (0, first.stdout), second.stderr)

    def test_print_config_leaves_out_what_only_counts_if_it_is_written(self):
        text = """
    receivers: {otlp: {protocols: {grpc: }}}
    processors:
      spanjoin: {keep: {span_detail_when: [{status: error}, {attribute: {key: size, above: 5}}]}}
      tail_sampling:
        policies:
          - {name: slow, type: latency, latency: {threshold_ms: 5}}
          - {name: both, type: and, and: {and_sub_policy: [{name: bad, type: status_code, status_code: {status_codes: [ERROR]}}]}}
    exporters: {nop: }
    service:
      pipelines:
        traces: {receivers: [otlp], processors: [spanjoin, tail_sampling], exporters: [nop]}
        profiles: {receivers: [otlp], processors: [spanjoin], exporters: [nop]}
    """
        printed = self.fine("print-config", "--config", self.file(text))
        tree = yaml.safe_load(printed)["processors"]
        self.assertEqual(tree["spanjoin"]["keep"]["span_detail_when"],
                         [{"status": "error"}, {"attribute": {"enabled": True, "key": "size", "above": 5}}])
        self.assertEqual([set(policy) for policy in tree["tail_sampling"]["policies"]],
                         [{"name", "type", "latency"}, {"name", "type", "and"}])
        self.fine("validate", "--strict", "--config", self.file(printed))

    def test_components(self):
        tree = yaml.safe_load(self.fine("components"))
        self.assertRegex(tree["buildinfo"]["version"], r"^\d")
        names = {section: {row["name"] for row in tree[section]} for section in ("receivers", "processors", "exporters")}
        self.assertLessEqual({"otlp"}, names["receivers"])
        self.assertLessEqual({"batch", "resource", "spanjoin"}, names["processors"])
        self.assertLessEqual({"debug", "file", "nop", "otlp_grpc", "otlp_http"}, names["exporters"])
        for section, rows in tree.items():
            for row in rows if section != "buildinfo" else ():
                self.assertTrue(row["stability"], row)

    def test_reference_is_what_the_documentation_shows(self):
        printed = self.fine("reference")
        committed = (SOURCE / "docs" / "reference.md").read_text()
        self.assertEqual(committed, printed, "docs/reference.md is old: profcol reference > docs/reference.md")

    def test_reference_of_one_component(self):
        printed = self.fine("reference", "spanjoin")
        self.assertEqual(re.findall("(?m)^### (.*)$", printed), ["spanjoin processor"])
        self.assertIn(printed, (SOURCE / "docs" / "reference.md").read_text())
        self.assertEqual(re.findall("(?m)^### (.*)$", self.fine("reference", "otlp")), ["otlp receiver", "otlp_grpc exporter"])
        self.assertIn('there is no component "otlpp"', self.fails("reference", "otlpp"))

    def test_schema_describes_the_examples(self):
        schema = json.loads(self.fine("schema"))
        self.assertIn("$schema", schema)
        for section in ("receivers", "processors", "exporters", "service"):
            self.assertIn(section, schema["properties"])
        text = json.dumps(schema)
        for key in set(re.findall(r"^\s*([a-z_]+):", GOOD, re.MULTILINE)):
            self.assertIn(f'"{key}"', text)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            for command in ("components", "reference", "schema", "print-config", "help", "version", "--version", "man"):
                result = subprocess.run([PROFCOL, command], stdout=full, stderr=subprocess.PIPE, check=False, timeout=30)
                self.assertEqual(result.returncode, 1, command)

    def test_a_port_in_use(self):
        with server.Profcol(GOOD.replace("4317", "@grpc@"), listen=["grpc"]) as first:
            text = GOOD.replace("4317", str(first.ports["grpc"]))
            result = run("--config", self.file(text), "--set", "service.telemetry.metrics.level=none")
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, rf"(?i)127\.0\.0\.1:{first.ports['grpc']}.*address already in use")


class HelpTest(FileTest):
    """Help, manual pages and completion. `--update` writes the expected help texts; review the diff."""

    HELP = SOURCE / "tests" / "data" / "command_line"

    def commands(self):
        """Return the names of all commands, as the program lists them."""
        return re.findall(r"^  profcol ([a-z]\S*)", self.fine("help").split("Commands:")[1], re.MULTILINE)

    def complete(self, *words):
        """Return what bash completes the last word to."""
        script = self.file(self.fine("completion", "bash"), "completion.bash")
        line = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; '
                '_profcol; printf "%s\\n" "${COMPREPLY[@]}"')
        result = subprocess.run(["bash", "-c", line, "bash", script, "profcol", *words], capture_output=True, text=True,
                                cwd=self.directory, check=False, timeout=30)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout.split()

    def test_help(self):
        expected = {"help.txt": self.fine("help")}
        self.assertGreater(len(self.commands()), 8)
        for command in self.commands():
            expected[f"help-{command}.txt"] = self.fine("help", command)
            self.assertEqual(self.fine(command, "--help"), self.fine("help", command))
        self.assertEqual(self.fine("--help"), expected["help.txt"])
        for name, text in expected.items():
            if UPDATE:
                (self.HELP / name).write_text(text)
            self.assertEqual((self.HELP / name).read_text(), text, name)
            self.assertLessEqual(max(map(len, text.splitlines())), 80, name)
        self.assertEqual(sorted(path.name for path in self.HELP.iterdir()), sorted(expected))

    def test_version_names_the_build(self):
        text = self.fine("version")
        self.assertTrue(text.startswith(self.fine("--version")))
        self.assertRegex(text, r"\ncommit: (unknown|[0-9a-f]{12}(-dirty)?)\ncompiler: \S+ \d")
        for library in ("libuv", "nghttp2", "protobuf-c", "jansson", "libyaml", "openssl", "zlib", "libdeflate", "zstd",
                        "snappy", "lz4", "xxhash", "pcre2", "libcrypt"):
            self.assertRegex(text, rf"\n  {library} +\d+\.\d+")

    def test_exit_codes_are_documented(self):
        for text in (self.fine("help"), self.fine("man"), (SOURCE / "docs" / "command-line.md").read_text()):
            self.assertRegex(text, r"(?m)^\W*(fB)?0\b.*(\n.*)?Success")
            self.assertRegex(text, r"(?m)^\W*(fB)?1\b.*(\n.*)?Failure")

    def test_bash_completion(self):
        self.file("", "one.yaml")
        self.assertEqual(self.complete("val"), ["validate"])
        self.assertLessEqual({*self.commands(), "--config", "--watch"}, set(self.complete("")))
        self.assertEqual(self.complete("--work"), ["--workers"])
        self.assertEqual(self.complete("--config", "on"), ["one.yaml"])
        self.assertEqual(self.complete("--config", "=", "on"), ["one.yaml"])
        self.assertEqual(self.complete("--config", "one.yaml", "validate", "--st"), ["--strict"])
        self.assertEqual(self.complete("validate", "--diff", "on"), ["one.yaml"])
        self.assertEqual(self.complete("validate", "--watc"), [])
        self.assertEqual(self.complete("help", "val"), ["validate"])
        self.assertEqual(self.complete("completion", "z"), ["zsh"])
        self.assertEqual(self.complete("--signals", "p"), ["profiles"])

    def test_completion_scripts(self):
        for shell in ("bash", "zsh", "fish"):
            text = self.fine("completion", shell)
            for word in (*self.commands(), "config", "drain-timeout"):
                self.assertIn(word, text, shell)
            if shutil.which(shell):
                result = subprocess.run([shell, "-n", self.file(text, shell)], capture_output=True, check=False, timeout=30)
                self.assertEqual((result.returncode, result.stderr), (0, b""))

    def test_manual_pages(self):
        page = self.fine("man")
        for word in self.commands():
            self.assertIn(word.replace("-", "\\-"), page)
        self.assertEqual(page, self.fine("man", "profcol"))
        settings = self.fine("man", "profcol.yaml")
        keys = re.findall(r"^\| `([a-z_.\[\]A-Z]+)` \|", self.fine("reference"), re.MULTILINE)
        self.assertGreater(len(keys), 300)
        for key in keys:
            self.assertIn(f".TP\n\\fB{key}\\fR\n", settings)
        if shutil.which("groff"):
            for text in (page, settings):
                result = subprocess.run(["groff", "-man", "-ww", "-W", "break", "-Tutf8", "-k"], input=text, capture_output=True, text=True,
                                        check=False, timeout=60)
                self.assertEqual((result.returncode, result.stderr), (0, ""))


class SecretTest(FileTest):
    """Canaries are in all places for secrets; no output may contain one."""

    CANARY = "c4n4ry"

    CONFIG = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:@grpc@"}
      http: {endpoint: "127.0.0.1:@http@", response_headers: {x-secret: c4n4ry-1}}
exporters:
  debug: {verbosity: detailed}
  otlp_grpc:
    endpoint: "GRPC"
    tls: {insecure: true}
    headers: {authorization: Bearer c4n4ry-2, x-token: "${env:TOKEN}"}
    retry_on_failure: {enabled: false}
  otlp_http:
    endpoint: "HTTP"
    headers: [{name: x-api-key, value: c4n4ry-4}]
    retry_on_failure: {initial_interval: 50ms}
service:
  telemetry:
    logs: {level: debug}
    metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: @metrics@}}}}]}
  pipelines:
    traces: {receivers: [otlp], exporters: [otlp_grpc, otlp_http, debug]}
"""

    def check_clean(self, text, where):
        """Check that the text contains no canary."""
        at = text.find(self.CANARY)
        self.assertEqual(at, -1, f"{where}: ...{text[max(0, at - 200):at + 40]}")

    def test_commands(self):
        config = self.file(self.CONFIG.replace("@grpc@", "1").replace("@http@", "2").replace("@metrics@", "3")
                           .replace("GRPC", "127.0.0.1:4").replace("HTTP", "http://127.0.0.1:5"))
        for arguments in (["validate"], ["print-config"]):
            result = run(*arguments, "--config", config, environment={"TOKEN": "c4n4ry-3"})
            self.assertEqual(result.returncode, 0, result.stderr)
            self.check_clean(result.stdout + result.stderr, arguments)
            if arguments == ["print-config"]:
                self.assertGreaterEqual(result.stdout.count("[REDACTED]"), 4)
        # Mistakes near a secret and in one.
        for change in (("x-token:", "x-token: {a: c4n4ry-5}, y:"), ("authorization:", "authorization: [c4n4ry-5], y:"),
                       ("headers: [", "headers: [c4n4ry-5, "), ("insecure: true", "insecure: true, key_pem: [c4n4ry-5]"),
                       ("insecure: true", "insecure: false, key_pem: c4n4ry-5, cert_pem: c4n4ry-6"),
                       ("insecure: true", "insecure: true, key_pem: c4n4ry-5, key_file: /nowhere"),
                       ('"http://127.0.0.1:5"', '"http://user:c4n4ry-6@127.0.0.1:5/x"')):
            broken = self.file(pathlib.Path(config).read_text().replace(*change), "broken.yaml")
            for arguments in (["validate"], ["print-config"], []):
                result = run(*arguments, "--config", broken, environment={"TOKEN": "c4n4ry-3"})
                if "cert_pem" not in change[1] or not arguments:    # only `run` reads the certificate
                    self.assertEqual(result.returncode, 1, change)
                self.check_clean(result.stdout + result.stderr, (change, arguments))

    def test_logs_and_metrics(self):
        with backend.Backend("grpc") as one, backend.Backend("http") as two:
            one.default = backend.Answer(grpc_status=16, message="no")
            two.answers.extend([backend.Answer(status=503), backend.Answer(status=401), backend.Answer(drop=True)])
            text = self.CONFIG.replace("GRPC", one.address).replace("HTTP", two.url)
            with server.Profcol(text, environment={"TOKEN": "c4n4ry-3"}) as profcol:
                message = make.traces([{"span_id": "00000000000000a1", "trace_id": "0" * 30 + "c3"}])
                for _ in range(4):
                    client.export("http", profcol.address("http"), message,
                                  headers=[("Authorization", "Bearer c4n4ry-7"), ("x-scope-orgid", "me")])
                client.post(profcol.address("http"), "/v1/traces", b"\xff", headers=[("Authorization", "c4n4ry-7")])
                client.call(profcol.address("grpc"), client.TRACE_SERVICE, b"\xff", headers=[("authorization", "c4n4ry-7")])
                two.wait(1)
                one.wait_for(lambda: one.of(), what="a request")
                self.assertEqual(one.of()[0].header("authorization"), "Bearer c4n4ry-2", "it is sent where it belongs")
                self.assertEqual(one.of()[0].header("x-token"), "c4n4ry-3")
                self.assertEqual(two.of()[0].header("x-api-key"), "c4n4ry-4")
                self.check_clean(profcol.metrics_text(), "/metrics")
                profcol.stop()
                self.check_clean(profcol.log(), "log")


if __name__ == "__main__":
    testing.main()
