"""The words of a text, counted as bytes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timely.data.text import WORD, at_each_byte, eight_bytes

Ints = NDArray[np.int64]

SPACE = 32
"""Bytes up to this value, spaces and control characters, separate the words of a text."""


def count_words(data: bytes) -> tuple[NDArray[Any], Ints]:
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


def _words(data: NDArray[np.uint8]) -> tuple[Ints, Ints]:
    """Return where the words of a text start, and their lengths."""
    is_inside = np.zeros(len(data) + 2, np.bool_)
    np.greater(data, SPACE, out=is_inside[1:-1])
    edges = np.flatnonzero(is_inside[1:] != is_inside[:-1])
    return edges[0::2], edges[1::2] - edges[0::2]
