"""Live Java and Python programs -> OpenTelemetry's eBPF profiler -> profcol, joined by thread and time only.

    python tests/interop/ebpf PROFILER [--container] [--pools] [--seconds N] [--work DIRECTORY]

With --container each program runs in a pid namespace and a cgroup of its own, as in a container of Docker, beside a shell: its
spans have other ids of processes and threads than the samples. With --pools all threads of the Java program that serve have one
name, as far as the operating system knows it, so that times have to tell them apart. PROFILER is the profiler's program, which
needs root. What its samples have on their stacks is the truth: each kind of span runs a function of its own. A joined sample is
right if its span is of that kind, and all its times are in the span. When Python's interpreter lock changes hands, the profiler may
show the stack of the thread that had it, so more seem to be wrong.
"""
import collections
import os
import pathlib
import secrets
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(os.environ["PROFCOL_SOURCE"])
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(ROOT)]

import thread_runs  # noqa: E402
from tests.oracle import server, stack_kinds  # noqa: E402

SOURCES = {"App.java": "java", "ebpf/main.py": "python"}
# Puts itself into the cgroup; then, as process 1 of a new pid namespace, runs the program beside a shell.
CONTAINER = """echo $$ > "$1/cgroup.procs"; host=$2; shift 2
exec unshare --pid --fork --mount-proc --uts sh -c '
    hostname "$0"; (while :; do sleep 0.05; done) & exec "$@"' "$host" "$@"
"""


def build(work):
    """Fetch what the programs need, and compile the Java one."""
    thread_runs.build_java(work)
    if not (work / "venv").exists():
        subprocess.run([sys.executable, "-m", "venv", "venv"], cwd=work, check=True)
        subprocess.run(["venv/bin/pip", "install", "-q", "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"], cwd=work,
                       check=True)


def container():
    """Return the directory of a new cgroup that is named like one of Docker's."""
    for root in (pathlib.Path("/sys/fs/cgroup/pids"), pathlib.Path("/sys/fs/cgroup")):
        if (root / "cgroup.procs").exists():
            directory = root / "docker" / secrets.token_hex(32)
            directory.mkdir(parents=True)
            return directory
    raise SystemExit("no cgroup file system")


def leave(directory):
    """End what still runs in the cgroup, and remove it."""
    for pid in (directory / "cgroup.procs").read_text().split():
        os.kill(int(pid), signal.SIGKILL)
    server.wait_until(lambda: not (directory / "cgroup.procs").read_text(), what="the container to end")
    directory.rmdir()


def run(profiler, options):
    """Run the programs; return what left profcol."""
    work = options.work
    with server.Profcol(thread_runs.configuration()) as profcol:
        with open(work / "profiler.log", "w", encoding="utf-8") as log:
            profiling = subprocess.Popen([profiler, "-collection-agent", profcol.address("grpc"), "-disable-tls", "-reporter-interval",
                                          "5s", "-samples-per-second", "97"], stdout=log, stderr=log)
            server.wait_until(lambda: "Attached prctl monitor" in (work / "profiler.log").read_text(), timeout=120,
                              what="the profiler")
            programs, directories = [], []
            pool = "http-nio-8080-exec-" if options.pools else "server-"
            for language, command in (("java", thread_runs.java(options.seconds, f"-Dpool={pool}")),
                                      ("python", ["venv/bin/python", HERE / "main.py", str(options.seconds)])):
                if options.container:
                    directories.append(container())
                    command = ["sh", "-c", CONTAINER, "sh", directories[-1], directories[-1].name[:12]] + command
                environment = thread_runs.environment_of(f"ebpf-{language}", profcol.address("http"), "http/protobuf")
                programs.append(subprocess.Popen(command, cwd=work, env=environment))
            for program in programs:
                program.wait()
            for directory in directories:
                leave(directory)
            time.sleep(12)    # what the profiler has, and what still waits
            profiling.terminate()
            profiling.wait()
        return thread_runs.finish(profcol)


def language_of(files):
    """Return the language of the program that has these source files; None for others."""
    return next((language for name, language in SOURCES.items() if any(file.endswith(name) for file in files)), None)


def main():
    """Entry point."""
    parser = thread_runs.parser_of(__doc__, "ebpf")
    parser.add_argument("profiler")
    parser.add_argument("--container", action="store_true")
    parser.add_argument("--pools", action="store_true")
    options = parser.parse_args()
    build(options.work)
    left = run(os.path.abspath(options.profiler), options)
    spans = stack_kinds.spans_of(left.traces)
    print(f"{len(spans)} spans, {left.counts}")
    shares, begun = collections.defaultdict(collections.Counter), set()
    for files, kind, span_id, times in stack_kinds.samples_of(left.profiles):
        language, span = language_of(files), spans.get(span_id)
        if not language:
            continue
        if span:
            begun.add(language)
        elif language not in begun:    # uploaded before profcol knew that spans of the process name their threads
            shares[language]["before the first spans arrived"] += len(times)
            continue
        is_right = span and stack_kinds.is_right(span, kind, times)
        shares[language]["right" if is_right else "wrong" if span else "not joined"] += len(times)
    is_good = len(shares) == 2
    for language, share in sorted(shares.items()):
        early = share.pop("before the first spans arrived", 0)
        known = sum(share.values())
        print(f"{language}: {early} observations before the first spans arrived, then {known}: {thread_runs.shares_text(share)}")
        least = 0.8 if options.pools and language == "java" else 0.98    # times tell them apart after some dozens of requests
        is_good = is_good and share["right"] / known >= least and share["wrong"] / known <= 0.02
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
