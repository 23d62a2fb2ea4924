"""Definitions of views as data: trees that mean the same to a session and to plain Python.

A tree is a tuple of the name of an operator and its arguments, of which the first are trees. `columns_of` gives the
columns of a tree, `built` what it is in a definition, and `answer` its rows.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from differential.frames import is_null
from differential.session import sessions, sliding, tumbling
from tests.fuzz.sessions.values import Column, Row, canonical
from tests.property.frames.values import order

Rows = Counter[Row]


class Tree(tuple[Any, ...]):
    """An operator and its arguments."""

    __slots__ = ()


def tree(*parts: Any) -> Tree:
    """Return the tree of an operator and its arguments."""
    return Tree(parts)


class Failed(Exception):
    """A function of a view fails on its rows."""


def sources(tree: Tree) -> set[str]:
    """Return the names of the tables and views that a tree reads."""
    if tree[0] == "source":
        return {tree[1]}
    return set().union(*(sources(each) for each in tree[1:] if isinstance(each, Tree)))


def columns_of(tree: Tree) -> tuple[Column, ...]:
    """Return the columns of what a tree describes."""
    operator, *given = tree
    if operator == "source":
        return tuple(given[1])
    own = columns_of(given[0])
    if operator in ("filter", "distinct"):
        return own
    if operator in ("picky", "closure"):
        return tuple(column._replace(is_known=False) for column in own)
    if operator in ("concat", "except", "intersect", "union"):
        pairs = zip(own, columns_of(given[1]))
        return tuple(one._replace(type=max(one.type, other.type, key=len)) for one, other in pairs)
    by_name = {column.name: column for column in own}
    if operator in ("keyed", "top", "antijoin"):
        given[1] = given[1] if operator != "antijoin" else (given[2],)
        return (*(by_name[name] for name in given[1]), *(column for column in own if column.name not in given[1]))
    if operator == "select":
        return tuple(by_name[old]._replace(name=new) for old, new in given[1])
    if operator == "nulls":
        return (*own, Column(given[2], "bool"))
    if operator == "join":
        on = dict(given[2])
        left = (*(by_name[name] for name in on), *(column for column in own if column.name not in on))
        return (*left, *(column for column in columns_of(given[1]) if column.name not in on.values()))
    if operator == "group":
        return (*(by_name[name] for name in given[1]), *(_aggregate_column(by_name, each) for each in given[2]))
    if operator == "window":
        at = by_name[given[1]]
        bounds = tuple(Column(name, at.type, at.is_small) for name in ("window_start", "window_end"))
        return (*(by_name[name] for name in given[3]), *bounds, Column("count", "int64"))
    raise AssertionError(tree)


def _aggregate_column(by_name: Mapping[str, Column], aggregate: tuple[str, str, str]) -> Column:
    name, how, of = aggregate
    if how == "count":
        return Column(name, "int64")
    column = by_name[of]._replace(name=name)
    if how == "mean":
        return Column(name, "float64")
    if how == "sum":
        kind = "decimal(38, 2)" if column.type.startswith("decimal") else column.type.removesuffix("?")
        return column._replace(type="float64" if kind.startswith("float") else kind, is_small=False)
    return column


# What a tree is in a definition


def built(tree: Tree) -> Callable[[Any], Any]:
    """Return the definition of a tree."""
    return lambda t: _built(tree, t)


def _built(tree: Tree, t: Any) -> Any:
    operator, *given = tree
    if operator == "source":
        return t[given[0]]
    own = _built(given[0], t)
    names = [column.name for column in columns_of(tree)]
    if operator == "filter":
        return own.filter(_predicate(*given[1:]))
    if operator == "distinct":
        return own.distinct()
    if operator == "keyed":
        return own.keyed_by(*given[1])
    if operator == "select":
        same = [old for old, new in given[1] if old == new]
        return own.select(*same, **{new: old for old, new in given[1] if old != new})
    if operator == "nulls":
        kept, (of, name) = [column.name for column in columns_of(given[0])], given[1:]
        return own.select(*kept, **{name: lambda r: is_null(r[of])})
    if operator == "join":
        return own.join(_built(given[1], t), on=dict(given[2]))
    if operator in ("concat", "except", "intersect", "union"):
        other = _by_position(_built(given[1], t).keyed_by(columns_of(given[1])[0].name)).named(*names)
        own = own.keyed_by(names[0])
        of = {"concat": own.concat, "except": own.except_, "intersect": own.intersect, "union": own.union}
        return of[operator](other).named(*names)
    if operator == "antijoin":
        return own.keyed_by(given[2]).antijoin(_built(given[1], t).select(given[3]).distinct()).named(*names)
    if operator == "group":
        made = {name: "count" if how == "count" else (of, how) for name, how, of in given[2]}
        return own.group_by(*given[1]).aggregate(**made)
    if operator == "top":
        return own.keyed_by(*given[1]).top_k(given[2], smallest=given[3]).named(*names)
    if operator == "window":
        kind, sizes = given[2]
        windows = own.window(
            {"tumbling": tumbling, "sliding": sliding, "sessions": sessions}[kind](*sizes), at=given[1]
        )
        return windows.group_by(*given[3]).count()
    if operator == "closure":
        return _closure(_by_position(own.keyed_by(names[0]))).named(*names)
    if operator == "picky":
        return _by_position(own).map(_refusing(names.index(given[1]), given[2])).named(*names)
    raise AssertionError(tree)


def _by_position(collection: Any) -> Any:
    """Return a collection whose columns may be taken by their positions, as those of a table may not."""
    return collection.select(*collection.names, keys=collection.keys)


def _predicate(name: str, how: str, value: Any) -> Callable[[Any], Any]:
    if how == "null":
        return lambda r: is_null(r[name])
    if how == "not null":
        return lambda r: ~is_null(r[name])
    return (lambda r: r[name] == value) if how == "equal" else (lambda r: r[name] < value)


def _closure(pairs: Any) -> Any:
    def step(inner: Any) -> Any:
        backwards = inner.map(lambda start, end: (end, start))
        return backwards.join_map(pairs, lambda middle, start, end: (start, end)).concat(pairs).distinct()

    return pairs.iterate(step)


def _refusing(place: int, value: Any) -> Callable[..., Any]:
    wanted = canonical(value)

    def refuse(*columns: Any) -> Any:
        if any(canonical(each) == wanted for each in columns[place].tolist()):
            raise ArithmeticError("a value that this view refuses")
        return columns

    return refuse


# Its rows in plain Python


def answer(tree: Tree, tables: Mapping[str, Rows]) -> Rows:
    """Return the rows of a tree. Raises Failed where a function fails on them."""
    operator, *given = tree
    if operator == "source":
        return tables[given[0]]
    return +_ANSWERS[operator](columns_of(given[0]), answer(given[0], tables), tables, *given[1:])


def _places(columns: Sequence[Column], names: Sequence[str]) -> list[int]:
    known = [column.name for column in columns]
    return [known.index(name) for name in names]


def _moved(columns: Sequence[Column], rows: Rows, names: Sequence[str]) -> Rows:
    first = _places(columns, names)
    places = [*first, *(place for place in range(len(columns)) if place not in first)]
    return _mapped(rows, lambda row: tuple(row[place] for place in places))


def _mapped(rows: Rows, function: Callable[[Row], Row]) -> Rows:
    made: Rows = Counter()
    for row, count in rows.items():
        made[function(row)] += count
    return made


def _filter(columns: Sequence[Column], rows: Rows, tables: Any, name: str, how: str, value: Any) -> Rows:
    (place,) = _places(columns, [name])
    wanted = canonical(value)

    def holds(found: Any) -> bool:
        if how in ("null", "not null"):
            return (found is None) == (how == "null")
        if found is None or found != found or wanted != wanted:
            return False
        return bool(found == wanted if how == "equal" else found < wanted)

    return Counter({row: count for row, count in rows.items() if holds(row[place])})


def _selected(columns: Sequence[Column], rows: Rows, tables: Any, pairs: Sequence[tuple[str, str]]) -> Rows:
    kept = [old for old, new in pairs if old == new] + [old for old, new in pairs if old != new]
    places = _places(columns, kept)
    return _mapped(rows, lambda row: tuple(row[place] for place in places))


def _joined(columns: Sequence[Column], rows: Rows, tables: Any, other: Tree, on: Sequence[tuple[str, str]]) -> Rows:
    theirs = columns_of(other)
    left, right = _moved(columns, rows, [a for a, _ in on]), _moved(theirs, answer(other, tables), [b for _, b in on])
    made: Rows = Counter()
    for one, here in left.items():
        for two, there in right.items():
            if one[: len(on)] == two[: len(on)]:
                made[(*one, *two[len(on) :])] += here * there
    return made


def _antijoined(columns: Sequence[Column], rows: Rows, tables: Any, other: Tree, name: str, there: str) -> Rows:
    (place,) = _places(columns_of(other), [there])
    keys = {row[place] for row in answer(other, tables)}
    return Counter({row: count for row, count in _moved(columns, rows, [name]).items() if row[0] not in keys})


def _grouped(columns: Sequence[Column], rows: Rows, tables: Any, by: Sequence[str], wanted: Any) -> Rows:
    groups: dict[Row, Rows] = {}
    places = _places(columns, by)
    for row, count in rows.items():
        groups.setdefault(tuple(row[place] for place in places), Counter())[row] += count
    made: Rows = Counter()
    for group, members in groups.items():
        fields = []
        for _, how, of in wanted:
            if how == "count":
                fields.append(members.total())
                continue
            (place,) = _places(columns, [of])
            present = [(row[place], count) for row, count in members.items() if row[place] is not None]
            fields.append(_aggregate(how, columns[place].type, present))
        made[(*group, *fields)] = 1
    return made


def _aggregate(how: str, of: str, values: list[tuple[Any, int]]) -> Any:
    """Return an aggregate of values of a type, none of which is null, and of how often each occurs."""
    if how in ("min", "max"):
        return (min if how == "min" else max)([value for value, _ in values], key=order, default=None)
    if how == "mean":
        return _sum(values) / sum(count for _, count in values) if values else np.nan
    none = dt.timedelta(0) if of.startswith("duration") else 0.0 if of.startswith("float") else 0
    return canonical(_sum(values) if values else none)


def _sum(values: list[tuple[Any, int]]) -> Any:
    if isinstance(values[0][0], float):
        infinite = {value for value, _ in values if value in (np.inf, -np.inf)}
        if len(infinite) == 2 or any(value != value for value, _ in values):
            return np.nan
        return infinite.pop() if infinite else float(sum(Fraction(value) * count for value, count in values))
    first, *others = (value * count for value, count in values)
    for each in others:
        first += each
    return first


def _top(columns: Sequence[Column], rows: Rows, tables: Any, by: Sequence[str], k: int, smallest: bool) -> Rows:
    moved, keys = _moved(columns, rows, by), len(by)
    made: Rows = Counter()
    for key in {row[:keys] for row in moved}:
        values = sorted((row for row in moved.elements() if row[:keys] == key), key=order, reverse=not smallest)
        made.update(values[:k])
    return made


def _windowed(
    columns: Sequence[Column], rows: Rows, tables: Any, at: str, kind: tuple[str, Sequence[Any]], by: Sequence[str]
) -> Rows:
    (place,), places = _places(columns, [at]), _places(columns, by)
    name, sizes = kind
    made: Rows = Counter()
    times: dict[Row, list[tuple[int, int, Any]]] = {}
    for row, count in rows.items():
        times.setdefault(tuple(row[each] for each in places), []).append((_ticks(row[place]), count, row[place]))
    for group, found in times.items():
        for start, end, count in _windows(name, [_ticks(size) for size in sizes], [each[:2] for each in found]):
            made[(*group, _of_ticks(start, found[0][2]), _of_ticks(end, found[0][2]), count)] = 1
    return made


def _windows(name: str, sizes: list[int], times: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    if name == "sessions":
        made: list[tuple[int, int, int]] = []
        for time, count in sorted(times):
            if made and time < made[-1][1]:
                start, _, before = made.pop()
                made.append((start, time + sizes[0], before + count))
            else:
                made.append((time, time + sizes[0], count))
        return made
    size, step = sizes[0], sizes[-1]
    found: Counter[int] = Counter()
    for time, count in times:
        for start in range(time // step * step, time - size, -step):
            found[start] += count
    return [(start, start + size, count) for start, count in found.items()]


_EPOCH = dt.datetime(1970, 1, 1)


def _ticks(value: Any) -> int:
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=None) - _EPOCH) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(microseconds=1)
    return int(value)


def _of_ticks(count: int, like: Any) -> Any:
    if isinstance(like, dt.datetime):
        return (_EPOCH + dt.timedelta(microseconds=count)).replace(tzinfo=like.tzinfo)
    return count


def _closed(columns: Sequence[Column], rows: Rows, tables: Any) -> Rows:
    found = set(rows)
    while True:
        more = {(a, d) for a, b in found for c, d in rows if (b,) == (c,)} - found  # a NaN in a tuple equals itself
        if not more:
            return Counter(found)
        found |= more


def _picky(columns: Sequence[Column], rows: Rows, tables: Any, name: str, value: Any) -> Rows:
    (place,) = _places(columns, [name])
    if any(row[place] == canonical(value) for row in rows):
        raise Failed
    return rows


_ANSWERS: dict[str, Callable[..., Rows]] = {
    "source": lambda columns, rows, tables: rows,
    "filter": _filter,
    "distinct": lambda columns, rows, tables: Counter(set(rows)),
    "keyed": lambda columns, rows, tables, names: _moved(columns, rows, names),
    "select": _selected,
    "nulls": lambda columns, rows, tables, of, name: _mapped(
        rows, lambda row: (*row, row[_places(columns, [of])[0]] is None)
    ),
    "join": _joined,
    "concat": lambda columns, rows, tables, other: rows + answer(other, tables),
    "except": lambda columns, rows, tables, other: rows - answer(other, tables),
    "intersect": lambda columns, rows, tables, other: rows & answer(other, tables),
    "union": lambda columns, rows, tables, other: rows | answer(other, tables),
    "antijoin": _antijoined,
    "group": _grouped,
    "top": _top,
    "window": _windowed,
    "closure": _closed,
    "picky": _picky,
}
