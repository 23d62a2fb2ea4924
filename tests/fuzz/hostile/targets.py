"""Operators that take functions of columns, and what they mean, record by record."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from differential import CoGroups, Collection, Groups
from timely import Stream

Records = Counter[tuple[Any, ...]]


class Target(NamedTuple):
    """An operator: how it receives a function of columns, a benign one, and the result for pairs of small integers.

    An operator of `any_length` accepts a result with more or fewer rows; one of `no_result` ignores the result. The
    meaning is that of all records or, with `each_time`, that of the records of each time separately.
    """

    name: str
    build: Callable[[Any, Callable[..., Any]], Any]
    benign: Callable[..., Any]
    meaning: Callable[[Records], Records]
    any_length: bool = False
    no_result: bool = False
    on_streams: bool = False
    each_time: bool = False


def _per_record(function: Callable[[int, int], tuple[Any, ...] | None]) -> Callable[[Records], Records]:
    """Return the meaning of an operator that makes a record, or none, of each."""

    def meaning(records: Records) -> Records:
        result: Records = Counter()
        for (key, value), count in records.items():
            made = function(key, value)
            if made is not None:
                result[made] += count
        return result

    return meaning


def _by_key(function: Callable[[int, Records], list[tuple[Any, ...]]]) -> Callable[[Records], Records]:
    """Return the meaning of an operator that makes records of each key's values."""

    def meaning(records: Records) -> Records:
        groups: dict[int, Records] = defaultdict(Counter)
        for (key, value), count in records.items():
            groups[key][(value,)] += count
        return Counter(record for key, values in groups.items() for record in function(key, values))

    return meaning


def _mapped(key: Any, value: Any) -> Any:
    return value, key + 1


def _kept(key: Any, value: Any) -> Any:
    return (key + value) % 2 == 0


def _kept_meaning(key: int, value: int) -> tuple[Any, ...] | None:
    return (key, value) if _kept(key, value) else None


def _doubled(key: Any, value: Any) -> Any:
    rows = np.arange(len(key))
    return np.concatenate([rows, rows]), np.concatenate([key, value]), np.concatenate([value, key])


def _doubled_meaning(records: Records) -> Records:
    result: Records = Counter()
    for (key, value), count in records.items():
        result[(key, value)] += count
        result[(value, key)] += count
    return result


def _joined(key: Any, left: Any, right: Any) -> Any:
    return key, left + 10 * right


def _joined_meaning(records: Records) -> Records:
    result: Records = Counter()
    for (key, left), count in records.items():
        for (other, right), times in records.items():
            if key == other:
                result[(key, left + 10 * right)] += count * times
    return result


def _largest(groups: Groups) -> Any:
    return np.arange(len(groups)), np.maximum.reduceat(groups.values[0], groups.offsets[:-1])


def _number(groups: CoGroups) -> Any:
    left, right = (np.bincount(side.index, minlength=len(groups)).astype(np.int64) for side in groups)
    return np.arange(len(groups)), left + right


def _exploded(key: Any, value: Any) -> Any:
    return (key, value), value + 1


def _exploded_meaning(records: Records) -> Records:
    return Counter({(key, value): count * (value + 1) for (key, value), count in records.items()})


def _total(key: Any, value: Any) -> Any:
    return value


def _total_meaning(key: int, values: Records) -> list[tuple[Any, ...]]:
    total = sum(value * count for (value,), count in values.items())
    return [(key, total)] if total else []


def _nearest(key: int, values: Records) -> list[tuple[Any, ...]]:
    return [(key, min((abs(value - 2), value) for (value,) in values)[1])]


def _rounds(key: Any, value: Any) -> Any:
    return value


def _in_a_loop(collection: Collection, function: Callable[..., Any]) -> Collection:
    with collection.scope.iterative() as inner:
        return collection.enter_at(inner, function).leave()


TARGETS: tuple[Target, ...] = (
    Target("map", Collection.map, _mapped, _per_record(_mapped)),
    Target("filter", Collection.filter, _kept, _per_record(_kept_meaning)),
    Target("flat_map", Collection.flat_map, _doubled, _doubled_meaning),
    Target("join_map", lambda one, function: one.join_map(one, function), _joined, _joined_meaning),
    Target("reduce", Collection.reduce, _largest, _by_key(lambda key, values: [(key, max(values)[0])])),
    Target(
        "inspect_batch",
        lambda one, look: one.inspect_batch(lambda updates: look(*updates.columns)),
        _total,
        Counter,
        no_result=True,
    ),
    Target(
        "cogroup",
        lambda one, function: one.cogroup(one.filter(lambda key, value: value > 1), function),
        _number,
        _by_key(lambda key, values: [(key, len(values) + sum(value > 1 for (value,) in values))]),
    ),
    Target("explode", Collection.explode, _exploded, _exploded_meaning),
    Target(
        "totals",
        Collection.totals,
        _total,
        _by_key(_total_meaning),
    ),
    Target("argmin", Collection.argmin, lambda key, value: np.abs(value - 2), _by_key(_nearest)),
    Target("enter_at", _in_a_loop, _rounds, Counter),
    Target("stream map", Stream.map, _mapped, _per_record(_mapped), on_streams=True),
    Target("stream filter", Stream.filter, _kept, _per_record(_kept_meaning), on_streams=True),
    Target(
        "stream flat_map",
        Stream.flat_map,
        _doubled,
        _doubled_meaning,
        on_streams=True,
    ),
    Target(
        "stream map_batch",
        Stream.map_batch,
        lambda key, value: (np.concatenate([key, value]), np.concatenate([value, key])),
        _doubled_meaning,
        on_streams=True,
    ),
    Target("exchange", Stream.exchange, lambda key, value: value, Counter, on_streams=True),
    Target(
        "partition",
        lambda stream, function: stream.partition(3, function)[1],
        lambda key, value: (key + value) % 3,
        _per_record(lambda key, value: (key, value) if (key + value) % 3 == 1 else None),
        on_streams=True,
    ),
    Target(
        "branch",
        lambda stream, function: stream.branch(function)[1],
        _kept,
        _per_record(_kept_meaning),
        on_streams=True,
    ),
    Target(
        "aggregate",
        Stream.aggregate,
        lambda starts, value: np.maximum.reduceat(value, starts),
        _by_key(lambda key, values: [(key, max(values)[0])]),
        on_streams=True,
        each_time=True,
    ),
    Target(
        "stream delay",
        Stream.delay,
        lambda time, key, value: time[0] + value,
        Counter,
        on_streams=True,
    ),
)
