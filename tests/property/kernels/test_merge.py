"""Merging against its slow twin: any two batches, any compaction, any amount of work at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential.kernels.compile import NOTHING
from differential.trace import merge as module
from differential.trace.batch import Batch
from differential.trace.description import Description
from differential.trace.merge import Merge, merge_at_once
from tests.invariants import check
from tests.oracle.trace import compacted
from tests.strategies_batches import batches, frontiers, rows_of_batches
from timely.progress.antichain import Antichain


@st.composite
def neighbours(draw: Any, count: int) -> tuple[int, list[Batch]]:
    """Draw batches described as adjacent, the first as if it held everything."""
    depth = draw(st.integers(1, 3))
    least, all_time = Antichain([(0,) * depth]), Antichain()
    found = [draw(batches(depth)) for _ in range(count)]
    return depth, [
        batch.described(Description(all_time if place else least, all_time, least)) for place, batch in enumerate(found)
    ]


@settings(deadline=None)
@given(st.data())
def test_a_merge_in_small_steps_sums_and_compacts(data: Any) -> None:
    depth, (first, second) = data.draw(neighbours(2))
    since = data.draw(frontiers(depth))
    merge = Merge(first, second, since)
    result, steps = None, 0
    while result is None:
        result = merge.work(data.draw(st.integers(1, 5)))
        steps += 1
        assert steps <= len(merge) + 1, "no progress"
    check(result)
    assert rows_of_batches([result]) == compacted(rows_of_batches([first, second]), since)
    assert result.since == since


@settings(deadline=None)
@given(st.data())
def test_a_merge_can_be_completed_at_once(data: Any) -> None:
    depth, (first, second) = data.draw(neighbours(2))
    since = data.draw(frontiers(depth))
    result = Merge(first, second, since).complete()
    check(result)
    assert rows_of_batches([result]) == compacted(rows_of_batches([first, second]), since)


@settings(deadline=None)
@given(st.data())
def test_few_rows_of_many_batches_are_merged_at_once(data: Any) -> None:
    depth, found = data.draw(neighbours(data.draw(st.integers(1, 4))))
    since = data.draw(frontiers(depth))
    result = merge_at_once(found, since)
    check(result)
    assert rows_of_batches([result]) == compacted(rows_of_batches(found), since)


def test_large_batches_with_long_histories_are_merged() -> None:
    draw = np.random.default_rng(5)
    least, all_time = Antichain([(0, 0)]), Antichain()

    def batch(rows: int, lower: Antichain) -> Batch:
        columns = draw.integers(0, 40, rows), draw.integers(0, 3, rows), draw.integers(0, 60, rows)
        table = draw.integers(0, 8, (60, 2))
        return Batch.build(*columns, draw.integers(-1, 2, rows), table, Description(lower, all_time, least))

    first, second = batch(6000, least), batch(2500, all_time)
    for since in (Antichain([(0, 0)]), Antichain([(3, 5), (5, 2)]), Antichain([(7, 7)]), Antichain()):
        result = Merge(first, second, since).complete()
        check(result)
        assert rows_of_batches([result]) == compacted(rows_of_batches([first, second]), since)


def test_diffs_are_written_out_when_rows_coincide() -> None:
    least, middle = Antichain([(0,)]), Antichain([(1,)])
    first = Batch.build(np.arange(9000), NOTHING, NOTHING, NOTHING, np.array([[0]]), Description(least, middle, least))
    second = Batch.build(
        np.array([8000]), NOTHING, NOTHING, NOTHING, np.array([[1]]), Description(middle, Antichain(), least)
    )
    result = Merge(first, second, middle).complete()
    check(result)
    assert result.diffs.sum() == 9001
    assert result.diffs[8000] == 2
    apart = Merge(first, second, least).complete()
    assert len(apart.diffs) == 0
    assert len(apart) == 9001


def test_a_time_whose_rows_all_cancel_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PIECE", 1)
    least, middle, last = Antichain([(0,)]), Antichain([(3,)]), Antichain([(4,)])
    rows = 30
    table = np.array([[0], [1], [2]])
    index = np.arange(rows) % 3
    first = Batch.build(np.arange(rows), NOTHING, index, NOTHING, table, Description(least, middle, least))
    kept = np.flatnonzero(index == 1)
    undone = Batch.build(
        kept, NOTHING, NOTHING, np.full(len(kept), -1), np.array([[1]]), Description(least, middle, least)
    )
    second = undone.described(Description(middle, last, least))
    merge = Merge(first, second, least)
    result, steps = None, 0
    while result is None:
        result = merge.work(1)
        steps += 1
    check(result)
    assert result.times.tolist() == [[0], [2]]
    assert result.keys.tolist() == np.flatnonzero(index != 1).tolist()
    assert result.time_index.tolist() == [0, 1] * (rows // 3)
    assert steps > len(result), "the result was settled in one step"


def test_rows_that_cancel_use_fuel_too() -> None:
    rows = 100_000
    least, middle, last = Antichain([(0,)]), Antichain([(1,)]), Antichain([(2,)])
    first = Batch.build(np.arange(rows), NOTHING, NOTHING, NOTHING, np.array([[0]]), Description(least, middle, least))
    second = Batch.build(
        np.arange(rows), NOTHING, NOTHING, np.full(rows, -1), np.array([[1]]), Description(middle, last, least)
    )
    merge = Merge(first, second, middle)
    assert merge.work(10_000) is None
    assert 180_000 < merge.remaining < 200_000
    assert len(merge.complete()) == 0


def shaped(dice: np.random.Generator, rows: int, lower: Antichain) -> Batch:
    """Return a batch of at most this many rows, with columns present and absent, of few or many keys and times."""
    keys = dice.integers(0, dice.choice([1, 3, 40, 2000]), rows) * dice.choice([1, 50])
    vals = dice.integers(0, 3, rows) if dice.random() < 0.5 else NOTHING
    table = dice.integers(0, 8, (dice.choice([1, 2, 60]), 2))
    index = dice.integers(0, len(table), rows) if len(table) > 1 else NOTHING
    diffs = dice.choice([-1, 1, 1, 2], rows) if dice.random() < 0.5 else NOTHING
    return Batch.build(keys, vals, index, diffs, table, Description(lower, Antichain(), Antichain([(0, 0)])))


@pytest.mark.parametrize("seed", range(120))
def test_batches_of_all_shapes_are_merged_with_any_fuel(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PIECE", 1)
    dice = np.random.default_rng(seed)
    least, all_time = Antichain([(0, 0)]), Antichain()
    rows = dice.choice([0, 1, 5, 40, 300], 2)
    first, second = shaped(dice, rows[0], least), shaped(dice, rows[1], all_time)
    since = [least, Antichain([(3, 5), (5, 2)]), Antichain([(0, 4)]), Antichain([(9, 9)])][seed % 4]
    fuel = int(dice.choice([1, 3, 50, 1000]))
    merge = Merge(first, second, since)
    result = None
    while result is None:
        result = merge.work(fuel)
    check(result)
    assert rows_of_batches([result]) == compacted(rows_of_batches([first, second]), since)


@pytest.mark.parametrize("rows", [100, 300, 1000])
def test_sides_with_the_same_keys_are_added_up_row_by_row(rows: int) -> None:
    least, middle, all_time = Antichain([(0,)]), Antichain([(1,)]), Antichain()
    first, second = (
        Batch.build(
            np.arange(rows), NOTHING, NOTHING, np.full(rows, diff), np.array([[time]]), Description(lower, upper, least)
        )
        for time, lower, upper, diff in ((0, least, middle, 2), (1, middle, all_time, 3))
    )
    result = Merge(first, second, middle).complete()
    assert rows_of_batches([result]) == [(key, 0, (1,), 5) for key in range(rows)]


@pytest.mark.parametrize("other", [-5, 2005])
@pytest.mark.parametrize("is_first", [True, False])
def test_the_rest_of_one_side_is_copied_as_far_as_the_fuel_lasts(
    is_first: bool, other: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PIECE", 1)
    least, middle, all_time = Antichain([(0,)]), Antichain([(1,)]), Antichain()
    keys = np.arange(2000)
    sides = (keys, np.array([other])) if is_first else (np.array([other]), keys)
    first, second = (
        Batch.build(side, NOTHING, NOTHING, NOTHING, np.array([[time]]), Description(lower, upper, least))
        for side, time, lower, upper in zip(sides, (0, 1), (least, middle), (middle, all_time))
    )
    merge = Merge(first, second, least)
    for steps in range(1, 247):
        assert merge.work(8) is None
        assert merge.remaining == 2001 - 8 * steps
    assert len(merge.complete()) == 2001


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([(1, 1, 0)], [(1, 0, 0), (1, 0, 1)]),
        ([(1, 0, 0), (10, 0, 0)], [(5, 0, 0), (9, 0, 0), (9, 0, 1)]),
        ([(500, 0, 0)], [(key, 0, 0) for key in range(1000)]),
        ([(500, 0, 0)], [(key, 0, time) for key in range(1000) for time in (0, 1)]),
    ],
)
def test_rows_that_coincide_are_found_at_the_ends_too(one: Any, other: Any, swap: bool) -> None:
    least, middle, all_time = Antichain([(0,)]), Antichain([(2,)]), Antichain()
    first, second = (
        Batch.build(*map(np.array, zip(*rows)), NOTHING, np.array([[0], [1]]), Description(least, all_time, least))
        for rows in ((other, one) if swap else (one, other))
    )
    first, second = (
        first.described(Description(least, middle, least)),
        second.described(Description(middle, all_time, least)),
    )
    result = Merge(first, second, middle).complete()
    check(result)
    assert rows_of_batches([result]) == compacted(rows_of_batches([first, second]), middle)
