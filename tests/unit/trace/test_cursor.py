"""Reading contents, case by case."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from differential.kernels.compile import NOTHING
from differential.trace import cursor
from differential.trace.batch import Batch
from differential.trace.cursor import SHORT, accumulate, lookup
from differential.trace.description import Description
from tests.invariants import check
from timely.order import Time
from timely.progress.antichain import Antichain

Row = tuple[int, int, Time, int]


def batch_of(*rows: Row, since: Antichain | None = None) -> Batch:
    """Return a batch of rows at times of one coordinate."""
    keys, vals, diffs = (np.array([row[place] for row in rows], np.int64) for place in (0, 1, 3))
    times, index = np.array([row[2] for row in rows], np.int64), np.arange(len(rows))
    start = Antichain([(0,)])
    return Batch.build(
        keys, vals, index, diffs, times, Description(start, Antichain(), start if since is None else since)
    )


def contents(*batches: Batch, time: Time) -> list[tuple[int, int, int]]:
    columns = accumulate(batches, time)
    assert all(column.dtype == np.int64 for column in columns)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_no_batches_hold_nothing() -> None:
    assert contents(time=(0,)) == []


def test_an_empty_batch_holds_nothing() -> None:
    start = Antichain([(0,)])
    assert contents(Batch.empty(Description(start, start, start), 1), time=(7,)) == []


def test_updates_later_than_the_time_do_not_count() -> None:
    batch = batch_of((1, 0, (0,), 1), (2, 0, (5,), 1))
    assert contents(batch, time=(4,)) == [(1, 0, 1)]
    assert contents(batch, time=(5,)) == [(1, 0, 1), (2, 0, 1)]


def test_batches_add_up_and_updates_that_cancel_are_gone() -> None:
    first, second = batch_of((1, 8, (0,), 1), (2, 9, (0,), 3)), batch_of((1, 8, (1,), -1), (2, 9, (1,), 1))
    assert contents(first, second, time=(0,)) == [(1, 8, 1), (2, 9, 3)]
    assert contents(first, second, time=(1,)) == [(2, 9, 4)]


def test_rows_are_sorted_by_key_and_value_whichever_batch_they_are_in() -> None:
    first, second = batch_of((3, 0, (0,), 1), (1, 5, (0,), 1)), batch_of((2, 7, (0,), 1), (1, -5, (0,), 1))
    assert contents(first, second, time=(0,)) == [(1, -5, 1), (1, 5, 1), (2, 7, 1), (3, 0, 1)]


def test_a_time_is_compared_by_the_product_order() -> None:
    keys, times = np.arange(3), np.array([[0, 4], [1, 0], [0, 0]])
    origin = Antichain([(0, 0)])
    batch = Batch.build(keys, NOTHING, np.arange(3), NOTHING, times, Description(origin, Antichain(), origin))
    assert contents(batch, time=(0, 9)) == [(0, 0, 1), (2, 0, 1)]
    assert contents(batch, time=(9, 3)) == [(1, 0, 1), (2, 0, 1)]


@pytest.mark.parametrize("rows", [10, 1000])
def test_the_columns_are_copies_of_those_of_the_batch(rows: int) -> None:
    batch = batch_of(*((key, 1, (0,), 2) for key in range(rows)))
    for column in accumulate([batch], (0,)):
        column[:] = -1
    check(batch)
    assert contents(batch, time=(0,)) == [(key, 1, 2) for key in range(rows)]


def test_a_time_that_compaction_has_passed_is_refused() -> None:
    batch = batch_of((1, 0, (5,), 1), since=Antichain([(5,)]))
    assert contents(batch, time=(5,)) == [(1, 0, 1)]
    with pytest.raises(AssertionError, match=r"as of \(4,\) are compacted away"):
        accumulate([batch], (4,))


def test_few_rows_of_a_large_key_are_read_to_find_some(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [
        batch_of(*((7, value, (epoch,), 1) for value in range(10_000)), *((8, 1, (epoch,), 1),)) for epoch in range(3)
    ]
    narrow, read = cursor._narrowed, list[int]()

    def narrowed(*columns: Any) -> Any:
        first, end = narrow(*columns)
        read.append(int((end - first).sum()))
        return first, end

    monkeypatch.setattr(cursor, "_narrowed", narrowed)
    sought = np.arange(-10, 20_000, 200)
    place, vals, counts = lookup(batches, np.full(len(sought), 7), (2,), sought)
    assert vals.tolist() == sought[place].tolist() == [value for value in sought.tolist() if 0 <= value < 10_000]
    assert counts.tolist() == [3] * len(vals)
    assert len(read) == 3
    assert max(read) < 3 * SHORT * len(sought)


def test_all_updates_of_a_pair_count() -> None:
    batch = batch_of(*((7, value, (epoch,), 1) for value in range(3) for epoch in range(5 * SHORT)))
    columns = lookup([batch], np.array([7, 8]), (5 * SHORT,), np.array([1, 1]))
    assert [column.tolist() for column in columns] == [[0], [1], [5 * SHORT]]
