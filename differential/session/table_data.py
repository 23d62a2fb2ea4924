"""Named columns out of what people have, and back: the border of a session to `differential.frames`.

A statement of one row may give scalars, and a table without rows the types of its columns, which are not frames. Values
that are all None have no type yet: they are a column of opaque values, until the schema of the table gives them one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from decimal import Decimal
from operator import itemgetter
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from differential.frames.frame import Frame
from differential.frames.other import without_columns
from differential.frames.python import column_of, columns_of_rows, names_of
from differential.frames.read import columns_of as columns_of_data, plain
from timely.errors import DataError, SessionError
from timely.lowlevel import Typed, as_column, as_columns, float_codes, is_null, is_stated, typed, user_origin, with_none

Column = np.ndarray[Any, Any]
NAMES: dict[type, str] = {
    int: "int64",
    float: "float64",
    bool: "bool",
    str: "text",
    bytes: "bytes",
    dt.date: "date",
    dt.datetime: "timestamp[us]",
    dt.time: "time[us]",
    dt.timedelta: "duration[us]",
    list: "value",
    dict: "value",
}
"""The types of columns that classes of Python stand for. With `| None` they may have nulls."""


_ELSEWHERE: dict[str, type] = {
    **dict.fromkeys(("integer", "bigint"), int),
    **dict.fromkeys(("double", "real"), float),
    **dict.fromkeys(("varchar", "string"), str),
    **dict.fromkeys(("timestamp", "datetime64[ns]", "datetime64[us]"), dt.datetime),
    "boolean": bool,
    "blob": bytes,
    "interval": dt.timedelta,
}
"""The same for names of types in SQL and pandas, in lower case."""


def columns_of(
    data: Any, names: Sequence[str] | None, types: Mapping[str, str] = MappingProxyType({})
) -> tuple[tuple[str, ...], tuple[Column, ...]]:
    """Return the names and the columns of `data`, which are arrays of equal length.

    `names` are those of rows that are tuples, `types` those of columns in a file that states none. Scalars are columns
    of one row, types (`int`, `str`, ...) empty columns.
    Raises SessionError for what is not a table, DataError for what cannot be a column; both name the column.

    >>> columns_of({"a": [1, 2], "b": ["x", "y"]}, None)
    (('a', 'b'), (array([1, 2]), array(['x', 'y'], dtype=StringDType())))
    """
    return _equally_long(_given(data, names, types))


def declared_by(data: Any) -> tuple[tuple[str, ...], tuple[Column, ...], dict[str, Column]]:
    """Return the names and the columns of `data`, and those of the columns without rows whose types it states.

    Types state one, and empty columns and frames of a type; an empty list does not.

    >>> declared_by({"a": int, "b": []})[2]
    {'a': array([], dtype=int64)}
    """
    given = _given(data, None)
    names, columns = _equally_long(given)
    return names, columns, {name: column for name, column in zip(names, columns) if _is_type(given[name], name)}


def _equally_long(found: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[Column, ...]]:
    """Return the names and the columns of what is given by name. Raises SessionError where lengths differ."""
    columns = {name: _column(name, values) for name, values in found.items()}
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{name!r} has {len(column)}" for name, column in columns.items())
        raise SessionError(f"the columns do not have the same number of rows: {lengths}")
    return tuple(columns), tuple(columns.values())


def frame_of(names: Sequence[str], columns: Sequence[Column], kind: str) -> Any:
    """Return columns as a frame: `kind` is `"pandas"`, `"polars"` or `"pyarrow"`.

    Raises ImportError, with what to install, where the library is missing.
    """
    if not names:
        return without_columns(kind)  # of a view without rows, whose definition does not name its columns
    frame = Frame(names, [typed([], "bytes?") if _has_no_objects(each) else each for each in columns])
    return {"pandas": frame.to_pandas, "polars": frame.to_polars, "pyarrow": frame.to_arrow}[kind]()


def _has_no_objects(column: Column) -> bool:
    """Return whether this is a column of bytes without rows: elsewhere, an array of no objects may be of any type."""
    return column.dtype == np.object_ and not len(column) and not isinstance(column, Typed)


def ordered(column: Column) -> Column:
    """Return an array with the equality and the order of a column: the storage of a typed one, the codes of floats.

    >>> ordered(np.array([np.nan, 0.0, -0.0])).argsort(kind="stable")
    array([1, 2, 0])
    """
    if isinstance(column, Typed):
        return cast(Column, column.storage)
    return float_codes(column) if column.dtype.kind == "f" else column


def order_of(columns: Sequence[Column]) -> Column:
    """Return the positions of the rows of columns in order: by the first column, then the second, and so on."""
    keys = [ordered(column) for column in columns]
    order = np.arange(len(keys[0]))
    if are_in_order(keys):  # as an index has the rows of a key of numbers
        return order
    for key in reversed(keys):
        order = order[np.argsort(key[order], kind="stable")]
    return order


def are_in_order(keys: Sequence[Column]) -> bool:
    """Return whether rows ascend by the first column, then the second, and so on, in linear time.

    >>> are_in_order([np.array([1, 1, 2]), np.array([3, 4, 0])]), are_in_order([np.array([1, 1]), np.array([4, 3])])
    (True, False)
    """
    tied = np.ones(len(keys[0][1:]), np.bool_)
    for key in keys:
        if (tied & (key[:-1] > key[1:])).any():
            return False
        tied &= key[:-1] == key[1:]
        if not tied.any():
            break
    return True


def is_untyped(column: Column) -> bool:
    """Return whether a column has nulls alone, which have no type of their own."""
    return is_opaque(column) and len(column) > 0 and bool(is_null(column).all())


def is_opaque(column: Column) -> bool:
    """Return whether a column holds lists or dicts."""
    return isinstance(column, Typed) and column.type.name == "value"


def _is_class(values: Any) -> bool:
    """Return whether what is given for a column is a class, or classes joined by `|`."""
    return isinstance(values, type) or get_origin(values) in (Union, UnionType)


def _is_type(values: Any, name: str) -> bool:
    """Return whether what is given for a column is a type, or an empty column of one."""
    if _is_class(values):
        return True
    if not hasattr(values, "__len__") or len(values):
        return False
    column = plain(values, name)
    return isinstance(column, Typed) or (isinstance(column, np.ndarray) and is_stated(column))


def refuse_names_of_types(table: str, data: Any) -> None:
    """Raise SessionError for columns whose values are all names of types, such as "int", which would be a row of text.

    >>> refuse_names_of_types("people", {"id": "int", "name": "text?"})
    Traceback (most recent call last):
    timely.errors.SessionError: table 'people' (at ...): 'int' is text, and {'id': int, 'name': str | None} are the
    columns and their types; ['int'] is a column of one row
    """
    values = [*data.values()] if isinstance(data, Mapping) else []
    types = [type_written(value) if isinstance(value, str) else None for value in values]
    if values and None not in types:
        shown = ", ".join(f"{name!r}: {of}" for name, of in zip(data, types))
        frames = " with typed of differential.frames" if "typed(" in shown else ""
        raise SessionError(
            f"table {table!r} (at {user_origin()}): {values[0]!r} is text, and {{{shown}}} are the columns and their "
            f"types{frames}; [{values[0]!r}] is a column of one row"
        )


def type_written(name: str) -> str | None:
    """Return how a program writes the type of a column of this name; None if there is no such type.

    >>> [type_written(name) for name in ("int", "int64", "text?", "datetime", "BIGINT", "decimal(9, 2)", "Rome")]
    ['int', 'int', 'str | None', 'datetime.datetime', 'int', "typed([], 'decimal(9, 2)')", None]
    """
    nulls = " | None" if name.endswith("?") else ""
    plain = name.removesuffix("?")
    known = next((of for of, stands in NAMES.items() if plain in (stands, of.__name__)), _ELSEWHERE.get(plain.lower()))
    if known is not None:
        return f"{_written(known)}{nulls}"
    try:
        typed([], name)
    except DataError:
        return None
    return f"typed([], {name!r})"


def _given(
    data: Any, names: Sequence[str] | None, types: Mapping[str, str] = MappingProxyType({})
) -> Mapping[str, Any]:
    """Return what is given for each column, by name."""
    if isinstance(data, Mapping):
        names_of(data)
        return data
    # Before lists of rows: a named tuple is a tuple.
    if is_row(data):
        return _of_rows([data], names)
    if isinstance(data, (list, tuple)):
        return _of_rows(data, names)
    if isinstance(data, (int, float, bytes)) or data is None:
        raise SessionError(
            f"{type(data).__name__} is not a table: give a dictionary of columns, a list of rows, a frame of pandas or "
            "Polars, an Arrow table, or the path of a file"
        )
    if isinstance(data, type):
        raise SessionError(
            f"the class {data.__name__} is not a table: db.table(name, {_fields_of(data)}) makes one with its columns, "
            f"and insert([{data.__name__}(...)]) adds rows"
        )
    if callable(data):
        raise SessionError("a function is not a table: db.ask(function) returns rows, which insert and delete take")
    found, columns = columns_of_data(data, types)
    given = found or names or [f"c{place}" for place in range(len(columns))]
    frame = Frame(given, [_of_nulls(each) for each in columns])
    are_typed = [len(frame) > 0 or not isinstance(each, list) for each in columns]
    return {name: column if is_typed else [] for name, column, is_typed in zip(frame.names, frame.columns, are_typed)}


def is_row(data: Any) -> bool:
    """Return whether data is one named tuple, or one instance of a dataclass."""
    is_named = isinstance(data, tuple) and hasattr(data, "_fields")
    return is_named or (is_dataclass(type(data)) and not hasattr(data, "__arrow_c_stream__"))


def _fields_of(of: type) -> str:
    """Return how a program writes the columns and types of a class with annotations.

    >>> _fields_of(type("Order", (), {"__annotations__": {"id": int, "city": str | None}}))
    "{'id': int, 'city': str | None}"
    """
    try:
        hints = get_type_hints(of)
    except Exception:  # an annotation is a text, and names what exists nowhere
        hints = dict(getattr(of, "__annotations__", {}))
    fields = [f"{name!r}: {_written(hint)}" for name, hint in hints.items()]
    return "{" + ", ".join(fields or ["'column': int", "..."]) + "}"


def _written(hint: Any) -> str:
    """Return how a program writes a class, or classes joined by `|`."""
    if get_origin(hint) in (Union, UnionType):
        return " | ".join("None" if each is NoneType else _written(each) for each in get_args(hint))
    if isinstance(hint, type):
        return hint.__name__ if hint.__module__ == "builtins" else f"{hint.__module__}.{hint.__name__}"
    return str(hint)


def _of_nulls(column: Any) -> Any:
    """Return a list of nulls alone as a column, and any other column as it is."""
    is_untyped = isinstance(column, list) and column and all(value is None for value in column)
    return typed(column, "value") if is_untyped else column


def _of_rows(rows: Sequence[Any], names: Sequence[str] | None) -> Mapping[str, Any]:
    kinds = set(map(type, rows))
    if rows and all(issubclass(kind, Mapping) for kind in kinds):
        found = names_of(dict.fromkeys(name for row in rows for name in row))  # a field that a row lacks is null
        if not found:
            raise SessionError(f"{rows!r:.80} has no values: a row is a dictionary of values by the names of columns")
        return {name: [row.get(name) for row in rows] for name in found}
    if any(hasattr(kind, "_fields") for kind in kinds):
        if len({getattr(kind, "_fields", None) for kind in kinds}) > 1:
            raise SessionError(f"{rows!r:.80} has named tuples beside other rows: give all rows the same names")
        return {name: list(map(itemgetter(place), rows)) for place, name in enumerate(rows[0]._fields)}
    if rows and is_dataclass(rows[0]) and not isinstance(rows[0], type):
        fields, columns = columns_of_rows(rows)
        return dict(zip(fields or (), columns))
    if names is None:
        raise SessionError("rows that are tuples need names of columns: give a dictionary of columns instead")
    if not all(issubclass(kind, (tuple, list)) for kind in kinds) or set(map(len, rows)) - {len(names)}:
        row = next(row for row in rows if not isinstance(row, (tuple, list)) or len(row) != len(names))
        is_one = len(rows) == len(names) and not any(issubclass(kind, (tuple, list)) for kind in kinds)
        one = f"; [{tuple(rows)!r:.80}] is a list of one row" if is_one else ""
        raise SessionError(f"{row!r:.80} is not a row of the {len(names)} column(s) {', '.join(names)}{one}")
    return {name: list(map(itemgetter(place), rows)) for place, name in enumerate(names)}


def _column(name: str, values: Any) -> Column:
    # By `type`: a masked array is an array that may have nulls, and a bool is an int.
    if type(values) is np.ndarray and values.dtype is _INT64 and values.ndim == 1:
        return values
    if type(values) is int and -_MOST <= values < _MOST:
        return np.array([values])
    values = plain(values, name)
    if isinstance(values, Typed):
        return cast(Column, values)
    if _is_class(values):
        return _empty(name, values)
    if isinstance(values, np.ndarray) and values.dtype.kind == "O" and values.ndim == 1 and not is_stated(values):
        values = values.tolist()
    values = with_none(values) if isinstance(values, list) else with_none([values])[0]
    try:
        if values is None:
            return cast(Column, typed([None], "value"))
        if isinstance(values, list) and values and all(value is None for value in values):
            return cast(Column, typed(values, "value"))
        if isinstance(values, _ROW_VALUES):
            return column_of([values], name)
        if hasattr(values, "to_numpy") or isinstance(values, (list, np.ndarray)):
            return column_of(values, name)
        return as_columns((np.atleast_1d(as_column(values)),))[0]
    except DataError as error:
        if _is_other_type(values):
            raise _no_type(name, values) from None
        raise DataError(f"column {name!r}: {str(error).removeprefix(f'column {name!r}: ')}") from None


_INT64 = np.dtype(np.int64)
_MOST = 1 << 63
_ROW_VALUES = (dt.date, dt.time, dt.timedelta, Decimal, dict, np.datetime64, np.timedelta64)
"""Classes of single values that NumPy treats differently, or does not know. Those of pandas derive from these."""


def _empty(name: str, of: Any) -> Column:
    """Return a column without rows of the type that a class of Python stands for."""
    classes = set(get_args(of)) if get_origin(of) in (Union, UnionType) else {of}
    stands = [NAMES[each] for each in classes - {NoneType} if each in NAMES]
    if len(stands) != 1 or len(classes - {NoneType}) != 1:
        raise _no_type(name, of)
    nullable = NoneType in classes and stands[0] in _PLAIN
    return cast(Column, typed([], f"{stands[0]}?" if nullable else stands[0]))


def _is_other_type(value: Any) -> bool:
    """Return whether a value is a type that is not a class: `list[int]`, or one of NumPy, pandas, Polars or Arrow.

    >>> _is_other_type(list[int]), _is_other_type(np.dtype("int64")), _is_other_type(3)
    (True, True, False)
    """
    classes = [each for each in type(value).__mro__ if each.__module__.partition(".")[0] in _LIBRARIES]
    return get_origin(value) is not None or any(each.__name__.lower().endswith("type") for each in classes)


_LIBRARIES = ("numpy", "pandas", "polars", "pyarrow")


def _no_type(name: str, of: Any) -> SessionError:
    """Return the error for what is given as the type of a column, and is not one here."""
    shown = of.__name__ if isinstance(of, type) else of
    return SessionError(
        f"column {name!r}: {shown} is not a column type: use {', '.join(each.__name__ for each in NAMES)}, one of "
        "them `| None`, or typed([], 'decimal(18, 2)') of differential.frames for any other type"
    )


_PLAIN = ("int64", "float64", "bool", "text", "bytes")
"""The types that hold nulls only where their names end in "?"."""
