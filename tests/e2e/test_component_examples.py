"""One working example for each component: examples/SECTION/NAME.yaml. docs/reference.md links to them."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

import yaml

sys.path.insert(0, os.environ["PROFCOL_SOURCE"])

from tests.oracle import server, testing

PROFCOL = os.environ["PROFCOL"]
EXAMPLES = pathlib.Path(os.environ["PROFCOL_SOURCE"]) / "examples"
SECTIONS = ["receivers", "processors", "exporters", "connectors", "extensions"]
# Addresses that profcol listens on: in receivers and extensions, but not URLs, which are of scraped services.
LISTENER = re.compile(r"(?<!/)(?:localhost|0\.0\.0\.0):(\d+)")
FILES = {"users": "profcol:secret\n", "tokens": "secret\n"}


def components():
    """Return (section, name) of every component, as `profcol components` lists them."""
    text = subprocess.run([PROFCOL, "components"], capture_output=True, text=True, timeout=30, check=True).stdout
    found, section = [], None
    for line in text.splitlines():
        if match := re.fullmatch(r"(\w+):( \[\])?", line):
            section = match[1]
        elif match := re.fullmatch(r"  - name: (\w+)", line):
            found.append((section, match[1]))
    return found


def files():
    return [path for section in SECTIONS for path in sorted((EXAMPLES / section).glob("*"))]


def with_own_addresses(text):
    """Return the YAML with markers of server.Profcol in place of ports, and their names."""
    names = []

    def marker(match):
        names.append(f"p{match[1]}")
        return f"127.0.0.1:@p{match[1]}@"

    parts = re.split(r"(?m)^(?=\w+:)", text)
    parts = [LISTENER.sub(marker, part) if part.startswith(("receivers:", "extensions:")) else part for part in parts]
    return "".join(parts).replace("/etc/profcol/", "@dir@/").replace("/tmp/", "@dir@/"), names


class Example(server.Profcol):
    """A process with an example, and the files that it names."""

    def _spawn(self):
        for name, content in FILES.items():
            (self.directory / name).write_text(content)
        super()._spawn()


class ComponentExamplesTest(unittest.TestCase):
    def test_each_component_has_one(self):
        self.assertEqual(sorted(components()), sorted((path.parent.name, path.stem) for path in files()))

    def test_each_begins_with_what_it_is_for_and_uses_its_component(self):
        for path in files():
            with self.subTest(path.stem):
                text = path.read_text()
                self.assertRegex(text, r"^# [A-Z].*\n")
                service = text.split("\nservice:\n")[1]
                self.assertRegex(service, rf"(?m)\b{path.stem}\b")

    @staticmethod
    def told(path):
        """Return what `validate` says about a file."""
        return subprocess.run([PROFCOL, "validate", "--strict", "--config", str(path)], capture_output=True, text=True,
                              timeout=30, check=False).stderr

    def test_each_is_valid(self):
        for path in files():
            with self.subTest(path.stem):
                self.assertEqual(self.told(path), "")

    def test_each_starts_and_ends(self):
        for path in files():
            with self.subTest(path.stem):
                config, names = with_own_addresses(path.read_text())
                with Example(config, listen=names + ["metrics"]) as profcol:
                    profcol.wait_for_log("Everything is ready")
                    self.assertEqual(profcol.stop(), 0, profcol.log())


class KubernetesTest(unittest.TestCase):
    """examples/kubernetes: the configuration inside is valid, and agrees with what is around it."""

    @staticmethod
    def manifests(path):
        return {document["kind"]: document for document in yaml.safe_load_all(path.read_text())}

    def test_configurations_are_valid_and_ports_agree(self):
        paths = sorted((EXAMPLES / "kubernetes").glob("*.yaml"))
        self.assertEqual([path.stem for path in paths], ["gateway", "sidecar"])
        for path in paths:
            with self.subTest(path.stem):
                manifests = self.manifests(path)
                config = manifests["ConfigMap"]["data"]["config.yaml"]
                result = subprocess.run([PROFCOL, "validate", "--strict", "--config", f"yaml:{config}"], capture_output=True,
                                        text=True, timeout=30, check=False)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                pod = manifests["Deployment"]["spec"]["template"]["spec"]
                profcol = next(c for c in pod.get("initContainers", []) + pod["containers"] if c["name"] == "profcol")
                ports = {port["name"]: port["containerPort"] for port in profcol["ports"]}
                for number in ports.values():
                    self.assertRegex(config, rf"0\.0\.0\.0:{number}\b|host: 0\.0\.0\.0, port: {number}\b")
                for port in manifests.get("Service", {"spec": {"ports": []}})["spec"]["ports"]:
                    self.assertEqual(ports[port["targetPort"]], port["port"])
                self.assertEqual({profcol[probe]["httpGet"]["port"] for probe in profcol if probe.endswith("Probe")}, {"health"})
                self.assertGreater(pod["terminationGracePeriodSeconds"], 20)
                self.assertEqual(manifests["ConfigMap"]["metadata"]["name"], pod["volumes"][0]["configMap"]["name"])


if __name__ == "__main__":
    testing.main()
