"""How many bytes batches take, approximately: what is queued and sent is bounded by them.

This is counted for each message, so it is compiled (docs/design/0019-compiled-to-c.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from sys import getsizeof
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from timely.data.column_like import ColumnLike

Array = NDArray[Any]

_INT64: Final = np.dtype(np.int64)

SAMPLED = 32
"""The number of rows, evenly spread over a batch, from which the size of text, bytes and list records is estimated."""


def weight_of(batch: Any) -> int:
    """Return the approximate size of a batch in bytes: exact for columns of numbers, otherwise estimated from a few
    of its records.

    >>> weight_of(Columns((np.arange(3),)))
    24
    >>> 1000 <= weight_of([("a", bytes(1000))]) < 1500
    True
    """
    nbytes: int | None = getattr(batch, "nbytes", None)
    if nbytes is not None:
        return nbytes
    if not isinstance(batch, list):  # a program's own kind of batch, which need not have `nbytes`
        return sum([buffer.nbytes for buffer in batch.to_buffers()[1]])
    seen = batch[:: _stride(len(batch))]
    # A list has a reference of 8 bytes for each record.
    return 8 * len(batch) + sum(map(_size_of, seen)) * len(batch) // max(1, len(seen))


def bytes_of(columns: Iterable[Array]) -> int:
    """Return the size of columns in bytes: exact for numbers, estimated from some of the rows for text and bytes.

    A character of text counts as one byte.

    >>> bytes_of((np.arange(2), np.array(["a" * 50, "b" * 150], np.dtypes.StringDType())))
    248
    """
    total = 0
    for column in columns:
        total += column.nbytes
        dtype = column.dtype
        if dtype is _INT64:
            continue
        kind = dtype.kind
        if (kind == "T" or kind == "O") and not isinstance(column, ColumnLike):
            total += _contents_of(column)
    return total


def _contents_of(column: Array) -> int:
    """Return the approximate size, in bytes, of the text or bytes to which the array of a column refers."""
    seen = column[:: _stride(len(column))]
    found = int(np.strings.str_len(seen).sum()) if column.dtype.kind == "T" else sum(map(_size_of, seen.tolist()))
    return found * len(column) // max(1, len(seen))


def _stride(length: int) -> int:
    """Return the distance between the sampled rows among `length` rows, so that there are at most `SAMPLED`."""
    return -(-length // SAMPLED) or 1


def _size_of(record: Any) -> int:
    """Return the approximate size of a record and its fields, in bytes."""
    size = getsizeof(record, 64)
    return size + sum([getsizeof(field, 64) for field in record]) if isinstance(record, (tuple, list)) else size
