"""A bell that a poll of sockets can wait for."""

from __future__ import annotations

import socket
from contextlib import suppress


class Doorbell:
    """A bell that a poll can wait for. May be rung from any thread or signal handler, also after it is closed."""

    __slots__ = ("_ear", "_hand", "_rung")

    def __init__(self) -> None:
        self._ear, self._hand = socket.socketpair()
        self._ear.setblocking(False)
        self._hand.setblocking(False)
        self._rung = False

    def fileno(self) -> int:
        return self._ear.fileno()

    def ring(self) -> None:
        if not self._rung:
            self._rung = True
            with suppress(OSError):  # closed
                self._hand.send(b"\0")

    def hush(self) -> None:
        """Forget the ringing. Whoever rings before this returns is heard: the caller is awake."""
        with suppress(BlockingIOError):
            self._ear.recv(64)
        self._rung = False

    def close(self) -> None:
        self._ear.close()
        self._hand.close()
