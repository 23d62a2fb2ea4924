"""How a session continues what an earlier one made durable: its tables at once, its views when they are defined."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from differential.data.codes import kind_of, type_name
from differential.durable import kinds
from differential.durable.store import Stores
from differential.session.catalog import Catalog
from differential.session.item import Item, readers
from differential.session.kept import Kept
from differential.session.site import Site
from differential.session.storage import SessionStorage
from differential.session.table_data import Column
from differential.session.transaction import Net
from timely.errors import DataError, SessionError
from timely.lowlevel import user_origin


def restore(catalog: Catalog, where: str | os.PathLike[str] | Stores, keep: int | str | None) -> None:
    """Make the tables of a session durable, and build those that exist already."""
    storage = SessionStorage(where, keep)
    catalog.storage, catalog.last = storage, storage.last
    # Before there are tables: their rows are as of this commit.
    catalog.engine.call(Site.begin_at, storage.last)
    for name, kept in storage.tables.items():
        catalog.fill_table(*_table(catalog, storage, name, kept))


def adopted(
    catalog: Catalog,
    name: str,
    columns: Mapping[str, Column],
    declared: Mapping[str, Column],
    key: Sequence[str],
    added: Mapping[str, Any],
    has_key: bool = False,
) -> Item | None:
    """Return the table of an earlier session that the program names now; None if it is a new one.

    It has more columns than before, if `added` has their values in the existing rows. `declared` are empty
    columns of those whose types the program states, and `has_key` is whether it names the key. Raises SessionError if
    the table has other columns, or other types.
    """
    storage = catalog.storage
    if storage is None:
        return None
    with catalog.exclusive():  # a commit of another thread compares what is noted of all tables with the disk
        if name not in storage.unused:
            return None
        kept = storage.tables[name]
        durable = {each: type_name(kind_of(example)) for each, example in storage.examples(name).items()}
        _refuse_others(name, kept, columns, key)
        _refuse_other_types(name, durable, declared)
        if more := _more(name, kept, columns, added):
            _widen(catalog, storage, name, more)
        storage.unused.discard(name)
        item, places = catalog.items[name], storage.tables[name].columns
        for each, column in declared.items():
            if each not in durable:
                item.schema.declare(each, column)
        if item.shown != (shown := tuple(map(places.index, columns))):
            for sink in _sinks(catalog, item):
                where = f"{item} (at {user_origin()})"
                raise SessionError(f"{where} cannot be given another order of columns: {sink}; call db.table() first")
            item.shown = shown  # in which rows without names are to be read, too
            storage.note(name, shown=shown)
        if has_key and not item.has_key:  # an earlier session has left it to the first column
            item.has_key = True
            storage.note(name, has_key=True)
        return item


def _refuse_others(name: str, kept: Kept, columns: Mapping[str, Column], key: Sequence[str]) -> None:
    """Raise SessionError if a durable table has columns that the program does not name, or another key."""
    if not set(kept.columns) <= set(columns) or kept.columns[: kept.keys] != tuple(key):
        raise SessionError(
            f"table {name!r} is durable with the columns {', '.join(kept.columns)} and the key "
            f"{', '.join(kept.columns[: kept.keys])}, not {', '.join(columns)} and {', '.join(key)}: take these, "
            f"or db.drop({name!r}) first"
        )


def _refuse_other_types(name: str, durable: Mapping[str, str], declared: Mapping[str, Column]) -> None:
    """Raise SessionError if the program states another type than a column of a durable table has."""
    for each, column in declared.items():
        stated = type_name(kind_of(column))
        if durable.get(each, stated) != stated:
            raise SessionError(
                f"column {each!r} of table {name!r} is durable with the type {durable[each]}, not {stated}: state "
                f"the type that it has, or db.drop({name!r}) first"
            )


def _more(
    name: str, kept: Kept, columns: Mapping[str, Column], added: Mapping[str, Any]
) -> dict[str, tuple[Column, Any]]:
    """Return the columns that a durable table is to be given, and the values in its rows.

    Raises SessionError if a value is missing, or if there is one for a column that the table does not have.
    """
    more = {each: (column, added.get(each)) for each, column in columns.items() if each not in kept.columns}
    missing = [each for each in more if each not in added]
    if missing:
        raise SessionError(
            f"table {name!r} is durable without {', '.join(map(repr, missing))}: added={{{missing[0]!r}: value}} gives "
            "that value to the existing rows"
        )
    if unknown := [each for each in added if each not in columns]:
        raise SessionError(f"added= has values of {unknown[0]!r}, but table {name!r} has no such column")
    return more


def _widen(catalog: Catalog, storage: SessionStorage, name: str, more: Mapping[str, tuple[Column, Any]]) -> None:
    """Give a table more columns, and its table of late changes, too: an example of each, and the value in its rows.

    Each of the two is built again. So SessionError is raised, before anything changes, if the program uses one already.
    """
    for column, (example, value) in more.items():
        try:
            kinds.filled(kinds.kind_of(example), value, 1)
        except DataError as error:
            where = f"added= of table {name!r} (at {user_origin()})"
            raise SessionError(f"{where} has no value for column {column!r}: {error}") from None
    with catalog.exclusive():
        late = [each for each in storage.beside(name) if each != f"{name}_watermark"]
        tables = [*late, name]  # the table itself last, so that nothing is half done
        if uses := [use for each in tables for use in _uses(catalog, catalog.items[each])]:
            raise SessionError(
                f"table {name!r} (at {user_origin()}) cannot be given the column {next(iter(more))!r} once the program "
                f"uses the table: {', '.join(uses)}; call db.table({name!r}, ..., added=...) first"
            )
        for each in tables:
            known = storage.tables[each].columns
            storage.add_columns(each, {column: of for column, of in more.items() if column not in known})
            catalog.rebuild_table(*_table(catalog, storage, each, storage.tables[each]))


def _uses(catalog: Catalog, item: Item) -> Iterator[str]:
    """Yield what the program has done with a table that another one in its place would lack, with its lines."""
    for view in readers(item, catalog.items):
        yield f"{view} (at {view.origin}) reads {item}"
    for kind, origin in dict.fromkeys((each.kind.value, each.origin) for each in catalog.stated(item)):
        yield f"{kind} (at {origin}) of {item} is not committed"
    for feed in catalog.feeds.all:
        if item in (feed.item, feed.rejects) and not feed.is_over:
            yield f"{feed} fills {item}"
    yield from _sinks(catalog, item)
    if (clock := catalog.clocks.all.get(item)) is not None:
        yield f"{item} has event times (at {clock.origin})"
    for follower in item.followed():
        yield f"{follower.made_by} (at {follower.origin}) follows {item}"


def _sinks(catalog: Catalog, item: Item) -> Iterator[str]:
    """Yield the sinks that receive what commits change in a table."""
    for delivery, _ in catalog.deliveries.all:
        if delivery.item is item and not delivery.is_over:
            yield f"{delivery} is attached"


def keep_view(catalog: Catalog, item: Item) -> None:
    """Make a new view of a durable session durable, too. If that fails, there is no such view."""
    storage = catalog.storage
    assert storage is not None
    with catalog.exclusive():
        try:
            # Before the rows are read, so that nothing is between the two. The lock keeps commits away.
            changes = catalog.follow(item)
            values = catalog.read(item).arrays()
            contents = Net(values, np.ones(len(values[0]), np.int64)) if values and len(values[0]) else None
            storage.follow(item, changes, contents)
        except BaseException:
            catalog.withdraw(item)
            raise


def _table(catalog: Catalog, storage: SessionStorage, name: str, kept: Kept) -> tuple[Item, Net | None]:
    """Return a durable table that is to be built, and its rows."""
    workers = catalog.engine.workers
    item = Item(name, "table", user_origin(), workers, kept.columns, kept.shown, kept.keys, kept.has_key)
    for column, example in storage.examples(name).items():
        item.schema.declare(column, example)
    rows = storage.rows(name)
    for column, values in zip(kept.columns, () if rows is None else rows.columns):
        item.schema.learn_lists(column, values)
    return item, rows
