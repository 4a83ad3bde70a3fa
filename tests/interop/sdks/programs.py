"""The programs of this folder, each with an OpenTelemetry SDK as its makers ship it."""

import dataclasses
import functools
import os
import pathlib
import re
import subprocess

import builds

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["PROFCOL_SOURCE"]) / "build" / "interop" / "sdks"
JARS = "jars/opentelemetry-api-1.50.0.jar:jars/opentelemetry-context-1.50.0.jar:."


@dataclasses.dataclass
class Program:
    """What builds it, what runs it, and what it may speak. `quiet` matches the lines of its log that are not warnings."""

    language: str
    tools: list
    builds: list
    command: str
    protocols: list
    quiet: str = r"$^"
    interval_ms: int = 600000       # of metrics: only when the program flushes, so the same number in each run

    @functools.cached_property
    def directory(self):
        """Where it is built, once."""
        return builds.build(self.language, self.tools, self.builds, HERE / self.language, BUILD / self.language)

    def run(self, protocol, endpoint):
        """Run it; return the lines of its log that are warnings or errors. It is silent if all is well."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        environment.update(OTEL_SERVICE_NAME=f"interop-{self.language}", OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test",
                           OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
                           OTEL_METRIC_EXPORT_INTERVAL=str(self.interval_ms), GRPC_GO_LOG_SEVERITY_LEVEL="warning")
        done = subprocess.run(self.command.split(), cwd=self.directory, env=environment, timeout=180, check=False, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = [line for line in done.stdout.splitlines() if line and not re.search(self.quiet, line)]
        return said + ([f"exit code {done.returncode}"] if done.returncode else [])


PROGRAMS = {program.language: program for program in (
    Program("go", ["go"], ["go build -o program ."], "./program", ["grpc", "http/protobuf"]),
    Program("python", ["python3"], ["python3 -m venv venv", "venv/bin/pip install -q -r requirements.txt"], "venv/bin/python main.py",
            ["grpc", "http/protobuf"]),
    Program("node", ["node", "npm"], ["npm install --no-audit --no-fund"], "node main.js", ["grpc", "http/protobuf", "http/json"]),
    # The metrics of the JVM only leave by the timer. Without -Xshare:off the JVM warns of any agent.
    Program("java", ["java", "javac", "mvn"], ["mvn -q -B dependency:copy-dependencies -DoutputDirectory=jars", f"javac -cp {JARS} App.java"],
            f"java -Xshare:off -XX:+UseSerialGC -javaagent:jars/opentelemetry-javaagent-2.33.1.jar -cp {JARS} App",
            ["grpc", "http/protobuf"], r"^\[otel\.javaagent [^\]]*\] \[[^\]]*\] INFO ", 1000),
)}
