"""Text by the column: its bytes end to end, and the words in it.

A column of text is worked on as bytes: where each row's begin and how many they are, in one array of all. So nothing
runs once a row, and what a row costs is a few passes over arrays.
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
"""Bytes to a machine word."""
WIDE = 64
"""Rows up to this many bytes may be laid out side by side, each as wide as the widest."""
SPACE = 32
"""Bytes up to this one, spaces and control characters, stand between the words of a text."""

_TEXT = np.dtypes.StringDType()
_FIRST = np.array([(1 << 8 * length) - 1 for length in range(WORD + 1)], np.uint64)


def count_words(data: bytes) -> tuple[Array, Ints]:
    """Return the different words of a text, in no order, and how often each occurs.

    The text is UTF-8 or any other code that keeps ASCII's; words are what spaces and control characters separate. They
    come as NumPy's bytes of fixed width (which is no loss: no word ends in a zero). Costs about 0.1 µs a word of up
    to eight bytes, which are sorted as numbers; five times that for longer ones.

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
    """Return how many bytes each row of a column of text has in UTF-8, and the bytes of all.

    >>> utf8(np.array(["né", "x"], np.dtypes.StringDType()))[0].tolist()
    [3, 1]
    """
    rows = column.tolist()
    data = np.frombuffer("".join(rows).encode(), np.uint8)
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    if int(lengths.sum()) == len(data):
        return lengths, data
    # Bytes of the form 10xxxxxx go on with a character, all others begin one.
    begins = np.append(np.flatnonzero((data & 0xC0) != 0x80), len(data))
    return np.diff(begins[np.cumsum(lengths)], prepend=0), data


def from_ascii(lengths: Ints, data: Bytes) -> Array | None:
    """Return the column of text of so many bytes each, all in `data`; None if it is not made of short rows of ASCII.

    >>> from_ascii(np.array([2, 2]), np.frombuffer(b"tobe", np.uint8)).tolist()
    ['to', 'be']
    """
    width = int(lengths.max()) if len(lengths) else 0
    if not 0 < width <= WIDE or int(data.max()) > 127 or not data.all():
        return None
    rows = np.zeros((len(lengths), width), np.uint8)
    rows[np.arange(width) < lengths[:, None]] = data
    return rows.view(f"S{width}").reshape(-1).astype(_TEXT)


def at_each_byte(data: Bytes) -> Words:
    """Return the eight bytes from each byte on, and from the end on, as numbers; behind the end there are zeros.

    >>> at_each_byte(np.frombuffer(b"to", np.uint8)).tolist() == [ord("t") + 256 * ord("o"), ord("o"), 0]
    True
    """
    padded = np.append(data, np.zeros(WORD, np.uint8))
    return np.ndarray((len(data) + 1,), "<u8", padded, strides=(1,))


def eight_bytes(words: Words, starts: Ints, lengths: Ints) -> Words:
    """Return the first eight bytes from each start, of those `at_each_byte`; zeros for what is past the length.

    >>> words = at_each_byte(np.frombuffer(b"to be", np.uint8))
    >>> eight_bytes(words, np.array([0, 3]), np.array([2, 2])).view("S8").tolist()
    [b'to', b'be']
    """
    return words[starts] & _FIRST[np.minimum(lengths, WORD)]


def _words(data: Bytes) -> tuple[Ints, Ints]:
    """Return where the words of a text begin, and their lengths."""
    is_inside = np.zeros(len(data) + 2, np.bool_)
    np.greater(data, SPACE, out=is_inside[1:-1])
    edges = np.flatnonzero(is_inside[1:] != is_inside[:-1])
    return edges[0::2], edges[1::2] - edges[0::2]
