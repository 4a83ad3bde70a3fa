"""What the runs `threads` and `ebpf` share: the Java program whose spans name threads, and what leaves profcol."""

import os
import pathlib
import shutil
import subprocess

from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from tests.oracle import outputs

ROOT = pathlib.Path(os.environ["PROFCOL_SOURCE"])
AGENT = "jars/opentelemetry-javaagent-2.33.1.jar"
EXTENSION = "jars/otel-1.0.2.jar"
CLASSES = "jars/opentelemetry-api-1.50.0.jar:jars/opentelemetry-context-1.50.0.jar:."
REQUESTS = {"traces": trace_service_pb2.ExportTraceServiceRequest, "profiles": profiles_service_pb2.ExportProfilesServiceRequest}


def build_java(work, program="tests/interop/threads/App.java"):
    """Fetch the jars and compile the program."""
    work.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "docs/clients/java/pom.xml", work)
    shutil.copy(ROOT / program, work)
    if not (work / AGENT).exists():
        subprocess.run(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"], cwd=work, check=True)
    subprocess.run(["javac", "-cp", CLASSES, "App.java"], cwd=work, check=True)


def requests_of(profcol, signal):
    """Return the requests of a signal that have left."""
    return [REQUESTS[signal].FromString(record) for record in outputs.records(profcol.directory / f"{signal}.proto", "proto")]


def counts_of(profcol):
    """Return what the join says of its samples."""
    counts = {name: profcol.metric(f"profcol_spanjoin_samples_{name}") for name in ("joined", "joined_by_thread")}
    return {**counts, "ambiguous": profcol.metric("profcol_spanjoin_samples_unjoined", reason="ambiguous_thread")}
