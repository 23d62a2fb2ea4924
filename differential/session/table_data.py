"""Named columns out of what people have, and back: the border of a session to `differential.frames`.

A statement of one row may give scalars, and a table without rows the types of its columns, which are no frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from differential.frames.frame import Frame
from differential.frames.read import read
from timely.errors import DataError, SessionError
from timely.lowlevel import Typed, as_column, as_columns

Column = np.ndarray[Any, Any]
_TYPES: dict[type, Any] = {int: np.int64, float: np.float64, bool: np.bool_, str: np.dtypes.StringDType(), bytes: "S1"}


def columns_of(data: Any, names: Sequence[str] | None) -> tuple[tuple[str, ...], tuple[Column, ...]]:
    """Return the names and the columns of `data`, which are arrays of equal length.

    `names` are those of rows that are tuples. Scalars are columns of one row, types (`int`, `str`, ...) empty columns.
    Raises SessionError for what is no table, DataError for what cannot be a column; both name the column.

    >>> columns_of({"a": [1, 2], "b": ["x", "y"]}, None)
    (('a', 'b'), (array([1, 2]), array(['x', 'y'], dtype=StringDType())))
    """
    found = _given(data, names)
    columns = {name: _column(name, values) for name, values in found.items()}
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{name!r} has {len(column)}" for name, column in columns.items())
        raise SessionError(f"the columns do not have the same number of rows: {lengths}")
    return tuple(columns), tuple(columns.values())


def frame_of(names: Sequence[str], columns: Sequence[Column], kind: str) -> Any:
    """Return columns as a frame: `kind` is `"pandas"`, `"polars"` or `"pyarrow"`.

    Raises ImportError, with what to install, where the library is missing.
    """
    frame = Frame(names, columns)
    return {"pandas": frame.to_pandas, "polars": frame.to_polars, "pyarrow": frame.to_arrow}[kind]()


def ordered(column: Column) -> Column:
    """Return a column that is equal and ordered as this one is, in an array: of a typed one, what it is stored as."""
    return cast(Column, column.storage) if isinstance(column, Typed) else column


def _given(data: Any, names: Sequence[str] | None) -> Mapping[str, Any]:
    """Return what is given for each column, by name."""
    if isinstance(data, Mapping):
        return data
    if isinstance(data, (list, tuple)):
        return _of_rows(data, names)
    if isinstance(data, (int, float, bytes)) or data is None:
        raise SessionError(
            f"{type(data).__name__} is no table: give a dictionary of columns, a list of rows, a frame of pandas or "
            "Polars, an Arrow table, or the path of a file"
        )
    frame = read(data, names)
    return dict(zip(frame.names, frame.columns))


def _of_rows(rows: Sequence[Any], names: Sequence[str] | None) -> Mapping[str, Any]:
    if rows and all(isinstance(row, Mapping) for row in rows):
        return {name: [row[name] for row in rows] for name in rows[0]}
    if names is None:
        raise SessionError("rows that are tuples need names of columns: give a dictionary of columns instead")
    for row in rows:
        if not isinstance(row, (tuple, list)) or len(row) != len(names):
            raise SessionError(f"{row!r:.80} is no row of the {len(names)} column(s) {', '.join(names)}")
    return dict(zip(names, map(list, zip(*rows)) if rows else [[] for _ in names]))


def _column(name: str, values: Any) -> Column:
    if isinstance(values, type):
        if values not in _TYPES:
            raise SessionError(
                f"column {name!r}: {values.__name__} is no type of column: use int, float, bool, str or bytes"
            )
        return np.empty(0, _TYPES[values])
    if isinstance(values, Typed):
        return cast(Column, values)
    try:
        if hasattr(values, "to_numpy") or isinstance(values, (list, np.ndarray)):
            return cast(Column, read({name: values}).columns[0])
        return as_columns((np.atleast_1d(as_column(values)),))[0]
    except DataError as error:
        raise DataError(f"column {name!r}: {error}") from None
