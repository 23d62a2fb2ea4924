"""Batches: descriptions, entering, addresses, and the invariants they check."""

from __future__ import annotations

import numpy as np
import pytest

from differential.kernels.compile import NOTHING
from differential.kernels.times import in_advance
from differential.trace.batch import Batch, frontier_table, table_of
from differential.trace.columns import UpdateColumns
from differential.trace.description import Description
from tests.invariants import check
from timely.progress.antichain import Antichain

LOWER, UPPER = Antichain([(0,)]), Antichain([(9,)])


def _batch() -> Batch:
    keys, vals, index = np.array([2, 1, 1]), np.array([5, 6, 7]), np.array([0, 1, 0])
    return Batch.build(keys, vals, index, np.array([1, 2, 3]), np.array([[4], [3]]), Description(LOWER, UPPER, LOWER))


def test_a_batch_is_built_sorted_by_key_value_and_time() -> None:
    batch = _batch()
    check(batch)
    assert batch.keys.tolist() == [1, 1, 2]
    assert batch.vals.tolist() == [6, 7, 5]
    assert batch.times.tolist() == [[3], [4]]
    assert batch.time_index.tolist() == [0, 1, 1]
    assert batch.diffs.tolist() == [2, 3, 1]


def test_an_address_counts_rows_and_times_and_is_zero_for_what_is_absent() -> None:
    batch = _batch()
    bare = Batch.build(np.array([3]), NOTHING, NOTHING, NOTHING, np.array([[1]]), Description(LOWER, UPPER, LOWER))
    empty = Batch.empty(Description(LOWER, UPPER, LOWER), 1)
    table = np.array([head[:8] for head in table_of([batch, bare, empty])])
    assert table[:, 0].tolist() == [3, 1, 0]
    assert (table[0, 1:6] != 0).all()
    assert (table[1, 2:5] == 0).all()
    assert table[2].tolist() == [0] * 7 + [1]
    assert table[:, 6:].tolist() == [[2, 1], [1, 1], [0, 1]]
    assert table_of([]) == ()


def test_entering_appends_a_zero_and_shares_the_columns_of_many_rows() -> None:
    description = Description(LOWER, UPPER, LOWER)
    many = Batch.build(np.arange(1000), NOTHING, NOTHING, NOTHING, np.array([[3]]), description)
    assert many.enter().keys is many.keys
    assert many.enter().times.tolist() == [[3, 0]]
    batch = _batch()
    inner = batch.enter()
    check(inner)
    assert inner.times.tolist() == [[3, 0], [4, 0]]
    for ours, theirs in zip(inner.columns.rows[:4], batch.columns.rows[:4]):
        assert ours.tolist() == theirs.tolist()
    assert (inner.lower, inner.upper) == (Antichain([(0, 0)]), Antichain([(9, 0)]))
    assert batch.enter() is inner


def test_the_bytes_of_a_batch_are_those_of_its_columns() -> None:
    batch = _batch()
    columns = (batch.keys, batch.vals, batch.time_index, batch.diffs, batch.times)
    assert batch.nbytes == sum(column.nbytes for column in columns) == 14 * 8


def test_reading_as_of_a_frontier_replaces_times_by_their_representatives() -> None:
    keys, index = np.arange(4), np.array([0, 1, 2, 0])
    table = np.array([[3], [4], [7]])
    batch = Batch.build(keys, NOTHING, index, NOTHING, table, Description(LOWER, UPPER, LOWER))
    for since, expected in ((5, [5, 5, 7, 5]), (8, [8, 8, 8, 8])):
        later = batch.as_of(Antichain([(since,)]))
        assert later.keys is batch.keys
        times = later.times[later.time_index] if len(later.time_index) else np.repeat(later.times, 4, axis=0)
        assert times.ravel().tolist() == expected
        assert len(later.time_index) == (4 if len(set(expected)) > 1 else 0)
        assert later.since == Antichain([(since,)])
    assert batch.as_of(Antichain([(2,)])) is batch
    assert batch.as_of(LOWER) is batch


def test_a_frontier_becomes_a_table() -> None:
    times = np.array([[1, 1], [1, 2], [2, 1]])
    assert in_advance(times, frontier_table(Antichain([(1, 2), (2, 0)]), 2)).tolist() == [0, 1, 1]
    for depth in (1, 3):
        assert frontier_table(Antichain(), depth).shape == (0, depth)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"keys": np.array([2, 1, 1])}, "not sorted"),
        ({"diffs": np.array([1, 0, 3])}, "a diff is 0"),
        ({"diffs": np.array([1, 1, 1])}, "all 1 are spelled out"),
        ({"vals": np.zeros(3, np.int64)}, "all 0 are spelled out"),
        ({"times": np.array([[4], [3]])}, "not sorted and distinct"),
        ({"times": np.array([[3], [4], [5]])}, "not those in use"),
        ({"times": np.array([[3], [10]])}, "outside the interval"),
        ({"vals": np.array([1])}, "neither 0 nor 3"),
    ],
)
def test_a_broken_invariant_is_named(change: dict[str, np.ndarray], words: str) -> None:
    rows = dict(zip(("keys", "vals", "time_index", "diffs", "times"), _batch().columns.rows)) | change
    columns = rows["keys"], rows["vals"], rows["time_index"], rows["diffs"], rows["times"]
    batch = Batch(UpdateColumns.of(columns), Description(LOWER, UPPER, LOWER))
    with pytest.raises(AssertionError, match=words):
        check(batch)
