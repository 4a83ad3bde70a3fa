"""Client connections that send given bytes exactly.

HTTP libraries reorder headers, change their case and merge chunks. A replay must not, so this module writes HTTP/1.1 to
the socket itself, and uses `h2` for HTTP/2, which leaves headers and frames to its caller.
"""

import dataclasses
import socket
import time
import urllib.parse

import h2.config
import h2.connection
import h2.events

from . import server

GRPC_PREFIX = 5


@dataclasses.dataclass
class Response:
    """An answer as received. Names of headers and trailers are as sent; use header() and trailer()."""

    status: int = 0
    headers: list = dataclasses.field(default_factory=list)
    body: bytes = b""
    trailers: list = dataclasses.field(default_factory=list)
    reset: int | None = None            # error code of RST_STREAM or GOAWAY, instead of an answer

    def header(self, name, default=None):
        """Return the first header with that lower-case name."""
        return _first(self.headers, name, default)

    def trailer(self, name, default=None):
        """Return the first trailer, or the first header if the answer has only headers."""
        return _first(self.trailers, name, _first(self.headers, name, default))

    @property
    def grpc_status(self):
        """Return the gRPC status code, or None."""
        status = self.trailer("grpc-status")
        return None if status is None else int(status)

    @property
    def grpc_message(self):
        """Return the gRPC message, percent-decoded."""
        return urllib.parse.unquote(self.trailer("grpc-message", ""))

    def messages(self):
        """Return the gRPC messages in the body as (compressed flag, bytes)."""
        out, at = [], 0
        while at < len(self.body):
            length = int.from_bytes(self.body[at + 1:at + GRPC_PREFIX], "big")
            if at + GRPC_PREFIX + length > len(self.body):
                raise ValueError("gRPC message is cut off")
            out.append((self.body[at], self.body[at + GRPC_PREFIX:at + GRPC_PREFIX + length]))
            at += GRPC_PREFIX + length
        return out


def _first(pairs, name, default):
    return next((value for key, value in pairs if key.lower() == name), default)


def grpc_frame(message, compressed=False):
    """Return a gRPC message with its prefix."""
    return bytes([compressed]) + len(message).to_bytes(4, "big") + message


def connect(address, timeout=30, source=None):
    """Return a TCP connection to HOST:PORT. `source` selects the local address if there are several."""
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host.strip("[]"), int(port)), timeout * server.PATIENCE, (source, 0) if source else None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class Http1:
    """One HTTP/1.1 connection."""

    def __init__(self, address, timeout=30, source=None):
        self.socket = connect(address, timeout, source)
        self.reader = self.socket.makefile("rb")
        self.open = True

    def request(self, head, body=b"", expect_continue=False):
        """Send the head (with its empty line) and the framed body; return the final Response.

        With expect_continue the body waits for "100 Continue"; another answer is final and the body is not sent.
        """
        if expect_continue:
            self.socket.sendall(head)
            first = self._read_head()
            if first.status != 100:
                return self._read_body(first)
            self.socket.sendall(body)
        else:
            self.socket.sendall(head + body)
        answer = self._read_head()
        while answer.status // 100 == 1:
            answer = self._read_head()
        return self._read_body(answer)

    def _read_head(self):
        line = self.reader.readline()
        if not line:
            self.close()
            raise ConnectionError("the server closed the connection without an answer")
        response = Response(status=int(line.split()[1]))
        for line in iter(self.reader.readline, b"\r\n"):
            if not line.endswith(b"\r\n"):
                raise ConnectionError(f"head of the answer is cut off: {line!r}")
            name, _, value = line.decode("latin-1").partition(":")
            response.headers.append((name, value.strip()))
        return response

    def _read_body(self, response):
        if response.header("transfer-encoding", "").lower() == "chunked":
            parts = []
            while size := int(self.reader.readline().split(b";")[0], 16):
                parts.append(self.reader.read(size))
                self.reader.readline()
            while self.reader.readline().strip():
                pass
            response.body = b"".join(parts)
        elif response.header("content-length") is not None:
            response.body = self.reader.read(int(response.header("content-length")))
        elif response.status not in (204, 304):
            response.body = self.reader.read()
            self.open = False
        if response.header("connection", "").lower() == "close":
            self.open = False
        if not self.open:
            self.close()
        return response

    def close(self):
        """Close the connection."""
        self.open = False
        self.reader.close()
        self.socket.close()


class Http2:
    """One cleartext HTTP/2 connection with prior knowledge; one request at a time."""

    def __init__(self, address, timeout=30, source=None):
        self.socket = connect(address, timeout, source)
        self.open = True
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=True, header_encoding="utf-8", validate_outbound_headers=False,
            normalize_outbound_headers=False))
        self.h2.initiate_connection()
        self._flush()
        self.answers = {}
        self._unread = b""

    def request(self, headers, body=b""):
        """Send headers as they are and the body in DATA frames; return the Response."""
        stream = self.start(headers, body)
        return self.finish(stream)

    def start(self, headers, body=b"", pause=0):
        """Send a request without waiting for its answer, the body `pause` seconds after the headers; return its stream id."""
        stream = self.h2.get_next_available_stream_id()
        self.answers[stream] = Response()
        self.h2.send_headers(stream, headers, end_stream=not body)
        if pause:
            self._flush()
            time.sleep(pause)
        at = 0
        while at < len(body) and self.answers[stream].reset is None:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if room <= 0:
                self._flush()
                self._receive()
                continue
            part = body[at:at + room]
            at += len(part)
            self.h2.send_data(stream, part, end_stream=at == len(body))
        self._flush()
        return stream

    def finish(self, stream):
        """Wait for the answer of a stream."""
        answer = self.answers[stream]
        while answer.reset is None and not getattr(answer, "done", False):
            self._receive()
        return self.answers.pop(stream)

    def _flush(self):
        data = self.h2.data_to_send()
        if data:
            self.socket.sendall(data)

    def _receive(self):
        data = self.socket.recv(65536)
        if not data:
            self.close()
            raise ConnectionError("the server closed the connection without an answer")
        for frame in self._frames(data):
            self._take(frame)

    def _frames(self, data):
        """Return complete frames one at a time: after a GOAWAY, h2 would refuse the rest of a read."""
        self._unread += data
        while len(self._unread) >= 9:
            size = 9 + int.from_bytes(self._unread[:3], "big")
            if len(self._unread) < size:
                return
            frame, self._unread = self._unread[:size], self._unread[size:]
            yield frame

    def _take(self, frame):
        for event in self.h2.receive_data(frame):
            answer = self.answers.get(getattr(event, "stream_id", None))
            if isinstance(event, h2.events.ConnectionTerminated):
                self.open = False
                if event.error_code:
                    for waiting in self.answers.values():
                        waiting.reset = event.error_code
                else:   # h2 treats GOAWAY as the end, but open streams still get answers (RFC 9113, 6.8)
                    self.h2.state_machine.state = h2.connection.ConnectionState.CLIENT_OPEN
            elif answer is None:
                continue
            elif isinstance(event, h2.events.ResponseReceived):
                answer.headers = [pair for pair in event.headers if not pair[0].startswith(":")]
                answer.status = int(dict(event.headers)[":status"])
            elif isinstance(event, h2.events.DataReceived):
                answer.body += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.TrailersReceived):
                answer.trailers = list(event.headers)
            elif isinstance(event, h2.events.StreamEnded):
                answer.done = True
            elif isinstance(event, h2.events.StreamReset):
                answer.reset = event.error_code
        self._flush()

    def close(self):
        """Close the connection."""
        self.open = False
        self.socket.close()
