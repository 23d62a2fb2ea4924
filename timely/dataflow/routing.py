"""Hashing for routing: the same record goes to the same worker in every process, on every machine.

Python's own hash of text differs from process to process, so it is never used. Integers are mixed, because the low
bits of identifiers are not random; floats are hashed by value (so 0.0 and -0.0 agree); text and bytes by their
content.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timely.container import as_column

Hashes = NDArray[np.uint64]
Destinations = NDArray[np.uint16]
"""Numbers of workers: words so short that NumPy sorts them by radix."""

_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mix(words: Hashes) -> Hashes:
    """Return the SplitMix64 finaliser of every 64-bit word."""
    words = words + _GOLDEN
    words ^= words >> np.uint64(30)
    words *= _M1
    words ^= words >> np.uint64(27)
    words *= _M2
    words ^= words >> np.uint64(31)
    return words


def hash_column(column: NDArray[Any]) -> Hashes:
    """Return a 64-bit hash per row, determined by the row's value alone."""
    kind = column.dtype.kind
    if kind in "bi":
        return mix(column.astype(np.int64).view(np.uint64))
    if kind == "u":
        return mix(column.astype(np.uint64))
    if kind == "f":
        return mix((column.astype(np.float64) + 0.0).view(np.uint64))
    if kind in "SO":
        return _hash_contents(column.tolist())
    return _hash_contents([text.encode() for text in column.tolist()])


def hash_columns(columns: tuple[NDArray[Any], ...]) -> Hashes:
    """Return a 64-bit hash per row of several columns."""
    hashes = hash_column(columns[0])
    for column in columns[1:]:
        hashes = mix(hashes ^ hash_column(column))
    return hashes


def hash_record(record: Any) -> int:
    """Return the hash of one Python value: what `hash_columns` gives for the same value in columns."""
    values = record if isinstance(record, tuple) else (record,)
    return int(hash_columns(tuple(as_column([value]) for value in values))[0])


def destinations(hashes: Hashes, peers: int) -> Destinations:
    """Return the worker each hash belongs to."""
    # Of a power of two the remainder is a mask, which costs a tenth.
    remainders = hashes % np.uint64(peers) if peers & (peers - 1) else hashes & np.uint64(peers - 1)
    return remainders.astype(np.uint16)


def _hash_contents(contents: list[bytes]) -> Hashes:
    crc = zlib.crc32
    return mix(np.fromiter((crc(content) << 20 ^ len(content) for content in contents), np.uint64, len(contents)))
