"""The result of a merge: it has no unused times, and no room for rows that have cancelled."""

from __future__ import annotations

import numpy as np
import pytest

from differential.kernels.compile import NOTHING
from differential.trace.batch import Batch
from differential.trace.description import Description
from differential.trace.merge import Merge
from tests.invariants import check
from timely.progress.antichain import Antichain


def _at(epoch: int) -> Antichain:
    return Antichain([(epoch,)])


def _batch(lower: int, upper: int, *updates: tuple[int, int, int]) -> Batch:
    """Return a batch of (key, epoch, diff)."""
    keys, epochs, diffs = (np.array(column, np.int64) for column in zip(*updates))
    times, index = np.unique(epochs, return_inverse=True)
    return Batch.build(keys, NOTHING, index, diffs, times[:, None], Description(_at(lower), _at(upper), _at(0)))


def _merged(first: Batch, second: Batch, since: int) -> Batch:
    result = Merge(first, second, _at(since)).complete()
    check(result)
    return result


def _updates(batch: Batch) -> list[tuple[int, int, int]]:
    index = batch.time_index if len(batch.time_index) else np.zeros(len(batch), np.int64)
    diffs = batch.diffs if len(batch.diffs) else np.ones(len(batch), np.int64)
    return [*zip(batch.keys.tolist(), batch.times[index, 0].tolist(), diffs.tolist())]


def test_a_time_at_which_everything_cancels_is_gone_and_the_others_keep_their_rows() -> None:
    first = _batch(0, 4, (1, 0, 1), (2, 3, 1))
    second = _batch(4, 7, (1, 4, -1), (2, 4, -1), (3, 5, 1), (4, 6, 1), (5, 6, 2))
    result = _merged(first, second, since=4)
    assert _updates(result) == [(3, 5, 1), (4, 6, 1), (5, 6, 2)]
    assert result.times.tolist() == [[5], [6]]


def test_an_unused_time_is_dropped_even_if_hardly_any_row_is() -> None:
    first = _batch(0, 4, (1, 0, 1), *((key, 3, 1) for key in range(10, 40)))
    second = _batch(4, 6, (1, 1, -1), (50, 4, 1), (51, 5, 1))
    result = _merged(first, second, since=1)
    assert len(result) == 32
    assert result.times.tolist() == [[3], [4], [5]]


def test_removed_rows_take_no_room() -> None:
    rows = range(1000)
    first = _batch(0, 2, *((key, 1, 1) for key in rows))
    second = _batch(2, 3, *((key, 2, -1) for key in rows if key % 4), (5000, 2, 1))
    result = _merged(first, second, since=2)
    assert len(result) == 251
    for column in (result.keys, result.diffs, result.time_index):
        assert column.base is None or column.base.nbytes == column.nbytes


def test_rows_at_the_end_of_a_batch_whose_times_become_the_same_are_one() -> None:
    pair, other = ((5, 1, 1), (5, 2, 1)), ((10, 4, 1),)
    assert _updates(_merged(_batch(0, 3, *pair), _batch(3, 5, *other), since=3)) == [(5, 3, 2), (10, 4, 1)]
    other = ((10, 0, 1),)
    assert _updates(_merged(_batch(0, 1, *other), _batch(1, 3, *pair), since=3)) == [(5, 3, 2), (10, 3, 1)]


def test_rows_of_very_many_times_become_one() -> None:
    first = _batch(0, 100, *((7, epoch, 1) for epoch in range(100)), (8, 3, 1))
    second = _batch(100, 200, *((7, epoch, 1) for epoch in range(100, 200)), (9, 100, 1))
    assert _updates(_merged(first, second, since=200)) == [(7, 200, 200), (8, 200, 1), (9, 200, 1)]


@pytest.mark.parametrize("val", [-1, 0, 1, 2])
def test_values_that_one_side_does_not_hold_are_in_order_with_those_of_the_other(val: int) -> None:
    def valued(epoch: int) -> Batch:
        columns = np.array([5]), np.array([val]), NOTHING, NOTHING, np.array([[epoch]])
        return Batch.build(*columns, Description(_at(epoch), _at(epoch + 1), _at(0)))

    pairs = (valued(0), _batch(1, 3, (5, 1, 1), (5, 2, 1))), (_batch(0, 2, (5, 0, 1), (5, 1, 1)), valued(2))
    for first, second in pairs:
        result = _merged(first, second, since=3)
        vals = result.vals.tolist() or [0] * len(result)
        assert [*zip(vals, result.diffs.tolist())] == (sorted([(0, 2), (val, 1)]) if val else [(0, 3)])
