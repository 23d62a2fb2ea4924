"""Tests of the parts without a dataflow: slots of nodes, combinations by slot, edges by source."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from timely.errors import DataError
from timely.graphlinq.adjacency import Adjacency, order_of
from timely.graphlinq.grouping import group_nodes, grouped, identity
from timely.graphlinq.index import Index, as_nodes, distinct
from timely.graphlinq.state_machine import one_each

names = st.integers(0, 20) | st.integers(-3, 3) | st.integers(2**40, 2**40 + 3) | st.integers(60_000, 70_000)
COMBINATIONS: list[tuple[np.ufunc, Callable[[Any, Any], Any]]] = [
    (np.add, operator.add),
    (np.minimum, min),
    (np.maximum, max),
    (np.bitwise_or, operator.or_),
]
TRUTHS = [np.logical_or, np.logical_and, np.bitwise_or, np.bitwise_and, np.bitwise_xor, np.maximum, np.minimum]


def ints(values: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(values, np.int64)


@settings(deadline=None)
@given(st.lists(st.lists(names, max_size=8), max_size=6), st.lists(names))
def test_every_node_keeps_the_slot_it_was_given(calls: list[list[int]], asked: list[int]) -> None:
    index, slots = Index(), dict[int, int]()
    for nodes in calls:
        for node in sorted(set(nodes)):
            slots.setdefault(node, len(slots))
        assert index.include(ints(nodes)).tolist() == [slots[node] for node in nodes]
        assert index.nodes.tolist() == list(slots)
        assert index.slots(ints(asked)).tolist() == [slots.get(node, -1) for node in asked]


@pytest.mark.parametrize("spread", [1, 2**40])
def test_nodes_that_come_one_by_one_are_sorted_and_copied_few_times(
    spread: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, touched = 2000, 0

    def counting(function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(column: Any, *others: Any, **options: Any) -> Any:
            nonlocal touched
            touched += len(column)
            return function(column, *others, **options)

        return counted

    for name in ("argsort", "append"):
        monkeypatch.setattr(np, name, counting(getattr(np, name)))
    index = Index()
    for node in range(count):
        assert index.include(ints([node * spread])).tolist() == [node]
    assert touched <= 12 * count  # 11 is the logarithm
    assert index.slots(ints([0, spread * (count - 1), -1])).tolist() == [0, count - 1, -1]


@settings(deadline=None)
@given(st.lists(names))
def test_distinct_nodes_are_the_different_ones_in_order(nodes: list[int]) -> None:
    assert distinct(ints(nodes)).tolist() == sorted(set(nodes))


@settings(deadline=None)
@given(st.sampled_from(COMBINATIONS), st.lists(st.tuples(st.integers(0, 9), st.integers(-99, 99))))
def test_values_are_combined_by_slot(
    combination: tuple[np.ufunc, Callable[[Any, Any], Any]], rows: list[tuple[int, int]]
) -> None:
    ufunc, function = combination
    by_slot = defaultdict(list)
    for slot, value in rows:
        by_slot[slot].append(value)
    expected = [(slot, reduce(function, values)) for slot, values in sorted(by_slot.items())]
    slots, values = ints([slot for slot, _ in rows]), ints([value for _, value in rows])
    for size in (10, 10_000):
        found, (totals,) = grouped(ufunc, slots, [values], size)
        assert list(zip(found.tolist(), totals.tolist())) == expected
    found, (totals,) = group_nodes(ufunc, slots - 5, [values])
    assert list(zip((found + 5).tolist(), totals.tolist())) == expected


@settings(deadline=None)
@given(st.sampled_from(TRUTHS), st.lists(st.tuples(st.integers(0, 9), st.booleans())))
def test_truths_are_combined_by_slot(ufunc: np.ufunc, rows: list[tuple[int, bool]]) -> None:
    by_slot = defaultdict(list)
    for slot, value in rows:
        by_slot[slot].append(value)
    expected = [(slot, bool(ufunc.reduce(values))) for slot, values in sorted(by_slot.items())]
    slots, values = ints([slot for slot, _ in rows]), np.array([value for _, value in rows], np.bool_)
    for size in (10, 10_000):
        found, (totals,) = grouped(ufunc, slots, [values], size)
        assert totals.dtype == np.bool_
        assert list(zip(found.tolist(), totals.tolist())) == expected


@settings(deadline=None)
@given(st.sampled_from(["?", "u1", "i1", "u8", "i8", "f8"]), st.integers(0, 9))
def test_the_identity_changes_no_value(kind: str, number: int) -> None:
    value = np.full(1, number, kind)
    ufuncs = [np.add, np.minimum, np.maximum, *([] if kind == "f8" else [np.bitwise_and, np.bitwise_or])]
    for ufunc in ufuncs:
        assert ufunc(np.full(1, identity(ufunc, value.dtype), kind), value) == value


def test_a_ufunc_without_identity_is_refused() -> None:
    with pytest.raises(DataError, match=r"np\.subtract cannot combine messages"):
        identity(np.subtract, np.dtype(np.int64))


@settings(deadline=None)
@given(st.lists(st.integers(0, 5) | st.integers(2**16 - 1, 2**16 + 1) | st.integers(2**33, 2**33 + 1)))
def test_the_order_is_that_of_a_stable_sort(slots: list[int]) -> None:
    assert order_of(ints(slots)).tolist() == sorted(range(len(slots)), key=slots.__getitem__)


@settings(deadline=None)
@given(st.lists(st.tuples(names, names)), st.lists(names, max_size=5))
def test_edges_are_found_by_source(edges: list[tuple[int, int]], nodes: list[int]) -> None:
    columns = [ints([edge[end] for edge in edges]) for end in (0, 1)]
    adjacency = Adjacency([*columns, np.arange(len(edges))])
    for asked in (nodes, sorted({source for source, _ in edges})):
        rows, counts, found = adjacency.out_of(ints(asked))
        sources = [asked[row] for row, count in zip(rows.tolist(), counts.tolist()) for _ in range(count)]
        got = list(zip(sources, adjacency.targets_of(found).tolist(), adjacency.values[0][found].tolist()))
        expected = [(*edge, place) for node in asked for place, edge in enumerate(edges) if edge[0] == node]
        assert got == expected
    again = sorted(zip(*(column.tolist() for column in adjacency.columns())))
    assert again == sorted((*edge, place) for place, edge in enumerate(edges))


@settings(deadline=None)
@given(st.lists(st.integers(0, 4)))
def test_each_turn_has_each_slot_once_and_keeps_their_order(slots: list[int]) -> None:
    turns = [np.arange(len(slots))[rows].tolist() for rows in one_each(ints(slots))]
    assert sorted(row for turn in turns for row in turn) == list(range(len(slots)))
    for number, turn in enumerate(turns):
        assert all(slots[:row].count(slots[row]) == number for row in turn)


def test_nodes_beyond_the_signed_numbers_are_refused() -> None:
    assert as_nodes(np.array([2**63 - 1], np.uint64)).tolist() == [2**63 - 1]
    with pytest.raises(DataError, match="9223372036854775808"):
        as_nodes(np.array([1, 2**63], np.uint64))
