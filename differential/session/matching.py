"""Records that have a match in another collection, and those that have none.

Joins of keys count how often a key occurs on the other side. Here each key of it counts once, as in SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self, cast

import numpy as np

from differential.arguments import check_collections
from differential.operators import distinct as _distinct, join as _join
from differential.session.joined import Named, On, joined, matched_columns
from timely.errors import BuildError
from timely.lowlevel import ColumnLike, Typed, typed, user_origin


class Matched(Named, Protocol):
    """A relation, as these operators need it."""

    is_distinct: bool

    def keyed_by(self, *names: str) -> Self:
        """Return the relation with these columns first, as its key."""

    def concat(self, *others: Self) -> Self:
        """Return the records of both."""


def with_match(operator: Callable[..., Any], left: Any, keys: Any, on: On | None, name: str) -> tuple[Any, Any]:
    """Return a collection, by its key, and what `semijoin` or `antijoin` makes of it and of another one."""
    if on is not None:
        if not isinstance(keys, type(left)):
            raise BuildError(f"{name} (at {user_origin()}): `on` needs two collections of named columns")
        ours, theirs = matched_columns(operator.__name__, left, keys, on)
        left, keys = left.keyed_by(*ours), keys.select(*theirs, keys=len(theirs))
    check_collections(name, left=left, right=keys)
    once = keys if getattr(keys, "is_distinct", False) else _distinct.distinct(keys, name=f"{name}: keys")
    return left, operator(left, once, name=name)


def left_joined(left: Matched, right: Matched, on: On, missing: Mapping[str, Any], name: str) -> Any:
    """Return the join of two relations, and the records of the left one that match none, with values for the others.

    Raises BuildError where `missing` has a value for a column that the right side does not add, or none for one.
    """
    ours, theirs = matched_columns("left_join", left, right, on)
    added = [each for each in right.names or () if each not in theirs]
    if sorted(missing) != sorted(added):
        values = ", ".join(f"{each!r}: ..." for each in added)
        raise BuildError(
            f"left_join (at {user_origin()}): the other side adds the columns {', '.join(added) or 'none'}, and "
            f"`missing` has values for {', '.join(missing) or 'none'}: missing={{{values}}} are their values in "
            "records that match nothing there"
        )
    for column, value in missing.items():
        if value is None:
            raise BuildError(
                f"left_join (at {user_origin()}): missing={{{column!r}: None}} does not state the type of the column: "
                "typed([None], 'text?') of differential.frames does, for text"
            )
    both = joined(left, right, on, name)
    alone, without = with_match(_join.antijoin, left, right, on, name)
    kept = [each for each in both.names or () if each not in added]
    matched = both.select(*kept, **{each: _as(each, missing[each]) for each in added}, keys=len(ours))
    lone = without.named(*alone.names).select(*kept, **{each: _all(missing[each]) for each in added}, keys=len(ours))
    return matched.concat(lone)


def _as(column: str, value: Any) -> str | Callable[[Any], Any]:
    """Return what converts a column to the type of the value that records without a match have."""
    if not isinstance(value, Typed):
        return column
    name = value.type.name
    return lambda row: typed(row[column], name)


def _all(value: Any) -> Callable[[Any], Any]:
    """Return what makes a column of one value."""
    if isinstance(value, (np.ndarray, ColumnLike)):
        return lambda row: cast(Any, value)[np.zeros(len(next(iter(row))), np.int64)]
    return lambda row: value
