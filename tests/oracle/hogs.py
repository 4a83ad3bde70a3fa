"""A client that holds as much of profcol's memory as it can, for as long as it can.

    with Hog(profcol, ["http", "grpc"] * 20, source="127.0.0.2") as hog:
        server.wait_until(lambda: hog.refused > 100)
        ...                             # meanwhile it retries refused requests
"""

import select
import time

import h2.events
import h2.exceptions

from . import client, connections
from .background import Repeating

PROMISED = 4 << 20      # announced bytes of each body, of which
AT_ONCE = 900_000       # are sent as fast as possible, and then
PACE = 4096             # in each second: at a lower rate, the connection would be closed
REFUSALS = (h2.events.ResponseReceived, h2.events.StreamReset, h2.events.ConnectionTerminated)


class _Http1:
    """A request whose body never ends."""

    def __init__(self, address, source):
        self.socket = connections.connect(address, 5, source)
        self.socket.sendall(client.http1_head("POST", client.TRACES, address, [
            ("Content-Type", client.PROTOBUF), ("Content-Length", str(PROMISED))]))
        self.socket.setblocking(False)

    def send(self, size):
        """Send some more of the body; return how much."""
        try:
            return self.socket.send(bytes(size))
        except BlockingIOError:
            return 0

    def hears(self):
        """Return whether it was answered."""
        return bool(select.select([self.socket], [], [], 0)[0])


class _Grpc:
    """The same over HTTP/2."""

    def __init__(self, address, source):
        connection = connections.Http2(address, 5, source)
        self.socket, self.h2 = connection.socket, connection.h2
        self.h2.send_headers(1, client.grpc_fields(address))
        self.h2.send_data(1, b"\0" + PROMISED.to_bytes(4, "big"))
        self.socket.sendall(self.h2.data_to_send())

    def send(self, size):
        """Send some more of the body; return how much."""
        size = min(size, self.h2.local_flow_control_window(1), self.h2.max_outbound_frame_size)
        self.h2.send_data(1, bytes(size))
        self.socket.sendall(self.h2.data_to_send())
        return size

    def hears(self):
        """Return whether it was answered."""
        while select.select([self.socket], [], [], 0)[0]:
            data = self.socket.recv(65536)
            if not data or any(isinstance(event, REFUSALS) for event in self.h2.receive_data(data)):
                return True
            self.socket.sendall(self.h2.data_to_send())
        return False


class _Body:
    """One connection of a hog, opened again whenever it was refused."""

    def __init__(self, kind, address, source):
        self.open = lambda: kind(address, source)
        self.way, self.sent, self.since = None, 0, 0.0

    def turn(self):
        """Continue a little. Return False if it was refused."""
        try:
            if not self.way:
                self.way, self.sent, self.since = self.open(), 0, time.monotonic()
            room = AT_ONCE + int(PACE * (time.monotonic() - self.since)) - self.sent
            if room > 0:
                self.sent += self.way.send(min(room, 256 << 10))
            if not self.way.hears():
                return True
        except (OSError, h2.exceptions.ProtocolError):     # also of frames after a GOAWAY
            pass
        self.close()
        return False

    def close(self):
        """Close the connection."""
        if self.way:
            self.way.socket.close()
        self.way = None


class Hog:
    """See the module. `ways`: "http" or "grpc" for each connection. `refused` counts answers and closed connections."""

    def __init__(self, profcol, ways, source):
        kinds = {"http": _Http1, "grpc": _Grpc}
        self.bodies = [_Body(kinds[way], profcol.address(way), source) for way in ways]
        self.refused, self.turns = 0, 0
        self.thread = None

    def turn(self):
        """Continue all of them a little."""
        self.refused += sum(not body.turn() for body in self.bodies)
        self.turns += 1
        time.sleep(0.005)

    def __enter__(self):
        self.thread = Repeating(self.turn)
        return self

    def __exit__(self, *_):
        try:
            self.thread.end()
        finally:
            for body in self.bodies:
                body.close()
