"""What a merge leaves behind: no time that is out of use, and no room for rows that are gone."""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import NOTHING
from differential.trace.batch import Batch
from differential.trace.merge import Merge
from timely.progress.antichain import Antichain


def _at(epoch: int) -> Antichain:
    return Antichain([(epoch,)])


def _batch(lower: int, upper: int, *updates: tuple[int, int, int]) -> Batch:
    """Return a batch of (key, epoch, diff)."""
    keys, epochs, diffs = (np.array(column, np.int64) for column in zip(*updates))
    times, index = np.unique(epochs, return_inverse=True)
    return Batch.build(keys, NOTHING, index, diffs, times[:, None], _at(lower), _at(upper), _at(0))


def _merged(first: Batch, second: Batch, since: int) -> Batch:
    result = Merge(first, second, _at(since)).complete()
    result.validate()
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


def test_a_time_out_of_use_is_gone_although_hardly_any_row_is() -> None:
    first = _batch(0, 4, (1, 0, 1), *((key, 3, 1) for key in range(10, 40)))
    second = _batch(4, 6, (1, 1, -1), (50, 4, 1), (51, 5, 1))
    result = _merged(first, second, since=1)
    assert len(result) == 32
    assert result.times.tolist() == [[3], [4], [5]]


def test_rows_that_are_gone_take_no_room() -> None:
    rows = range(1000)
    first = _batch(0, 2, *((key, 1, 1) for key in rows))
    second = _batch(2, 3, *((key, 2, -1) for key in rows if key % 4), (5000, 2, 1))
    result = _merged(first, second, since=2)
    assert len(result) == 251
    for column in (result.keys, result.diffs, result.time_index):
        assert column.base is None or column.base.nbytes == column.nbytes
