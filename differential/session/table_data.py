"""Named columns out of what people have, and back: dictionaries, rows, frames of pandas and Polars, Arrow tables.

The libraries are imported only to make one of their frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from timely.errors import DataError, SessionError
from timely.lowlevel import as_column, as_columns

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
    try:
        library = import_module(kind)
    except ImportError:
        raise ImportError(f"{kind} is not installed: pip install {kind}") from None
    values = {name: column if column.dtype.kind in "iufb" else column.tolist() for name, column in zip(names, columns)}
    made = library.table if kind == "pyarrow" else library.DataFrame
    return made(values)


def _given(data: Any, names: Sequence[str] | None) -> Mapping[str, Any]:
    """Return what is given for each column, by name."""
    if isinstance(data, Mapping):
        return data
    if hasattr(data, "get_columns"):  # Polars
        return {
            column.name: column.to_list() if _is_other(column.to_numpy()) else column for column in data.get_columns()
        }
    if hasattr(data, "column_names") and hasattr(data, "column"):  # Arrow
        return {name: _of_arrow(data.column(name)) for name in data.column_names}
    if hasattr(data, "columns") and hasattr(data, "iloc"):  # pandas
        return {str(name): data[name].to_numpy() for name in data.columns}
    if isinstance(data, (list, tuple)):
        return _of_rows(data, names)
    raise SessionError(
        f"{type(data).__name__} is no table: give a dictionary of columns, a list of rows, a frame of pandas or "
        "Polars, or an Arrow table"
    )


def _of_rows(rows: Sequence[Any], names: Sequence[str] | None) -> Mapping[str, Any]:
    if rows and all(isinstance(row, Mapping) for row in rows):
        return {name: [row[name] for row in rows] for name in rows[0]}
    if names is None:
        raise SessionError("rows that are tuples need names of columns: give a dictionary of columns instead")
    for row in rows:
        if not isinstance(row, (tuple, list)) or len(row) != len(names):
            raise SessionError(f"{row!r:.80} is no row of the {len(names)} column(s) {', '.join(names)}")
    return dict(zip(names, map(list, zip(*rows)) if rows else [[] for _ in names]))


def _of_arrow(column: Any) -> Any:
    if column.null_count:
        return column.to_pylist()
    values = column.to_numpy()
    return column.to_pylist() if _is_other(values) else values


def _is_other(values: Any) -> bool:
    return bool(values.dtype.kind not in "iufb")


def _column(name: str, values: Any) -> Column:
    if isinstance(values, type):
        if values not in _TYPES:
            raise SessionError(
                f"column {name!r}: {values.__name__} is no type of column: use int, float, bool, str or bytes"
            )
        return np.empty(0, _TYPES[values])
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, np.ndarray) and values.dtype == object:
        values = values.tolist()
    try:
        return as_columns((np.atleast_1d(as_column(values)),))[0]
    except DataError as error:
        raise DataError(f"column {name!r}: {error}") from None
