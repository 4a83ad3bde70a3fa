"""A backend for profcol whose answers a test chooses.

    with Backend("grpc") as backend:                  # or "http", or "h2"
        backend.answers.append(Answer(grpc_status=14, retry_after=0.2))
        ...
        backend.wait(2)                               # two requests have arrived
        backend.accepted("profiles")                  # those that were answered with success

Each request uses up one of `answers`; when there are none left, `default` answers. `requests` has all requests, also
refused ones, so that a test can check for retries.
"""

import base64
import collections
import concurrent.futures
import dataclasses
import http.server
import json
import pathlib
import socket
import struct
import sys
import threading
import time
import urllib.parse

import grpc

from . import backend_h2, canonical, decode, server, wire

CODE_OF_STATUS = {400: 3, 401: 16, 403: 7, 404: 12, 429: 8, 502: 14, 503: 14, 504: 14}


@dataclasses.dataclass
class Answer:
    """How to answer one request. `status` is for HTTP, `grpc_status` for gRPC."""

    status: int = 200
    grpc_status: int = 0
    message: str = ""
    retry_after: float | None = None    # Retry-After header, or RetryInfo in the details, in seconds
    delay: float = 0                    # before the answer
    drop: bool = False                  # break the connection instead of answering ("grpc": the call)
    reset: int | None = None            # reset the stream with this HTTP/2 error code instead ("h2" only)
    body: bytes | None = None           # instead of an empty response message
    headers: tuple = ()                 # more headers, or gRPC trailers, as (name, value)

    @property
    def accepts(self):
        """Whether the client may assume that the data arrived."""
        return not self.drop and self.reset is None and self.status // 100 == 2 and self.grpc_status == 0


    def details_text(self):
        """Return grpc-status-details-bin as encoded in a header."""
        return base64.b64encode(status_message(self.grpc_status, self.message, self.retry_after)).decode()


@dataclasses.dataclass
class Received:
    """One request as it arrived."""

    signal: str
    path: str
    headers: list                       # (lower-case name, value) in order
    content: str                        # protobuf | json
    body: bytes                         # as sent; for "grpc" already decompressed
    payload: bytes                      # decompressed
    time: float                         # monotonic
    peer: str                           # identifies the connection
    answer: Answer | None = None

    def header(self, name, default=None):
        """Return the first header with that (lower-case) name."""
        return next((value for key, value in self.headers if key == name), default)

    def message(self):
        """Return its protobuf message."""
        return canonical.decode(self.payload, self.signal, self.content)

    def form(self):
        """Return its canonical form."""
        return canonical.canonical(self.message())


class Backend:
    """An OTLP sink on a free port of 127.0.0.1, which nobody else gets after stop() either.

    "http" is HTTP/1.1; "grpc" is gRPC's own server, strict but only with gzip and deflate; "h2" is gRPC and
    OTLP/HTTP over cleartext HTTP/2 in all compressions. `tls` is (certificate file, key file), not for "h2".
    """

    def __init__(self, protocol="http", *, port=None, tls=None, default=None):
        self.requests = []
        self.answers = collections.deque()
        self.default = default or Answer()
        self._changed = threading.Condition()
        servers = {"http": _HttpServer, "grpc": _GrpcServer, "h2": _h2_server}
        self.port = port or server.free_port()
        self._server = servers[protocol](self, self.port, tls)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    @property
    def address(self):
        """Return HOST:PORT."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self):
        """Return the URL, for exporters that need one."""
        return f"http://{self.address}"

    def stop(self):
        """Stop listening and break open connections."""
        self._server.stop()

    def on_request(self, received):
        """Keep the request and return its answer; the servers call this."""
        with self._changed:
            received.answer = self.answers.popleft() if self.answers else self.default
            self.requests.append(received)
            self._changed.notify_all()
        if received.answer.delay:
            time.sleep(received.answer.delay)
        return received.answer

    def of(self, signal=None):
        """Return the requests so far, of one signal or of all."""
        with self._changed:
            return [r for r in self.requests if signal in (None, r.signal)]

    def accepted(self, signal=None):
        """Return the requests that were answered with success."""
        return [r for r in self.of(signal) if r.answer.accepts]

    def forms(self, signal):
        """Return the canonical forms of the accepted requests."""
        return [r.form() for r in self.accepted(signal)]

    def wait(self, count, signal=None, timeout=15):
        """Wait until `count` requests were accepted; return them."""
        return self.wait_for(lambda: len(self.accepted(signal)) >= count, timeout,
                             f"{count} requests of {signal or 'any signal'}") and self.accepted(signal)

    def wait_for_items(self, signal, count, timeout=15):
        """Wait until the accepted requests of a signal have `count` spans or samples; return their forms."""
        kind = "spans" if signal == "traces" else "samples"
        return self.wait_for(
            lambda: sum(canonical.counts(form)[kind] for form in self.forms(signal)) >= count,
            timeout, f"{count} {kind}") and self.forms(signal)

    def wait_for(self, condition, timeout=15, what="condition"):
        """Wait until condition() is true; check it again after each request."""
        deadline = time.monotonic() + timeout * server.PATIENCE
        while not condition():
            with self._changed:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"backend: {what}: not within {timeout} s; "
                                       f"{len(self.requests)} requests arrived")
                self._changed.wait(min(left, 0.25))
        return True


def _h2_server(backend, port, _tls):
    def respond(path, headers, content, body, payload, peer):
        return backend.on_request(Received(
            decode.SIGNAL_OF_PATH.get(path, path), path, headers, content, body, payload,
            time.monotonic(), peer))

    return backend_h2.H2Server(respond, port)


class _QuietServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.open_sockets = set()

    def process_request(self, request, client_address):
        """Note it here: its thread may begin after stop()."""
        self.open_sockets.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        """Forget it."""
        self.open_sockets.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request, client_address):
        """Ignore clients that leave; report other errors."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _HttpServer:
    def __init__(self, backend, port, tls):
        self.server = _QuietServer(("127.0.0.1", port), _handler(backend))
        if tls:
            import ssl
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        for connection in list(self.server.open_sockets):
            _break_connection(connection)


def _break_connection(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def _handler(backend):
    class Handler(http.server.BaseHTTPRequestHandler):
        """OTLP/HTTP over HTTP/1.1 with keep-alive."""

        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_):
            pass

        def do_POST(self):
            body = self._body()
            path = urllib.parse.urlsplit(self.path).path
            content = "json" if "json" in self.headers.get("content-type", "") else "protobuf"
            payload = decode.decompress(body, self.headers.get("content-encoding", ""))
            headers = [(name.lower(), value) for name, value in self.headers.items()]
            answer = backend.on_request(Received(
                decode.SIGNAL_OF_PATH.get(path, path), path, headers, content, body, payload,
                time.monotonic(), "%s:%d" % self.client_address))
            if answer.drop:
                linger = struct.pack("ii", 1, 0)
                self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.close_connection = True
                return
            self._answer(answer, content)

        def _body(self):
            if self.headers.get("transfer-encoding", "").lower() == "chunked":
                parts = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                while self.rfile.readline().strip():
                    pass
                return b"".join(parts)
            return self.rfile.read(int(self.headers.get("content-length", 0)))

        def _answer(self, answer, content):
            body = answer.body
            if body is None and answer.status // 100 == 2:
                body = b"{}" if content == "json" else b""
            elif body is None:
                code = CODE_OF_STATUS.get(answer.status, 2)
                body = (json.dumps({"code": code, "message": answer.message}).encode() if content == "json"
                        else status_message(code, answer.message))
            self.send_response(answer.status)
            self.send_header("Content-Type", f"application/{'json' if content == 'json' else 'x-protobuf'}")
            self.send_header("Content-Length", str(len(body)))
            if answer.retry_after is not None:
                self.send_header("Retry-After", f"{answer.retry_after:g}")
            for name, value in answer.headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    return Handler


class _GrpcServer:
    """gRPC's own server with undecoded messages: an independent, strict check of profcol's requests."""

    def __init__(self, backend, port, tls):
        self.backend = backend
        self.server = grpc.server(
            concurrent.futures.ThreadPoolExecutor(8),
            options=[("grpc.max_receive_message_length", 256 << 20), ("grpc.so_reuseport", 0)])
        self.server.add_generic_rpc_handlers((_Methods(self._on_call),))
        where = f"127.0.0.1:{port}"
        if tls:
            certificate, key = (pathlib.Path(name).read_bytes() for name in tls)
            self.server.add_secure_port(where, grpc.ssl_server_credentials([(key, certificate)]))
        else:
            self.server.add_insecure_port(where)
        self.server.start()

    def stop(self):
        self.server.stop(None).wait(5)

    def _on_call(self, path, payload, context):
        headers = [(item.key, item.value) for item in context.invocation_metadata()]
        answer = self.backend.on_request(Received(
            decode.SIGNAL_OF_PATH.get(path, path), path, headers, "protobuf", payload, payload,
            time.monotonic(), context.peer()))
        if answer.drop:
            context.cancel()
            return b""
        trailers = list(answer.headers)
        if answer.retry_after is not None:
            trailers.append(("grpc-status-details-bin",
                             status_message(answer.grpc_status, answer.message, answer.retry_after)))
        context.set_trailing_metadata(tuple(trailers))
        if answer.grpc_status:
            codes = {code.value[0]: code for code in grpc.StatusCode}
            context.abort(codes[answer.grpc_status], answer.message)
        return answer.body or b""


class _Methods(grpc.GenericRpcHandler):
    def __init__(self, on_call):
        self.on_call = on_call

    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(
            lambda payload, context: self.on_call(details.method, payload, context))


def status_message(code, message, retry_after=None):
    """Return an encoded google.rpc.Status, with RetryInfo if there is a delay."""
    out = b"\x08" + wire.put_varint(code) + wire.put_bytes(2, message.encode())
    if retry_after is not None:
        seconds = int(retry_after)
        duration = b"\x08" + wire.put_varint(seconds) + b"\x10" + wire.put_varint(round((retry_after - seconds) * 1e9))
        info = wire.put_bytes(1, b"type.googleapis.com/google.rpc.RetryInfo") + wire.put_bytes(2, wire.put_bytes(1, duration))
        out += wire.put_bytes(3, info)
    return out
