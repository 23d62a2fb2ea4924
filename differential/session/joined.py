"""Joins that index only the columns that are needed.

A join indexes both sides by the columns that are to be equal. A side that has this key already shares its index with
others. Any other side is indexed for the join alone, and each of its columns costs time and memory. So the operators
of such a join are built when something needs its records: with the columns that `select` and `group_by` ask for, and
with all columns for anything else. Their origin is still the line of the join.

    whole = a.join(b, on="k")      makes no operator: `_lazy` keeps how to make the stream, `_narrow` a narrower join
    whole.select("x")              `narrowed` calls `_narrow`, which makes a join of these columns, for each call
    whole.group_by("k").count()    selects columns, too
    whole.stream                   makes the join of all columns, once; from then on `narrowed` returns `whole`

Joins of keys count how often a key occurs on the other side. For records that have a match, and for those that have
none, each key of it counts once, as in SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, cast

import numpy as np

from differential.arguments import check_collections
from differential.arrangement.core import records_of
from differential.frames.python import column_of
from differential.operators import distinct as _distinct, join as _join
from differential.session.named import NamedCollection, R, with_types
from differential.session.near import known_columns, names_twice, refuse_other_types
from differential.session.schema import as_type
from differential.session.table_data import Column
from timely.errors import BuildError, DataError
from timely.lowlevel import ColumnLike, attributed, name_of, nullable, refusal, typed, user_origin

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


_OF_LISTS = ("value", "value?")
"""The names of the types of columns of lists and dicts."""


def with_match(operator: Callable[..., Any], left: Any, keys: Any, on: On | None, name: str) -> tuple[Any, Any]:
    """Return a collection, by its key, and what `semijoin` or `antijoin` makes of it and of another one."""
    keys = records_of(keys)
    if on is not None:
        if not isinstance(keys, type(left)):
            raise refusal(name, "`on` needs two collections of named columns")
        ours, theirs = matched_columns(operator.__name__, left, keys, on)
        left, keys = left.keyed_by(*ours), keys.select(*theirs, keys=len(theirs))
    check_collections(name, left=left, right=keys)
    known = getattr(keys, "types", {}), (getattr(keys, "names", None) or ())[: left.keys]
    pairs = zip(left.names or (), known[1])
    refuse_other_types(operator.__name__, left.types, known[0], pairs, are_keys=True)
    # Each key once: the operators of collections count a record as often as its key occurs on the other side.
    once = keys if getattr(keys, "is_distinct", False) else _distinct.distinct(keys, name=f"{name}: keys")
    return left, operator(left, once, name=name)


def left_joined(left: R, right: R, on: On, missing: Mapping[str, Any] | None, name: str) -> R:
    """Return the join of two relations, and the records of the left one that match none, with values for the others.

    A value gets the type of its column, if that is known; a column without one is null. Raises BuildError where that
    cannot be, and where `missing` has a value for a column that the right side does not add.
    """
    ours, theirs = matched_columns("left_join", left, right, on)
    added = [each for each in right.names or () if each not in theirs]
    missing = missing or {}
    if not set(missing) <= set(added):
        raise refusal(
            "left_join",
            f"the other side adds the columns {', '.join(added) or 'none'}, and `missing` has values for "
            f"{', '.join(missing)}",
        )
    filled = {column: _filled(column, missing.get(column), right.types.get(column)) for column in added}
    both = joined_on(left, right, on, name)
    alone, without = with_match(_join.antijoin, left, right, on, name)
    kept = [each for each in both.names or () if each not in added]
    matched = both.select(*kept, **{each: _fitting(each, filled[each]) for each in added}, keys=len(ours))
    # The operators of collections know no names. The columns are those of `alone`.
    lone = without.named(*alone.names).select(*kept, **{each: _all(filled[each]) for each in added}, keys=len(ours))
    types = {each: name_of(column) for each, column in filled.items()}
    return with_types(matched.concat(lone), {**both.types, **types})


def _filled(name: str, value: Any, known: str | None) -> Column:
    """Return a value of `missing` as a column of one row, of the type of its column if that is known.

    Raises BuildError where it is not a value, or not one of this type.
    """
    if value is None:
        if known is None:
            raise refusal(
                "left_join",
                f"the type of the column {name!r} is not known before there are rows, so that it cannot be null: "
                f"missing={{{name!r}: typed([None], 'text?')}} states it, with typed of differential.frames",
            )
        null: Column = typed([None], name_of(nullable(typed([], known))))
        return null
    is_column, is_list = isinstance(value, (np.ndarray, ColumnLike)), isinstance(value, (list, tuple))
    is_one = getattr(value, "ndim", 1) == 1 and len(value) == 1 if is_column else not is_list or known in _OF_LISTS
    if not is_one:
        raise refusal(
            "left_join",
            f"missing={{{name!r}: {value!r:.80}}} is not one value: give the value itself, or a column of one row; for "
            "a column of lists, typed([[1, 2]], 'value') of differential.frames",
        )
    column = column_of(value if is_column else [value], name)
    of = name_of(column)
    if known is None or of == known or (of.endswith("?") and not known.endswith("?")):  # the column then may have nulls
        return column
    try:
        return as_type(column, known)
    except DataError as error:
        raise refusal("left_join", f"missing={{{name!r}: {value!r:.80}}}: column {name!r} there {error}") from None


def _fitting(name: str, filled: Column) -> Callable[[Any], Any]:
    """Return what gives a column the type of the value that records without a match have, if it adds nulls alone.

    If it is another type, which was not known before there were rows, this raises DataError.
    """
    # The line is found now: when rows come, no line of the program is on the call stack.
    wanted, here = name_of(filled), user_origin()

    def fitting(row: Any) -> Any:
        found = name_of(row[name])
        remedy = f"missing={{{name!r}: typed({filled.tolist()!r:.80}, {found!r})}} states its type, with typed of "
        remedy += "differential.frames"
        try:
            if found == wanted or wanted.endswith("?"):
                return row[name] if found == wanted else typed(row[name], wanted)
        except DataError as error:
            remedy = f"{error}; a value of {found} in `missing`, in the place of a null, leaves the type as it is"
        raise DataError(
            f"left_join (at {here}): column {name!r} is of {found} on the other side, and `missing` has a value of "
            f"{wanted}: {remedy}"
        )

    return fitting


def _all(filled: Column) -> Callable[[Any], Any]:
    return lambda row: filled[np.zeros(len(next(iter(row))), np.int64)]  # a row has the key, at least
