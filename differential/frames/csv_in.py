"""Files of CSV as Arrow tables: an empty field is a null, and no whole number is rounded.

Arrow infers types, except of columns for which one is stated that it would not infer. It takes whole numbers beyond 64
bits for floats, and whether an empty field is a null or an empty text depends on the other fields of its column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from csv import reader
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from differential.frames.arrow_out import array_of
from timely.errors import DataError
from timely.lowlevel import typed

_STATED = re.compile(r"(text|bytes|int64|uint64|bool|float32|decimal|date|time)\b")
"""The types that are stated to Arrow, which may infer others. Columns of the rest are read as it infers them."""
_NO_TEXT = "not text in UTF-8: convert the file, as `iconv -f latin1 -t utf-8` does"
_EXACT = 1 << 53
"""Floats represent all whole numbers up to this one."""


def table_of(path: str, types: Mapping[str, str]) -> pa.Table:
    """Return the rows of a file; `types` are the names of types of columns, by the columns' names.

    Raises DataError, which names the file, if it is not CSV, or if a value does not fit into its column.
    """
    stated = {name: array_of(typed([], of)).type for name, of in types.items() if _STATED.match(of)}
    try:
        table = csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=stated))
        _refuse_rounded(path, table, types)
    except pa.ArrowException as error:
        raise DataError(f"{path}: {_with_name(path, str(error)):.300}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: the names of the columns are {_NO_TEXT}") from None
    for place, name in enumerate(table.column_names):
        if pa.types.is_binary(table.field(place).type) and name not in types:  # what Arrow makes of other encodings
            raise DataError(f"{path}: column {name!r} is {_NO_TEXT}; 'bytes' as the type of the column keeps it")
        column = table.column(place)
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            if types.get(name) in ("text", "bytes"):
                continue
            is_empty = pc.equal(pc.binary_length(column), 0)
            table = table.set_column(place, name, pc.if_else(is_empty, pa.scalar(None, column.type), column))
        elif pa.types.is_int64(column.type) and _is_float(name, types):
            # Exact: numbers that would be rounded were refused.
            table = table.set_column(place, name, column.cast(pa.float64(), safe=False))
    return table


def _is_float(name: str, types: Mapping[str, str]) -> bool:
    """Return whether a column is to hold floats of 64 bits, although Arrow infers integers if all are whole."""
    return types.get(name, "").startswith("float64")


def _refuse_rounded(path: str, table: pa.Table, types: Mapping[str, str]) -> None:
    """Raise DataError for a whole number of too many bits in a column of floats, unless Arrow read it by its type."""
    for name, column in zip(table.column_names, table.columns):
        of = column.type
        if not (_is_float(name, types) if pa.types.is_int64(of) else pa.types.is_float64(of) and name not in types):
            continue
        # Only then is the file read again, as text.
        is_large = pc.fill_null(pc.greater_equal(pc.abs(column), _EXACT), False)
        if not pc.any(is_large).as_py():
            continue
        options: Any = csv.ConvertOptions(include_columns=[name], column_types={name: pa.string()})
        for text in csv.read_csv(path, convert_options=options).column(0).filter(is_large).to_pylist():
            if re.fullmatch(r"\s*[+-]?\d+\s*", text) and abs(Decimal(text)) > _EXACT:
                raise DataError(
                    f"{path}: column {name!r} has {text:.80}, a whole number beyond 64 bits or among floats: "
                    "as a float it would be rounded; 'decimal(38, 0)' or 'text' as the type of the column keeps it"
                )


def _with_name(path: str, error: str) -> str:
    """Return an error of Arrow with the name of the column of which it has the number."""
    # Only the text has the number. Where it is worded otherwise, the error is passed on as it is.
    found = re.search(r"CSV column #(\d+)", error)
    if found is None:
        return error
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        names = next(reader(file), [])
    place = int(found[1])
    return error.replace(found[0], f"column {names[place]!r}", 1) if place < len(names) else error
