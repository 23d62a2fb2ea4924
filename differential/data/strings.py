"""The distinct strings of a worker, and columns of strings as words to look them up by.

A column is looked up as a whole: its rows become words (`Packed`), which a kernel looks up in a table of words (see
`differential.kernels.strings`). No Python object is made for a row of text, as kernels read and write NumPy's columns
of text (see `differential.kernels.numpy_text`); one is made for a row of bytes. Rows of several integers are looked up
in the same way, as strings of their bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from differential.kernels.numpy_text import packed_texts, store_texts
from differential.kernels.strings import (
    COUNT,
    HASH,
    LIVE,
    META_WIDTH,
    SIZE,
    START,
    STATE_WIDTH,
    TAGS,
    TOP,
    add_strings,
    compact,
    find_strings,
    gather_strings,
    in_order,
    rehash,
    remove_strings,
    widest,
)

Array = NDArray[Any]
Codes = NDArray[np.int64]

TEXT = np.dtypes.StringDType()
TEXT_TAG, BYTES_TAG = 1, 2
"""What distinguishes the sizes of text and bytes."""

_WORD = 8
_LONG = 64
"""The bytes up to which a string has the hash in its table that it is routed by."""
_MOST_PADDED = 1 << 14
"""How many words strings are copied as in the width of the longest one, even if most are much shorter."""
_LONGER = 4
"""A string of more than this many times the mean length is copied by itself."""
_LEAST_SLOTS = 64


class Packed(NamedTuple):
    """Strings as words: where in `words` each starts, and its size (see `differential.kernels.strings`)."""

    words: Codes
    starts: Codes
    sizes: Codes

    def take(self, rows: Codes) -> Packed:
        """Return the strings of these rows."""
        return Packed(self.words, self.starts[rows], self.sizes[rows])


def packed(column: Array) -> Packed:
    """Return the rows of a column of text or bytes as words.

    >>> packed(np.array(["to", "be"], np.dtypes.StringDType())).sizes.tolist()
    [9, 9]
    """
    kind = column.dtype.kind
    if kind == "T":
        if type(column) is not np.ndarray or column.ndim != 1:
            column = np.asarray(column).reshape(-1)
        strings = Packed(*packed_texts(id(column), TEXT_TAG))
        # Compiled code releases a variable where it is used last. So the column must be used after the call, as here.
        if len(strings.sizes) == len(column):
            return strings
        # NumPy cannot read one of the texts, and raises its error below.
    contents: list[bytes] = [row.encode() for row in column.tolist()] if kind in "TU" else column.tolist()
    return _aligned(contents, TEXT_TAG if kind in "TU" else BYTES_TAG)


def packed_rows(first: int, columns: Sequence[Codes]) -> Packed:
    """Return rows of integers as words: `first`, then one of each column.

    >>> packed_rows(7, [np.array([1, 2]), np.array([3, 4])]).words.tolist()
    [7, 1, 3, 7, 2, 4]
    """
    rows, width = len(columns[0]), 1 + len(columns)
    size = width * _WORD * TAGS + BYTES_TAG
    if rows == 1:
        return Packed(np.array([first, *[column.item() for column in columns]]), _START, np.array([size]))
    words = np.empty((rows, width), np.int64)
    words[:, 0] = first
    for position, column in enumerate(columns, 1):
        words[:, position] = column
    return Packed(words.reshape(-1), np.arange(0, rows * width, width), np.full(rows, size))


_START = np.zeros(1, np.int64)
"""Where the words of a single row start."""


def _aligned(contents: list[bytes], tag: int) -> Packed:
    """Return strings as words."""
    lengths = np.fromiter(map(len, contents), np.int64, len(contents))
    data = np.frombuffer(b"".join(contents), np.uint8)
    ends = np.cumsum((lengths + (_WORD - 1)) // _WORD)
    starts = np.append(0, ends)
    words = np.zeros(int(starts[-1]), np.int64)
    # How far the bytes of each string are moved from their place in `data`, so that it starts at a word.
    shifts = starts[:-1] * _WORD - (np.cumsum(lengths) - lengths)
    words.view(np.uint8)[np.arange(len(data)) + np.repeat(shifts, lengths)] = data
    return Packed(words, starts[:-1].copy(), lengths * TAGS + tag)


class StringTable:
    """A table of distinct strings, each with a number that its owner chooses.

    >>> table = StringTable()
    >>> numbers, missing = table.find(packed(np.array(["to", "be", "to"], TEXT)), absent=-1)
    >>> numbers.tolist(), missing
    ([-1, -1, -1], 3)
    >>> numbers, used = table.add(packed(np.array(["to", "be", "to"], TEXT)), np.array([5, 7, 8]))
    >>> numbers.tolist(), used, len(table), table.text(np.array([7, 5])).tolist()
    ([5, 7, 5], 2, 2, ['be', 'to'])
    """

    __slots__ = ("_addresses", "_arena", "_meta", "_slots", "_state", "address")

    def __init__(self) -> None:
        self._slots = np.zeros(_LEAST_SLOTS, np.int64)
        self._meta = np.zeros((_LEAST_SLOTS, META_WIDTH), np.int64)
        self._arena = np.zeros(_LEAST_SLOTS, np.int64)
        self._state = np.zeros(STATE_WIDTH, np.int64)
        # The arrays are replaced as they grow. Kernels reach them by way of this one, which is not.
        self._addresses = np.array([self._meta.ctypes.data, self._arena.ctypes.data])
        self.address: int = self._addresses.ctypes.data
        """The address from which kernels reach the strings (see `kernels.strings.is_less`)."""

    def __len__(self) -> int:
        return int(self._state[COUNT])

    @property
    def size(self) -> int:
        """The words of all strings."""
        return int(self._state[LIVE])

    @property
    def nbytes(self) -> int:
        """The bytes of the table, with the room for more strings."""
        return int(self._slots.nbytes + self._meta.nbytes + self._arena.nbytes)

    def find(self, strings: Packed, absent: int) -> tuple[Codes, int]:
        """Return the number of each string, `absent` where it has none, and how many have none."""
        return find_strings(self._slots, self._meta, self._arena, *strings, absent)

    def add(self, strings: Packed, unused: Codes) -> tuple[Codes, int]:
        """Return the number of each string, and how many from `unused` strings without one have received.

        There must be as many unused numbers as there are strings.
        """
        self._make_room(len(unused), len(strings.words), int(unused.max()) + 1)
        return add_strings(self._slots, self._meta, self._arena, self._state, *strings, unused)

    def remove(self, numbers: Codes) -> Codes:
        """Remove the strings with these numbers; return the numbers of those that there were."""
        return remove_strings(self._slots, self._meta, self._state, numbers[numbers < len(self._meta)])

    def words(self, numbers: Codes, width: int) -> Codes:
        """Return, for each of these numbers, a row of `width` words: those of its string, then zeros."""
        return gather_strings(self._meta, self._arena, numbers, width).reshape(-1, width)

    def text(self, numbers: Codes) -> Array:
        """Return a column of the texts with these numbers."""
        column = np.empty(len(numbers), TEXT)  # used after the call, as in `packed`
        if store_texts(id(column), self._meta, self._arena, numbers) < len(numbers):
            raise MemoryError(f"there is no memory for a column of {len(numbers):,} texts")
        return column

    def packed(self, numbers: Codes) -> Packed:
        """Return the strings with these numbers, in the memory of the table."""
        return Packed(self._arena, self._meta[numbers, START], self._meta[numbers, SIZE])

    def contents(self, numbers: Codes) -> list[bytes]:
        """Return the bytes of the strings with these numbers."""
        width = max(1, -(-widest(self._meta, numbers) // _WORD))
        lengths = self._meta[numbers, SIZE] // TAGS
        if len(numbers) * width > _MOST_PADDED:
            is_long = lengths > max(_LONG, _LONGER * int(lengths.sum()) // len(numbers))
            if is_long.any():
                contents = np.empty(len(numbers), np.object_)
                contents[~is_long] = self.contents(numbers[~is_long])
                for row in np.flatnonzero(is_long):
                    contents[row : row + 1] = self.contents(numbers[row : row + 1])
                return contents.tolist()
        data, step = self.words(numbers, width).tobytes(), width * _WORD
        starts = range(0, step * len(numbers), step)
        return [data[start : start + length] for start, length in zip(starts, lengths.tolist())]

    def hashes(self, numbers: Codes) -> NDArray[np.uint64] | None:
        """Return the hashes that route the strings with these numbers; None if one is so long that it has another."""
        is_long = widest(self._meta, numbers) > _LONG
        return None if is_long else self._meta[numbers, HASH].view(np.uint64)

    def sorted(self, numbers: Codes) -> Codes:
        """Return the numbers in the order of their strings."""
        return in_order(self.address, numbers)

    def _make_room(self, strings: int, words: int, numbers: int) -> None:
        """Make room for as many more strings, of as many words in all, and for as many numbers."""
        if numbers > len(self._meta):
            larger = np.zeros((max(numbers, 2 * len(self._meta)), META_WIDTH), np.int64)
            larger[: len(self._meta)] = self._meta
            self._meta = larger
            self._addresses[0] = larger.ctypes.data
        # At most half of the slots are taken, so that a search for a string soon ends at an empty one.
        if 2 * (len(self) + strings) > len(self._slots):
            slots = np.zeros(1 << (2 * (len(self) + strings) - 1).bit_length(), np.int64)
            rehash(self._slots, slots)
            self._slots = slots
        if self._state[TOP] + words > len(self._arena):
            # At least half of the new arena is free, so compacting costs a constant for each word added.
            arena = np.empty(2 * (int(self._state[LIVE]) + words), np.int64)
            self._state[TOP] = compact(self._meta, self._arena, arena, len(self._meta))
            self._arena = arena
            self._addresses[1] = arena.ctypes.data
