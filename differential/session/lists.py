"""What the lists of a column hold: items of one type, without which no frame of another library has the column.

Lists that hold several types are possible, as JSON has them: a column whose first list is one takes any other.

>>> shape_of([["a"], []]), shape_of([1, None, 2.5]), shape_of([1, "a"])
('lists of lists of text', 'lists of numbers', 'lists of values of several types')
>>> common_shape("lists", "lists of text"), common_shape("lists of text", "lists of numbers")
('lists of text', None)
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

from timely.errors import DataError

SEVERAL = "values of several types"
_SHAPES: tuple[tuple[type, str], ...] = (
    (bool, "booleans"),
    (int, "numbers"),
    (float, "numbers"),
    (str, "text"),
    (bytes, "bytes"),
    (dt.datetime, "timestamps"),
    (dt.date, "dates"),
    (dt.time, "times of day"),
    (dt.timedelta, "durations"),
    (dict, "dicts"),
)
"""What values of these classes are, a class before one that it is derived from."""


def shape_of(value: Any) -> str | None:
    """Return what a value of a list is, in the plural; None for a null."""
    if value is None:
        return None
    if not isinstance(value, list):
        return next((shape for of, shape in _SHAPES if isinstance(value, of)), SEVERAL)
    held = {shape for shape in map(shape_of, value) if shape is not None}  # sorted below: sets have no order
    return f"lists of {reduce(_either, sorted(held))}" if held else "lists"


def common_shape(known: str, shape: str) -> str | None:
    """Return the shape that covers a known shape and another one; None if a column cannot hold both."""
    if shape.startswith(known):
        return shape
    return known if known.startswith(shape) or known.endswith(SEVERAL) else None


def learned(table: str, shapes: Mapping[str, str], values: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """Return what the lists of each column hold: `shapes`, extended by values, each with the name of its column.

    Raises DataError, which names the column and the value, where a column cannot hold both.

    >>> learned("stock", {"sizes": "lists"}, [("sizes", [1, 2])])
    {'sizes': 'lists of numbers'}
    """
    found = dict(shapes)
    for name, value in values:
        if (shape := shape_of(value)) is not None:
            known = found.get(name, shape)
            both = common_shape(known, shape)
            if both is None:
                raise DataError(f"column {name!r} of table {table!r} holds {known}, not {shape} such as {value!r:.40}")
            found[name] = both
    return found


def _either(one: str, other: str) -> str:
    return common_shape(one, other) or SEVERAL
