"""Arrow tables of columns. Integers and floats share their memory, unless one is null."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from differential.data.interned import Interned
from differential.data.strings import packed
from differential.kernels.numpy_text import as_bytes
from differential.kernels.strings import TAGS
from timely.errors import DataError
from timely.lowlevel import Array, Typed, is_null

_NARROW = 16
_MOST = 1 << 31
"""Text of this many bytes needs offsets of 64 bits."""


def table(names: Sequence[str], columns: Sequence[Array]) -> pa.Table:
    arrays = []
    for name, column in zip(names, columns):
        try:
            arrays.append(array_of(column))
        except (DataError, pa.ArrowException, OverflowError) as error:
            raise DataError(f"column {name!r}: {error}") from None
    return pa.table(arrays, names=list(names))


def array_of(column: Array) -> pa.Array:
    """Return a column as an Arrow array: in the memory of the column, if it holds integers or floats."""
    if isinstance(column, Typed):
        return _of_typed(column)
    kind = column.dtype.kind
    if kind in "iuf":
        values = np.ascontiguousarray(column)
        of = pa.from_numpy_dtype(values.dtype)
        return pa.Array.from_buffers(of, len(values), [None, pa.py_buffer(values)])
    if kind == "b":
        return pa.array(column)
    if kind == "T":
        return _text(column, None)
    return pa.array(column.tolist(), pa.binary())


def _of_typed(column: Typed) -> pa.Array:
    of, missing = column.type, is_null(column)
    validity = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None
    family, parameters = of.name.partition("[")[0].partition("(")[0], of.name[:-1].partition("[")[2]
    if family in _NUMBERS:
        # What is stored for a null need not be a value of the type, and nobody looks at it.
        stored = column.storage if validity is None else np.where(missing, 0, column.storage)
        values = np.ascontiguousarray(of.array(stored))
        if family == "bool?":
            return pa.array(values, mask=missing)
        return pa.Array.from_buffers(_NUMBERS[family], len(values), [validity, pa.py_buffer(values)])
    if family == "text?":
        return _text(column.storage, validity)  # what is stored for a null is behind the bitmap
    if family == "bytes?":
        return pa.array(column.tolist(), pa.binary())
    if family == "decimal":
        return _decimals(column, validity)
    if family == "value":
        return pa.array(np.asarray(column).tolist())
    return _times(column, family, parameters, missing, validity)


def _times(
    column: Typed, family: str, parameters: str, missing: NDArray[np.bool_], validity: pa.Buffer | None
) -> pa.Array:
    # Stored less one, so that the count of NaT, the least number, has wrapped around to the greatest.
    counts = column.storage + 1
    unit, _, zone = parameters.partition(", ")
    if family == "date":
        of: pa.DataType = pa.date32()
        days = counts.astype(np.int32)
        if ((days != counts) & ~missing).any():
            raise DataError("a date is more than 2 ** 31 days from 1970")
        counts = days
    elif family == "timestamp":
        of = pa.timestamp(unit, zone or None)
    elif family == "time":
        of = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
        counts = counts.astype(np.int32 if unit in ("s", "ms") else np.int64)
    else:
        if unit == "D":
            counts, unit = _in_seconds(column), "s"
        of = pa.duration(unit)
    return pa.Array.from_buffers(of, len(counts), [validity, pa.py_buffer(np.ascontiguousarray(counts))])


def _in_seconds(column: Typed) -> Array:
    """Return durations in days as counts of seconds."""
    days = np.asarray(column)
    seconds = days.astype("m8[s]")
    if not ((seconds.astype(days.dtype) == days) | np.isnat(days)).all():
        raise DataError("a duration in days is too long to be counted in seconds")
    return seconds.view(np.int64)


def _decimals(column: Typed, validity: pa.Buffer | None) -> pa.Array:
    of: Any = column.type
    if of.stores == "O":
        made = (pa.decimal128 if of.width == _NARROW else pa.decimal256)(of.precision, of.scale)
        return pa.Array.from_buffers(made, len(column), [validity, pa.py_buffer(of.cells(column.storage))])
    words = np.empty((len(column), 2), np.int64)
    words[:, 0] = column.storage
    # The upper half of a number of 128 bits repeats its sign.
    words[:, 1] = column.storage >> 63
    buffers = [validity, pa.py_buffer(words)]
    return pa.Array.from_buffers(pa.decimal128(of.precision, of.scale), len(column), buffers)


def _text(column: Array, validity: pa.Buffer | None) -> pa.Array:
    strings = column.interner.strings.packed(column.codes) if isinstance(column, Interned) else packed(column)
    offsets = np.zeros(len(column) + 1, np.int64)
    np.cumsum(strings.sizes // TAGS, out=offsets[1:])
    length = int(offsets[-1])
    is_large = length >= _MOST
    data = pa.py_buffer(as_bytes(*strings)).slice(0, length)
    buffers = [validity, pa.py_buffer(offsets if is_large else offsets.astype(np.int32)), data]
    return pa.Array.from_buffers(pa.large_string() if is_large else pa.string(), len(column), buffers)


_NUMBERS = {
    "int64?": pa.int64(),
    "uint64": pa.uint64(),
    "uint64?": pa.uint64(),
    "bool?": pa.bool_(),
    "float64?": pa.float64(),
    "float32?": pa.float32(),
    "float16?": pa.float16(),
}
