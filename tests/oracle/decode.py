"""Recorded requests: from the files on disk to the message that the client meant to send.

A recording is a pair: NNN.meta.json (request line, headers, framing) and NNN.body (the HTTP body
without its chunking, or the gRPC message without its 5-byte prefix; both still compressed).
Requests that exist only as files (`files/*.pb`, `files/*.json`) are read through the same class.
"""

import dataclasses
import json
import pathlib
import zlib

import cramjam

CAPTURES = pathlib.Path(__file__).resolve().parents[1] / "data" / "captures"

SIGNAL_OF_PATH = {
    "/v1/traces": "traces",
    "/v1/metrics": "metrics",
    "/v1/logs": "logs",
    "/v1development/profiles": "profiles",
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export": "traces",
    "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": "metrics",
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export": "logs",
    "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export": "profiles",
}

SNAPPY_STREAM_START = b"\xff\x06\x00\x00sNaPpY"


def decompress(data, encoding):
    """Decompress one content-encoding or grpc-encoding; raise ValueError if it is unknown.

    `deflate` is the zlib format, as HTTP defines it; `snappy` is a raw block over HTTP and a framed stream over gRPC;
    the first bytes tell which.
    """
    if encoding in ("", "identity"):
        return data
    if encoding == "gzip":
        return zlib.decompress(data, wbits=31)
    if encoding in ("deflate", "zlib"):
        return zlib.decompress(data)
    if encoding == "zstd":
        return bytes(cramjam.zstd.decompress(data))
    if encoding == "lz4":
        return bytes(cramjam.lz4.decompress(data))
    if encoding in ("snappy", "x-snappy-framed"):
        if data.startswith(SNAPPY_STREAM_START):
            return bytes(cramjam.snappy.decompress(data))
        if encoding == "snappy":
            return bytes(cramjam.snappy.decompress_raw(data))
    raise ValueError(f"cannot undo encoding {encoding!r}")


def compress(data, encoding, framed=False):
    """The inverse of decompress(); `framed` chooses the stream format of snappy, as gRPC peers do."""
    if encoding in ("", "identity"):
        return data
    if encoding == "gzip":
        packer = zlib.compressobj(wbits=31)
        return packer.compress(data) + packer.flush()
    if encoding in ("deflate", "zlib"):
        return zlib.compress(data)
    if encoding == "zstd":
        return bytes(cramjam.zstd.compress(data))
    if encoding == "lz4":
        return bytes(cramjam.lz4.compress(data))
    if encoding == "x-snappy-framed" or (encoding == "snappy" and framed):
        return bytes(cramjam.snappy.compress(data))
    if encoding == "snappy":
        return bytes(cramjam.snappy.compress_raw(data))
    raise ValueError(f"cannot apply encoding {encoding!r}")


@dataclasses.dataclass
class Capture:
    """One recorded request; `payload` is its decompressed body."""

    name: str            # "go-grpc/otlp-grpc/001", or "pprof-to-otlp/files/cpu.pb"
    client: str
    signal: str          # traces | profiles | metrics | logs
    transport: str       # grpc | http | h2c | file
    content: str         # protobuf | json
    encoding: str        # "" where not compressed
    body: bytes
    payload: bytes
    meta: dict

    @property
    def seq(self):
        """Return the position in the order of arrival over all protocols of this client."""
        return self.meta.get("seq", 0)

    @property
    def arrival_ns(self):
        """Return when the recorder received the request, in Unix nanoseconds, or 0 for plain files."""
        return self.meta.get("recv_end_unix_nano", 0)

    def header(self, name, default=""):
        """Return the first header with that name, in any case."""
        for key, value in self.meta.get("headers", []):
            if key.lower() == name:
                return value
        return default


def load(path):
    """Read one recorded request, given its .meta.json, or one request that is a plain file."""
    path = pathlib.Path(path)
    client = path.parent.parent.name
    name = f"{client}/{path.parent.name}/"
    if not path.name.endswith(".meta.json"):
        body = path.read_bytes()
        content = "json" if path.suffix == ".json" else "protobuf"
        return Capture(name + path.name, client, "profiles", "file", content, "", body, body, {})

    meta = json.loads(path.read_text())
    name += path.name.removesuffix(".meta.json")
    body = path.with_name(path.name.removesuffix(".meta.json") + ".body").read_bytes()
    capture = Capture(name, client, SIGNAL_OF_PATH[meta["path"]], "", "", "", body, body, meta)
    if meta["kind"] == "otlp-grpc":
        capture.transport, capture.content = "grpc", "protobuf"
        if meta["grpc_compressed_flag"]:
            capture.encoding = capture.header("grpc-encoding")
    else:
        capture.transport = "h2c" if meta["protocol"] == "HTTP/2" else "http"
        json_type = capture.header("content-type").split(";")[0].strip() == "application/json"
        capture.content = "json" if json_type else "protobuf"
        capture.encoding = capture.header("content-encoding")
    capture.payload = decompress(body, capture.encoding)
    return capture


def in_directory(directory):
    """Return all requests of one client in the order of arrival; plain files come last, by name."""
    directory = pathlib.Path(directory)
    found = [load(path) for path in directory.glob("*/*.meta.json")]
    found.sort(key=lambda capture: capture.seq)
    return found + [load(p) for p in sorted(directory.glob("files/*")) if p.suffix in (".pb", ".json")]


def clients(root=CAPTURES):
    """Return the capture directories by name."""
    return sorted(path for path in pathlib.Path(root).iterdir() if path.is_dir())
