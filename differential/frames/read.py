"""Read a frame of whatever holds rows: frames of other libraries, arrays, Python values, files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any

import numpy as np

from differential.extra import imported, needs
from differential.frames.frame import Frame
from differential.frames.python import columns_of_rows, listed, names_of
from timely.errors import DataError
from timely.lowlevel import stated, typed

Named = tuple[Sequence[str] | None, Sequence[Any]]
"""The names of columns, if they have any, and the columns."""

_READERS = {
    ".arrow": ("feather", "read_table"),
    ".feather": ("feather", "read_table"),
    ".parquet": ("parquet", "read_table"),
}
"""What reads files, except CSV, by the ending of their names: a module of pyarrow, and its function."""


def read(data: Any, names: Sequence[str] | None = None, *, types: Mapping[str, str] | None = None) -> Frame:
    """Return a frame of `data`.

    `data` is one of these:

    - a frame of pandas or Polars, an Arrow table or record batch, a DuckDB relation, or anything else that exports
      Arrow's C stream; a `Frame`;
    - a dict of columns; a structured NumPy array, or one of two dimensions; a tuple of columns;
    - a list of dicts, dataclasses or tuples: the rows;
    - the path of a file: Parquet, Arrow (IPC or Feather) or CSV.

    `names` are the names of the columns, in their order; by default those that the data has, else `c0`, `c1`, ...
    `types` are types of some of the columns, by name (see `docs/types.md`): a column that may be null later is to have
    a type that ends in "?".

    Integers of 64 bits and floats share the memory of the data where it is an array, or of Arrow and one piece.

    Raises DataError, which names the column, where there are no columns, or one has values of no type or of several;
    ImportError, which names the extra, where a library is missing that is needed.

    >>> read({"name": ["ann", None], "age": [41, 28]}).types
    {'name': 'text?', 'age': 'int64'}
    >>> read([("ann", 41), ("bob", 28)], ["name", "age"], types={"age": "int64?"}).types
    {'name': 'text', 'age': 'int64?'}
    """
    found, columns = columns_of(data, types or {})
    if names is None:
        names = found if found is not None else [f"c{place}" for place in range(len(columns))]
    if types and (unknown := set(types) - set(names)):
        known = ", ".join(map(str, names))
        raise DataError(f"there is no column {min(unknown)!r} to have a type: the columns are {known}")
    if not types:
        return Frame(names, columns)
    # Values of Python get their types first: without one, a column of nulls alone would be refused.
    return Frame(names, _stated(names, columns, types)).cast(dict(types))


def _stated(names: Sequence[str], columns: Sequence[Any], types: Mapping[str, str]) -> list[Any]:
    """Return columns, those in which Python values are of a type as columns of it."""
    made = []
    for name, column in zip(names, columns):
        if name in types and not hasattr(column, "dtype"):
            try:
                column = typed(listed(column), types[name])
            except DataError as error:
                raise DataError(f"column {name!r}: {error}") from None
        made.append(column)
    return made


def columns_of(data: Any, types: Mapping[str, str] = MappingProxyType({})) -> Named:
    """Return the names and the columns of whatever `read` reads; of Python values, and of nulls alone, lists.

    `types` are the types with which columns of a file are read that does not state any.

    >>> columns_of({"a": [1, 2]})
    (['a'], [[1, 2]])
    """
    if isinstance(data, Frame):
        return data.names, data.columns
    if isinstance(data, (str, os.PathLike)):
        return _of_file(os.fspath(data), types)
    if isinstance(data, dict):
        return names_of(data), [plain(values, name) for name, values in data.items()]
    if isinstance(data, np.ndarray):
        return _of_array(data)
    if isinstance(data, tuple):
        return None, list(data)
    pandas = imported("pandas")
    if pandas is not None and isinstance(data, pandas.DataFrame):
        needs_arrow("a pandas frame")
        from differential.frames.other import columns_of_pandas

        return columns_of_pandas(data, types)
    if pandas is not None and isinstance(data, pandas.Series):
        raise DataError(
            "a Series is not a frame: to_frame() makes one of a column, and to_dict() makes a row of its values"
        )
    polars = imported("polars")
    if polars is not None and isinstance(data, polars.DataFrame):
        from differential.frames.other import refuse_objects_of_polars

        refuse_objects_of_polars(data)
    if polars is not None and isinstance(data, polars.LazyFrame):
        raise DataError("a LazyFrame has no rows yet: .collect() returns a frame that has")
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return _of_arrow(data)
    if hasattr(data, "fetch_arrow_table"):  # a DuckDB relation, or result
        needs_arrow("a DuckDB relation")
        return _of_arrow(data.fetch_arrow_table())
    if isinstance(data, list):
        if not data:
            raise DataError("an empty list has no columns: {'name': []} has one")
        return columns_of_rows(data)
    raise DataError(
        f"cannot read a frame from {type(data).__name__}: give a frame, a dict of columns, a list of rows, an array, "
        "or the path of a file"
    )


def plain(values: Any, name: str) -> Any:
    """Return a series of pandas or Polars, or an array of Arrow, as the column of a frame; other values as they are.

    A column of nulls alone, which has no type, is a list.

    >>> plain([1, None], "a")
    [1, None]
    """
    pandas, polars, arrow = map(imported, ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(values, (pandas.Series, pandas.Index, pandas.api.extensions.ExtensionArray)):
        of = values.dtype
        if isinstance(values, pandas.MultiIndex):
            return values
        if isinstance(of, np.dtype) and of.kind in "iufbmM":
            array = values.to_numpy()
            return array if len(array) else stated(array)
        frame = pandas.DataFrame({name: getattr(values, "array", values)})
    elif polars is not None and isinstance(values, polars.Series):
        frame = values.to_frame(name)
    elif arrow is not None and isinstance(values, (arrow.Array, arrow.ChunkedArray)):
        frame = arrow.table({name: values})
    else:
        return values
    return columns_of(frame)[1][0]


def _of_array(data: np.ndarray[Any, Any]) -> Named:
    if data.dtype.names is not None:
        return list(data.dtype.names), [data[name] for name in data.dtype.names]
    if data.ndim == 2:
        return None, list(data.T)
    if data.ndim == 1:
        return None, [data]
    raise DataError(f"an array of shape {data.shape} is not a frame: an array of rows and columns has two dimensions")


def _of_arrow(data: Any) -> Named:
    needs_arrow("an Arrow stream")
    import pyarrow as pa

    from differential.frames.arrow_in import columns_of

    try:
        table = data if isinstance(data, pa.Table) else pa.table(data)
    except pa.ArrowException as error:
        raise DataError(
            f"Arrow cannot read {type(data).__name__} as a table: {error}; a frame has named columns"
        ) from None
    return table.column_names, columns_of(table)


def _of_file(path: str, types: Mapping[str, str]) -> Named:
    needs_arrow("a file")
    ending = os.path.splitext(path)[1].lower()
    if ending == ".csv":
        from differential.frames.csv_in import table_of

        return _of_arrow(table_of(path, types))
    reader = _READERS.get(ending)
    if reader is None:
        endings = ", ".join(sorted([".csv", *_READERS]))
        raise DataError(f"{path}: a file to read ends in {endings}; convert it, or rename it")
    import pyarrow as pa

    module, function = reader
    try:
        return _of_arrow(getattr(import_module(f"pyarrow.{module}"), function)(path))
    except pa.ArrowException as error:
        raise DataError(f"{path}: {error}") from None


def needs_arrow(what: str) -> None:
    """Raise ImportError unless pyarrow can be imported."""
    needs("pyarrow", f"to read {what}")
