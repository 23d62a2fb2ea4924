"""What joins, groups and windows need of a collection of named columns: the part below the operators of relations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self, TypeVar

from differential.collection import Collection
from differential.session.row import Row


class NamedCollection(Collection):
    """A collection whose columns may have names. `Relation` has all of it."""

    names: tuple[str, ...] | None = None
    """The names of the columns, in order of their positions; None where they are unknown."""
    declared: tuple[str, ...] | None = None
    """The names in the order of the table that the records are of, if its key does not come first there."""
    types: Mapping[str, str] = MappingProxyType({})
    """The names of the types of the columns that are known before there are rows."""
    is_distinct = False
    """Whether it is known that each record occurs once."""
    event_time: str | None = None
    """The column of event times; None if the table has none, or the relation no longer has the column."""
    _unnamed: str | None = None
    """Why the columns have no names, if that is known."""
    _narrow: Callable[[Sequence[str]], Self] | None = None
    """Makes a relation that has at least these columns, if that costs less than to select them (for `narrowed`)."""

    def named(self, *names: str) -> Self:
        raise NotImplementedError

    def at(self, column: str | None) -> Self:
        raise NotImplementedError

    def select(self, /, *names: str, keys: int = 1, **computed: Callable[[Row], Any] | str) -> Self:
        raise NotImplementedError

    def keyed_by(self, *names: str) -> Self:
        raise NotImplementedError

    def narrowed(self, names: Sequence[str]) -> Self:
        raise NotImplementedError

    def _alike(self, made: object) -> Self:
        """Return a collection of the same columns with the names here."""
        raise NotImplementedError


R = TypeVar("R", bound=NamedCollection)


def with_types(relation: R, types: Mapping[str, str | None]) -> R:
    """Record the types of those columns of a new relation that are known before there are rows, and return it."""
    relation.types = {name: of for name in relation.names or () if (of := types.get(name)) is not None}
    return relation
