"""Joins that index only the columns that are needed.

A join indexes both sides by the columns that are to be equal. A side that has this key already shares its index with
others. Any other side is indexed for the join alone, and each of its columns costs time and memory. So the operators
of such a join are built when something needs its records: with the columns that `select` and `group_by` ask for, and
with all columns for anything else. Their origin is still the line of the join.

    whole = a.join(b, on="k")      makes no operator: `_lazy` keeps how to make the stream, `_narrow` a narrower join
    whole.select("x")              `narrowed` calls `_narrow`, which makes a join of these columns, for each call
    whole.group_by("k").count()    selects columns, too
    whole.stream                   makes the join of all columns, once; from then on `narrowed` returns `whole`
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import cast

from differential.operators import join as _join
from differential.session.named import NamedCollection, R, with_types
from differential.session.near import known_columns, names_twice, refuse_other_types
from timely.errors import BuildError
from timely.lowlevel import attributed, refusal, user_origin

On = str | Sequence[str] | Mapping[str, str]
"""Columns that are to be equal: those with these names, or the names on the right by those on the left."""


def joined_on(left: R, right: R, on: On, name: str) -> R:
    """Return the join of two relations by equal columns.

    Raises BuildError if one of these does not exist, or a column besides the key has the same name in both.
    """
    ours, theirs = matched_columns("join", left, right, on)
    refuse_other_types("join", left.types, right.types, zip(ours, theirs), are_keys=True)
    origin = user_origin()
    columns = (*ours, *_others(left, ours), *_others(right, theirs))
    if twice := names_twice(columns):
        raise BuildError(
            f"join (at {origin}): both sides have a column {', '.join(map(repr, twice))} besides the key: "
            "give one another name with select()"
        )
    types = {**right.types, **dict.fromkeys(left.names or ()), **left.types}

    def build(needed: Sequence[str]) -> R:
        with attributed(origin, always=True):
            first, second = _with_key(left, ours, needed), _with_key(right, theirs, needed)
            made = cast(R, _join.join(first, second, name=name))
            return with_types(made.named(*(first.names or ()), *_others(second, theirs)), types)

    if (_has_key(left, ours) and _has_key(right, theirs)) or left.scope is not right.scope:
        return build(columns)
    # Cached, because copies of `whole` (`named`, `at`) ask for the stream, too: they share one join.
    whole = type(left)._lazy(left.scope, len(ours), cache(lambda: build(columns).stream))
    whole.names, whole._narrow = columns, build
    return with_types(whole, types)


def matched_columns(what: str, left: NamedCollection, right: NamedCollection, on: On) -> tuple[list[str], list[str]]:
    """Return the columns of both sides that are to be equal. Raises BuildError if one of them does not exist."""
    names = [*on] if isinstance(on, Iterable) else []
    if not names or not all(isinstance(each, str) for each in names):
        raise refusal(
            what,
            f"on={on!r:.80} names no column: on='city' and on=['city', 'year'] name columns that both sides have, and "
            "on={'city': 'name'} one here and one of the other side",
        )
    pairs = dict(on) if isinstance(on, Mapping) else {each: each for each in ([on] if isinstance(on, str) else names)}
    known_columns(left.names, what, [*pairs])
    known_columns(right.names, what, [*pairs.values()], "the other side has")
    return [*pairs], [*pairs.values()]


def _others(side: NamedCollection, key: Sequence[str]) -> tuple[str, ...]:
    return tuple([each for each in side.names or () if each not in key])


def _has_key(side: NamedCollection, key: Sequence[str]) -> bool:
    """Return whether a side has this key, and so an index that others may share."""
    return list((side.names or ())[: side.keys]) == list(key)


def _with_key(side: R, key: Sequence[str], needed: Sequence[str]) -> R:
    """Return a side with its key first, and without columns that are not needed unless it has this key already."""
    if _has_key(side, key):
        return side
    return side.select(*key, *(each for each in _others(side, key) if each in needed), keys=len(key))
