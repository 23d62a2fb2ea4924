"""Text by the column: its bytes end to end.

A column of text is processed as bytes: one array of all bytes, and for each row its start and its length. So no Python
code runs per row; a row costs its share of a few passes over arrays.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

WORD = 8
"""The number of bytes in a machine word."""
INLINE = 15
"""The number of bytes of a text that NumPy keeps in the row itself."""
WIDE = 64
"""Rows of up to this many bytes may be laid out in a matrix, each as wide as the widest."""

_TEXT = np.dtypes.StringDType()
_BLOCK = 1 << 16
"""How many rows are converted at a time: few, so that intermediate columns stay in the processor's cache."""
_FIRST = np.array([(1 << 8 * length) - 1 for length in range(WORD + 1)], np.uint64)


def utf8(column: Array) -> tuple[Ints, Bytes]:
    """Return the number of bytes of each row of a column of text in UTF-8, and the bytes of all rows.

    >>> utf8(np.array(["né", "x"], np.dtypes.StringDType()))[0].tolist()
    [3, 1]
    """
    rows = column.tolist()
    data = np.frombuffer("".join(rows).encode(), np.uint8)
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    if int(lengths.sum()) == len(data):
        return lengths, data
    # Bytes of the form 10xxxxxx continue a character, all others begin one.
    begins = np.append(np.flatnonzero((data & 0xC0) != 0x80), len(data))
    return np.diff(begins[np.cumsum(lengths)], prepend=0), data


def from_ascii(lengths: Ints, data: Bytes) -> Array | None:
    """Return the column of text whose rows have these lengths in `data`; None unless they are short and ASCII.

    >>> from_ascii(np.array([2, 2]), np.frombuffer(b"tobe", np.uint8)).tolist()
    ['to', 'be']
    """
    width = int(lengths.max()) if len(lengths) else 0
    # No NULs: NumPy's `S` drops those at the end of a text.
    if not 0 < width <= WIDE or int(data.max()) > 127 or not data.all():
        return None
    rows = np.zeros((len(lengths), width), np.uint8)
    rows[np.arange(width) < lengths[:, None]] = data
    return rows.view(f"S{width}").reshape(-1).astype(_TEXT)


def text_column(
    lengths: Ints, data: Bytes, starts: Ints | None = None, missing: NDArray[np.bool_] | None = None, stands: str = ""
) -> Array:
    """Return the column of text whose rows have these lengths in `data`, which is UTF-8.

    Each row starts where the one before it ends, or as `starts` states. Rows that are `missing` become the text that
    `stands` for them. A row of up to 15 bytes costs about 20 ns.
    Raises UnicodeDecodeError if a row is not UTF-8: NumPy relies on it.

    >>> text_column(np.array([3, 1]), np.frombuffer("néx".encode(), np.uint8)).tolist()
    ['né', 'x']
    >>> text_column(np.array([1, 2]), np.frombuffer(b"to", np.uint8), np.array([1, 0])).tolist()
    ['o', 'to']
    >>> text_column(np.array([1, 1]), np.frombuffer(b"to", np.uint8), None, np.array([True, False]), "none").tolist()
    ['none', 'o']
    """
    starts = np.cumsum(lengths) - lengths if starts is None else starts
    # Empty texts own no memory elsewhere, so nothing is lost when their cells are overwritten below.
    column = np.zeros(len(lengths), _TEXT)
    if missing is not None:
        starts, lengths = np.where(missing, 0, starts), np.where(missing, 0, lengths)
    # Bytes of missing rows, or of no row, need not be UTF-8. Then each row is decoded by itself.
    is_utf8 = _is_utf8(starts, lengths, data)
    if missing is not None and stands:
        # `np.where` has made both arrays above, so they are not the caller's.
        content = np.frombuffer(stands.encode(), np.uint8)
        starts[missing], lengths[missing], data = len(data), len(content), np.append(data, content)
    if not len(column) or not len(data):
        return column
    is_long, flags = lengths > INLINE, _inline_flags()
    if not is_utf8 or flags is None or 2 * np.count_nonzero(is_long) > len(column):
        return _long_column(starts, lengths, data)
    if is_long.any():
        column[is_long] = _long_column(starts[is_long], lengths[is_long], data)
    words, cells = at_each_byte(data), _cells(column)
    for first in range(0, len(column), _BLOCK):
        block = slice(first, first + _BLOCK)
        begin, length = starts[block], lengths[block]
        # The second word of a cell: up to seven further bytes of the text, and in the last byte its length and the
        # flags.
        ends = eight_bytes(words, np.minimum(begin + WORD, len(data)), np.maximum(length - WORD, 0))
        made = eight_bytes(words, begin, length), ends | (length | flags).astype(np.uint64) << np.uint64(56)
        rows = ~is_long[block]
        if rows.all():
            cells[block, 0], cells[block, 1] = made
        else:
            # Not the cells of long rows, which refer to their text elsewhere.
            cells[block][rows] = np.stack(made, 1)[rows]
    return column


def _is_utf8(starts: Ints, lengths: Ints, data: Bytes) -> bool:
    """Return whether all rows are UTF-8: all bytes together are, and no row begins or ends inside of a character."""
    if int(data.max(initial=0)) < 128:
        return True
    try:
        data.tobytes().decode()
    except UnicodeDecodeError:
        return False
    continues = np.append((data & 0xC0) == 0x80, False)
    return not (continues[starts] | continues[starts + lengths])[lengths > 0].any()


def _long_column(starts: Ints, lengths: Ints, data: Bytes) -> Array:
    """Return the column of text of any length, made by NumPy if it is ASCII, and otherwise through Python's strings."""
    if int(lengths.max()) <= WIDE and int(data.max(initial=0)) < 128:
        if (starts[1:] == starts[:-1] + lengths[:-1]).all():
            together = data[starts[0] : starts[-1] + lengths[-1]]
        else:
            together = data[np.arange(int(lengths.sum())) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)]
        column = from_ascii(lengths, together)
        if column is not None:
            return column
    raw = data.tobytes()
    pieces = [raw[start:end].decode() for start, end in zip(starts.tolist(), (starts + lengths).tolist())]
    return np.array(pieces, _TEXT)


def _cells(column: Array) -> Words:
    """Return the memory of a column of text as two words for each row."""
    # Nothing here refers to the column: the caller keeps it alive for as long as it uses the result.
    memory = (ctypes.c_uint64 * (2 * len(column))).from_address(column.ctypes.data)
    return np.ndarray((len(column), 2), np.uint64, memoryview(memory))


@functools.cache
def _inline_flags() -> int | None:
    """Return the flags that NumPy keeps in the last byte of a short text, beside its length.

    NumPy keeps a text of up to `INLINE` bytes in the 16 bytes of its row, and writing these is ten times as fast as
    making the text. None if this NumPy lays texts out in another way; then it makes them.
    """
    texts = ["a", "ab", "é" * 7, "x" * INLINE, "a\0b"]
    column = np.array(texts, _TEXT)
    if sys.byteorder != "little" or column.itemsize != 2 * WORD:
        return None
    found = set()
    for row, text in enumerate(texts):
        content = text.encode()
        cell = _cells(column)[row].tobytes()
        if cell[:-1] != content.ljust(INLINE, b"\0") or cell[-1] & 0x0F != len(content):
            return None
        found.add(cell[-1] & 0xF0)
    return found.pop() if len(found) == 1 else None


def at_each_byte(data: Bytes) -> Words:
    """Return the eight bytes that start at each position, and at the end, as numbers; zeros follow the end.

    >>> at_each_byte(np.frombuffer(b"to", np.uint8)).tolist() == [ord("t") + 256 * ord("o"), ord("o"), 0]
    True
    """
    padded = np.append(data, np.zeros(WORD, np.uint8))
    # Words that overlap, of which each begins one byte after the one before it; the array keeps `padded` alive.
    return np.ndarray((len(data) + 1,), "<u8", padded, strides=(1,))


def eight_bytes(words: Words, starts: Ints, lengths: Ints) -> Words:
    """Return up to eight bytes from each start as numbers, given `at_each_byte`; zeros follow the length.

    >>> words = at_each_byte(np.frombuffer(b"to be", np.uint8))
    >>> eight_bytes(words, np.array([0, 3]), np.array([2, 2])).view("S8").tolist()
    [b'to', b'be']
    """
    return words[starts] & _FIRST[np.minimum(lengths, WORD)]
