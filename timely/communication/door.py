"""The socket a worker listens at, and those who were turned away at it.

Who has other keys, or speaks another protocol, fails in ZeroMQ's handshake, and nothing of it arrives as a message.
Such attempts are counted here. The `Watch` writes, the worker reads.
"""

from __future__ import annotations

import zmq

_TURNED_AWAY = (
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)


class Door:
    """Counts the handshakes that failed at a listening socket."""

    __slots__ = ("monitor", "refused", "socket")

    def __init__(self, pull: zmq.Socket[bytes]) -> None:
        self.socket = pull
        self.monitor = pull.get_monitor_socket(_TURNED_AWAY)
        self.refused = 0

    def observe(self, event: int, now: float) -> None:
        """Take in that a handshake failed."""
        self.refused += 1

    def close(self) -> None:
        """Listen no longer. Only after the watch has ended."""
        self.socket.disable_monitor()
        self.monitor.close(0)
        self.socket.close(0)
