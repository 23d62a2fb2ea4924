"""Give a table of a session event times: its clock, and the tables of late changes and of the watermark beside it."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any

import numpy as np

from differential.collection import Collection
from differential.data.ticks import Duration, count_of, ticks
from differential.data.updates import Updates
from differential.operators.linear import linear
from differential.session.building import install
from differential.session.catalog import Catalog
from differential.session.clock import Clock, seconds
from differential.session.definition import Tables
from differential.session.item import Item
from differential.session.site import Site
from differential.session.table_data import Column, columns_of
from differential.session.transaction import Kind, RowStatement
from timely.errors import DataError, SessionError
from timely.lowlevel import typed, user_origin


def begin(catalog: Catalog, item: Item, column: str, lateness: Duration | None, idle: dt.timedelta | None) -> Clock:
    """Give a table event times, and return its clock.

    In a durable session the watermark and the late changes of earlier runs are taken over. Raises SessionError if the
    table already has event times, if the column cannot hold them, or if `lateness` or `idle` is not valid.
    """
    with catalog.exclusive():
        catalog.check(item)
        where, names = f"event_time (at {user_origin()})", item.names or ()
        if item in catalog.clocks.all:
            raise SessionError(f"{item} already has event times, in column {item.event_time!r}")
        if column not in names:
            raise SessionError(
                f"{where}: {item} has no column {column!r}: the columns are {', '.join(item.columns(0))}"
            )
        types = item.schema.types()
        if unknown := [name for name in names if name not in types]:
            raise SessionError(
                f"{where}: the type of column {unknown[0]!r} of {item} is not known yet: state it, as in "
                f"db.table({item.name!r}, {{{unknown[0]!r}: int, ...}})"
            )
        columns: dict[str, Any] = {name: typed([], types[name]) for name in names}
        like = columns[column]
        try:
            ticks(like)
            late_by = None if lateness is None else count_of(lateness, like)
        except DataError as error:
            raise SessionError(f"{where}: column {column!r} of {item}: {error}") from None
        if late_by is not None and late_by < 0:
            raise SessionError(f"{where}: lateness must not be negative, and is {lateness!r}")
        patience = seconds(idle)
        known = None if catalog.storage is None else catalog.storage.tables[item.name].event_time
        if known not in (None, column) and f"{item.name}_watermark" in catalog.items:
            raise SessionError(
                f"{where}: {item} is durable with event times in column {known!r}, by which it has a watermark: "
                f"db.drop({item.name + '_watermark'!r}) forgets the watermark"
            )
        if "change" in columns:
            raise SessionError(
                f"{where}: {item} has a column 'change', the name of a column of its table of late changes: rename it"
            )
        # Before any is made: a call that fails makes neither table, so it can be repeated.
        for name in (f"{item.name}_late", f"{item.name}_watermark"):
            if name in catalog.items and name not in catalog.unused:
                raise SessionError(
                    f"{where}: the event times of {item} need a table {name!r}, and there is already a "
                    f"{catalog.items[name]}: db.drop({name!r}) drops it"
                )
        text = np.array([], np.dtypes.StringDType())
        late = _table(catalog, f"{item.name}_late", {**columns, "change": text}, item)
        watermark = _table(catalog, f"{item.name}_watermark", {"watermark": like}, None)
        clock = Clock(item, names.index(column), like, late_by, patience, late, watermark, user_origin())
        marks = catalog.read(watermark).arrays()  # one row at most: a commit replaces it
        clock.mark = int(ticks(marks[0]).max()) if marks and len(marks[0]) else None
        if catalog.storage is not None:
            catalog.storage.note(item.name, event_time=column)
        item.event_time = column
        catalog.clocks.add(clock)
        return clock


def expired(catalog: Catalog, clock: Clock, before: Any) -> None:
    """Remove, with the next commit, the rows of a table before a time that the watermark has passed.

    Raises SessionError if the watermark has not passed it, or if this transaction already makes rows expire.
    """
    item = clock.item
    with catalog.exclusive():
        _, values = columns_of({"before": before}, None)
        if len(values[0]) != 1:
            raise SessionError(f"expire (at {user_origin()}) takes one time, not {before!r:.80}")
        (limits,) = clock.watermark.schema.fit(clock.watermark.name, ("watermark",), values)
        limit = int(ticks(limits)[0])
        if clock.mark is None or limit > clock.mark:
            raise SessionError(
                f"expire (at {user_origin()}): rows of {item} expire once the watermark has passed them, but it is "
                f"{clock.value(clock.mark)}, before {before}"
            )
        if any(each.kind is Kind.EXPIRE for each in catalog.stated(item)):
            raise SessionError(f"expire (at {user_origin()}): this transaction already makes rows of {item} expire")
        # Nothing changes these rows before they go: all other changes before the watermark are late.
        for columns, counts in catalog.engine.call(Site.read_before, _index(catalog, clock), limit):
            if len(counts):
                rows = tuple(column.repeat(counts) for column in columns)
                catalog.state(item, RowStatement(Kind.EXPIRE, rows, user_origin()))


def _index(catalog: Catalog, clock: Clock) -> Item:
    """Return the index by event time of a table, which the first call makes."""
    item = clock.item
    if clock.index is None or clock.index.error is not None:
        index = Item(f"{item.name} by event time", "index", user_origin(), catalog.engine.workers)
        definition = partial(_by_time, item.name, clock.place)
        install(catalog.engine, index, Site.add_view, (index, definition, {item.name: item}))
        clock.index = index
    return clock.index


def _by_time(name: str, place: int, tables: Tables) -> Collection:
    """Define the rows of a table by their event times, counted in the unit of the column."""

    def counted(updates: Updates) -> Updates:
        return updates.with_columns((ticks(updates.columns[place]), *updates.columns))

    return linear(Collection(tables[name].stream, 1), counted, keys=1, name="by event time")


def _table(catalog: Catalog, name: str, columns: dict[str, Column], like: Item | None) -> Item:
    """Return a table with these columns, and with the key and the order of `like`.

    In a durable session, this is the table of an earlier run if there is one.
    """
    keys = 1 if like is None else like.keys
    names = tuple(columns)
    if catalog.storage is not None:
        from differential.session.restoring import adopted

        known = adopted(catalog, name, columns, {}, names[:keys], {})
        if known is not None:
            return known
    shown = None if like is None or like.shown is None else (*like.shown, len(like.shown))
    item = Item(name, "table", user_origin(), catalog.engine.workers, names, shown, keys)
    for each, column in columns.items():
        item.schema.declare(each, column)
    catalog.add_table(item, columns)
    return item
