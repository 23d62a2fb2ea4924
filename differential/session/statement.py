"""What a program states about a table: that rows are to be inserted, replaced or deleted.

The statement has the columns of the table, in their order, whatever the form in which the program gives the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from differential.session.item import Item
from differential.session.table_data import Column, columns_of
from differential.session.transaction import Kind, Statement
from timely.errors import SessionError
from timely.lowlevel import user_origin


def statement_of(item: Item, kind: Kind, data: Any, named: dict[str, Any]) -> Statement:
    """Return the statement of a program that gives rows as `data`, or as columns by name.

    Raises SessionError where a column is missing or unknown, or where rows are given in both ways or in none.
    """
    if (data is None) == (not named):
        raise SessionError(f"{kind.value} on {item} needs either data or columns by name")
    names = item.names or ()
    try:
        given, values = columns_of(named if data is None else data, item.columns(0))
    except SessionError as error:
        raise SessionError(f"{kind.value} on {item} (at {user_origin()}): {error}") from None
    key = names[: item.keys]
    wanted = names
    if kind is Kind.DELETE and set(given) == set(key) != set(names):
        kind, wanted = Kind.DELETE_KEYS, key
    elif kind is not Kind.DELETE and isinstance(data, (list, tuple)):
        given, values = _with_nulls(item, given, values)
    return Statement(kind, _spread(item, wanted, given, values), user_origin())


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
