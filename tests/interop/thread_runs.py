"""What the runs `threads`, `children` and `ebpf` share: profcol with the join, the live Java programs, and what leaves profcol.

    with server.Profcol(thread_runs.configuration()) as profcol:
        thread_runs.run_profiled("threads", options, profcol.address("grpc"), profcol.address("pyroscope"))
        left = thread_runs.finish(profcol)      # left.traces, left.profiles, left.counts
"""

import argparse
import collections
import os
import pathlib
import shutil
import subprocess

from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from tests.oracle import outputs, server

ROOT = pathlib.Path(os.environ["PROFCOL_SOURCE"])
AGENT = "jars/opentelemetry-javaagent-2.33.1.jar"
EXTENSION = "jars/otel-1.0.2.jar"
CLASSES = "jars/opentelemetry-api-1.50.0.jar:jars/opentelemetry-context-1.50.0.jar:."
REQUESTS = {"traces": trace_service_pb2.ExportTraceServiceRequest, "profiles": profiles_service_pb2.ExportProfilesServiceRequest}
CONFIG = """
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:@grpc@"}, http: {endpoint: "127.0.0.1:@http@"}}}
  pyroscope: {endpoint: "127.0.0.1:@pyroscope@"}
processors:
  spanjoin: {SETTINGS}
exporters:
  file/traces: {path: "@dir@/traces.proto", format: proto}
  file/profiles: {path: "@dir@/profiles.proto", format: proto}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [spanjoin], exporters: [file/traces]}
    profiles: {receivers: [otlp, pyroscope], processors: [spanjoin], exporters: [file/profiles]}
"""

# The requests of both signals that left profcol, and what the join counts.
Left = collections.namedtuple("Left", "traces profiles counts")


def parser_of(doc, name):
    """Return a parser of the options that all runs have. doc is the program's description."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/interop" / name)
    return parser


def configuration(settings="window: 10m"):
    """Return the configuration of a profcol that joins; settings are those of spanjoin."""
    return CONFIG.replace("SETTINGS", settings)


def build_java(work, program="tests/interop/threads/App.java"):
    """Fetch the jars and compile the program."""
    work.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "docs/clients/java/pom.xml", work)
    shutil.copy(ROOT / program, work)
    if not (work / AGENT).exists():
        subprocess.run(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"], cwd=work, check=True)
    subprocess.run(["javac", "-cp", CLASSES, "App.java"], cwd=work, check=True)


def java(seconds, *arguments):
    """Return the command that runs the Java program with OpenTelemetry's agent, in the directory where it was built."""
    return ["java", f"-javaagent:{AGENT}", *arguments, "-cp", CLASSES, "App", str(seconds)]


def environment_of(name, address, protocol):
    """Return the environment of a program that sends its spans, and nothing else, to this address."""
    return {**os.environ, "OTEL_SERVICE_NAME": name, "OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{address}", "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}


def run_profiled(name, options, spans, recordings, event="itimer"):
    """Run the Java program, profiled by Pyroscope's profiler, until it ends. spans and recordings are the addresses that get them."""
    environment = {**environment_of(name, spans, "grpc"), "PYROSCOPE_APPLICATION_NAME": name,
                   "PYROSCOPE_SERVER_ADDRESS": f"http://{recordings}", "PYROSCOPE_PROFILER_EVENT": event,
                   "PYROSCOPE_PROFILER_ALLOC": "512k", "PYROSCOPE_PROFILER_LOCK": "1ms"}
    subprocess.run(java(options.seconds, f"-Dotel.javaagent.extensions={EXTENSION}"), cwd=options.work, env=environment, check=True)


def requests_of(profcol, signal):
    """Return the requests of a signal that have left."""
    return [REQUESTS[signal].FromString(record) for record in outputs.records(profcol.directory / f"{signal}.proto", "proto")]


def finish(profcol, *more_counts):
    """End profcol when it holds no request any more; return what left it. more_counts are further counts of samples."""
    server.wait_until(lambda: not profcol.metric("profcol_spanjoin_held_requests"), timeout=60, what="requests to leave")
    counts = {name: profcol.metric(f"profcol_spanjoin_samples_{name}") for name in ("joined", "joined_by_thread", *more_counts)}
    counts["ambiguous"] = profcol.metric("profcol_spanjoin_samples_unjoined", reason="ambiguous_thread")
    profcol.stop()
    return Left(requests_of(profcol, "traces"), requests_of(profcol, "profiles"), counts)


def shares_text(parts):
    """Return the shares of a Counter as text, the largest first."""
    total = sum(parts.values())
    return ", ".join(f"{value / total:.2%} {part}" for part, value in parts.most_common())
