"""Writes examples/recording, the small recording of the demonstration, from the captures.

    python -m tests.oracle.recording

Two runs on the same machine get one time scale: a Go service with the CPU profile of its pprof endpoint, and a Python
service watched by the eBPF profiler, which links samples to the spans that were active.
"""

import json
import pathlib

from examples import play

from . import decode

DIRECTORY = pathlib.Path(__file__).resolve().parents[2] / "examples" / "recording"

GO = [(f"go-pprof-endpoint/otlp-grpc/00{n}.meta.json", f"go-spans-{n}.pb") for n in range(1, 6)]
GO_PROFILE = "pprof-to-otlp/files/cpu.pb", "go-cpu-profile.pb"
PYTHON = [
    ("ebpf-profiler-obi-links/otlp-http-protobuf/006.meta.json", "python-spans-1.pb"),
    ("ebpf-profiler-obi-links/otlp-grpc/007.meta.json", "ebpf-profile-1.pb"),
    ("ebpf-profiler-obi-links/otlp-http-protobuf/009.meta.json", "python-spans-2.pb"),
    ("ebpf-profiler-obi-links/otlp-http-protobuf/011.meta.json", "python-spans-3.pb"),
    ("ebpf-profiler-obi-links/otlp-grpc/012.meta.json", "ebpf-profile-2.pb"),
    ("ebpf-profiler-obi-links/otlp-http-protobuf/014.meta.json", "python-spans-4.pb"),
    ("ebpf-profiler-obi-links/otlp-http-protobuf/015.meta.json", "python-spans-5.pb"),
]
PYTHON_STARTS_MS = 400          # after the first Go request
GO_PROFILE_FOLLOWS_MS = 300     # after the last Go spans; it was fetched, so it has no time of arrival


def build():
    """Return (entries for recording.json, {file: bytes})."""
    entries, files = [], {}

    def add(name, file, offset_ms, delta_ns):
        capture = decode.load(decode.CAPTURES / name)
        files[file] = play.shifted(capture.payload, capture.signal, delta_ns)
        entries.append({
            "file": file, "signal": capture.signal, "offset_ms": offset_ms,
            "content_type": "application/x-protobuf", "encoding": "",
            "protocol": "grpc" if capture.transport == "grpc" else "http", "from": capture.name,
        })

    start = decode.load(decode.CAPTURES / GO[0][0]).arrival_ns
    for name, file in GO:
        offset_ms = (decode.load(decode.CAPTURES / name).arrival_ns - start) // 1_000_000
        add(name, file, offset_ms, 0)
    add(*GO_PROFILE, offset_ms + GO_PROFILE_FOLLOWS_MS, 0)

    python_start = decode.load(decode.CAPTURES / PYTHON[0][0]).arrival_ns
    delta_ns = start + PYTHON_STARTS_MS * 1_000_000 - python_start
    for name, file in PYTHON:
        arrival = decode.load(decode.CAPTURES / name).arrival_ns
        add(name, file, (arrival - python_start) // 1_000_000 + PYTHON_STARTS_MS, delta_ns)
    entries.sort(key=lambda entry: entry["offset_ms"])
    return entries, files


def main():
    """Entry point."""
    entries, files = build()
    for file, data in files.items():
        (DIRECTORY / file).write_bytes(data)
    lines = ",\n  ".join(json.dumps(entry) for entry in entries)
    (DIRECTORY / "recording.json").write_text(f'{{"requests": [\n  {lines}\n]}}\n')


if __name__ == "__main__":
    main()
