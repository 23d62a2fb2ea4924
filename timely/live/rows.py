"""Rows of numbers as a viewer receives them: as text that neither side reads digit by digit.

A page with hundreds of operators receives thousands of numbers each half second. To write these as decimal digits takes
a process longer than to find them. NumPy would not be faster here, and would release the interpreter's lock several
times.

>>> rows, before = np.arange(14).reshape(2, 7), np.zeros((2, 7), np.int64)
>>> before[0] = rows[0]
>>> decoded(encoded(rows.tobytes(), before.tobytes()))
[[1, 7, 8, 9, 10, 11, 12, 13]]
"""

from __future__ import annotations

import base64
import struct

_ROW, _PLACED = struct.Struct("56s"), struct.Struct("=q56s")
_NUMBERS = struct.Struct("=8q")


def encoded(rows: bytes, before: bytes) -> str:
    """Return the rows that differ from those before, each after its place: 64-bit integers, in base64.

    The rows have seven such integers each, in the order of bytes of this machine, as they are sent.
    """
    pairs = enumerate(zip(_ROW.iter_unpack(rows), _ROW.iter_unpack(before)))
    changed = [_PLACED.pack(place, *row) for place, (row, old) in pairs if row != old]
    return base64.b64encode(b"".join(changed)).decode()


def decoded(text: str) -> list[list[int]]:
    """Return the rows that `encoded` returned as text, each after its place."""
    return [list(row) for row in _NUMBERS.iter_unpack(base64.b64decode(text))]
