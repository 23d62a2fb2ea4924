"""What a definition receives: the tables and views of a session, by name, in the dataflow that is being built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from differential.arrangement.core import records_of
from differential.collection import Collection
from differential.operators.join import semijoin
from differential.session.clock import sources
from differential.session.item import Item
from differential.session.near import meant
from differential.session.relation import IndexedRelation, Relation
from differential.session.windows import WINDOW
from timely import Scope
from timely.errors import SessionError
from timely.lowlevel import user_origin


class Tables:
    """The tables and views of a session: `t.orders`, or `t["orders"]` for any name.

    Each is a `Relation` over the index that the session keeps: nothing is copied. `reads` are those that were used.

    >>> from differential.session import Session
    >>> from differential.graphs import reachability
    >>> with Session() as db:
    ...     _ = db.table("follows", {"src": ["ann", "bob"], "dst": ["bob", "cem"]})
    ...     print(db.commit())
    ...     print(db.ask(lambda t: t.named(reachability(t.follows, t.constant("bob")), "person", "origin")))
    1
    person  origin
    bob     bob
    cem     bob
    """

    def __init__(self, scope: Scope, items: Mapping[str, Item]) -> None:
        self.scope = scope
        """The outermost scope of the dataflow that is being built."""
        self._items = items
        self._made: dict[str, Relation] = {}
        self.reads: dict[str, Item] = {}

    def constant(self, *columns: Any, keys: int = 1) -> Relation:
        """Return a collection that holds the given record, or rows of columns (see `Collection.of`)."""
        return Relation.of(self.scope, *columns, keys=keys)  # type: ignore[return-value]

    def named(self, collection: Collection, *names: str) -> Relation:
        """Return any collection of this dataflow with names of columns (see `Relation.named`)."""
        made = records_of(collection)
        relation = made if isinstance(made, Relation) else Relation(made.stream, made.keys)
        return relation.named(*names)

    def watermark(self, *tables: str) -> Relation:
        """Return the watermarks of tables with event times, as records (table, watermark).

        By default these are the tables that the definition has used so far, directly or through views. Raises
        SessionError if none of them has event times.

        >>> from differential.session import Session
        >>> with Session() as db:
        ...     visits = db.table("visits", {"minute": int}).event_time("minute", lateness=5)
        ...     visits.insert(minute=[30, 64])
        ...     print(db.commit(), db.ask(lambda t: t.watermark("visits")).records())
        1 [('visits', 59)]
        """
        marks = self._watermarks(tables)

        def of(name: str) -> Any:
            return lambda mark: (np.full(len(mark), name, np.dtypes.StringDType()), mark)

        first, *others = [self[mark].map(of(table), name="watermark") for table, mark in marks]
        return first.concat(*others).named("table", "watermark")

    def final(self, windows: Relation, *tables: str) -> Relation:
        """Return the rows whose `window_end` is at or before the watermark: no later commit changes these windows.

        The watermark is the least of those of `tables`, by default of all tables that the definition has used so far.
        Raises SessionError if there is no column `window_end`, or no table with event times.

        >>> from differential.session import Session, tumbling
        >>> with Session() as db:
        ...     visits = db.table("visits", {"minute": int}).event_time("minute", lateness=5)
        ...     hourly = db.view("hourly", lambda t: t.visits.window(tumbling(60)).count())
        ...     visits.insert(minute=[30, 64])
        ...     print(db.commit(), db.ask(lambda t: t.final(t.hourly)).records())
        ...     visits.insert(minute=65)
        ...     print(db.commit(), db.ask(lambda t: t.final(t.hourly)).records())
        1 []
        2 [(0, 60, 1)]
        """
        if windows.names is None or WINDOW[1] not in windows.names:
            raise SessionError(f"final (at {user_origin()}): there is no column {WINDOW[1]!r}, which window() adds")
        names, keys, event_time = windows.names, windows.keys, windows.event_time
        by_end = windows.keyed_by(WINDOW[1])
        ends = by_end.select(WINDOW[1]).distinct().passed(self.watermark(*tables), len(self._watermarks(tables)))
        order = by_end.names or ()
        found = cast(Relation, semijoin(by_end, ends, name="final")).named(*order)
        return found.select(*names, keys=keys).at(event_time)  # as `windows` was: `keyed_by` had moved the end first

    def __getattr__(self, name: str) -> Relation:
        item = self._item(name)
        if self.scope.dataflow.built:
            raise SessionError(
                f"{item} is used in a function of rows (at {user_origin()}): join it to the collection whose rows the "
                f"function receives, as in join(t.{name}, on='column')"
            )
        if name in self._made:
            return self._made[name]
        part = item.parts[self.scope.index]
        if part is None or item.error is not None:
            raise SessionError(f"{item} was dropped") from item.error
        relation: Relation = IndexedRelation(*part.trace.imported(self.scope, None, name)).as_collection()
        if item.names is not None:
            relation = relation.named(*item.names).at(item.event_time)
            relation.declared, relation.types = item.columns(len(item.names)), item.schema.types()
        self.reads[name] = item
        self._made[name] = relation  # one import for all uses: what indexes it once is shared
        return relation

    def _watermarks(self, tables: tuple[str, ...]) -> list[tuple[str, str]]:
        """Return the names of tables with event times, by default of those used, each with that of its watermark."""
        used = {each for item in self.reads.values() for each in sources(item)}
        items = [self._item(name) for name in dict.fromkeys(tables)] or sorted(used, key=lambda item: item.name)
        marks = [(item.name, item.watermark) for item in items if item.watermark is not None]
        if not marks or (tables and len(marks) < len(items)):
            raise SessionError(
                f"there is no watermark (at {user_origin()}): {', '.join(map(str, items)) or 'the definition'} has no "
                "event times; db.table(...).event_time('column', lateness=...) states them"
            )
        return marks

    def _item(self, name: str) -> Item:
        item = self._items.get(name)
        if item is None:
            known = meant(name, self._items) or f"; there are {', '.join(sorted(self._items)) or 'none'}"
            raise AttributeError(f"there is no table or view {name!r}: {known.removeprefix('; ')}")
        return item

    def __getitem__(self, name: str) -> Relation:
        return self.__getattr__(name)

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._items]


def explain(tables: Tables, error: BaseException) -> None:
    """Extend the error of a definition that mistakes an attribute of `tables` for the table or view of that name."""
    if not isinstance(error, AttributeError):
        return
    made = getattr(error.obj, "__func__", error.obj)
    for name in (each for each in vars(Tables) | vars(tables) if each in tables):
        is_method = made is getattr(Tables, name, None)
        if is_method or made is getattr(tables, name):
            what = "a method" if is_method else "another attribute"
            error.args = (f"{error}: t.{name} is {what}, and t[{name!r}] is {tables._items[name]}",)
