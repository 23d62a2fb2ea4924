"""Types by their names: logical types, and plain ones, which are those of arrays of numbers, text or bytes."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, cast

import numpy as np

from timely.data import moments, nullable, numeric
from timely.data.column_like import ColumnLike
from timely.data.logical import TEXT, Array, LogicalType, stated
from timely.data.nullable import of_strings
from timely.data.numeric import Booleans, Floats, Numbers
from timely.data.opaque import Opaque
from timely.errors import DataError


@lru_cache(1024)
def logical_type(name: str) -> LogicalType:
    """Return the type with a name. Raises DataError where there is none; names of plain columns have none.

    >>> logical_type("timestamp[us, UTC]"), logical_type("decimal(9, 2)").stores
    (timestamp[us, UTC], 'i')
    """
    for pattern, make in (*moments.PATTERNS, *numeric.PATTERNS, *nullable.PATTERNS, ("value", Opaque)):
        found = re.fullmatch(pattern, name)
        if found is not None:
            return make(name, *found.groups())
    raise DataError(f"{name!r:.80} is not a column type: docs/types.md lists them")


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
