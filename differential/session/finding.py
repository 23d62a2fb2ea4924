"""The rows of some keys of a table or view, read from its index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from differential.session.catalog import Catalog
from differential.session.item import Item, Share
from differential.session.rows import Rows
from differential.session.schema import as_type
from differential.session.site import Site
from differential.session.sources.convert import Converter, of_text
from differential.session.table_data import Column, columns_of
from differential.session.transaction import last_of_each
from timely.errors import DataError, SessionError
from timely.lowlevel import typed, user_origin


def found(catalog: Catalog, item: Item, key: Mapping[str, Any]) -> Rows:
    """Return the rows of an item that have one of some keys, given by the names of the key's columns."""
    catalog.check(item)
    where, names = f"find on {item} (at {user_origin()})", key_of(item)
    if set(key) != set(names):
        raise SessionError(
            f"{where} takes values of the key, {_shown(names)}, and here are those of {_shown(key)}: "
            f"db.ask(lambda t: t[{item.name!r}].filter(lambda r: ...)) finds rows by other columns"
        )
    try:
        return _found(catalog, item, columns_of({name: key[name] for name in names}, None)[1])[0]
    except (DataError, SessionError) as error:
        raise type(error)(f"{where}: {error}") from None


def found_by_text(catalog: Catalog, item: Item, key: Mapping[str, Sequence[str]]) -> tuple[Rows, int]:
    """Return the rows of an item that have one of some keys, whose values are texts, and the number of the last commit.

    Raises DataError where the columns are not those of the key, or a text is not a value of its column.
    """
    catalog.check(item)
    names = key_of(item)
    if set(key) != set(names) or len(set(map(len, key.values()))) > 1:
        raise DataError(
            f"{item} has the key {_shown(names)}: give as many values of each of these columns, and of no other"
        )
    types = next(filter(None, catalog.engine.call(key_types, item)), ("text",) * len(names))
    texts = [key[name] for name in names]
    columns, wrong = Converter(names, types, of_text).convert(texts, len(texts[0]))
    if wrong:
        raise DataError(wrong[min(wrong)])
    return _found(catalog, item, tuple(columns))


def key_of(item: Item) -> tuple[str, ...]:
    """Return the names of the columns of an item's key."""
    return (item.names or item.columns(item.keys))[: item.keys]


def key_types(site: Site, item: Item) -> tuple[str, ...]:
    """Return the names of the types of the columns of an item's key, as far as rows on a worker have shown them."""
    part = site.part(item)
    return part.trace.cursor(part.at).key_types


def find(site: Site, item: Item, names: tuple[str, ...], key: tuple[Column, ...]) -> tuple[int, Share]:
    """Return the last commit, and a worker's rows of an item that have one of some keys, no two of which are equal."""
    part = site.part(item)
    cursor = part.trace.cursor(part.at)
    if not cursor.key_types:
        return site.epoch, Share((), part.trace.contents(part.at).counts)
    columns = []
    for name, column, of in zip(names, key, cursor.key_types):
        try:
            columns.append(as_type(column, of) if len(column) else typed([], of))
        except DataError as error:
            raise DataError(f"column {name!r} {error}") from None
    place, values, counts = cursor[tuple(columns) if len(columns) > 1 else columns[0]]
    return site.epoch, Share((*(column[place] for column in columns), *values), counts)


def _found(catalog: Catalog, item: Item, columns: tuple[Column, ...]) -> tuple[Rows, int]:
    once = last_of_each(columns)
    commits, shares = zip(*catalog.engine.call(find, item, key_of(item), tuple([column[once] for column in columns])))
    return item.rows(list(shares)), commits[0]


def _shown(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "no column"
