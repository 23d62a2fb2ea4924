"""The changes of a commit as the bytes of a file: Parquet, Arrow, or an array of NumPy.

Parquet and Arrow have the types that `Change.to_arrow` makes. These follow from the types of the columns, except in
columns of lists and structs, which Arrow types by what they hold: the first file may have nothing but empty lists. So
a file takes the types of the file before it where these cover its own, and a type that covers both elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from differential.session.changes import Change
from differential.session.sinks.values import ADDED
from timely.errors import DataError
from timely.lowlevel import Typed, name_of

if TYPE_CHECKING:
    import pyarrow

Form = Callable[[Sequence[Change], str | None], bytes]
"""Makes a file of changes, given the path of the file before it if there is one. Raises DataError if it cannot."""
_TEXT_OF_ASCII, _TEXT_OF_UTF_8 = (1, 0), (3, 0)
"""The versions of `.npy` whose headers have such names of columns."""


def to_parquet(changes: Sequence[Change], former: str | None) -> bytes:
    """Return changes as a Parquet file.

    >>> to_parquet([Change(2, ("x",), (np.array([5, 3]),), np.array([1, -1]))], None)[:4]
    b'PAR1'
    """
    import pyarrow as pa
    from pyarrow import parquet

    table = _table(changes, former, parquet.read_schema)
    file = BytesIO()
    try:
        parquet.write_table(table, file)
    except pa.ArrowException as error:
        raise DataError(f"Parquet cannot hold these columns: {error}") from None
    return file.getvalue()


def to_arrow(changes: Sequence[Change], former: str | None) -> bytes:
    """Return changes as an Arrow file, in the file format of Arrow's IPC.

    >>> to_arrow([Change(2, ("x",), (np.array([5, 3]),), np.array([1, -1]))], None)[:6]
    b'ARROW1'
    """
    import pyarrow as pa

    def schema_of(path: str) -> pyarrow.Schema:
        with pa.OSFile(path) as file:
            return pa.ipc.open_file(file).schema

    table = _table(changes, former, schema_of)
    file = BytesIO()
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


def to_npy(changes: Sequence[Change], former: str | None) -> bytes:
    """Return changes as a structured array, whose fields are the columns.

    Raises DataError for columns other than integers, floats and booleans without nulls.

    >>> np.load(BytesIO(to_npy([Change(2, ("x",), (np.array([5, 3]),), np.array([1, -1]))], None))).tolist()
    [(5, 2, 1), (3, 2, -1)]
    """
    names = (*changes[0].columns, *ADDED)
    parts = [_array(names, change) for change in changes]
    array = parts[0] if len(parts) == 1 else np.concatenate(parts)
    file = BytesIO()
    is_ascii = all(map(str.isascii, names))
    np.lib.format.write_array(file, array, _TEXT_OF_ASCII if is_ascii else _TEXT_OF_UTF_8, allow_pickle=False)
    return file.getvalue()


def _array(names: Sequence[str], change: Change) -> np.ndarray[Any, Any]:
    """Return a change as a structured array with these fields."""
    rows = [np.asarray(column) if name_of(column) == "uint64" else column for column in change.rows]
    for name, column in zip(names, rows):
        if isinstance(column, Typed) or column.dtype.kind not in "biuf":
            raise DataError(
                f"column {name!r} is of type {name_of(column)}, and .npy files have integers, floats and booleans "
                "without nulls: leave the column out with a view, map it, or write parquet(...)"
            )
    columns = (*rows, np.full(len(change.diff), change.time), change.diff)
    array = np.empty(len(change.diff), [(name, column.dtype.str) for name, column in zip(names, columns)])
    for name, column in zip(names, columns):
        array[name] = column
    return array


def _table(changes: Sequence[Change], former: str | None, schema_of: Callable[[str], Any]) -> pyarrow.Table:
    """Return changes as an Arrow table, with the types of the file before it where its columns can have them."""
    import pyarrow as pa

    table: Any = pa.concat_tables([change.to_arrow() for change in changes], promote_options="permissive")
    # Other types follow from those of the columns, so they are those of the file before already.
    if former is None or not any(map(_is_by_values, table.schema.types)):
        return table
    try:
        wider: Any = pa.unify_schemas([schema_of(former), table.schema], promote_options="permissive")
        return table.cast(wider)
    except (pa.ArrowTypeError, pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise DataError(f"the columns have other types than in {former}: {error}") from None


def _is_by_values(of: Any) -> bool:
    """Return whether Arrow has found this type by looking at values."""
    import pyarrow as pa

    return bool(pa.types.is_nested(of) or pa.types.is_null(of))
