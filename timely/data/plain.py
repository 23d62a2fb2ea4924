"""Columns of plain types: arrays of numbers, booleans, text or bytes, made of values of any form."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from timely.data.column_like import ColumnLike
from timely.data.logical import TEXT, Array, stated
from timely.data.nullable import of_strings
from timely.data.numeric import Booleans, Floats, Numbers

PLAIN: dict[str, Any] = {
    "int64": np.int64,
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "bool": np.bool_,
    "text": TEXT,
    "bytes": np.object_,
}
"""The types of NumPy that plain columns have, by the names of their types."""


def as_plain(values: Any, name: str) -> Array:
    """Return values as a plain column of a type. Raises DataError where one is null, or not of the type.

    >>> as_plain([1, 2], "int64"), as_plain(["a"], "text").tolist()
    (array([1, 2]), ['a'])
    """
    if isinstance(values, ColumnLike) and values.dtype == np.dtype(PLAIN[name]):
        return cast(Array, values)
    values = np.asarray(values) if isinstance(values, ColumnLike) else values
    if name not in ("text", "bytes"):
        make = Booleans if name == "bool" else Numbers if name == "int64" else Floats
        made = make(name, name).plain(values)
        return made if len(made) else stated(made)
    if isinstance(values, np.ndarray) and values.dtype == TEXT and name == "text":
        return values
    items = values.tolist() if isinstance(values, np.ndarray) else list(values)
    made = of_strings(items, name, str if name == "text" else bytes)
    return made if items else stated(made)
