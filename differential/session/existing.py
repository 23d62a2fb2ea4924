"""Tables and views that a program names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from differential.session.catalog import Catalog
from differential.session.item import Item, failure
from differential.session.near import meant, refuse_name
from differential.session.readable import Table, View
from timely.errors import SessionError
from timely.lowlevel import user_origin

Named = TypeVar("Named", Table, View)


def existing(catalog: Catalog, name: str, of: type[Named]) -> Named:
    """Return the table or view of a name. Raises SessionError if there is none, or if it is not of this class."""
    kind = of.__name__.lower()
    if callable(name):
        raise SessionError(
            f"{kind} (at {user_origin()}) takes a name before the definition, as in db.{kind}('name', definition)"
        )
    refuse_name(name)
    item = catalog.items.get(name)
    if item is None:
        there = tuple(catalog.items.values())  # at once: another thread may add a table
        near = meant(name, [each.name for each in there if each.kind == kind])
        made = "{'column': type}" if kind == "table" else "definition"
        raise SessionError(
            f"there is no {kind} {name!r} (at {user_origin()}){near}; db.{kind}({name!r}, {made}) makes one"
        )
    if item.kind != kind:
        raise SessionError(f"{item} is not a {kind} (at {user_origin()}): use db.{item.kind}({name!r})")
    return of(catalog, item)


def present(target: object, items: Mapping[str, Item]) -> str:
    """Return a name, or that of a table or view that the program holds.

    Raises SessionError if another one has its name now, and for anything else.
    """
    item: Item | None = getattr(target, "_item", None)
    if item is None:
        refuse_name(target)
        return str(target)
    if items.get(item.name, item) is not item:
        raise failure(item, item.error or SessionError(f"{item} belongs to another session"))
    return item.name
