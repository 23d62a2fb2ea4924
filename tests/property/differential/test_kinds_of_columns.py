"""Keys and values may be any mix of integers, floats, booleans, text and bytes, for every operator by key."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import Collection, Groups, example
from tests.oracle.grid import Multiset, Update, check
from tests.thorough import examples

KINDS: dict[str, st.SearchStrategy[Any]] = {
    "small": st.integers(-2, 2),
    "large": st.sampled_from((-(1 << 63), -(1 << 40), 0, 1 << 31, (1 << 63) - 1)),
    "float": st.sampled_from((-1e300, -2.5, 0.0, -0.0, 5e-324, 2.5, float("inf"), float("-inf"))),
    "bool": st.booleans(),
    "text": st.sampled_from(("", "a", "a\0", "b", "ä", "日本", "\U0001f600", "a" * 40)),
    "bytes": st.sampled_from((b"", b"a", b"a\0", b"a\0\0b", b"\xff", b"\xff\xfe\0", b"a" * 40)),
}


class Case(NamedTuple):
    """How many columns are the key, the updates of two inputs, and on how many workers."""

    keys: int
    kinds: list[str]
    left: list[Update]
    right: list[Update]
    workers: int
    seed: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4))
    pool = draw(st.lists(st.tuples(*(KINDS[kind] for kind in kinds)), min_size=1, max_size=4))
    updates = st.lists(st.tuples(st.sampled_from(pool), st.tuples(st.integers(0, 2)), st.just(1)), max_size=6)
    keys = draw(st.integers(1, min(2, len(kinds))))
    return Case(keys, kinds, draw(updates), draw(updates), draw(st.integers(1, 2)), draw(st.integers(0, 1 << 16)))


def groups_of(records: Multiset, keys: int) -> dict[Any, Counter[Any]]:
    groups: defaultdict[Any, Counter[Any]] = defaultdict(Counter)
    for record, count in records.items():
        groups[record[:keys]][record[keys:]] += count
    return groups


def per_key(function: Callable[[Counter[Any]], Any]) -> Callable[..., Any]:
    def meaning(keys: int, left: Multiset, _: Multiset) -> Any:
        return Counter((*key, *value) for key, group in groups_of(left, keys).items() for value in function(group))

    return meaning


def joined(keys: int, left: Multiset, right: Multiset) -> Any:
    result: Multiset = Counter()
    theirs = groups_of(right, keys)
    for record, count in left.items():
        for value, times in theirs.get(record[:keys], Counter()).items():
            result[(*record, *value)] += count * times
    return result


def every_value(groups: Groups) -> tuple[Any, ...]:
    return (groups.index, *groups.values)


def keys_of(collection: Collection) -> Collection:
    keys = collection.keys
    return collection.map(lambda *columns: columns[:keys], keys=keys).distinct()


OPERATORS: dict[
    str, tuple[Callable[[Collection, Collection], Collection], Callable[[int, Multiset, Multiset], Any]]
] = {
    "distinct": (lambda left, right: left.distinct(), lambda keys, left, right: dict.fromkeys(left, 1)),
    "consolidate": (lambda left, right: left.consolidate(), lambda keys, left, right: left),
    "count": (lambda left, right: left.count(), per_key(lambda group: [(group.total(),)])),
    "min": (lambda left, right: left.min(), per_key(lambda group: [min(group)])),
    "max": (lambda left, right: left.max(), per_key(lambda group: [max(group)])),
    "top_k": (lambda left, right: left.top_k(2), per_key(lambda group: sorted(group.elements())[-2:])),
    "reduce": (lambda left, right: left.reduce(every_value), per_key(list)),
    "reduce_each": (
        lambda left, right: left.map(lambda *c: (*c, 0), keys=left.keys).reduce_each(lambda key, rows: [rows[0][0]]),
        per_key(lambda group: [(*min(group), 0)]),
    ),
    "join": (lambda left, right: left.join(right), joined),
    "semijoin": (
        lambda left, right: left.semijoin(keys_of(right)),
        lambda keys, left, right: {r: n for r, n in left.items() if r[:keys] in groups_of(right, keys)},
    ),
    "antijoin": (
        lambda left, right: left.antijoin(keys_of(right)),
        lambda keys, left, right: {r: n for r, n in left.items() if r[:keys] not in groups_of(right, keys)},
    ),
    "union": (lambda left, right: left.union(right), lambda keys, left, right: left | right),
    "iterate": (
        lambda left, right: left.iterate(lambda inner: inner.concat(right).distinct()),
        lambda keys, left, right: dict.fromkeys(left | right, 1),
    ),
    "identifiers": (
        lambda left, right: left.identifiers().map(lambda *record: record[:-1], keys=left.keys),
        lambda keys, left, right: dict.fromkeys(left, 1),
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
@given(case=cases())
@settings(max_examples=examples(60), deadline=None)
def test_an_operator_is_right_for_any_kinds_of_columns(name: str, case: Case) -> None:
    operator, meaning = OPERATORS[name]

    def program(*inputs: Collection) -> Collection:
        return operator(*(one.map(lambda *columns: columns, keys=case.keys) for one in inputs))

    check(
        program,
        lambda left, right: meaning(case.keys, left, right),
        case.left,
        case.right,
        workers=case.workers,
        seed=case.seed,
    )


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "u1", "u2", "u4", "u8", ">i4", ">f8", "?"])
def test_numbers_are_the_same_in_every_type_that_represents_them(dtype: str) -> None:
    column = np.array([1, 0, 1], dtype)
    wide = column.astype({"f": np.float64, "b": np.bool_}.get(column.dtype.kind, np.int64))
    assert example(lambda scope: Collection.of(scope, column, column).join(Collection.of(scope, wide))) == [
        ((0, 0), 1),
        ((1, 1), 4),
    ]
