"""Each operator alone meets its definition at every time of one or two coordinates."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential import CoGroups, Collection, Variable
from tests.oracle.grid import Multiset, check, contents, grid, run
from tests.strategies_updates import History, histories
from tests.thorough import examples

FEW = settings(max_examples=examples(40), deadline=None)

TRIPLES = st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(-2, 2))
TEXTS = st.tuples(st.sampled_from(("", "a", "ä")), st.integers(0, 2))


def _groups(records: Multiset) -> dict[Any, Counter[Any]]:
    groups: defaultdict[Any, Counter[Any]] = defaultdict(Counter)
    for (key, *value), count in records.items():
        groups[key][tuple(value)] += count
    return groups


def _explode(records: Multiset) -> Multiset:
    result: Multiset = Counter()
    for (key, value, times), count in records.items():
        result[key, value] += times * count
    return result


def _totals(records: Multiset) -> Multiset:
    result = {}
    for key, group in _groups(records).items():
        sums = tuple(
            sum(f(*value) * count for value, count in group.items())
            for f in (lambda v, w: w, lambda v, w: v * w, lambda v, w: 1 - v)
        )
        if any(sums):
            result[(key, *sums)] = 1
    return Counter(result)


def _best(rank: Callable[..., Any], choose: Callable[..., Any]) -> Callable[[Multiset], Multiset]:
    def apply(records: Multiset) -> Multiset:
        return Counter(
            {
                (key, *choose(group, key=lambda value: (rank(key, *value), value))): 1
                for key, group in _groups(records).items()
            }
        )

    return apply


def _prefix_sums(records: Multiset) -> Multiset:
    result = {}
    for key, group in _groups(records).items():
        positions = sorted({position for position, _ in group})
        at = [sum(v * n for (p, v), n in group.items() if p == position) for position in positions]
        result.update({(key, p, total): 1 for p, total in zip(positions, accumulate(at))})
    return Counter(result)


def _middle(_: Any, values: list[tuple[Any, int]]) -> list[Any]:
    assert values == sorted(values)
    return [values[len(values) // 2][0]] if len(values) > 1 else []


UNARY: dict[str, tuple[Callable[[Collection], Collection], Callable[[Multiset], Any]]] = {
    "explode": (lambda one: one.explode(lambda k, v, w: ((k, v), w)).consolidate(), _explode),
    "totals": (lambda one: one.totals(lambda k, v, w: w, lambda k, v, w: v * w, lambda k, v, w: 1 - v), _totals),
    "argmin": (lambda one: one.argmin(lambda k, v, w: w * w), _best(lambda k, v, w: w * w, min)),
    "argmax": (lambda one: one.argmax(lambda k, v, w: w * v), _best(lambda k, v, w: w * v, max)),
    "prefix_sum": (lambda one: one.prefix_sum(bits=2), _prefix_sums),
    "reduce_each": (
        lambda one: one.reduce_each(_middle),
        lambda records: {
            (key, *sorted(group)[len(group) // 2]): 1 for key, group in _groups(records).items() if len(group) > 1
        },
    ),
    "arrange_by_self": (
        lambda one: one.arrange_by_self().count(),
        lambda records: {(*record, count): 1 for record, count in records.items()},
    ),
    "assert_eq": (lambda one: one.assert_eq(one.map(lambda *record: record)), lambda records: records),
}

SETS: dict[str, Callable[[int, int], int]] = {
    "union": max,
    "intersect": min,
    "except_": lambda ours, theirs: max(ours - theirs, 0),
    "symmetric_difference": lambda ours, theirs: abs(ours - theirs),
}


@pytest.mark.parametrize("name", UNARY)
@given(history=histories(records=TRIPLES))
@FEW
def test_an_operator_is_right_at_every_time(name: str, history: History) -> None:
    program, meaning = UNARY[name]
    check(program, meaning, *history.inputs, **history.run)


@pytest.mark.parametrize("name", SETS)
@given(history=histories(inputs=2, records=TEXTS))
@FEW
def test_a_comparison_of_collections_is_right_at_every_time(name: str, history: History) -> None:
    check(
        lambda left, right: getattr(left, name)(right),
        lambda ours, theirs: {record: SETS[name](ours[record], theirs[record]) for record in ours | theirs},
        *history.inputs,
        **history.run,
    )


@given(history=histories(inputs=2))
@FEW
def test_a_cogroup_sees_both_sides_at_every_time(history: History) -> None:
    def sums(groups: CoGroups) -> tuple[Any, ...]:
        assert len(groups) == len(groups.keys[0]) == len(groups.right)
        totals = [np.zeros(len(groups), np.int64) for _ in groups]
        for total, side in zip(totals, groups):
            np.add.at(total, side.index, side.values[0] * side.counts)
        return (np.arange(len(groups)), *totals)

    def meaning(left: Multiset, right: Multiset) -> Any:
        sides = _groups(left), _groups(right)
        return {
            (key, *(sum(v * n for (v,), n in side.get(key, {}).items()) for side in sides)): 1
            for key in sides[0] | sides[1]
        }

    check(lambda left, right: left.cogroup(right, sums), meaning, *history.inputs, **history.run)


@given(history=histories(records=TEXTS), spread=st.sampled_from([1, 2, 1 << 40]))
@FEW
def test_identifiers_are_unique_and_the_same_for_the_same_records(history: History, spread: int) -> None:
    """Even when most hashes collide, for then they are those of lengths of texts."""

    def hashed(columns: tuple[Any, ...]) -> Any:
        return (columns[1] * 3 + np.strings.str_len(columns[0])) % spread

    changes = run(lambda one: one.identifiers(hash=hashed), *history.inputs, **history.run)
    known: dict[Any, Multiset] = {}
    for time in grid(*history.inputs):
        records = contents(history.inputs[0], time)
        found = contents(changes, time)
        assert sorted(record for *record, _ in found) == sorted(map(list, records))
        assert set(found.values()) <= {1}
        assert len({number for *_, number in found}) == len(records)
        assert known.setdefault(frozenset(records), found) == found


@given(history=histories(outer=(1,)))
@FEW
def test_delayed_changes_give_the_collection_of_an_earlier_time(history: History) -> None:
    changes = run(lambda one: one.delay(lambda time: time[0] + 2).consolidate(), *history.inputs, **history.run)
    for (time,) in grid(*history.inputs):
        assert contents(changes, (time + 1,)) == contents(history.inputs[0], (time - 1,))
        assert contents(changes, (time + 2,)) == contents(history.inputs[0], (time,))


@given(history=histories())
@FEW
def test_variables_defined_by_each_other_settle_at_every_time(history: History) -> None:
    def even_and_odd(edges: Collection) -> Collection:
        """Return (node, 0 or 1) for nodes that a walk of even or odd length from node 0 ends at."""
        with edges.scope.iterative() as scope:
            even = Variable(scope, Collection.of(edges.scope, 0))
            odd = Variable(scope)
            after = [one.collection.join_map(edges, lambda node, to: to) for one in (odd, even)]
            nodes = Collection.of(edges.scope, 0).enter(scope).concat(after[0]).distinct(), after[1].distinct()
            even.set(nodes[0])
            odd.set(nodes[1])
            both = nodes[0].map(lambda node: (node, 0)).concat(nodes[1].map(lambda node: (node, 1)))
            return both.leave()

    def meaning(edges: Multiset) -> Any:
        found = {(0, 0)}
        for _ in range(9):
            found |= {(to, 1 - parity) for node, parity in found for source, to in edges if source == node}
        return dict.fromkeys(found, 1)

    check(even_and_odd, meaning, *history.inputs, **history.run)
