"""Text by the column: its bytes end to end, and the words in it.

A column of text is processed as bytes: one array of all bytes, and for each row its start and its length. So no Python
code runs per row; a row costs its share of a few passes over arrays.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

WORD = 8
"""The number of bytes in a machine word."""
WIDE = 64
"""Rows of up to this many bytes may be laid out in a matrix, each as wide as the widest."""
SPACE = 32
"""Bytes up to this value, spaces and control characters, separate the words of a text."""

_TEXT = np.dtypes.StringDType()
_FIRST = np.array([(1 << 8 * length) - 1 for length in range(WORD + 1)], np.uint64)


def count_words(data: bytes) -> tuple[Array, Ints]:
    """Return the distinct words of a text, in no particular order, and how often each occurs.

    The text is UTF-8 or any other superset of ASCII; spaces and control characters separate words. Words are returned
    as NumPy's fixed-width bytes (which loses nothing: no word ends in a zero). A word of up to eight bytes costs about
    0.1 µs, since such words are sorted as numbers; a longer word costs five times as much.

    >>> words, counts = count_words(b"to be or not to be")
    >>> sorted(zip(words.tolist(), counts.tolist()))
    [(b'be', 2), (b'not', 1), (b'or', 1), (b'to', 2)]
    """
    bytes_ = np.frombuffer(data, np.uint8)
    starts, lengths = _words(bytes_)
    is_long = lengths > WORD
    begin, end = starts[is_long], (starts + lengths)[is_long]
    if len(begin):
        starts, lengths = starts[~is_long], lengths[~is_long]
    packed = eight_bytes(at_each_byte(bytes_), starts, lengths)
    shorts, counts = np.unique(packed, return_counts=True)
    words = shorts.astype("<u8", copy=False).view(f"S{WORD}")
    if not len(begin):
        return words, counts
    longs = Counter(data[first:last] for first, last in zip(begin.tolist(), end.tolist()))
    numbers = np.fromiter(longs.values(), np.int64, len(longs))
    return np.concatenate((words, np.array(list(longs)))), np.append(counts, numbers)


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
    if not 0 < width <= WIDE or int(data.max()) > 127 or not data.all():
        return None
    rows = np.zeros((len(lengths), width), np.uint8)
    rows[np.arange(width) < lengths[:, None]] = data
    return rows.view(f"S{width}").reshape(-1).astype(_TEXT)


def text_column(lengths: Ints, data: Bytes) -> Array:
    """Return the column of text whose rows have these lengths in `data`, which is UTF-8.

    >>> text_column(np.array([3, 1]), np.frombuffer("néx".encode(), np.uint8)).tolist()
    ['né', 'x']
    """
    column = from_ascii(lengths, data)
    if column is not None:
        return column
    ends = np.cumsum(lengths)
    raw = data.tobytes()
    pieces = [raw[start:end].decode() for start, end in zip((ends - lengths).tolist(), ends.tolist())]
    return np.array(pieces, _TEXT)


def at_each_byte(data: Bytes) -> Words:
    """Return the eight bytes that start at each position, and at the end, as numbers; zeros follow the end.

    >>> at_each_byte(np.frombuffer(b"to", np.uint8)).tolist() == [ord("t") + 256 * ord("o"), ord("o"), 0]
    True
    """
    padded = np.append(data, np.zeros(WORD, np.uint8))
    return np.ndarray((len(data) + 1,), "<u8", padded, strides=(1,))


def eight_bytes(words: Words, starts: Ints, lengths: Ints) -> Words:
    """Return up to eight bytes from each start as numbers, given `at_each_byte`; zeros follow the length.

    >>> words = at_each_byte(np.frombuffer(b"to be", np.uint8))
    >>> eight_bytes(words, np.array([0, 3]), np.array([2, 2])).view("S8").tolist()
    [b'to', b'be']
    """
    return words[starts] & _FIRST[np.minimum(lengths, WORD)]


def _words(data: Bytes) -> tuple[Ints, Ints]:
    """Return where the words of a text start, and their lengths."""
    is_inside = np.zeros(len(data) + 2, np.bool_)
    np.greater(data, SPACE, out=is_inside[1:-1])
    edges = np.flatnonzero(is_inside[1:] != is_inside[:-1])
    return edges[0::2], edges[1::2] - edges[0::2]
