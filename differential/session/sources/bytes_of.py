"""The bytes of a file, a compressed file or a pipe, as a source reads them: look ahead, then advance.

Nothing here waits. `peek` returns what is there, and whether that is all that the file has now; `advance` goes on.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import select
from typing import IO, Protocol, cast

CHECKED = 64
"""So many bytes before a position tell whether the file is the one that was read."""


class Bytes(Protocol):
    """Bytes to read. `at` is the number of those before the next one."""

    at: int

    def peek(self, count: int) -> tuple[bytes, bool]:
        """Return up to `count` bytes from here on, and whether no more are there: more may be written."""

    def advance(self, count: int) -> None:
        """Go on by some of the bytes that `peek` has returned."""

    def close(self) -> None:
        """Close the file."""


class FileBytes:
    """A file, which may grow."""

    def __init__(self, path: str, at: int = 0) -> None:
        self.at = at
        self._file = os.open(path, os.O_RDONLY)

    def peek(self, count: int) -> tuple[bytes, bool]:
        data = os.pread(self._file, count, self.at)
        return data, len(data) < count

    def advance(self, count: int) -> None:
        self.at += count

    def close(self) -> None:
        os.close(self._file)

    def identity(self) -> tuple[int, int]:
        """Return what another file does not have while this one is open."""
        found = os.fstat(self._file)
        return found.st_dev, found.st_ino

    def size(self) -> int:
        """Return the number of bytes now."""
        return os.fstat(self._file).st_size

    def mark(self) -> str:
        """Return a digest of the bytes just before `at`, so that another file is recognised."""
        start = max(0, self.at - CHECKED)
        return hashlib.sha256(os.pread(self._file, self.at - start, start)).hexdigest()[:16]


class StreamBytes:
    """What can only be read once, in order: a compressed file."""

    def __init__(self, stream: IO[bytes], at: int = 0) -> None:
        self.at = 0
        self._stream = stream
        self._buffer = b""
        while self.at < at and self._stream.read(min(1 << 20, at - self.at)):
            self.at = self._stream.tell()

    @classmethod
    def decompressed(cls, path: str, at: int = 0) -> StreamBytes:
        """Return the contents of a gzip file."""
        return cls(cast(IO[bytes], gzip.open(path, "rb")), at)

    def peek(self, count: int) -> tuple[bytes, bool]:
        if len(self._buffer) < count:
            self._buffer += self._stream.read(count - len(self._buffer))
        return self._buffer[:count], len(self._buffer) < count

    def advance(self, count: int) -> None:
        self._buffer = self._buffer[count:]
        self.at += count

    def close(self) -> None:
        self._stream.close()


class PipeBytes:
    """A pipe or a terminal. It ends when the writer closes it."""

    def __init__(self, file: int) -> None:
        self.at = 0
        self.is_ended = False
        self._file = file
        self._buffer = b""

    def peek(self, count: int) -> tuple[bytes, bool]:
        while len(self._buffer) < count and not self.is_ended and select.select([self._file], [], [], 0)[0]:
            data = os.read(self._file, io.DEFAULT_BUFFER_SIZE * 8)
            self._buffer += data
            self.is_ended = not data
        return self._buffer[:count], len(self._buffer) < count

    def advance(self, count: int) -> None:
        self._buffer = self._buffer[count:]
        self.at += count

    def close(self) -> None:
        """Leave the file open: the program owns it."""
