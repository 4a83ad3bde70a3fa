"""Requests to a running profcol and a running Collector: the same HTTP or gRPC status, the same kind of body, the same end of
the connection. The cases are in requests/*.yaml.

A file has a `configuration`, which both run with, and groups of cases. A group's `request` holds what its cases have in common;
a case overrides it. `to` is http (HTTP/1.1), grpc (a gRPC call), h2 (a plain request over HTTP/2, at the port of HTTP) or raw
(bytes over TCP to the port of HTTP). A body is made by body() from `body` and `encode`. Texts of errors are not compared.
"""

import base64
import contextlib
import gzip
import json
import os
import pathlib
import socket
import zlib

import cramjam
import h2.errors
import h2.exceptions
import yaml

from tests.oracle import client, connections, make, server

FOLDER = pathlib.Path(__file__).resolve().parent / "requests"
SPAN = {"span_id": "00000000000000a1", "trace_id": "c3" * 16, "name": "s"}
BODIES = {
    "span": make.traces([SPAN]).SerializeToString(),
    "large": make.traces([{**SPAN, "name": "x" * 1500000}]).SerializeToString(),
    "profile": make.ProfilesBuilder().request.SerializeToString(),
    "json": json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "c3" * 16, "spanId": "00000000000000a1", "name": "s"}]}]}]}).encode(),
    "metric": bytes.fromhex("0a0e120c120a0a016d2a051a03080001"),
}
ENCODERS = {
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "raw deflate": lambda data: zlib.compress(data)[2:-4],
    "zstd": lambda data: bytes(cramjam.zstd.compress(data)),
    "snappy": lambda data: bytes(cramjam.snappy.compress_raw(data)),
    "snappy framed": lambda data: bytes(cramjam.snappy.compress(data)),
    "lz4": lambda data: bytes(cramjam.lz4.compress(data)),
    "base64": base64.b64encode,
    "chunked": lambda data: b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data),
    "half": lambda data: data[:len(data) // 2],
    "twice": lambda data: data + data,
    "frame": connections.grpc_frame,
    "compressed frame": lambda data: connections.grpc_frame(data, True),
    "frame flag 2": lambda data: b"\2" + connections.grpc_frame(data)[1:],
    "frame too long": lambda data: b"\0" + (len(data) + 10).to_bytes(4, "big") + data,
    "frame too short": lambda data: b"\0" + (len(data) - 1).to_bytes(4, "big") + data,
}


class Case:
    def __init__(self, file, name, request):
        self.file = file
        self.name = name
        self.request = request


def read(path):
    """(configuration, cases) of one file."""
    content = yaml.safe_load(path.read_text())
    cases = [Case(path.stem, name, {**group.get("request", {}), **(case or {}),
                                    "headers": {**group.get("request", {}).get("headers", {}), **(case or {}).get("headers", {})}})
             for group in content["groups"] for name, case in group["cases"].items()]
    return content["configuration"], cases


def body(request):
    """The bytes of `body` (a name of BODIES, hex:..., or the text itself), through each of `encode` in turn."""
    text = request.get("body", "")
    if text in BODIES:
        data = BODIES[text]
    elif text.startswith("hex:"):
        data = bytes.fromhex(text[4:])
    else:
        data = text.encode() * request.get("times", 1)
    for encoder in request.get("encode", []):
        data = ENCODERS[encoder](data)
    return data


def fields(request):
    """The headers, without those that the case sets to null; a list of values is that header several times, and
    {text, times} a text that is repeated."""
    for name, value in request["headers"].items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                yield name, each["text"] * each["times"]
            elif each is not None:
                yield name, str(each)


def status_of(answer):
    """What of a refusal's body matters: the code of its google.rpc.Status, if it is one."""
    try:
        return f", Status {client.status(answer).code}"
    except Exception:  # pylint: disable=broad-except
        return ", a text"


def describe_http(answer):
    kind = answer.header("content-type", "no type").split(";")[0]
    if answer.status == 200:
        empty = answer.body in (b"", b"\x0a\x00") or answer.body.translate(None, b" \r\n") in (b"{}", b'{"partialSuccess":{}}')
        return f"200 {kind}, {'a whole success' if empty else 'a body'}"
    detail = status_of(answer) if kind in (client.PROTOBUF, client.JSON) else ", a text"
    return f"{answer.status} {kind}{detail}" if answer.body else f"{answer.status}, no body"


def describe_grpc(answer):
    if answer.reset and answer.reset != h2.errors.ErrorCodes.NO_ERROR or answer.grpc_status is None and answer.reset is not None:
        return f"RST_STREAM {int(answer.reset)}"
    if answer.status != 200:
        return f"HTTP {answer.status}" + (f", grpc-status {answer.grpc_status}" if answer.grpc_status is not None else "")
    return f"grpc-status {answer.grpc_status}"


def send_http(running, request):
    address = running.address("http")
    connection = connections.Http1(address, 10)
    with contextlib.closing(connection):
        content = body(request)
        headers = list(fields(request))
        names = {name.lower() for name, _ in headers}
        if not names & {"content-length", "transfer-encoding"} and not request.get("no length"):
            headers.append(("Content-Length", str(len(content))))
        head = client.http1_head(request.get("method", "POST"), request.get("path", client.TRACES), request.get("host", address), headers)
        if request.get("host", address) is None:
            head = head.replace(b"Host: None\r\n", b"")
        head = head.replace(b" HTTP/1.1\r\n", f" {request.get('version', 'HTTP/1.1')}\r\n".encode(), 1)
        answer = connection.request(head, content, "expect" in names)
        return describe_http(answer) + after(connection, lambda: client.post(address, client.TRACES, connection=connection))


def after(connection, again):
    """Whether the connection serves one more request."""
    if not connection.open:
        return ", closed"
    try:
        again()
        return ", kept"
    except (OSError, ValueError, IndexError, h2.exceptions.ProtocolError):
        return ", closed"


def send_h2(running, request):
    address = running.address("grpc" if request["to"] == "grpc" else "http")
    connection = connections.Http2(address, 10)
    with contextlib.closing(connection):
        pseudo = {":method": request.get("method", "POST"), ":scheme": "http", ":path": request.get("path", client.TRACE_SERVICE),
                  ":authority": address, **request.get("pseudo", {})}
        headers = [(name, value) for name, value in pseudo.items() if value is not None] + [(name.lower(), value) for name, value in fields(request)]
        answer = connection.request(headers, body(request))
        described = describe_grpc(answer) if request["to"] == "grpc" else describe_http(answer)
        return described + after(connection, lambda: client.call(address, client.TRACE_SERVICE, connection=connection))


def send_raw(running, request):
    host, _, port = running.address("http").rpartition(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(request["text"].encode("latin-1").decode("unicode_escape").encode("latin-1") if request.get("escaped") else
                           request["text"].replace("\n", "\r\n").encode("latin-1"))
        if request.get("half close"):
            connection.shutdown(socket.SHUT_WR)
        data = connection.recv(65536)
        return data.split(b"\r\n")[0].decode("latin-1").split(" ")[1] if data.startswith(b"HTTP/1.") else f"{len(data)} bytes"


SENDERS = {"http": send_http, "grpc": send_h2, "h2": send_h2, "raw": send_raw}


def outcome(running, request):
    try:
        return SENDERS[request["to"]](running, request)
    except socket.timeout:
        return "no answer"
    except (OSError, h2.exceptions.ProtocolError, EOFError) as error:
        return "the connection ends" if isinstance(error, (ConnectionError, h2.exceptions.ProtocolError)) else f"{type(error).__name__}"


def start(stack, binary, configuration):
    """The program running with the configuration, or None if it refuses it."""
    running = server.Profcol(configuration, binary=binary, arguments=["--feature-gates=service.profilesSupport"], metrics=False, expect_exit=None)
    try:
        return stack.enter_context(running)
    except server.Failed as error:
        return str(error)


def compare_all(only, expected, results):
    for path in sorted(FOLDER.glob("*.yaml")):
        configuration, cases = read(path)
        with contextlib.ExitStack() as stack:
            ours, theirs = (start(stack, os.environ[name], configuration) for name in ("PROFCOL", "OTELCOL"))
            assert not isinstance(theirs, str), f"the Collector does not start with {path.name}: {theirs}"
            for case in cases:
                if only in case.name:
                    compare(case, ours, theirs, expected, results)


def compare(case, ours, theirs, expected, results):
    if isinstance(ours, str):
        reason, pending = expected.of_refusal([line.split(" error: ")[1] for line in ours.splitlines() if " error: " in line])
        results.different(case, "profcol does not start", "", reason, pending)
        return
    mine, other = outcome(ours, case.request), outcome(theirs, case.request)
    if mine == other:
        results.same(case, "both answer alike")
        return
    reason, pending = expected.of_answer(case.name, mine, other)
    results.different(case, "another answer", f"profcol {mine}; the Collector {other}", reason, pending)
