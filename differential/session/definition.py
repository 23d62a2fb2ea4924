"""What a definition receives: the tables and views of a session, by name, in the dataflow that is being built."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from differential.collection import Collection
from differential.session.item import Item
from differential.session.relation import Index, Relation
from timely import Scope
from timely.errors import SessionError


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
        self._scope = scope
        self._items = items
        self._made: dict[str, Relation] = {}
        self.reads: dict[str, Item] = {}

    @property
    def scope(self) -> Scope:
        """The outermost scope of the dataflow that is being built."""
        return self._scope

    def constant(self, *columns: Any, keys: int = 1) -> Relation:
        """Return a collection that holds the given record, or rows of columns (see `Collection.of`)."""
        return Relation.of(self._scope, *columns, keys=keys)  # type: ignore[return-value]

    def named(self, collection: Collection, *names: str) -> Relation:
        """Return any collection of this dataflow with names of columns (see `Relation.named`)."""
        relation = collection if isinstance(collection, Relation) else Relation(collection.stream, collection.keys)
        return relation.named(*names)

    def __getattr__(self, name: str) -> Relation:
        if name in self._made:
            return self._made[name]
        item = self._items.get(name)
        if item is None:
            near = get_close_matches(name, self._items, 1)
            known = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(self._items)) or 'none'}"
            raise AttributeError(f"there is no table or view {name!r}: {known}")
        part = item.parts[self._scope.index]
        if part is None or item.error is not None:
            raise SessionError(f"{item} was dropped") from item.error
        relation: Relation = Index(*part.trace.imported(self._scope, None, name)).as_collection()
        if item.names is not None:
            relation = relation.named(*item.names)
        self.reads[name] = item
        self._made[name] = relation
        return relation

    def __getitem__(self, name: str) -> Relation:
        return self.__getattr__(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._items]
