"""Blocks: the text of an input, cut at line ends, and divided among workers.

A file is divided by ranges of bytes; a compressed file is decompressed by every worker, of which each parses every
`peers`-th block; a stream, such as standard input, is read by worker 0 alone.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from differential.jobs.access import reading
from differential.jobs.input.edges import Progress, ignore
from timely.errors import DataError

BLOCK = 1 << 21
"""About how many bytes a block has."""
COUNTED = 1 << 20
"""How many bytes are read at once to count lines."""
MOST_LINE = 1 << 26
"""How many bytes a line may have."""
LEAST_HEAD, MOST_HEAD = 1 << 16, 1 << 24
"""How many bytes of a text are read to find its form: more if the first ones have less than two rows."""


class Block(NamedTuple):
    """Whole lines of a text."""

    data: bytes
    start: int
    """The offset of the first byte in the text."""
    line: Callable[[], int]
    """Returns the number of the first line, from 1; that may take a pass over the text before it."""


class PlainText:
    """A text in a file that is not compressed, divided by ranges of bytes."""

    is_alone = False

    def __init__(self, path: str) -> None:
        self.label = path
        self.total = os.stat(path).st_size

    def head(self, size: int) -> bytes:
        with open(self.label, "rb", buffering=0) as file:
            return read_fully(file, size)

    def blocks(self, index: int, peers: int, progress: Progress) -> Iterator[Block]:
        """Yield the lines that begin in one of `peers` ranges of equal size."""
        lines = _LineCount(self.label)
        with open(self.label, "rb", buffering=0) as file:
            begin = _line_start(file, self.total * index // peers)
            end = _line_start(file, self.total * (index + 1) // peers)
            file.seek(begin)
            carry = b""
            place = begin
            while place < end:
                data = file.read(min(BLOCK, end - place))
                if not data:
                    raise DataError(f"{self.label} became shorter while it was read: {place} of {self.total} bytes")
                place += len(data)
                progress(len(data))
                whole, carry = _cut(self.label, carry, data, place == end)
                if whole:
                    start = place - len(carry) - len(whole)
                    yield Block(whole, start, functools.partial(lines.at, start))


class StreamText:
    """A text that can be read once, by worker 0: standard input, or a pipe."""

    total = None
    is_alone = True

    def __init__(self, label: str, stream: Any) -> None:
        self.label = label
        self._stream = stream
        self._head = b""

    def head(self, size: int) -> bytes:
        self._head += read_fully(self._stream, size - len(self._head))
        return self._head[:size]

    def rest(self) -> Prefixed:
        """Return the stream from its beginning, to be read once."""
        head, self._head = self._head, b""
        return Prefixed(head, self._stream)

    def blocks(self, index: int, peers: int, progress: Progress) -> Iterator[Block]:
        if not index:
            yield from _counted(self.label, self.rest(), progress)


class PackedText:
    """A text in a compressed file, decompressed by every worker."""

    is_alone = False

    def __init__(self, path: str, codec: str) -> None:
        self.label = path
        self.total = os.stat(path).st_size
        self._codec = codec

    def head(self, size: int) -> bytes:
        with self._open() as packed:
            return read_fully(Unpacked(self.label, packed, self._codec), size)

    def blocks(self, index: int, peers: int, progress: Progress) -> Iterator[Block]:
        with self._open() as packed:
            read = 0
            stream = Unpacked(self.label, packed, self._codec)
            for number, block in enumerate(_counted(self.label, stream, ignore)):
                place = packed.tell()
                if number % peers == index:
                    progress(place - read)
                    yield block
                read = place
        if not index:
            progress(self.total - read)

    def _open(self) -> Any:
        return open(self.label, "rb", buffering=0)


Text = PlainText | StreamText | PackedText
"""A text that can be read from its beginning.

`label` is what to call it, and `total` how many bytes there are to read, compressed if the file is, or None if that is
unknown. If it `is_alone`, worker 0 reads everything. `head` returns the first bytes, or all if there are fewer, and
`blocks` yields the blocks that worker `index` of `peers` reads; all workers together read all.
"""


class Unpacked:
    """A compressed stream, as one that is not; reading it raises DataError if it is damaged."""

    def __init__(self, label: str, stream: Any, codec: str) -> None:
        self._label = label
        self._codec = codec
        self._stream = pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), codec)

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, none at the end."""
        with reading(self._label, self._codec):
            data: bytes = self._stream.read(size)
        return data


def read_fully(stream: Any, size: int) -> bytes:
    """Return the next `size` bytes of a stream, or all if there are fewer."""
    parts = []
    while size > 0 and (data := stream.read(size)):
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def head_of(text: Text, is_enough: Callable[[bytes], bool]) -> bytes:
    """Return complete lines at the beginning of a text, more of them until they are enough or the text ends.

    Raises DataError if the first line is too long for a text.
    """
    size = LEAST_HEAD
    while True:
        data = text.head(size)
        if len(data) < size:
            return data
        whole = data[: data.rfind(b"\n") + 1]
        if is_enough(whole):
            return whole
        if size >= MOST_HEAD:
            if whole:
                return whole
            raise DataError(
                f"{text.label} has no line end within {size} bytes, so it is not text with one edge per line"
            )
        size *= 16


class DescriptorStream:
    """What a file descriptor reads, which is closed when nobody reads it any more."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes, none at the end."""
        return os.read(self._descriptor, size)


class Prefixed:
    """A stream of which the beginning was read before."""

    def __init__(self, head: bytes, stream: Any) -> None:
        self.closed = False
        self._head = head
        self._stream = stream

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, or all if there are fewer."""
        head, self._head = self._head[:size], self._head[size:]
        return head + read_fully(self._stream, size - len(head))


class _LineCount:
    """Counts the lines of a file before an offset, from where it counted last."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._place = 0
        self._lines = 1

    def at(self, place: int) -> int:
        """Return the number, from 1, of the line that begins at an offset not before the last one asked for."""
        with open(self._path, "rb", buffering=0) as file:
            file.seek(self._place)
            while self._place < place and (data := file.read(min(COUNTED, place - self._place))):
                self._lines += data.count(b"\n")
                self._place += len(data)
        return self._lines


def _counted(label: str, stream: Any, progress: Progress) -> Iterator[Block]:
    """Yield the blocks of a stream, with line numbers."""
    carry = b""
    start, line = 0, 1
    while True:
        data = read_fully(stream, BLOCK)
        progress(len(data))
        whole, carry = _cut(label, carry, data, not data)
        if whole:
            yield Block(whole, start, functools.partial(int, line))
            start += len(whole)
            line += whole.count(b"\n")
        if not data:
            return


def _cut(label: str, carry: bytes, data: bytes, is_last: bool) -> tuple[bytes, bytes]:
    """Return the whole lines of what was read, and the beginning of a line that is left; none is left at the end."""
    if len(carry) > MOST_LINE:
        raise DataError(
            f"{label} has a line of more than {MOST_LINE >> 20} MiB, so it is not text with one edge per line"
        )
    if is_last:
        return carry + data, b""
    end = data.rfind(b"\n") + 1
    return (carry + data[:end], data[end:]) if end else (b"", carry + data)


def _line_start(file: Any, place: int) -> int:
    """Return the offset of the first line that begins at `place` or after it."""
    if not place:
        return 0
    file.seek(place - 1)
    at = place - 1
    while data := file.read(LEAST_HEAD):
        found = data.find(b"\n")
        if found >= 0:
            return at + found + 1  # type: ignore[no-any-return]
        at += len(data)
    return at
