"""A bell that a poll of sockets can wait for."""

from __future__ import annotations

import socket
from contextlib import suppress


class Doorbell:
    """A bell that a poll can wait for. Any thread or signal handler may ring it, even after it was closed."""

    __slots__ = ("_receiver", "_rung", "_sender")

    def __init__(self) -> None:
        self._receiver, self._sender = socket.socketpair()
        self._receiver.setblocking(False)
        self._sender.setblocking(False)
        self._rung = False

    def fileno(self) -> int:
        return self._receiver.fileno()

    def ring(self) -> None:
        if not self._rung:  # one byte ends the poll; another would cost a system call for each message
            self._rung = True
            with suppress(OSError):  # closed
                self._sender.send(b"\0")

    def clear(self) -> None:
        """Clear the bell. A ring before this returns is not lost: the caller is awake and looks for its cause."""
        with suppress(BlockingIOError):
            self._receiver.recv(64)
        self._rung = False

    def close(self) -> None:
        self._receiver.close()
        self._sender.close()
