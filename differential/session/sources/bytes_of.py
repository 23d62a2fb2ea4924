"""The bytes of a file, a compressed file or a pipe, as a source reads them: look ahead, then advance.

Nothing here waits. `peek` returns what is there, and whether that is all that the file has now; `advance` goes on. The
last bytes that were read are kept, so that a file in which others have taken their place is recognised.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import select
import zlib
from typing import IO, Protocol, cast

CHECKED = 64
"""How many bytes before a position show whether the file is the one that was read."""


class Overwritten(Exception):
    """A file no longer has what was read of it, as far as is known. The text states what happened to the file."""


class Bytes(Protocol):
    """Bytes to read. `at` is the number of those before the next one."""

    at: int

    def peek(self, count: int) -> tuple[bytes, bool]:
        """Return up to `count` bytes from here on, and whether no more are there: more may be written."""

    def advance(self, count: int) -> None:
        """Advance past some of the bytes that `peek` has returned."""

    def mark(self) -> str:
        """Return a digest of the bytes just before `at`, so that another file is recognised; empty if none can be."""
        return ""

    def splits_a_line(self) -> bool:
        """Return whether `at` is inside of a line, neither at its beginning nor at its end, as far as is known."""
        return False

    def share(self) -> float:
        """Return the share of all bytes that comes before `at`; 0 if it is not known."""
        return 0.0

    def close(self) -> None:
        """Close the file, unless the program owns it."""


class RegularFile(Bytes):
    """A file, whose bytes are recognised by those just before `at`, which are kept."""

    _before: bytes
    _descriptor: int

    def mark(self) -> str:
        return digest(self._before)

    def splits_a_line(self) -> bool:
        before, (after, _) = self._before, self.peek(1)
        return bool(before and after) and not before.endswith(b"\n") and after not in (b"\n", b"\r")

    def size(self) -> int:
        """Return how many bytes the file has now; a compressed one, how many compressed bytes."""
        return os.fstat(self._descriptor).st_size

    def identity(self) -> tuple[int, int]:
        """Return the numbers of the device and the file, which no other file has while this one is open."""
        found = os.fstat(self._descriptor)
        return found.st_dev, found.st_ino


class FileBytes(RegularFile):
    """A file, which may grow."""

    def __init__(self, path: str, at: int = 0) -> None:
        self.at = at
        self._descriptor = os.open(path, os.O_RDONLY)
        start = max(0, at - CHECKED)
        self._before = os.pread(self._descriptor, at - start, start)
        self._ahead = b""

    def peek(self, count: int) -> tuple[bytes, bool]:
        """Return the next bytes. Raises Overwritten if the file was truncated, even if it has grown again."""
        # One read of both, so what is returned was behind the bytes that are checked.
        data = os.pread(self._descriptor, len(self._before) + count, self.at - len(self._before))
        if not data.startswith(self._before):
            raise Overwritten("was truncated, and lines may have been lost")
        self._ahead = data[len(self._before) :]
        return self._ahead, len(self._ahead) < count

    def advance(self, count: int) -> None:
        self._before = _last(self._before, self._ahead[:count])
        self._ahead = b""
        self.at += count

    def share(self) -> float:
        return self.at / max(self.size(), 1)

    def close(self) -> None:
        os.close(self._descriptor)


class StreamBytes(RegularFile):
    """What can only be read once, in order: the contents of a gzip file."""

    def __init__(self, path: str, at: int = 0) -> None:
        self.at = 0
        self._file = open(path, "rb")  # noqa: SIM115  `close` closes both
        self._descriptor = self._file.fileno()
        self._stream = cast(IO[bytes], gzip.GzipFile(fileobj=self._file))
        self._buffer = b""
        self._before = b""
        try:
            while self.at < at and (data := self._next(min(1 << 20, at - self.at))):  # a stream cannot be entered
                self._before = _last(self._before, data)
                self.at += len(data)
        except BaseException:
            self.close()
            raise

    def peek(self, count: int) -> tuple[bytes, bool]:
        if len(self._buffer) < count:
            self._buffer += self._next(count - len(self._buffer))
        return self._buffer[:count], len(self._buffer) < count

    def advance(self, count: int) -> None:
        self._before = _last(self._before, self._buffer[:count])
        self._buffer = self._buffer[count:]
        self.at += count

    def share(self) -> float:
        return self._file.tell() / max(self.size(), 1)

    def close(self) -> None:
        self._stream.close()
        self._file.close()

    def _next(self, count: int) -> bytes:
        """Return the next bytes. Raises OSError if the compressed file is damaged or incomplete."""
        try:
            return self._stream.read(count)
        except (EOFError, zlib.error) as error:
            raise OSError(str(error)) from None


class PipeBytes(Bytes):
    """A pipe or a terminal. It ends when the writer closes it, and what it has had cannot be read again."""

    def __init__(self, file: int) -> None:
        self.at = 0
        self.is_ended = False
        self._file = file
        self._buffer = b""

    def peek(self, count: int) -> tuple[bytes, bool]:
        # Nothing is read before `select` has found something: `os.read` would wait.
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


def digest(data: bytes) -> str:
    """Return a short digest.

    >>> digest(b"1,ann,30")
    'f09b89577d37e0c2'
    """
    return hashlib.sha256(data).hexdigest()[:16]


def _last(before: bytes, data: bytes) -> bytes:
    """Return the last bytes before a position, given those before an earlier one and what is between."""
    return (before + data[-CHECKED:])[-CHECKED:]
