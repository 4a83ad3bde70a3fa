"""Requests that a test words itself, right or wrong, and what their answers mean.

    answer = client.post(address, client.TRACES, make.traces(...).SerializeToString())
    answer = client.call(address, client.TRACE_SERVICE, message, flag=1, headers=[("grpc-encoding", "gzip")])
    client.status(answer)       # Status(code, message, retry_after) of a refusal, whatever it was written in

Each call has a connection of its own unless one is given.
"""

import dataclasses
import json

import base64

from . import connections, wire

TRACES, PROFILES, METRICS, LOGS = "/v1/traces", "/v1development/profiles", "/v1/metrics", "/v1/logs"
PATH = {"traces": TRACES, "profiles": PROFILES, "metrics": METRICS, "logs": LOGS}
TRACE_SERVICE = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
PROFILES_SERVICE = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
METRICS_SERVICE = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
LOGS_SERVICE = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
METHOD = {"traces": TRACE_SERVICE, "profiles": PROFILES_SERVICE, "metrics": METRICS_SERVICE, "logs": LOGS_SERVICE}
PROTOBUF, JSON = "application/x-protobuf", "application/json"
RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"


def http1_head(method, path, host, headers):
    """The head of an HTTP/1.1 request with its empty line."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def post(address, path, body=b"", *, content_type=PROTOBUF, encoding=None, headers=(), method="POST",
         connection=None, expect=False, timeout=30):
    """One HTTP/1.1 request with a Content-Length; a content_type of None leaves the header out."""
    fields = [("Content-Type", content_type)] if content_type is not None else []
    fields += [("Content-Encoding", encoding)] if encoding is not None else []
    fields += [*headers, ("Content-Length", str(len(body)))]
    fields += [("Expect", "100-continue")] if expect else []
    own = connection or connections.Http1(address, timeout)
    try:
        return own.request(http1_head(method, path, address, fields), body, expect)
    finally:
        if not connection:
            own.close()


def grpc_fields(address, *more, method=TRACE_SERVICE, content_type="application/grpc"):
    """The head of a gRPC call."""
    return [(":method", "POST"), (":scheme", "http"), (":path", method), (":authority", address),
            ("content-type", content_type), ("te", "trailers"), *more]


def call(address, method, message=b"", *, flag=0, headers=(), framed=None, content_type="application/grpc",
         connection=None, timeout=30):
    """One unary gRPC call; `framed` replaces the message with its prefix."""
    body = connections.grpc_frame(message, bool(flag)) if framed is None else framed
    own = connection or connections.Http2(address, timeout)
    try:
        return own.request(grpc_fields(address, *headers, method=method, content_type=content_type), body)
    finally:
        if not connection:
            own.close()


def post_h2c(address, path, body=b"", *, content_type=PROTOBUF, headers=(), method="POST", connection=None):
    """One plain request over cleartext HTTP/2."""
    fields = [(":method", method), (":scheme", "http"), (":path", path), (":authority", address),
              ("content-type", content_type), *headers]
    own = connection or connections.Http2(address)
    try:
        return own.request(fields, body)
    finally:
        if not connection:
            own.close()


def signal_of(message):
    """Which signal a request message is of."""
    groups = {"resource_spans": "traces", "resource_profiles": "profiles", "resource_metrics": "metrics",
              "resource_logs": "logs"}
    return next(signal for field, signal in groups.items() if hasattr(message, field))


class Both:
    """A connection of each protocol to a process, from the address `source`."""

    def __init__(self, profcol, source=None):
        self.profcol = profcol
        self.connections = {"grpc": connections.Http2(profcol.address("grpc"), source=source),
                            "http": connections.Http1(profcol.address("http"), source=source)}

    def export(self, protocol, message, **options):
        """Send a request message over the connection of that protocol."""
        return export(protocol, self.profcol.address(protocol), message, connection=self.connections[protocol], **options)

    def close(self):
        """Close both."""
        for connection in self.connections.values():
            connection.close()


def export(protocol, address, message, **options):
    """Send a request message of any signal over "grpc" or "http"."""
    signal = signal_of(message)
    data = message if isinstance(message, bytes) else message.SerializeToString()
    if protocol == "grpc":
        return call(address, METHOD[signal], data, **options)
    return post(address, PATH[signal], data, **options)


def succeeded(answer):
    """Whether the answer promises that the data was taken."""
    return answer.status == 200 and answer.reset is None and answer.grpc_status in (None, 0)


@dataclasses.dataclass
class Status:
    """google.rpc.Status; retry_after in seconds, None where nothing is said."""

    code: int = 0
    message: str = ""
    retry_after: float | None = None


def status(answer):
    """The Status that an answer carries: gRPC's trailers, or the body of a plain answer."""
    if answer.grpc_status is not None:
        details = answer.trailer("grpc-status-details-bin")
        out = Status(answer.grpc_status, answer.grpc_message)
        if details:
            inner = parse_status(base64.b64decode(details + "=" * (-len(details) % 4)))
            if (inner.code, inner.message) != (out.code, out.message):
                raise ValueError(f"grpc-status-details-bin says {inner}, the trailers {out}")
            out = inner
        return out
    kind = answer.header("content-type", "")
    if kind.startswith(JSON):
        tree = json.loads(answer.body)
        out = Status(tree.get("code", 0), tree.get("message", ""))
    elif kind.startswith(PROTOBUF):
        out = parse_status(answer.body)
    else:
        raise ValueError(f"no Status in {kind!r} {answer.body[:200]!r}")
    if answer.header("retry-after") is not None:
        out.retry_after = int(answer.header("retry-after"))
    return out


def parse_status(data):
    """google.rpc.Status from protobuf."""
    out = Status()
    for number, _, value, at, stop in wire.fields(data):
        if number == 1:
            out.code = value
        elif number == 2:
            out.message = data[at:stop].decode()
        elif number == 3:
            parts = {n: data[a:s] for n, _, _, a, s in wire.fields(data, at, stop)}
            if parts.get(1, b"").decode() == RETRY_INFO:
                out.retry_after = _duration(parts.get(2, b""))
    return out


def _duration(retry_info):
    for number, _, _, at, stop in wire.fields(retry_info):
        if number == 1:
            parts = {n: value for n, _, value, _, _ in wire.fields(retry_info, at, stop)}
            return parts.get(1, 0) + parts.get(2, 0) / 1e9
    return 0.0
