"""Columns as the texts and JSON values that sinks write.

>>> as_json("price", np.array([0.5, np.nan])), as_texts("price", np.array([0.5, np.nan]))
([0.5, 'NaN'], ['0.5', 'NaN'])
>>> as_json("ready", np.array([True]))
[True]
"""

from __future__ import annotations

import datetime as dt
import json
import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from differential.session.changes import Change
from differential.session.sources.convert import family
from differential.session.table_data import Column, order_of
from timely.errors import DataError
from timely.lowlevel import Typed, name_of

ADDED = ("time", "diff")
"""The columns that a sink of changes adds to those of the rows."""


def check_names(names: Sequence[str], key: Sequence[str] = ()) -> None:
    """Raise DataError if a view lacks a column of the key or, without a key, has one of those that a sink adds."""
    missing = [name for name in key if name not in names]
    if missing:
        raise DataError(f"the view has no column {missing[0]!r} for the key: it has {', '.join(names)}")
    taken = [name for name in names if name in ADDED and not key]
    if taken:
        raise DataError(f"the view has a column {taken[0]!r}, the name of one that the sink adds: rename it")


def in_order(change: Change) -> Change:
    """Return a change with its rows sorted, so that a sink that writes it again writes the same.

    >>> in_order(Change(2, ("x",), (np.array([5, 3]),), np.array([1, -1]))).diff
    array([-1,  1])
    """
    order = order_of((*change.rows, change.diff))
    return change._replace(rows=tuple(column[order] for column in change.rows), diff=change.diff[order])


def as_json(name: str, column: Column) -> list[Any]:
    """Return the values of a column as JSON values, from which the source `json_lines` reads the same values.

    Dates and times are texts as in ISO 8601, decimals are texts, bytes are texts in base 64, and floats that are not
    finite are the texts "NaN", "Infinity" and "-Infinity". In lists and structs, from which all these texts are read as
    texts, they have the same forms. Raises DataError for durations.
    """
    of = family(name_of(column))
    if of == "value" and isinstance(column, Typed):
        return [_nested(value) for value in column.type.array(column.storage).tolist()]
    values: list[Any] = column.tolist()
    if of in _PLAIN:
        return values
    form = _instant if of == "timestamp" and "," in name_of(column) else _FORMS.get(of)
    if form is None:
        raise DataError(
            f"column {name!r} is of type {name_of(column)}, which this sink cannot write: map it to another type first"
        )
    return [None if value is None else form(value) for value in values]


def as_texts(name: str, column: Column) -> list[str | None]:
    """Return the values of `as_json` as texts: None for nulls, and JSON for lists and structs."""
    of = family(name_of(column))
    values = as_json(name, column)
    if of == "text":
        return values
    forms: dict[str, Callable[[Any], str]] = {"value": as_line, "bool": json.dumps}
    form = forms.get(of, _text)
    return [None if value is None else form(value) for value in values]


def _text(value: Any) -> str:
    return value if type(value) is str else repr(value)


def as_line(value: Any) -> str:
    """Return a value of `as_json`, or a dict of such values, as JSON on one line."""
    return json.dumps(value, default=str, ensure_ascii=False)


def _float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _nested(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _nested(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_nested(each) for each in value]
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, (dt.date, dt.time, np.datetime64)):
        return _moment(value)
    return _bytes(value) if isinstance(value, bytes) else value


def _bytes(value: bytes) -> str:
    return b64encode(value).decode()


def _moment(value: Any) -> str:
    """Return a date or time as in ISO 8601. Those in nanoseconds are NumPy values; a time is a duration there."""
    if isinstance(value, np.timedelta64):
        return str(np.datetime64(0, "ns") + value).partition("T")[2]
    return str(value) if isinstance(value, np.generic) else str(value.isoformat())


def _instant(value: Any) -> str:
    """Return a timestamp with a zone as in ISO 8601. NumPy's values are in UTC, and their texts do not name it."""
    return f"{value}+00:00" if isinstance(value, np.generic) else _moment(value)


_PLAIN = ("int64", "uint64", "bool", "text")
_FORMS: dict[str, Callable[[Any], Any]] = {
    "float64": _float,
    "float32": _float,
    "float16": _float,
    "bytes": _bytes,
    "date": _moment,
    "timestamp": _moment,
    "time": _moment,
    "decimal": str,
}
