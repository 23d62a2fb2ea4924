"""Columns as bytes: the encoding of a batch of columns on the wire.

A column of numbers is its own bytes. A column of text or bytes is encoded as the lengths of its rows, followed by their
contents, end to end. Decoding executes nothing, and refuses whatever does not describe columns.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from timely.data.logical import Array
from timely.data.text import text_column, utf8
from timely.data.typed import Typed
from timely.data.types import logical_type
from timely.errors import DataError

Buffers = list[Array]

_RAW_DTYPE = re.compile(r"[<|](b1|[iu][1248]|f[248]|[SU][1-9]\d{0,8})")


def columns_to_buffers(columns: Sequence[Array]) -> tuple[list[str], Buffers]:
    """Return a dtype string for each column, and the raw buffers: one per column, two for text and bytes.

    Raises DataError for a type that `columns_from_buffers` would refuse.

    >>> dtypes, buffers = columns_to_buffers([np.array([7, 8]), np.array(["to", "be"], np.dtypes.StringDType())])
    >>> dtypes, [buffer.tolist() for buffer in buffers]
    (['<i8', 'text'], [[7, 8], [2, 2], [116, 111, 98, 101]])
    """
    dtypes: list[str] = []
    buffers: Buffers = []
    for column in columns:
        if isinstance(column, Typed):
            stored, parts = columns_to_buffers([column.storage])
            dtypes.append(f"{stored[0]} {column.type.name}")
            buffers.extend(parts)
        elif column.dtype.kind == "T":
            dtypes.append("text")
            buffers.extend(utf8(column))
        elif column.dtype.kind == "O":
            contents = column.tolist()
            if not {bytes}.issuperset(map(type, contents)):
                other = next(each for each in contents if type(each) is not bytes)
                raise DataError(f"a column of Python objects may hold only bytes, not {other!r:.80}")
            dtypes.append("bytes")
            buffers.append(np.fromiter(map(len, contents), np.int64, len(contents)))
            buffers.append(np.frombuffer(b"".join(contents), np.uint8))
        else:
            dtype, name = _raw(column.dtype)
            dtypes.append(name)
            buffers.append(np.ascontiguousarray(column, dtype))
    return dtypes, buffers


def columns_from_buffers(dtypes: Any, buffers: Sequence[memoryview]) -> tuple[Array, ...]:
    """Return the columns that `columns_to_buffers` described; raise `ValueError` on anything else.

    >>> columns_from_buffers(["<i8"], [np.array([7, 8]).data])
    (array([7, 8]),)
    """
    if not isinstance(dtypes, (list, tuple)):
        raise ValueError("column types must be a list")
    remaining = list(buffers)
    columns = tuple([_column_from_buffers(dtype, remaining) for dtype in dtypes])
    if remaining:
        raise ValueError("more buffers than columns")
    return columns


def _column_from_buffers(dtype: Any, remaining: list[memoryview]) -> Array:
    if not remaining:
        raise ValueError("fewer buffers than columns")
    if isinstance(dtype, str) and " " in dtype:
        return _typed_from_buffers(dtype, remaining)
    if dtype == "text" or dtype == "bytes":
        lengths = np.frombuffer(remaining.pop(0), np.int64)
        if not remaining:
            raise ValueError("a column of text or bytes needs two buffers")
        data = remaining.pop(0)
        _check_lengths(lengths, len(data))
        if dtype == "bytes":
            return np.array(_cut(lengths, data), np.object_)
        return text_column(lengths, np.frombuffer(data, np.uint8))
    if not isinstance(dtype, str):
        raise ValueError(f"unknown column type {dtype!r}")
    column = np.frombuffer(remaining.pop(0), _named(dtype))
    # NumPy does not check that fixed-width text consists of Unicode code points.
    if column.dtype.kind == "U" and int(column.view(np.uint32).max(initial=0)) > sys.maxunicode:
        raise ValueError("a column of text with a character beyond Unicode")
    return column


def _typed_from_buffers(dtype: str, remaining: list[memoryview]) -> Array:
    """Return a column of a logical type, which is named after the type of its storage."""
    stored, _, name = dtype.partition(" ")
    try:
        of = logical_type(name)
    except DataError as error:
        raise ValueError(f"unknown column type {dtype!r:.80}") from error
    if stored != {"i": "<i8", "T": "text", "O": "bytes"}[of.stores]:
        raise ValueError(f"a column of {name} is not stored as {stored!r:.80}")
    return Typed(of, _column_from_buffers(stored, remaining))  # type: ignore[return-value]


@functools.lru_cache(256)
def _raw(dtype: np.dtype[Any]) -> tuple[np.dtype[Any], str]:
    """Return the type in which columns of this type are sent, and its name; raise DataError if no peer accepts it."""
    sent = dtype.newbyteorder("<")
    if not _RAW_DTYPE.fullmatch(sent.str):
        raise DataError(
            f"a column of {dtype} cannot be sent to another process: a column holds integers, floats of up to 64 bits, "
            "booleans, text or bytes; convert it to one of these, as astype(np.int64) converts times"
        )
    return sent, sent.str


@functools.lru_cache(256)
def _named(dtype: str) -> np.dtype[Any]:
    """Return the type that a peer names; raise `ValueError` for types whose columns are not sent as raw bytes."""
    if not _RAW_DTYPE.fullmatch(dtype):
        raise ValueError(f"unknown column type {dtype!r}")
    return np.dtype(dtype)


def _check_lengths(lengths: Array, size: int) -> None:
    """Raise `ValueError` unless pieces of these lengths add up to `size` bytes."""
    # One by one first: a sum of larger numbers could wrap around to `size`.
    if len(lengths) and (int(lengths.min()) < 0 or int(lengths.max()) > size):
        raise ValueError("text lengths out of range")
    if int(np.cumsum(lengths)[-1] if len(lengths) else 0) != size:
        raise ValueError("text lengths do not add up")


def _cut(lengths: Array, data: memoryview) -> list[bytes]:
    ends = np.cumsum(lengths)
    raw = bytes(data)
    starts = (ends - lengths).tolist()
    return [raw[start:end] for start, end in zip(starts, ends.tolist())]
