"""The rows of some keys of a table or view, read from its index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from differential.session.catalog import Catalog
from differential.session.item import Item, Share
from differential.session.rows import Rows
from differential.session.schema import as_type
from differential.session.site import Site
from differential.session.table_data import Column, columns_of
from differential.session.transaction import last_of_each
from timely.errors import DataError, SessionError
from timely.lowlevel import typed, user_origin


def found(catalog: Catalog, item: Item, key: Mapping[str, Any]) -> Rows:
    """Return the rows of an item that have one of some keys, given by the names of the key's columns."""
    catalog.check(item)
    where = f"find on {item} (at {user_origin()})"
    names = (item.names or item.columns(item.keys))[: item.keys]
    if set(key) != set(names):
        raise SessionError(
            f"{where} takes values of the key, {_shown(names)}, and here are those of {_shown(key)}: "
            f"db.ask(lambda t: t[{item.name!r}].filter(lambda r: ...)) finds rows by other columns"
        )
    try:
        columns = columns_of({name: key[name] for name in names}, None)[1]
        shares = catalog.engine.call(find, item, names, tuple([column[last_of_each(columns)] for column in columns]))
    except (DataError, SessionError) as error:
        raise type(error)(f"{where}: {error}") from None
    return item.rows(shares)


def find(site: Site, item: Item, names: tuple[str, ...], key: tuple[Column, ...]) -> Share:
    """Return a worker's rows of an item that have one of some keys, no two of which are equal."""
    part = site.part(item)
    cursor = part.trace.cursor(part.at)
    if not cursor.key_types:
        return Share((), part.trace.contents(part.at).counts)
    columns = []
    for name, column, of in zip(names, key, cursor.key_types):
        try:
            columns.append(as_type(column, of) if len(column) else typed([], of))
        except DataError as error:
            raise DataError(f"column {name!r} {error}") from None
    place, values, counts = cursor[tuple(columns) if len(columns) > 1 else columns[0]]
    return Share((*(column[place] for column in columns), *values), counts)


def _shown(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "no column"
