"""The socket that a worker listens at, with a count of the connections refused there.

A client with other keys, or another protocol, fails in ZeroMQ's handshake, so none of its messages arrive. The
`LinkWatch` counts such attempts here, and the worker reads the count.
"""

from __future__ import annotations

import zmq

from timely.communication.wire import HANDSHAKE_FAILED


class Listener:
    """A listening socket, and the number of handshakes that failed at it."""

    __slots__ = ("monitor", "refused", "socket")

    def __init__(self, pull: zmq.Socket[bytes]) -> None:
        self.socket = pull
        self.monitor = pull.get_monitor_socket(HANDSHAKE_FAILED)
        self.refused = 0

    def observe(self, event: int, now: float) -> None:
        self.refused += 1

    def close(self) -> None:
        """Stop listening. Must be called after the watch has ended."""
        self.socket.disable_monitor()
        self.monitor.close(0)
        self.socket.close(0)
