"""What a program states about a table: that rows are to be inserted, replaced or deleted.

The statement has the columns of the table, in their order, whatever the form in which the program gives the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from differential.session.item import Item
from differential.session.table_data import Column, columns_of
from differential.session.transaction import Kind, RowStatement
from timely.errors import SessionError
from timely.lowlevel import user_origin


def statement_of(item: Item, kind: Kind, data: Any, named: dict[str, Any]) -> RowStatement:
    """Return the statement of a program that gives rows as `data`, or as columns by name.

    Raises SessionError where a column is missing or unknown, or where rows are given in both ways or in none.
    """
    if (data is None) == (not named):
        raise SessionError(f"{kind.value} on {item} needs either data or columns by name")
    names = item.names or ()
    data = named if data is None else data
    types = item.schema.types()
    lists = [name for name, of in types.items() if of == "value"]
    try:
        are_rows = isinstance(data, (list, tuple)) or (data is not named and _is_one_row(data, lists))
        data = _one_row(data, lists) if isinstance(data, Mapping) else data
        given, values = columns_of(data, item.columns(0), types)
    except SessionError as error:
        hint = "; a list of rows, as [(1, ['a'])], shows which lists are values" if lists else ""
        raise SessionError(f"{kind.value} on {item} (at {user_origin()}): {error}{hint}") from None
    key = names[: item.keys]
    wanted = names
    # If all columns belong to the key, a row is removed once: it is the whole row that is given.
    if kind is Kind.DELETE and set(given) == set(key) != set(names):
        kind, wanted = Kind.DELETE_KEYS, key
    elif kind is not Kind.DELETE and are_rows:
        given, values = _with_nulls(item, given, values)
    return RowStatement(kind, _spread(item, wanted, given, values), user_origin())


def _one_row(data: Mapping[str, Any], lists: Sequence[str]) -> Mapping[str, Any]:
    """Return data in which a list is the value of one row: of a column of lists, beside scalars.

    Where there are no scalars, a list of lists is a column.

    >>> _one_row({"id": 1, "tags": [["a"], None]}, ["tags"]), _one_row({"id": [1, 2], "tags": ["a", "b"]}, ["tags"])
    ({'id': 1, 'tags': [[['a'], None]]}, {'id': [1, 2], 'tags': ['a', 'b']})
    >>> _one_row({"tags": [["a"], None]}, ["tags"]), _one_row({"tags": ["a", "b"]}, ["tags"])
    ({'tags': [['a'], None]}, {'tags': [['a', 'b']]})
    """
    if not _is_one_row(data, lists):
        return data
    has_scalars = any(name not in lists for name in data)
    given = dict(data)
    for name in lists:
        value = data.get(name)
        if isinstance(value, (list, tuple)) and (has_scalars or _is_one(value)):
            given[name] = [value]
    return given


def _is_one_row(data: Any, lists: Sequence[str]) -> bool:
    """Return whether data is a dictionary with the values of one row. Those of columns of lists may be lists."""
    others = [value for name, value in data.items() if name not in lists] if isinstance(data, Mapping) else [[]]
    return not any(hasattr(value, "__len__") and not isinstance(value, (str, bytes)) for value in others)


def _is_one(value: Sequence[Any]) -> bool:
    """Return whether a list is a value, not a column of lists, dicts and nulls."""
    return not value or not all(item is None or isinstance(item, (list, tuple, dict, np.ndarray)) for item in value)


def _with_nulls(
    item: Item, given: tuple[str, ...], values: tuple[Column, ...]
) -> tuple[tuple[str, ...], tuple[Column, ...]]:
    """Return the names and columns of rows with nulls in place of the columns that no row has, where they may be."""
    absent = {name: item.schema.nulls(name, len(values[0])) for name in item.names or () if name not in given}
    nulls = {name: column for name, column in absent.items() if column is not None}
    return (*given, *nulls), (*values, *nulls.values())


def _spread(item: Item, wanted: Sequence[str], given: Sequence[str], values: Sequence[Column]) -> tuple[Column, ...]:
    """Return the wanted columns in order; raise SessionError unless the given ones are these."""
    if set(given) != set(wanted):
        wrong = [f"{name!r} missing" for name in wanted if name not in given]
        wrong += [f"{name!r} unknown" for name in given if name not in wanted]
        raise SessionError(
            f"{item} has the columns {', '.join(item.columns(0))}; here, {', '.join(wrong)} (at {user_origin()})"
        )
    return tuple(values[given.index(name)] for name in wanted)
