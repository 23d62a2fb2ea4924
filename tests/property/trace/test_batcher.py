"""The batcher compared with a list: each update is sealed once, when due, in a batch with the right description."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential.kernels.compile import NOTHING
from differential.trace import batcher as module
from differential.trace.batcher import Batcher
from differential.trace.columns import Rows
from tests.invariants import check
from tests.oracle.trace import Row, consolidated
from tests.strategies_batches import frontiers, rows_of, rows_of_batch, updates
from timely.progress.antichain import Antichain


def _from(columns: Rows, step: int, least: tuple[int, ...]) -> Rows:
    """Return the columns with their times moved on by `step`, and to `least` or later."""
    *rows, table = columns
    return *rows, np.maximum(table + step, np.array(least))


def _seal(batcher: Batcher, held: list[Row], upper: Antichain) -> list[Row]:
    """Seal up to `upper`, compare the batch with the rows held by the model, and return those that remain."""
    depth, lower = batcher.depth, batcher.upper
    batch = batcher.seal(upper)
    due = consolidated(row for row in held if not upper.less_equal(row[2]))
    assert (batch is None) == (not due)
    if batch is not None:
        check(batch)
        assert (batch.lower, batch.upper, batch.since) == (lower, upper, Antichain([(0,) * depth]))
        assert rows_of_batch(batch) == due
    assert batcher.upper == (lower if batch is None else upper)
    held = [row for row in held if upper.less_equal(row[2])]
    # Updates that cancel may or may not be consolidated yet: the frontier lies between those of the two cases.
    assert Antichain(row[2] for row in held).dominates(batcher.frontier())
    assert batcher.frontier().dominates(Antichain(row[2] for row in consolidated(held)))
    assert len(consolidated(held)) <= len(batcher) <= len(held)
    return held


@settings(deadline=None)
@given(st.data())
def test_each_seal_takes_the_updates_that_its_frontier_has_passed(data: Any) -> None:
    depth = data.draw(st.integers(1, 3))
    batcher = Batcher(depth)
    held: list[Row] = []
    upper = Antichain([(0,) * depth])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PILE", data.draw(st.sampled_from([1, 2, 5, 32])))
        patch.setattr(module, "FEW", data.draw(st.sampled_from([0, 10, 256])))
        for step in range(data.draw(st.integers(1, 8))):
            for _ in range(data.draw(st.integers(0, 3))):
                columns = _from(data.draw(updates(depth, most=20)), step, data.draw(st.sampled_from(upper.elements)))
                keys, vals, index, diffs, table = columns
                batcher.push(keys, vals, table, index, diffs)
                held += rows_of(columns)
            upper = upper.join(data.draw(frontiers(depth, top=step + 2, least=1)))
            held = _seal(batcher, held, upper)
    assert _seal(batcher, held, Antichain()) == []
    assert (batcher.frontier(), len(batcher)) == (Antichain(), 0)


@pytest.mark.parametrize("few", [0, 256])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_long_runs_of_pushes_and_seals_agree_with_a_list(
    seed: int, depth: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FEW", few)
    random = np.random.default_rng([seed, depth])
    batcher, held = Batcher(depth), list[Row]()
    upper = Antichain([(0,) * depth])
    for step in range(150):
        for _ in range(int(random.choice([0, 1, 1, 1, 20 if step % 50 == 49 else 2]))):
            rows, distinct = int(random.choice([1, 3, 30, 200])), int(random.choice([1, 2, 20]))
            ahead = random.integers(0, int(random.choice([2, 10, 80])), (distinct, depth))
            table = np.array(random.choice(upper.elements)) + ahead
            index = random.integers(0, distinct, rows) if distinct > 1 else NOTHING
            vals = random.integers(0, 2, rows) if random.random() < 0.5 else NOTHING
            diffs = random.integers(-1, 2, rows) if random.random() < 0.8 else NOTHING
            keys = random.integers(0, 10, rows)
            batcher.push(keys, vals, table, index, diffs)
            held += rows_of((keys, vals, index, diffs, table))
        moved = np.array(random.choice(upper.elements)) + random.integers(0, 3, (2, depth))
        upper = upper.join(Antichain(map(tuple, moved.tolist())))
        held = _seal(batcher, held, upper)
    assert _seal(batcher, held, Antichain()) == []
    assert (batcher.frontier(), len(batcher)) == (Antichain(), 0)


@pytest.mark.parametrize("each", [1, 5])
def test_a_loop_with_one_push_a_seal_holds_a_logarithmic_number_of_chunks(each: int) -> None:
    rounds, visits = 2000, 0
    batcher = Batcher(2)
    batcher.push(np.arange(300), NOTHING, np.array([[2, 0]]), NOTHING, NOTHING)  # more than few rows
    for step in range(rounds):
        batcher.push(np.arange(each), NOTHING, np.array([[1, step]]), NOTHING, NOTHING)
        batcher.push(np.arange(each), NOTHING, np.array([[0, step]]), NOTHING, NOTHING)
        chunks = len(batcher.columns())
        assert chunks <= module._PILE + len(batcher).bit_length()
        visits += chunks
        batch = batcher.seal(Antichain([(0, step + 1), (1, 0)]))
        assert batch is not None
        assert len(batch) == each
        assert len(batcher) == 300 + each * (step + 1)
    assert visits <= rounds * (module._PILE + (each * rounds).bit_length())


def test_updates_that_cancel_do_not_pile_up_where_each_push_is_followed_by_a_seal() -> None:
    batcher = Batcher(2)
    for step in range(500):
        diffs = np.full(300, 1 - 2 * (step % 2))
        batcher.push(np.arange(300), NOTHING, np.array([[1, 0]]), NOTHING, diffs)
        assert batcher.seal(Antichain([(0, step + 1), (1, 0)])) is None
        assert len(batcher) <= (module._PILE + 1) * 300
    assert batcher.seal(Antichain()) is None


def test_a_large_chunk_is_not_sorted_again_for_each_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = 0
    together = module.consolidated

    def counted(parts: list[Rows]) -> Rows:
        nonlocal moved
        moved += sum(len(part[0]) for part in parts)
        return together(parts)

    monkeypatch.setattr(module, "consolidated", counted)
    batcher, rows, large = Batcher(1), 1024, 100_000
    batcher.push(np.arange(large), NOTHING, np.array([[9]]), NOTHING, NOTHING)
    for step in range(rows):
        batcher.push(np.array([step]), NOTHING, np.array([[8]]), NOTHING, NOTHING)
        assert batcher.seal(Antichain([(step // 200,)])) is None
    assert moved <= rows * rows.bit_length()


def test_many_epochs_of_one_chunk_are_sealed_one_by_one_without_moving_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved = 0
    take_times = module.take_times

    def counted(*columns: np.ndarray) -> Rows:
        nonlocal moved
        result = take_times(*columns)
        moved += len(result[0])
        return result

    monkeypatch.setattr(module, "take_times", counted)
    epochs, each = 500, 100
    rows = epochs * each
    index = np.random.default_rng(1).permutation(np.repeat(np.arange(epochs), each))
    batcher = Batcher(1)
    batcher.push(np.arange(rows), NOTHING, np.arange(epochs).reshape(-1, 1), index, NOTHING)
    for epoch in range(epochs):
        batch = batcher.seal(Antichain([(epoch + 1,)]))
        assert batch is not None
        assert batch.keys.tolist() == np.flatnonzero(index == epoch).tolist()
        assert batch.times.tolist() == [[epoch]]
    assert moved <= 3 * rows


def test_epochs_of_one_chunk_are_sealed_without_a_look_at_the_times_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0
    in_advance = module.in_advance

    def counted(times: np.ndarray, frontier: Any) -> np.ndarray:
        nonlocal looked
        looked += len(times)
        return in_advance(times, frontier)

    monkeypatch.setattr(module, "in_advance", counted)
    epochs = 2000
    batcher = Batcher(1)
    shuffled = np.random.default_rng(1).permutation(epochs)
    batcher.push(shuffled, NOTHING, 2 * shuffled.reshape(-1, 1), np.arange(epochs), NOTHING)
    for upper in range(1, 2 * epochs + 1):
        batch = batcher.seal(Antichain([(upper,)]))
        assert (batch is None) == (upper % 2 == 0)
        if batch is not None:
            check(batch)
            assert (batch.keys.tolist(), batch.times.tolist()) == ([upper // 2], [[upper - 1]])
        assert len(batcher) == epochs - (upper + 1) // 2
    assert looked <= 3 * epochs


def test_chunks_that_cancel_do_not_pile_up() -> None:
    batcher = Batcher(1)
    later = np.array([[7]])
    for _ in range(1000):
        batcher.push(np.arange(100), NOTHING, later, NOTHING, NOTHING)
        batcher.push(np.arange(100), NOTHING, later, NOTHING, np.full(100, -1))
        assert len(batcher) <= 40 * 100
    assert batcher.seal(Antichain([(8,)])) is None


def test_chunks_that_pile_up_are_combined_and_counted() -> None:
    batcher = Batcher(1)
    for chunk in range(100):
        batcher.push(np.arange(5) + 5 * chunk, NOTHING, np.array([[7]]), NOTHING, NOTHING)
        assert len(batcher) == 5 * (chunk + 1)
    batch = batcher.seal(Antichain([(8,)]))
    assert batch is not None
    assert batch.keys.tolist() == list(range(500))


def test_the_remaining_rows_are_counted_and_determine_the_frontier() -> None:
    batcher = Batcher(2)
    rows = 1000
    batcher.push(np.arange(rows), NOTHING, np.array([[1, 5], [5, 1]]), np.arange(rows) % 2, NOTHING)
    assert batcher.frontier() == Antichain([(1, 5), (5, 1)])
    batch = batcher.seal(Antichain([(2, 0)]))
    assert batch is not None
    assert (len(batch), len(batcher), batcher.frontier()) == (500, 500, Antichain([(5, 1)]))


@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_the_frontier_is_that_of_the_times_of_all_chunks(chunks: int) -> None:
    times = [(5, 0), (0, 5), (3, 3)][:chunks]
    batcher = Batcher(2)
    for time in times:
        batcher.push(np.array([1]), NOTHING, np.array([time]), NOTHING, NOTHING)
    assert batcher.frontier() == Antichain(times)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("rows", [10, 1000])
def test_sealed_updates_are_released(rows: int, times: int) -> None:
    batcher = Batcher(1)
    table = np.arange(times).reshape(-1, 1)
    batcher.push(np.arange(rows), NOTHING, table, np.arange(rows) % 2 if times > 1 else NOTHING, NOTHING)
    assert (len(batcher), batcher.frontier()) == (rows, Antichain([(0,)]))
    batch = batcher.seal(Antichain([(times,)]))
    assert batch is not None
    assert (len(batch), len(batcher), batcher.frontier()) == (rows, 0, Antichain())


def test_a_seal_before_the_last_one_is_refused() -> None:
    batcher = Batcher(1)
    batcher.push(np.array([1]), NOTHING, np.array([[3]]), NOTHING, NOTHING)
    batcher.seal(Antichain([(4,)]))
    with pytest.raises(AssertionError, match="would go back"):
        batcher.seal(Antichain([(3,)]))


def test_read_only_and_strided_columns_are_accepted() -> None:
    batcher = Batcher(1)
    keys = np.arange(20)[::2]
    vals = np.arange(10)
    vals.flags.writeable = False
    batcher.push(keys, vals, np.array([[0], [1]])[::-1], np.zeros(20, np.int64)[::2], NOTHING)
    batch = batcher.seal(Antichain([(2,)]))
    assert batch is not None
    assert batch.keys.tolist() == list(range(0, 20, 2))
    assert batch.times.tolist() == [[1]]


@pytest.mark.parametrize(
    ("table", "index", "least"),
    [
        ([(5, 0), (3, 0)], [0, 1], [(3, 0)]),
        ([(0, 5), (3, 0)], [0, 1], [(0, 5), (3, 0)]),
        ([(1, 1), (3, 0)], [1, 1], [(3, 0)]),
        ([(1, 1), (3, 0), (2, 4)], [2, 1], [(2, 4), (3, 0)]),
    ],
)
def test_the_frontier_is_that_of_the_times_in_use_in_any_order(
    table: list[tuple[int, int]], index: list[int], least: list[tuple[int, int]]
) -> None:
    batcher = Batcher(2)
    batcher.push(np.array([1, 2]), NOTHING, np.array(table), np.array(index), NOTHING)
    assert batcher.frontier() == Antichain(least)


def test_rows_without_values_are_counted_when_chunks_are_combined() -> None:
    batcher = Batcher(1)
    for key in range(100):
        batcher.push(np.array([key]), NOTHING, np.array([[5]]), NOTHING, NOTHING)
        assert len(batcher) == key + 1
