"""Blocks, against the columns that they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

from differential.kernels.blocks import (
    columns_of,
    consolidated_block,
    entered_block,
    merged_block,
    pack_block,
)
from differential.kernels.compile import NOTHING
from differential.kernels.consolidate import consolidate
from differential.kernels.few import due_block, due_of, split_of, split_rows
from differential.trace.batch import Batch, frontier_table
from differential.trace.batcher import NOT_DUE, Batcher
from differential.trace.columns import Rows, UpdateColumns
from differential.trace.description import Description
from tests.invariants import check
from tests.oracle.trace import consolidated
from tests.strategies_batches import frontiers, rows_of, rows_of_batch, times, updates
from timely.progress.antichain import Antichain

AS_THEY_ARE = np.empty((0, 0), np.int64)


def lists(rows: Rows) -> list[Any]:
    """Return columns as lists."""
    return [column.tolist() for column in rows]


@settings(deadline=None)
@given(updates(2))
def test_a_block_has_the_columns_that_were_packed_and_owns_them(rows: Rows) -> None:
    block = pack_block(*rows)
    unpacked = columns_of(block)
    assert lists(unpacked) == lists(rows)
    assert unpacked[4].shape == rows[4].shape
    for column in unpacked:
        if column.size:
            assert block.ctypes.data < column.ctypes.data < block.ctypes.data + block.nbytes
    columns = UpdateColumns(len(rows[0]), len(rows[4]), 2, block, None)
    assert lists(columns.rows) == lists(rows)
    inside = rows[0], rows[1], rows[2], rows[3], np.pad(rows[4], ((0, 0), (0, 1)))
    assert lists(columns_of(entered_block(block))) == lists(inside)
    assert lists(columns.entered().rows) == lists(UpdateColumns.of(rows).entered().rows) == lists(inside)
    assert columns.rows_at.tolist() == UpdateColumns.of(rows).rows_at.tolist()
    if len(rows[4]) == 1:
        assert columns.time() == UpdateColumns.of(rows).time() == tuple(rows[4][0].tolist())


@settings(deadline=None)
@given(st.lists(updates(1), min_size=1, max_size=4), frontiers(1, least=1))
def test_a_block_of_consolidated_updates_is_what_consolidation_returns(parts: list[Rows], since: Antichain) -> None:
    for rows in parts:
        block, count, distinct = consolidated_block(*rows)
        assert lists(columns_of(block)) == lists(consolidate(*rows))
        assert (count, distinct) == tuple(map(len, (columns_of(block)[0], columns_of(block)[4])))
    heads = tuple(UpdateColumns.of(rows).head for rows in parts)
    merged = columns_of(merged_block(heads, AS_THEY_ARE)[0])
    assert rows_of(merged) == consolidated(row for rows in parts for row in rows_of(rows))
    [least] = since.elements
    advanced = columns_of(merged_block(heads, since.elements)[0])
    expected = consolidated(
        (key, val, max(time, least), diff) for rows in parts for key, val, time, diff in rows_of(rows)
    )
    assert rows_of(advanced) == expected


@settings(deadline=None)
@given(updates(2), times(2), frontiers(2))
def test_what_is_sealed_at_once_is_what_is_pushed_and_sealed(
    rows: Rows, time: tuple[int, ...], upper: Antichain
) -> None:
    keys, vals, _, diffs, _ = rows
    if not len(keys):
        return
    table = np.array([time])
    slow, fast = Batcher(2), Batcher(2)
    slow.push(keys, vals, table, NOTHING, diffs)
    expected, found = slow.seal(upper), fast.seal_at_once(keys, vals, table, diffs, upper)
    assert len(fast) == 0
    assert (due_block(keys, vals, diffs, table, frontier_table(upper, 2))[1] < 0) == upper.less_equal(time)
    if upper.less_equal(time):
        assert (expected, found) == (None, NOT_DUE)
        assert fast.upper == Antichain([(0, 0)])
    elif expected is None:
        assert found is None
        assert fast.upper == slow.upper == Antichain([(0, 0)])
    else:
        assert found is not None
        check(found)
        assert rows_of_batch(found) == rows_of_batch(expected)
        assert (found.lower, found.upper) == (expected.lower, expected.upper)
        assert fast.upper == slow.upper == upper


@settings(deadline=None)
@given(updates(2), frontiers(2))
def test_few_rows_are_split_into_what_is_due_and_what_waits(rows: Rows, upper: Antichain) -> None:
    frontier = frontier_table(upper, 2)
    passed, count, distinct, waiting, left, times_left, least = split_rows(*rows, frontier)
    due = columns_of(passed)
    same = split_of(pack_block(*rows), frontier)
    assert (same[1:3], same[4:6], same[6].tolist()) == ((count, distinct), (left, times_left), least.tolist())
    assert lists(columns_of(same[0])) == lists(due)
    assert lists(columns_of(same[3])) == lists(columns_of(waiting))
    if count:
        assert (len(due[0]), len(due[4])) == (count, distinct)
        lower = Antichain([(0, 0)])
        check(Batch(UpdateColumns(count, distinct, 2, passed, None), Description(lower, Antichain(), lower)))
    assert (rows_of(due) if count else []) == consolidated(row for row in rows_of(rows) if not upper.less_equal(row[2]))
    rest = rows_of(columns_of(waiting)) if left else []
    assert (len(rest), sorted(rest)) == (left, sorted(row for row in rows_of(rows) if upper.less_equal(row[2])))
    assert {row[2] for row in rest} == set(map(tuple, columns_of(waiting)[4].tolist()))
    minimum = Antichain(row[2] for row in rest)
    assert Antichain(map(tuple, least.reshape(-1, 2).tolist())) == (minimum if times_left > 1 else Antichain())
    if times_left == 1:
        assert (UpdateColumns(left, 1, 2, waiting, None).time(),) == minimum.elements
        again, number = due_of(waiting, ((9, 9),))
        assert rows_of(columns_of(again) if number else _NONE) == consolidated(rest)


_NONE: Rows = (NOTHING, NOTHING, NOTHING, NOTHING, np.empty((0, 2), np.int64))


def test_read_only_and_strided_columns_are_sealed_at_once_too() -> None:
    keys, diffs = np.arange(6)[::2], np.array([1, 2, 3])
    diffs.setflags(False)
    batch = Batcher(1).seal_at_once(keys, NOTHING, np.array([[3]]), diffs, Antichain([(4,)]))
    assert batch is not None
    assert rows_of_batch(batch) == [(0, 0, (3,), 1), (2, 0, (3,), 2), (4, 0, (3,), 3)]
