"""How a session continues what an earlier one made durable: its tables at once, its views when they are defined."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from differential.data.codes import kind_of
from differential.durable.places import Place
from differential.session.catalog import Catalog
from differential.session.item import Item
from differential.session.kept import Kept
from differential.session.schema import type_name
from differential.session.site import Site
from differential.session.storage import Storage
from differential.session.table_data import Column
from differential.session.transaction import Net
from timely.errors import SessionError
from timely.lowlevel import user_origin


def restore(catalog: Catalog, where: str | os.PathLike[str] | Place, keep: int | str | None) -> None:
    """Let the tables of a session be durable, and build those that are there already."""
    storage = Storage(where, keep)
    catalog.storage, catalog.last = storage, storage.last
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
) -> Item | None:
    """Return the table of an earlier session that the program names now; None if it is a new one.

    It has more columns than before, if `added` has their values in the rows that are there. `declared` are empty
    columns of those whose types the program states. Raises SessionError if it has other columns, or other types.
    """
    storage = catalog.storage
    if storage is None or name not in storage.unused:
        return None
    kept = storage.tables[name]
    if not set(kept.columns) <= set(columns) or kept.columns[: kept.keys] != tuple(key):
        raise SessionError(
            f"table {name!r} is durable with the columns {', '.join(kept.columns)} and the key "
            f"{', '.join(kept.columns[: kept.keys])}, and not {', '.join(columns)} and {', '.join(key)}: take these, "
            f"or db.drop({name!r}) first"
        )
    durable = {each: type_name(kind_of(example)) for each, example in storage.examples(name).items()}
    for each, column in declared.items():
        stated = type_name(kind_of(column))
        if durable.get(each, stated) != stated:
            raise SessionError(
                f"column {each!r} of table {name!r} is durable with the type {durable[each]}, and not {stated}: state "
                f"the type that it has, or db.drop({name!r}) first"
            )
    more = {each: (column, added.get(each)) for each, column in columns.items() if each not in kept.columns}
    missing = [each for each in more if each not in added]
    if missing:
        raise SessionError(
            f"table {name!r} is durable without {', '.join(map(repr, missing))}: added={{{missing[0]!r}: value}} gives "
            "that value to the rows that are there"
        )
    if unknown := [each for each in added if each not in columns]:
        raise SessionError(f"added= has values of {unknown[0]!r}, but table {name!r} has no such column")
    storage.unused.discard(name)
    for each in (*storage.beside(name), name) if more else ():  # the table itself last, so that nothing is half done
        if each != f"{name}_watermark":
            columns_of = storage.tables[each].columns
            storage.add_columns(each, {column: of for column, of in more.items() if column not in columns_of})
            catalog.rebuild_table(*_table(catalog, storage, each, storage.tables[each]))
    item, places = catalog.items[name], storage.tables[name].columns
    for each, column in declared.items():
        if each not in durable:
            item.schema.declare(each, column)
    if item.shown != (shown := tuple(map(places.index, columns))):
        item.shown = shown  # in which rows without names are to be read, too
        storage.note(name, shown=shown)
    return item


def keep_view(catalog: Catalog, item: Item) -> None:
    """Make a new view of a durable session durable, too. If that fails, there is no such view."""
    storage = catalog.storage
    assert storage is not None
    with catalog.exclusive():
        try:
            changes = catalog.follow(item)
            values = catalog.read(item).arrays()
            contents = Net(values, np.ones(len(values[0]), np.int64)) if values and len(values[0]) else None
            storage.follow(item, changes, contents)
        except BaseException:
            catalog.withdraw(item)
            raise


def _table(catalog: Catalog, storage: Storage, name: str, kept: Kept) -> tuple[Item, Net | None]:
    """Return a durable table that is to be built, and its rows."""
    workers = catalog.engine.workers
    item = Item(name, "table", user_origin(), workers, kept.columns, kept.shown, kept.keys, kept.has_key)
    for column, example in storage.examples(name).items():
        item.schema.declare(column, example)
    rows = storage.rows(name)
    for column, values in zip(kept.columns, () if rows is None else rows.columns):
        item.schema.learn_lists(column, values)
    return item, rows
