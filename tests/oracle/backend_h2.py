"""An HTTP/2 server for backend.Backend that leaves everything visible.

gRPC's own server is strict, but it accepts only gzip and deflate, and cannot break a connection on purpose. This one
decompresses every encoding, also answers plain OTLP over cleartext HTTP/2, and resets streams or drops connections on
demand.
"""

import json
import socket
import threading

import h2.config
import h2.connection
import h2.events
import h2.exceptions

from . import connections, decode


class H2Server:
    """Listens on 127.0.0.1; `respond(path, headers, content, body, payload, peer)` gives the Answer."""

    def __init__(self, respond, port=0):
        self.respond = respond
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port = self.listener.getsockname()[1]
        self.open, self.is_stopped, self.lock = set(), False, threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self):
        """Stop listening and break what is open."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.lock:
            self.is_stopped = True
            for connection in list(self.open):
                connection.drop()

    def _accept(self):
        while True:
            try:
                client, address = self.listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = _Connection(self, client, "%s:%d" % address)
            with self.lock:
                if self.is_stopped:
                    connection.drop()
                    return
                self.open.add(connection)
            threading.Thread(target=connection.serve, daemon=True).start()


class _Connection:
    def __init__(self, server, client, peer):
        self.server = server
        self.socket = client
        self.peer = peer
        self.lock = threading.Condition()
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=False, header_encoding="utf-8"))
        self.requests = {}

    def serve(self):
        try:
            with self.lock:
                self.h2.initiate_connection()
                self._flush()
            while data := self.socket.recv(65536):
                with self.lock:
                    for event in self.h2.receive_data(data):
                        self._on_event(event)
                    self._flush()
                    self.lock.notify_all()
        except (OSError, h2.exceptions.ProtocolError):
            pass
        finally:
            self.server.open.discard(self)
            self.drop()

    def _on_event(self, event):
        if isinstance(event, h2.events.RequestReceived):
            self.requests[event.stream_id] = (event.headers, bytearray())
        elif isinstance(event, h2.events.DataReceived):
            self.requests[event.stream_id][1].extend(event.data)
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            headers, body = self.requests.pop(event.stream_id)
            threading.Thread(target=self._answer, args=(event.stream_id, headers, bytes(body)),
                             daemon=True).start()
        elif isinstance(event, h2.events.StreamReset):
            self.requests.pop(event.stream_id, None)

    def _answer(self, stream, headers, body):
        fields = dict(headers)
        kind = fields.get("content-type", "")
        grpc = kind.startswith("application/grpc")
        if grpc:
            flag, length = body[0], int.from_bytes(body[1:5], "big")
            body = body[5:5 + length]
            encoding = fields.get("grpc-encoding", "identity") if flag else ""
        else:
            encoding = fields.get("content-encoding", "")
        content = "json" if "json" in kind else "protobuf"
        answer = self.server.respond(fields[":path"], headers, content, body,
                                     decode.decompress(body, encoding), self.peer)
        try:
            if answer.drop:
                self.drop()
            elif answer.reset is not None:
                with self.lock:
                    self.h2.reset_stream(stream, answer.reset)
                    self._flush()
            elif grpc:
                self._send(stream, *_grpc_answer(answer))
            else:
                self._send(stream, *_http_answer(answer, content))
        except (OSError, h2.exceptions.ProtocolError):
            pass    # the client is gone, or has reset this stream

    def _send(self, stream, headers, body, trailers):
        with self.lock:
            self.h2.send_headers(stream, headers, end_stream=not body and not trailers)
            while body:
                room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
                if room <= 0:
                    self._flush()
                    self.lock.wait(5)
                    continue
                self.h2.send_data(stream, body[:room], end_stream=len(body) <= room and not trailers)
                body = body[room:]
            if trailers:
                self.h2.send_headers(stream, trailers, end_stream=True)
            self._flush()

    def _flush(self):
        data = self.h2.data_to_send()
        if data:
            self.socket.sendall(data)

    def drop(self):
        """Break the connection."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()


def _grpc_answer(answer):
    head = [(":status", "200"), ("content-type", "application/grpc")]
    trailers = [("grpc-status", str(answer.grpc_status))]
    if answer.message:
        trailers.append(("grpc-message", answer.message))
    if answer.retry_after is not None:
        trailers.append(("grpc-status-details-bin", answer.details_text()))
    trailers += answer.headers
    if answer.grpc_status:
        return head + trailers, b"", []
    return head, connections.grpc_frame(answer.body or b""), trailers


def _http_answer(answer, content):
    body = answer.body
    if body is None:
        body = b"" if content == "protobuf" else json.dumps({}).encode()
    head = [(":status", str(answer.status)), ("content-length", str(len(body))),
            ("content-type", f"application/{'json' if content == 'json' else 'x-protobuf'}")]
    if answer.retry_after is not None:
        head.append(("retry-after", f"{answer.retry_after:g}"))
    return head + list(answer.headers), body, []
