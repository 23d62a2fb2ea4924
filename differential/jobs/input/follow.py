"""Follow a text as it grows: a file, a named pipe, or standard input.

Nothing here waits: `poll` returns the whole lines that have arrived, or None. A file that was replaced, as rotated logs
are, is read from the beginning of the new one, and a file that was truncated from its beginning; a line that had no end
by then counts as whole.
"""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Callable
from typing import NamedTuple

READ = 1 << 20
"""How many bytes are read at once."""


class ArrivedLines(NamedTuple):
    """Whole lines that have arrived."""

    data: bytes
    line: int
    """The number of the first line, from 1."""


class Followed:
    """A text that grows; `standard_input` is a file descriptor to follow instead of a path.

    It ends when standard input does, or once `is_over` returns True.
    """

    def __init__(
        self, path: str, standard_input: int | None = None, is_over: Callable[[], bool] = lambda: False
    ) -> None:
        self._path = path
        self._is_over = is_over
        self._is_ours = standard_input is None
        self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if standard_input is None else standard_input
        self._is_regular = stat.S_ISREG(os.fstat(self._file).st_mode)
        self._line = 1
        self._place = 0
        self._carry = b""
        self.is_ended = False
        """Whether no more arrives."""

    def close(self) -> None:
        os.close(self._file)

    def poll(self) -> ArrivedLines | None:
        """Return the whole lines that have arrived since the last call, or None if there are none."""
        if self._is_over():
            self.is_ended = True
            return None
        data = self._read()
        is_restarted = data == b"" and self._is_ours and self._is_regular and self._is_restarted()
        if is_restarted:
            data = self._read()  # what its writer has appended since, before the file was replaced
        if data:
            self._place += len(data)
            end = data.rfind(b"\n") + 1
            if not end:
                self._carry += data
                return None
            whole, self._carry = self._carry + data[:end], data[end:]
            return self._piece(whole)
        if data is None:
            return None
        if not self._is_ours:
            self.is_ended = True
            return self._rest()
        return self._rest(restart=True) if is_restarted and self._restart() else None

    def _read(self) -> bytes | None:
        """Return what can be read without waiting: nothing at the end, None if something may arrive yet."""
        if not self._is_regular and not select.select([self._file], [], [], 0)[0]:
            return None
        try:
            return os.read(self._file, READ)
        except BlockingIOError:
            return None

    def _piece(self, data: bytes) -> ArrivedLines:
        piece = ArrivedLines(data, self._line)
        self._line += data.count(b"\n")
        return piece

    def _rest(self, restart: bool = False) -> ArrivedLines | None:
        """Return the line that has no end, if there is one."""
        rest, self._carry = self._carry, b""
        piece = self._piece(rest) if rest else None
        if restart:
            self._line = 1
        return piece

    def _is_restarted(self) -> bool:
        """Return whether the file begins again: there is a new file at its path, or it became shorter."""
        mine = os.fstat(self._file)
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            return False
        if (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino):
            return stat.S_ISREG(there.st_mode)
        return mine.st_size < self._place

    def _restart(self) -> bool:
        """Go to the beginning of the file that is at the path now; return whether there still is one."""
        try:
            file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        os.close(self._file)
        self._file, self._place = file, 0
        return True
