"""Attach sinks to tables and views."""

from __future__ import annotations

import numpy as np

from differential.session.catalog import Catalog
from differential.session.changes import Change
from differential.session.item import Item
from differential.session.sinks.delivery import Delivery, Existing
from differential.session.sinks.sink import Outlet, Sink
from differential.session.table_data import ordered
from timely.errors import SessionError
from timely.lowlevel import name_of, starts_of_runs

NOT_ATTACHED = "the sink is not attached: call write_to() again once it can be written to"


def written(catalog: Catalog, item: Item, sink: Sink, patience: float, existing: Existing) -> Delivery:
    """Attach a sink, so that commits write their changes; return the delivery once the sink is up to date."""
    if existing not in ("stop", "replace"):
        raise SessionError(f"existing is 'stop' or 'replace', not {existing!r:.80}")
    if not isinstance(patience, (int, float)) or not patience >= 0:
        raise SessionError(f"patience is a number of seconds, not {patience!r:.80}")

    def contents() -> list[Change]:
        values = catalog.read(item).arrays()
        if not values or not len(values[0]):
            return []
        starts = starts_of_runs([ordered(column) for column in values])  # of the distinct rows: `values` are sorted
        columns = tuple(column[starts] for column in values)
        counts = np.diff(np.append(starts, len(values[0])))
        return [Change(catalog.last, item.columns(len(columns)), columns, counts)]

    def outlet() -> Outlet:
        columns = None if item.names is None else item.columns(len(item.names))
        empty = () if item.size else catalog.read(item).arrays()
        is_known = columns is not None and len(empty) == len(columns) and "value" not in map(name_of, empty)
        return Outlet(item.name, columns, empty if is_known else None)

    with catalog.exclusive():
        catalog.check(item)
        history = None if catalog.storage is None else catalog.storage.retained(item, sink.name)
        delivery = Delivery(sink, item, history, contents, outlet, patience, existing)
        is_published = history is not None and item.kind == "view"
        # Before the first attempt, which writes the rows as of `catalog.last`: the changes are those of later commits.
        changes = None if is_published else catalog.follow(item)
        catalog.deliveries.add(delivery, changes, catalog.last)
        try:
            error = delivery.deliver(catalog.last, lambda: catalog.engine.is_closing, NOT_ATTACHED)
            if error is not None:
                raise error
        except BaseException:
            catalog.deliveries.forget(delivery)
            raise
        return delivery


def forgotten(catalog: Catalog, item: Item, sink: str) -> None:
    """Stop writing to a sink of a table or view, and retain no commits for it."""
    with catalog.exclusive():
        for delivery, _ in catalog.deliveries.all:
            if delivery.item is item and delivery.name == sink:
                catalog.deliveries.forget(delivery)
        if catalog.storage is not None:
            catalog.storage.retained(item, sink).forget()
