"""Turns: which process compiles a kernel that several need; and a line on stderr when that takes long."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from differential.kernels.store import print_line

_PATIENCE = 1.0
"""After this many seconds slow work is reported."""


class Turn:
    """The right to compile a kernel, which one process has at a time: a lock on a byte of a file beside the cache.

    When a process closes a file, the system releases all locks of the process on it, even those taken through another
    descriptor. So a process never takes the turn for one kernel while it has that for another.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._path = directory / "compiling.lock"
        self.place = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "big")

    def __enter__(self) -> Turn:
        self._file = open(self._path, "a", opener=_opened)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def is_ours(self) -> bool:
        """Take the turn if no other process has it; return whether it is ours. Without locks it always is."""
        try:
            self._lock(wait=False)
        except (BlockingIOError, PermissionError):
            return False
        except OSError:  # some network file systems have no locks: there, two processes may compile the same kernel
            return True
        return True

    def wait(self) -> None:
        """Wait until the turn is ours."""
        with notice(f"differential: waiting for another process that is compiling kernels (it holds {self._path})"):
            self._lock(wait=True)

    def _lock(self, wait: bool) -> None:
        import fcntl

        # The byte need not exist. Two kernels with the same place only wait for each other.
        fcntl.lockf(self._file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, self.place)


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


@contextlib.contextmanager
def notice(text: str) -> Iterator[None]:
    """Print `text` on stderr if the block takes longer than a second."""
    timer = threading.Timer(_PATIENCE, print_line, (text,))
    # A thread that waits to print must not keep the process from ending.
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
