"""Hashing for routing: the same record goes to the same worker in every process, on every machine.

Python's own hash of text differs from process to process, so it is never used. Integers are mixed, because the low
bits of identifiers are not random; floats are hashed by value (so 0.0 and -0.0 agree, and every NaN); text and bytes by
their content, eight bytes of all rows at a time.

Whole floats have the hash of the integer they are, of 64 bits. So what differs only in type meets on one worker, and is
refused there, however many workers there are.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timely.data.column_like import ColumnLike
from timely.data.container import as_column
from timely.data.fingerprints import hashed
from timely.data.text import WORD, Bytes, Ints, at_each_byte, eight_bytes, utf8
from timely.errors import DataError

Hashes = NDArray[np.uint64]
Destinations = NDArray[np.uint16]
"""Numbers of workers: words so short that NumPy sorts them by radix."""

LONG = 64
"""Text of more bytes is hashed row by row; the rest takes a pass over all rows for each eight bytes."""

_BLOCK = 1 << 15
"""How many rows are mixed at a time: few, so that intermediate columns stay in the processor's cache."""

_BEYOND = float(1 << 63)

_S1, _S2, _S3 = np.uint64(30), np.uint64(27), np.uint64(31)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mix(words: Hashes) -> Hashes:
    """Return the SplitMix64 finaliser of every 64-bit word."""
    words = words + _GOLDEN  # a new array: the rest is done in place, and callers keep theirs
    for start in range(0, len(words), _BLOCK):
        block = words[start : start + _BLOCK]
        block ^= block >> _S1
        block *= _M1
        block ^= block >> _S2
        block *= _M2
        block ^= block >> _S3
    return words


def hash_column(column: NDArray[Any]) -> Hashes:
    """Return a 64-bit hash per row, determined by the row's value alone."""
    if isinstance(column, ColumnLike):
        hashes = column.hashes()
        if hashes is not None:
            return hashes
    column = np.asarray(column)
    kind = column.dtype.kind
    if kind in "mM":
        return hashed(column.astype(np.int64) - 1)  # as those that a typed column stores
    if kind in "bi":
        return mix(column.astype(np.int64, copy=False).view(np.uint64))
    if kind == "u":
        return mix(column.astype(np.uint64, copy=False))
    if kind == "f":
        # The sum makes 0.0 of -0.0, and a new array, which `_of_floats` overwrites.
        return mix(_of_floats(column.astype(np.float64) + 0.0))
    # What `_hash_contents` returns for rows of at most one word.
    if kind == "S" and 0 < column.dtype.itemsize <= WORD:
        return mix(_of_lengths(np.strings.str_len(column)) ^ column.astype(f"S{WORD}", copy=False).view("<u8"))
    return _hash_contents(*_contents(column))


def hash_columns(columns: tuple[NDArray[Any], ...]) -> Hashes:
    """Return a 64-bit hash per row of several columns: the same on every machine.

    Raises DataError where `columns` is not a tuple, such as one column, or has none.

    >>> hashes = hash_columns((np.array([7, 8, 7]), np.array(["a", "a", "a"])))
    >>> hashes.dtype, bool(hashes[0] == hashes[2]), bool(hashes[0] == hashes[1])
    (dtype('uint64'), True, False)
    """
    if not isinstance(columns, (tuple, list)) or not columns:
        raise DataError(f"hash_columns takes columns in a tuple, as in hash_columns((column,)), not {columns!r:.80}")
    hashes = hash_column(columns[0])
    for column in columns[1:]:
        # Multiplied, because rows of two equal columns would all get one hash, and (a, b) and (b, a) the same.
        hashes = mix(hashes * _GOLDEN ^ hash_column(column))
    return hashes


def hash_record(record: Any) -> int:
    """Return the hash of one Python value: what `hash_columns` gives for the same value in columns; of () it is 0."""
    values = record if isinstance(record, tuple) else (record,)
    if not values:
        return 0
    return int(hash_columns(tuple(as_column([value]) for value in values))[0])


def destinations(hashes: Hashes, peers: int) -> Destinations:
    """Return the worker each hash belongs to."""
    # Of a power of two the remainder is a mask, which costs a tenth.
    remainders = hashes % np.uint64(peers) if peers & (peers - 1) else hashes & np.uint64(peers - 1)
    return remainders.astype(np.uint16)


def _of_floats(numbers: NDArray[np.float64]) -> Hashes:
    """Return the words of numbers: of whole ones within 64 bits what the integers have, of others their bits."""
    numbers[np.isnan(numbers)] = np.nan  # of which computers make several, such as that of 0.0 / 0.0
    words = numbers.view(np.uint64)
    for start in range(0, len(words), _BLOCK):
        block = numbers[start : start + _BLOCK]
        with np.errstate(invalid="ignore"):
            whole = block.astype(np.int64)
        # What is beyond 64 bits becomes any integer: on some machines the largest, which is 2 ** 63 as a float.
        np.copyto(words[start : start + _BLOCK], whole.view(np.uint64), where=(whole == block) & (block != _BEYOND))
    return words


def _of_lengths(lengths: Ints) -> Hashes:
    """Return what the hash of rows with these lengths begins with: otherwise, zeros at their ends would not count."""
    return lengths.view(np.uint64) * _GOLDEN


def _contents(column: NDArray[Any]) -> tuple[Bytes, Ints, Ints]:
    """Return the bytes of a column of text or bytes, and where in them each row begins and how many are its."""
    kind = column.dtype.kind
    if kind == "S" and column.dtype.itemsize:
        lengths = np.strings.str_len(column).astype(np.int64, copy=False)
        return np.ascontiguousarray(column).view(np.uint8), np.arange(len(column)) * column.dtype.itemsize, lengths
    if kind in "SO":
        contents = column.tolist()
        lengths = np.fromiter(map(len, contents), np.int64, len(contents))
        data = np.frombuffer(b"".join(contents), np.uint8)
    else:
        lengths, data = utf8(column if kind == "T" else column.astype(np.dtypes.StringDType()))
    return data, np.cumsum(lengths) - lengths, lengths


def _hash_contents(data: Bytes, starts: Ints, lengths: Ints) -> Hashes:
    """Return a hash of each row: of its length, and of its bytes, eight at a time, or of a checksum if it is long."""
    hashes = _of_lengths(lengths)
    long = np.flatnonzero(lengths > LONG)
    contents = [data[start:end].tobytes() for start, end in zip(starts[long], (starts + lengths)[long])]
    checksums = [zlib.crc32(content) << 32 | zlib.adler32(content) for content in contents]
    hashes[long] = mix(hashes[long] ^ np.array(checksums, np.uint64))
    words, rows = at_each_byte(data), np.flatnonzero(lengths <= LONG)
    starts, lengths = starts[rows], lengths[rows]
    while len(rows):
        hashes[rows] = mix(hashes[rows] ^ eight_bytes(words, starts, lengths))
        left = np.flatnonzero(lengths > WORD)
        rows, starts, lengths = rows[left], starts[left] + WORD, lengths[left] - WORD
    return hashes
