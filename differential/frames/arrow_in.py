"""Columns of Arrow arrays. Integers of 64 bits and floats share their memory, unless one is null."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from timely.errors import DataError
from timely.lowlevel import NULL, Array, Typed, logical_type, stated, text_column, typed

_SIGN = -1 << 63


def columns_of(table: pa.Table) -> list[Any]:
    """Return the columns of a table; a list of one that has nulls alone, and so no type.

    Raises DataError, which names the column, for types that have no column.
    """
    columns: list[Any] = []
    for field, array in zip(table.schema, table.columns):
        if pa.types.is_null(field.type):
            columns.append(array.to_pylist())
            continue
        try:
            columns.append(column_of(array))
        except (DataError, pa.ArrowException) as error:
            raise DataError(f"column {field.name!r} ({field.type}): {error}") from None
    return columns


def column_of(array: pa.ChunkedArray) -> Array:
    of = array.type
    # An array without rows may lack the buffers that others have.
    array = pa.chunked_array([chunk for chunk in array.chunks if len(chunk)], of)
    if isinstance(of, pa.BaseExtensionType):
        if of.extension_name == "pandas.period":
            raise DataError("a column cannot hold periods: .dt.to_timestamp() of pandas makes times of them")
        return column_of(pa.chunked_array([chunk.storage for chunk in array.chunks], of.storage_type))
    if pa.types.is_dictionary(of):
        if of.ordered:
            raise DataError("its categories are ordered, which text is not: cast it to text, or to numbers")
        return column_of(_decoded(array, of))
    if pa.types.is_run_end_encoded(of):
        return column_of(pa.chunked_array([pc.run_end_decode(chunk) for chunk in array.chunks], of.value_type))
    for is_of, convert in _CONVERSIONS:
        if is_of(of):
            return convert(array)
    raise DataError(f"a column cannot hold {of}: cast it first")


def _decoded(array: pa.ChunkedArray, of: pa.DataType) -> pa.ChunkedArray:
    value_type = pa.large_string() if pa.types.is_string_view(of.value_type) else of.value_type
    chunks = [chunk.dictionary.cast(value_type).take(chunk.indices) for chunk in array.chunks]
    return pa.chunked_array(chunks, value_type)


def _missing(array: pa.ChunkedArray) -> NDArray[np.bool_]:
    return _numpy(pc.is_null(array))


def _numpy(array: pa.ChunkedArray) -> Array:
    """Return an array without nulls as NumPy's, without a copy where it is one piece of numbers."""
    values: Array = array.chunk(0).to_numpy(zero_copy_only=False) if array.num_chunks == 1 else array.to_numpy()
    return values


def _filled(array: pa.ChunkedArray, value: Any) -> pa.ChunkedArray:
    return array if not array.null_count else pc.fill_null(array, pa.scalar(value, array.type))


def _integers(array: pa.ChunkedArray) -> Array:
    values = _numpy(_filled(array, 0)).astype(np.int64, copy=False)
    return _marked(array, values, "int64?") if array.null_count else values


def _marked(array: pa.ChunkedArray, stored: Array, name: str) -> Array:
    """Return a column of a nullable type with what it stores where it is not null."""
    missing, of = _missing(array), logical_type(name)
    taken = (stored == NULL) & ~missing
    if taken.any():
        raise of.refused(array.to_pylist(), int(np.argmax(taken)), "stands for a null")
    # It may share the memory of the array, which belongs to somebody else.
    stored = stored.copy()
    stored[missing] = NULL
    return Typed(of, stored)  # type: ignore[return-value]


def _unsigned(array: pa.ChunkedArray) -> Array:
    # With the sign flipped, signed integers are in the order of the unsigned ones that they stand for.
    stored = _numpy(_filled(array, 0)).view(np.int64) ^ _SIGN
    if array.null_count:
        return _marked(array, stored, "uint64?")
    return Typed(logical_type("uint64"), stored)  # type: ignore[return-value]


def _floats(array: pa.ChunkedArray) -> Array:
    values = _numpy(_filled(array, 0))
    if not array.null_count:
        return values if len(values) else stated(values)
    of = logical_type(f"{values.dtype.name}?")
    stored = of.store(values)
    stored[_missing(array)] = NULL
    return Typed(of, stored)  # type: ignore[return-value]


def _booleans(array: pa.ChunkedArray) -> Array:
    values = _numpy(_filled(array, False))
    return _marked(array, values.astype(np.int64), "bool?") if array.null_count else values


def _text(array: pa.ChunkedArray) -> Array:
    pieces = [_piece(chunk) for chunk in array.cast(pa.large_string()).chunks]
    stored = pieces[0] if len(pieces) == 1 else np.concatenate(pieces or [np.empty(0, np.dtypes.StringDType())])
    return Typed(logical_type("text?"), stored) if array.null_count else stored  # type: ignore[return-value]


def _piece(array: pa.LargeStringArray) -> Array:
    """Return a piece of text as a column, and nulls as what stands for them."""
    offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
    content = array.buffers()[2]
    data = np.frombuffer(content if content is not None else b"", np.uint8)[offsets[0] : offsets[-1]]
    # A slice shares the data of the whole array, and begins at its first offset.
    starts, lengths = offsets[:-1] - offsets[0], np.diff(offsets)
    if not array.null_count:
        return text_column(lengths, data, starts)
    missing: NDArray[np.bool_] = _numpy(pa.chunked_array([pc.is_null(array)]))
    column = text_column(lengths, data, starts, missing, _MISSING)
    if int(data.max(initial=0)) >= _MISSING.encode()[0]:  # only then may a text begin as a null does
        logical_type("text?").store(column[~missing])
    return column


_MISSING = str(logical_type("text?").null_storage(1)[0])
"""What is stored for a null among texts."""


def _bytes(array: pa.ChunkedArray) -> Array:
    return typed(array.to_pylist(), "bytes?" if array.null_count else "bytes")  # type: ignore[no-any-return]


def _dates(array: pa.ChunkedArray) -> Array:
    if pa.types.is_date64(array.type):
        array = array.cast(pa.date32())  # refuses what is not a whole day
    return _counted(array.cast(pa.int32()).cast(pa.int64()), "date")


def _timestamps(array: pa.ChunkedArray) -> Array:
    zone = f", {array.type.tz}" if array.type.tz else ""
    return _counted(array.cast(pa.int64()), f"timestamp[{array.type.unit}{zone}]")


def _durations(array: pa.ChunkedArray) -> Array:
    return _counted(array.cast(pa.int64()), f"duration[{array.type.unit}]")


def _times(array: pa.ChunkedArray) -> Array:
    narrow = pa.int32() if array.type.bit_width == 32 else pa.int64()
    return _counted(array.cast(narrow).cast(pa.int64()), f"time[{array.type.unit}]")


def _counted(array: pa.ChunkedArray, name: str) -> Array:
    """Return the column of a type of times with these counts, of which some may be null."""
    of = logical_type(name)
    counts = _numpy(_filled(array, 0))
    if array.null_count:
        # They may share the memory of the array, which belongs to somebody else.
        counts = counts.copy()
        counts[_missing(array)] = np.iinfo(np.int64).min
    return Typed(of, of.store(counts.view(of.dtype)))  # type: ignore[return-value]


def _decimals(array: pa.ChunkedArray) -> Array:
    of = array.type
    if of.scale < 0:
        raise DataError("its scale is negative: cast it to one of at least 0")
    name = f"decimal({of.precision}, {of.scale})"
    if of.bit_width not in (128, 256):
        array, of = array.cast(pa.decimal128(of.precision, of.scale)), pa.decimal128(of.precision, of.scale)
    width = of.bit_width // 8
    logical: Any = logical_type(name)
    if (logical.stores == "O" and width != logical.width) or (logical.stores == "i" and width != _NARROW):
        return typed(array.to_pylist(), name)  # type: ignore[no-any-return]
    # A copy, in which the places of nulls can be written to below.
    cells = np.concatenate([_cells(chunk, width) for chunk in array.chunks] or [np.empty((0, width), np.uint8)])
    missing = _missing(array)
    if logical.stores == "i":
        stored = np.ascontiguousarray(cells[:, :8]).view(np.int64).reshape(-1)  # the low half has all 18 digits
        stored[missing] = NULL
    else:
        stored = logical.of_cells(cells)
        stored[missing] = logical.null_storage(1)[0]
    return Typed(logical, stored)  # type: ignore[return-value]


_NARROW = 16


def _cells(array: pa.Array, width: int) -> NDArray[np.uint8]:
    """Return the bytes of each decimal, the least significant first, in a row of their own."""
    data = np.frombuffer(array.buffers()[1], np.uint8)
    return data[array.offset * width : (array.offset + len(array)) * width].reshape(-1, width)


def _opaque(array: pa.ChunkedArray) -> Array:
    values = array.to_pylist()
    if _has_map(array.type):
        values = [_with_entries(value, array.type) for value in values]
    return typed(values, "value")  # type: ignore[no-any-return]


def _has_map(of: pa.DataType) -> bool:
    return pa.types.is_map(of) or any(_has_map(of.field(place).type) for place in range(of.num_fields))


def _with_entries(value: Any, of: pa.DataType) -> Any:
    """Return a value in which maps are lists of structs, since a list has values of one type when it comes back."""
    if value is None:
        return None
    if pa.types.is_map(of):
        return [{"key": _with_entries(k, of.key_type), "value": _with_entries(v, of.item_type)} for k, v in value]
    if pa.types.is_struct(of):
        return {field.name: _with_entries(value[field.name], field.type) for field in of}
    return [_with_entries(each, of.value_type) for each in value] if pa.types.is_nested(of) else value


_CONVERSIONS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.ChunkedArray], Array]], ...] = (
    (pa.types.is_uint64, _unsigned),
    (pa.types.is_integer, _integers),
    (pa.types.is_floating, _floats),
    (pa.types.is_boolean, _booleans),
    (lambda of: pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_string_view(of), _text),
    (lambda of: pa.types.is_binary(of) or pa.types.is_large_binary(of) or pa.types.is_binary_view(of), _bytes),
    (pa.types.is_fixed_size_binary, _bytes),
    (pa.types.is_date, _dates),
    (pa.types.is_timestamp, _timestamps),
    (pa.types.is_duration, _durations),
    (pa.types.is_time, _times),
    (pa.types.is_decimal, _decimals),
    (pa.types.is_nested, _opaque),
)
"""How to recognise a type of Arrow, and how to make a column of an array of it."""
