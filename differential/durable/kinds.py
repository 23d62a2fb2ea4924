"""The kinds of fields: how a column of a collection is kept as a column of Arrow, and comes back as it was.

A plain column has the kind of its type in Arrow (int64, double, string, ...). A typed column has its logical type as
its kind (`docs/types.md`), and is kept as the type of Arrow that other programs know for it: dates as dates, decimals
as decimals, a null as a null. Lists and structs are kept as the bytes that store them. The kind is in the metadata of
the field, so a table needs nothing beside it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from differential.extra import needed_for
from timely.errors import DataError
from timely.lowlevel import Typed, float_codes, logical_type, name_of, typed

with needed_for("differential.durable", "durable"):
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

from differential.frames.arrow_in import column_of
from differential.frames.arrow_out import array_of
from differential.frames.python import items

__all__ = ["array", "column", "empty", "field_of", "filled", "items", "kind_of", "ordered", "pa", "pc", "pq", "type_of"]

Ints = NDArray[np.int64]
Array = NDArray[Any]

TEXT = np.dtypes.StringDType()
_KIND = b"timely"
_VALUE = "value"
_PLAIN = {"i": "int64", "u": "int64", "b": "bool", "T": "string", "O": "binary", "U": "string", "S": "binary"}
_FLOATS = {2: "float16", 4: "float", 8: "double"}
_ALIASES = frozenset([*_PLAIN.values(), *_FLOATS.values()])


def kind_of(column: Any) -> str:
    """Return the kind of the field in which a column is kept. Raises DataError if there is none.

    >>> kind_of(np.array([1.5])), kind_of(typed([None], "decimal(9, 2)"))
    ('double', 'decimal(9, 2)')
    """
    if isinstance(column, Typed):
        return column.type.name
    dtype = column.dtype
    kind = _FLOATS.get(dtype.itemsize) if dtype.kind == "f" else _PLAIN.get(dtype.kind)
    if kind is None:
        raise DataError(f"a column of {dtype} cannot be durable: docs/types.md lists what columns hold")
    return kind


@lru_cache(1024)
def field_of(name: str, kind: str) -> Any:
    """Return the field of Arrow for a kind. Raises DataError if there is no such kind."""
    if kind in _ALIASES:
        return pa.field(name, pa.type_for_alias(kind), nullable=False)
    of = logical_type(kind)
    kept = pa.binary() if kind == _VALUE else array_of(cast(Array, Typed(of, of.null_storage(1)))).type
    return pa.field(name, kept, metadata={_KIND: kind.encode()})


def empty(kind: str) -> Array:
    """Return a column of a kind without rows."""
    return column(pa.chunked_array([], field_of("", kind).type), field_of("", kind))


def type_of(kind: str) -> str:
    """Return the name of the type of columns of a kind.

    >>> type_of("double"), type_of("decimal(9, 2)")
    ('float64', 'decimal(9, 2)')
    """
    return name_of(empty(kind))


def filled(kind: str, value: Any, rows: int) -> Array:
    """Return a column of a kind with one value in all rows. Raises DataError if the value is not of the kind.

    >>> filled("decimal(9, 2)", None, 2).tolist(), filled("int64", 7, 2).tolist()
    ([None, None], [7, 7])
    """
    return cast(Array, typed([value], type_of(kind)).repeat(rows))


def array(values: Any, kind: str) -> Any:
    """Return a column as an array of Arrow, without a copy where it holds integers.

    Floats are made equal where they are equal: 0.0 of -0.0, one NaN of all. Raises DataError for unsigned integers that
    do not fit.
    """
    if kind not in _ALIASES:
        of = field_of("", kind).type
        made = pa.array(values.storage.tolist(), of) if kind == _VALUE else array_of(values)
        return made if made.type == of else made.cast(of)
    plain = np.asarray(values)
    if kind == "int64":
        if plain.dtype.kind == "u" and len(plain) and int(plain.max()) >= 1 << 63:
            raise DataError(
                "an unsigned integer from 2 ** 63 on cannot be durable: typed(column, 'uint64') of differential.frames "
                "can"
            )
        plain = plain.astype(np.int64, copy=False)
    elif plain.dtype.kind == "f":
        plain = plain + plain.dtype.type(0)  # -0.0 + 0 is 0.0; the sum is also a copy, which the next line may write to
        plain[np.isnan(plain)] = np.nan
    elif kind == "string":
        made = array_of(plain.astype(TEXT, copy=False))
        # Only text of 2 GiB and more has another type; Arrow then divides it.
        return made if pa.types.is_string(made.type) else pa.array(plain.tolist(), pa.string())
    return array_of(plain)


def column(values: Any, field: Any) -> Array:
    """Return a column of a table for the dataflow, of the kind that its field has."""
    kind = (field.metadata or {}).get(_KIND)
    if kind is None:
        return column_of(values)
    of = logical_type(kind.decode())
    if of.name == _VALUE:
        stored = np.empty(len(values), np.object_)
        stored[:] = values.to_pylist()
        return cast(Array, Typed(of, stored))
    found: Any = column_of(values)
    return cast(Array, found if isinstance(found, Typed) and found.type == of else typed(found, of.name))


def ordered(values: Array) -> Ints:
    """Return numbers that are equal and in order as the values of a column are: of text and bytes their ranks.

    >>> ordered(np.array(["b", "", "b"], TEXT)).tolist(), ordered(typed([2, None, 1], "int64?")).tolist()
    ([1, 0, 1], [2, 9223372036854775807, 1])
    """
    plain = cast(Any, values).storage if isinstance(values, Typed) else values
    if plain.dtype.kind in "bi":
        return cast(Ints, plain)
    if plain.dtype.kind == "f":
        return float_codes(plain)
    encoded = array_of(plain).dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    # `sort_indices` has the entry of each rank; the inverse permutation has the rank of each entry.
    ranks = np.empty(len(encoded.dictionary), np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(ranks))
    found: Ints = ranks[encoded.indices.to_numpy()]
    return found
