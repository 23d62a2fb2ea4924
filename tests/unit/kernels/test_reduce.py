"""Edge cases of reductions: no rows, long groups, extreme values, and times that become pending and come due."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import differential.kernels.reduce_fold as kinds
import differential.kernels.reduce_rounds as rounds
from differential.kernels.reduce_layers import PENDING_KEY, PENDING_TIME, PENDING_VAL
from differential.kernels.reduce_replay import ENTERS_FROM, ENTERS_TO, SIDES
from tests.oracle.blocks import columns_in, reduced
from tests.oracle.layers import Layers, Update, rows_of
from tests.oracle.reduce import REDUCTIONS, accumulate, decode_float, encode_float, reduce_by_replay
from timely.order import Time, join
from timely.progress.antichain import Antichain

EMPTY = np.empty(0, np.int64)


def nothing_pending(depth: int) -> Any:
    """Return no pending times."""
    return np.empty((0, PENDING_TIME + depth), np.int64)


NONE_PENDING = nothing_pending(1)


def table_of_pending(keys: Any, vals: Any, times: Any) -> Any:
    """Return pending times as kernels take them; without values all are 0."""
    return np.column_stack([keys, vals if len(vals) else 0 * keys, times])


def visits(state: rounds.ReduceState) -> list[list[int]]:
    """Return the interesting times of all groups, one group after the other."""
    times: list[list[int]] = state.times.tolist()
    return times[state.groups[0, 0] :]


def call(
    kind: int,
    new: list[Update],
    *,
    parameter: int = 0,
    past: list[Update] | None = None,
    emitted: list[Update] | None = None,
    pending: Any = None,
    upper: list[Time] | None = None,
    depth: int = 1,
) -> Any:
    """Reduce `new` after `past`; return the rows emitted, the pending times, and the fault."""
    fresh, older, output = (Layers([rows] if rows else [], depth) for rows in (new, past or [], emitted or []))
    pending = nothing_pending(depth) if pending is None else table_of_pending(*pending)
    frontier = np.array(upper or [], np.int64).reshape(-1, depth)
    table = np.concatenate([older.table, fresh.table])
    *rows, later, fault = reduced(kind, parameter, fresh.table, pending, table, output.table, frontier)
    pending = later[:, PENDING_KEY], later[:, PENDING_VAL], later[:, PENDING_TIME:]
    return rows_of(*rows), pending, fault.tolist()


def test_without_new_rows_and_pending_times_nothing_is_emitted() -> None:
    rows, pending, fault = call(kinds.COUNT, [])
    assert (rows, [len(column) for column in pending], fault) == ([], [0, 0, 0], [])


def test_a_count_of_rows_without_values_times_and_diffs_is_one_row() -> None:
    layers = Layers([[(7, 0, (3,), 1)]], 1)
    none = np.empty((0, 8), np.int64)
    result = reduced(kinds.COUNT, 0, layers.table, NONE_PENDING, layers.table, none, np.array([[4]]))
    assert [column.tolist() for column in result] == [[7], [1], [[3]], [], [], [], []]


def test_a_count_that_becomes_zero_is_retracted() -> None:
    past: list[Update] = [(1, 5, (0,), 1)]
    assert call(kinds.COUNT, [(1, 5, (1,), -1)], past=past, emitted=[(1, 1, (0,), 1)])[0] == [(1, 1, (1,), -1)]


@pytest.mark.parametrize(("kind", "before", "after"), [(kinds.COUNT, 3, 2), (kinds.SUM, 15, 8)])
def test_a_count_or_sum_changes_by_the_output_and_the_new_rows_alone(kind: int, before: int, after: int) -> None:
    # The output is 3 (or 15) from (0, 1) on. The past is not passed.
    emitted: list[Update] = [(1, before, (0, 1), 1)]
    new: list[Update] = [(1, 7, (1, 0), 1), (1, 7, (1, 1), -2)]
    alone = (1, 1 if kind == kinds.COUNT else 7, (1, 0), 1)
    rows, _, fault = call(kind, new, emitted=emitted, parameter=kinds.LINEAR, depth=2)
    assert fault == []
    assert accumulate(emitted + rows, (1, 0)) == {1: {alone[1]: 1}}
    assert accumulate(emitted + rows, (1, 1)) == {1: {after: 1}}


def test_a_sum_of_zero_is_emitted_if_there_are_values() -> None:
    assert call(kinds.SUM, [(1, 5, (0,), 1), (1, -5, (0,), 1)])[0] == [(1, 0, (0,), 1)]
    assert call(kinds.SUM, [(1, 5, (0,), 1), (1, -5, (0,), -1), (1, 2, (0,), 0)])[0] == [(1, 10, (0,), 1)]


def test_a_sum_over_rows_that_cancel_across_layers_is_absent() -> None:
    past: list[Update] = [(1, 5, (0,), 2), (1, 6, (0,), 1)]
    new: list[Update] = [(1, 5, (1,), -2), (1, 6, (1,), -1)]
    assert call(kinds.SUM, new, past=past, emitted=[(1, 16, (0,), 1)])[0] == [(1, 16, (1,), -1)]


def test_extreme_keys_and_values_are_ordinary() -> None:
    least, most = -(2**63), 2**63 - 1
    new: list[Update] = [(least, most, (0,), 1), (least, least, (0,), 1), (most, most, (0,), 1), (most, 0, (0,), 1)]
    assert call(kinds.MIN, new)[0] == [(least, least, (0,), 1), (most, 0, (0,), 1)]
    assert call(kinds.MAX, new)[0] == [(least, most, (0,), 1), (most, most, (0,), 1)]


def test_a_value_takes_as_many_of_the_first_places_as_its_count() -> None:
    new: list[Update] = [(1, 4, (0,), 1), (1, 9, (0,), 3), (1, 6, (0,), 2)]
    assert call(kinds.LARGEST, new, parameter=4)[0] == [(1, 6, (0,), 1), (1, 9, (0,), 3)]
    assert call(kinds.SMALLEST, new, parameter=2)[0] == [(1, 4, (0,), 1), (1, 6, (0,), 1)]
    assert call(kinds.SMALLEST, new, parameter=0)[0] == []


def test_distinct_emits_each_value_of_a_key_and_examines_only_those_touched() -> None:
    past: list[Update] = [(1, value, (0,), 1) for value in range(5)]
    emitted: list[Update] = [(1, value, (0,), 1) for value in range(5)]
    new: list[Update] = [(1, 2, (1,), -1), (1, 3, (1,), 4), (1, 8, (1,), 2)]
    assert call(kinds.DISTINCT, new, past=past, emitted=emitted)[0] == [(1, 2, (1,), -1), (1, 8, (1,), 1)]


@pytest.mark.parametrize("times", [[(2,)], [(2,), (3,)]])
def test_a_negative_diff_is_a_fault_at_its_key_and_time(times: list[Time]) -> None:
    new: list[Update] = [(4, 1, (2,), 1), (5, 7, (2,), -1)] + [(5, 8, time, 1) for time in times]
    assert call(kinds.MIN, new)[2] == [5, 2]
    another: list[Update] = [(6, *rest) for key, *rest in new if key == 5]
    assert call(kinds.MIN, new + another)[2] == [5, 2]


def test_distinct_records_need_no_values() -> None:
    past: list[Update] = [(key, 0, (0,), 1) for key in range(20)]
    new: list[Update] = [(3, 0, (1,), 1), (12, 0, (1,), -1), (40, 0, (1,), 1)]
    assert call(kinds.DISTINCT, new, past=past, emitted=past)[0] == [(12, 0, (1,), -1), (40, 0, (1,), 1)]


def test_a_negative_diff_is_a_fault_of_distinct_at_its_key_value_and_time() -> None:
    new: list[Update] = [(4, 1, (2,), 1), (5, 7, (2,), -1), (5, 8, (2,), 1)]
    assert call(kinds.DISTINCT, new)[2] == [5, 7, 2]
    assert call(kinds.DISTINCT, [*new, (5, 7, (3,), 2)])[2] == [5, 7, 2]


def test_a_record_may_have_more_output_rows_than_its_history_has_left() -> None:
    emitted: list[Update] = [(1, 5, (time,), (-1) ** time) for time in range(41)]
    new: list[Update] = [(1, 5, (50,), -1), (1, 5, (60,), 1)]
    assert call(kinds.DISTINCT, new, past=[(1, 5, (40,), 1)], emitted=emitted)[0] == new


def test_many_places_of_a_group_may_change_at_several_times() -> None:
    past: list[Update] = [(1, val, (0,), 1) for val in range(50)]
    new: list[Update] = [(1, val, (time,), 1) for time in (1, 2) for val in range(100 * time, 100 * time + 50)]
    emitted: list[Update] = [(1, val, (0,), 1) for val in range(10, 50)]
    changes = [(1, 100 * time + val, (time,), 1) for time in (1, 2) for val in range(10, 50)]
    changes += [(1, 100 * time + val, (time + 1,), -1) for time in (0, 1) for val in range(10, 50)]
    assert sorted(call(kinds.LARGEST, new, parameter=40, past=past, emitted=emitted)[0]) == sorted(changes)


def test_values_that_have_been_removed_take_no_place_among_the_first() -> None:
    past: list[Update] = [(1, val, (0,), 1) for val in (6, 7, 8, 9)]
    new: list[Update] = [(1, 5, (1,), 1), (1, 7, (2,), -1), (1, 8, (2,), -1)]
    emitted: list[Update] = [(1, 8, (0,), 1), (1, 9, (0,), 1)]
    assert call(kinds.LARGEST, new, parameter=2, past=past, emitted=emitted)[0] == [(1, 6, (2,), 1), (1, 8, (2,), -1)]


def test_a_group_may_be_at_many_incomparable_times_of_three_coordinates() -> None:
    times = [(first, second, 9 - first - second) for first in range(4) for second in range(4)]
    new: list[Update] = [(1, 0, time, 1) for time in times]
    rows = call(kinds.COUNT, new, depth=3)[0]
    assert sorted(rows) == sorted(reduce_by_replay(new, REDUCTIONS["COUNT"](0)))


def test_a_join_that_is_not_due_becomes_pending_and_is_emitted_when_due() -> None:
    past: list[Update] = [(1, 10, (0, 2), 1)]
    emitted: list[Update] = [(1, 10, (0, 2), 1)]
    new: list[Update] = [(1, 20, (1, 1), 1)]
    upper: list[Time] = [(1, 2), (2, 0)]
    rows, pending, _ = call(kinds.MIN, new, past=past, emitted=emitted, upper=upper, depth=2)
    assert rows == [(1, 20, (1, 1), 1)]
    assert (pending[0].tolist(), pending[2].tolist()) == ([1], [[1, 2]])
    rows, pending, _ = call(
        kinds.MIN, [], past=past + new, emitted=emitted + rows, pending=pending, upper=[(2, 0)], depth=2
    )
    assert rows == [(1, 20, (1, 2), -1)]
    assert len(pending[0]) == 0


def test_a_pending_record_is_emitted_with_new_rows_and_without() -> None:
    past: list[Update] = [(1, 5, (0, 1), 1), (1, 5, (1, 0), 1)]
    emitted, pending, _ = call(kinds.DISTINCT, past, upper=[(0, 2), (1, 1), (2, 0)], depth=2)
    assert sorted(emitted) == [(1, 5, (0, 1), 1), (1, 5, (1, 0), 1)]
    assert [column.tolist() for column in pending] == [[1], [5], [[1, 1]]]
    assert call(kinds.DISTINCT, [], past=past, emitted=emitted, pending=pending, depth=2)[0] == [(1, 5, (1, 1), -1)]
    for diff, expected in ((1, [(1, 5, (1, 1), -1)]), (-1, [(1, 5, (1, 1), -1)]), (-2, [(1, 5, (1, 1), -2)])):
        new: list[Update] = [(1, 5, (1, 1), diff)]
        assert call(kinds.DISTINCT, new, past=past, emitted=emitted, pending=pending, depth=2)[0] == expected


@pytest.mark.parametrize("record", [(0, 9), (1, 3), (1, 5), (1, 7), (2, 3)])
def test_a_pending_record_is_visited_in_order(record: tuple[int, int]) -> None:
    past: list[Update] = [(*record, (0, 1), 1), (*record, (1, 0), 1)]
    emitted, pending, _ = call(kinds.DISTINCT, past, upper=[(0, 2), (1, 1), (2, 0)], depth=2)
    new: list[Update] = [(1, 4, (1, 1), 1), (1, 6, (1, 1), 1)]
    rows = call(kinds.DISTINCT, new, past=past, emitted=emitted, pending=pending, depth=2)[0]
    assert rows == sorted([*new, (*record, (1, 1), -1)])


@pytest.mark.parametrize(("before", "change", "expected"), [(2, -1, 0), (2, -2, -1), (1, 3, 0), (0, 4, 1), (0, 0, 0)])
def test_a_record_without_pending_times_is_emitted_when_it_appears_and_retracted_when_it_disappears(
    before: int, change: int, expected: int
) -> None:
    past: list[Update] = [(1, 5, (0, 0), before)] if before else []
    new: list[Update] = [(1, 5, (0, 1), change), (1, 6, (0, 1), 1)] if change else [(1, 6, (0, 1), 1)]
    emitted: list[Update] = [(1, 5, (0, 0), 1)] if before else []
    rows, pending, fault = call(kinds.DISTINCT, new, past=past, emitted=emitted, depth=2)
    assert [row for row in rows if row[1] == 5] == ([(1, 5, (0, 1), expected)] if expected else [])
    assert (len(pending[0]), fault) == (0, [])


def test_a_record_may_have_appeared_and_disappeared_very_often() -> None:
    past: list[Update] = [(1, 5, (0, time), (-1) ** time) for time in range(40)]
    new: list[Update] = [(1, 5, (0, 40), 1), (1, 5, (1, 0), 1)]
    rows = call(kinds.DISTINCT, new, past=past, emitted=past, depth=2)[0]
    assert sorted(past + rows) == sorted(reduce_by_replay(past + new, REDUCTIONS["DISTINCT"](0)))


def test_a_join_with_an_empty_correction_does_not_become_pending() -> None:
    # At (1, 0) a key gets the value 9; its least value is 5, and 4 from round 3 on.
    past: list[Update] = [(1, 5, (0, 0), 1), (1, 4, (0, 3), 1)]
    emitted: list[Update] = [(1, 5, (0, 0), 1), (1, 5, (0, 3), -1), (1, 4, (0, 3), 1)]
    rows, pending, _ = call(kinds.MIN, [(1, 9, (1, 0), 1)], past=past, emitted=emitted, upper=[(1, 1), (2, 0)], depth=2)
    assert (rows, pending[0].tolist()) == ([], [])
    # 4.5 is the least in rounds 0 to 2; its retraction in round 3 is pending.
    halves = [(key, 2 * value, time, diff) for key, value, time, diff in past]
    emitted_halves = [(key, 2 * value, time, diff) for key, value, time, diff in emitted]
    rows, pending, _ = call(
        kinds.MIN, [(1, 9, (1, 0), 1)], past=halves, emitted=emitted_halves, upper=[(1, 1), (2, 0)], depth=2
    )
    assert sorted(rows) == [(1, 9, (1, 0), 1), (1, 10, (1, 0), -1)]
    assert (pending[0].tolist(), pending[2].tolist()) == ([1], [[1, 3]])


def test_joins_of_incomparable_times_with_empty_corrections_do_not_become_pending() -> None:
    past: list[Update] = [(1, 5, (0, 0), 1), (1, 6, (0, 3), 1)]
    emitted: list[Update] = [(1, 5, (0, 0), 1)]
    new: list[Update] = [(1, 8, (0, 5), 1), (1, 9, (1, 0), 1)]
    for upper in ([(0, 6), (1, 1)], [(1, 1), (0, 6)]):
        rows, pending, _ = call(kinds.MIN, new, past=past, emitted=emitted, upper=upper, depth=2)
        assert (rows, pending[0].tolist()) == ([], [])


def test_incomparable_joins_all_become_pending() -> None:
    new: list[Update] = [(1, 5, time, 1) for time in ((0, 3), (1, 1), (3, 0))]
    _, pending, _ = call(kinds.COUNT, new, upper=[(1, 3), (3, 1)], depth=2)
    assert pending[2].tolist() == [[1, 3], [3, 1]]


def test_joins_with_many_incomparable_new_times_become_pending_without_a_visit() -> None:
    past: list[Update] = [(1, 6, (0, 0, time), 1) for time in range(20, 26)]
    times = [(place, 11 - place, 0) for place in range(12)]
    new: list[Update] = [(1, 5, time, 1) for time in times]
    rows, pending, _ = call(kinds.MIN, new, past=past, upper=[(0, 0, 20)], depth=3)
    assert accumulate(rows, (11, 11, 0)) == {1: {5: 1}}
    assert sorted(map(tuple, pending[2].tolist())) == [(*time[:2], 20) for time in times]


def test_more_joins_may_become_pending_than_there_is_room_for_times() -> None:
    times = [(2, 1, 3, 6), (0, 6, 0, 0), (4, 3, 4, 5), (1, 0, 6, 2), (6, 2, 5, 1), (5, 4, 1, 4), (3, 5, 2, 3)]
    joins = Antichain(join(one, other) for one, other in itertools.combinations(times, 2))
    assert len(joins) == 20
    rows, pending, _ = call(kinds.COUNT, [(1, 5, time, 1) for time in times], upper=list(joins), depth=4)
    assert rows == sorted((1, 1, time, 1) for time in times)
    assert sorted(map(tuple, pending[2].tolist())) == sorted(joins)


def test_pending_times_may_come_due_with_a_single_batch() -> None:
    pending = (np.array([1]), EMPTY, np.array([[2]]))
    past: list[Update] = [(1, 5, (0,), 1)]
    assert call(kinds.COUNT, [], past=past, pending=pending)[0] == [(1, 1, (2,), 1)]
    layers = Layers([past], 1)  # owns what the table has the addresses of
    table = layers.table
    state = rounds.plan(table[:0], table_of_pending(*pending), table, table[:0], np.empty((0, 1), np.int64))
    assert (visits(state), state.input.tolist()) == ([[2]], [[5, 0, 1]])


def test_very_many_pending_times_may_come_due_at_once() -> None:
    times = [[time, 20 - time] for time in range(20)]
    pending = (np.full(20, 1), EMPTY, np.array(times))
    past: list[Update] = [(1, 5, (0, 0), 1)]
    rows = call(kinds.COUNT, [], past=past, pending=pending, depth=2)[0]
    assert accumulate(rows, (10, 10)) == {1: {1: 1}}
    layers = Layers([past], 2)
    table = layers.table
    state = rounds.plan(table[:0], table_of_pending(*pending), table, table[:0], np.empty((0, 2), np.int64))
    assert all(time in visits(state) for time in times)


def test_all_later_rounds_are_visited_at_once() -> None:
    past: list[Update] = [(1, 5, (0, 0), 1), *((1, 6, (0, time), 1) for time in range(1, 200))]
    new: list[Update] = [(1, 9, (1, 0), 1)]
    rows, pending, _ = call(kinds.MIN, new, past=past, emitted=[(1, 5, (0, 0), 1)], upper=[(1, 1), (2, 0)], depth=2)
    assert (accumulate(rows, (1, 200)), pending[2].tolist()) == ({}, [])


def test_joins_of_very_many_incomparable_times_become_pending_without_a_visit() -> None:
    past: list[Update] = [(1, 5, (0, 0), 1), *((1, 6, (0, time), 1) for time in range(3, 20))]
    new: list[Update] = [(1, 8, (0, 25), 1), (1, 9, (1, 0), 1)]
    _, pending, _ = call(kinds.MIN, new, past=past, emitted=[(1, 5, (0, 0), 1)], upper=[(0, 26), (1, 1)], depth=2)
    assert pending[2].tolist() == [[1, 3]]


def test_a_negative_count_at_a_time_that_is_not_due_is_not_a_fault() -> None:
    past: list[Update] = [(1, 5, (0, 0), 1), (1, 5, (0, 3), -1), (1, 6, (0, 0), 1)]
    emitted: list[Update] = [(1, 5, (0, 0), 1), (1, 5, (0, 3), -1), (1, 6, (0, 3), 1)]
    # In round 3 of epoch 1 the value 5 has a count of -1, unless round 3 of epoch 1 inserts it again.
    rows, pending, fault = call(
        kinds.MIN, [(1, 5, (1, 0), -1)], past=past, emitted=emitted, upper=[(1, 1), (2, 0)], depth=2
    )
    assert (sorted(rows), fault) == ([(1, 5, (1, 0), -1), (1, 6, (1, 0), 1)], [])
    assert pending[2].tolist() == [[1, 3]]
    # Not so in epoch 2, which is visited after round 3 of epoch 1, and due.
    new: list[Update] = [(1, 5, (1, 0), -1), (1, 4, (2, 0), 1)]
    rows, _, fault = call(kinds.MIN, new, past=past, emitted=emitted, upper=[(1, 1)], depth=2)
    assert (accumulate(emitted + rows, (2, 0)), fault) == ({1: {4: 1}}, [])


def test_a_time_that_is_due_is_visited_after_others_that_are_not() -> None:
    past: list[Update] = [(1, 5, (0, 0), 1), (1, 4, (0, 3), 1), (1, 3, (0, 4), 1)]
    new: list[Update] = [(1, 5, (1, 0), -1), (1, 9, (2, 0), 1)]
    emitted = reduce_by_replay(past, REDUCTIONS["MIN"](0))
    rows, pending, _ = call(kinds.MIN, new, past=past, emitted=emitted, upper=[(1, 1)], depth=2)
    assert (accumulate(emitted + rows, (2, 0)), pending[2].tolist()) == ({1: {9: 1}}, [[1, 3]])


def test_a_time_at_which_the_history_cancels_is_skipped() -> None:
    past: list[Update] = [(1, 5, (0, 1), 1), (1, 5, (0, 1), -1), (1, 4, (0, 2), 1)]
    new: list[Update] = [(1, 3, (1, 0), 1), (1, 2, (1, 4), 1)]
    fresh, all_rows = Layers([new], 2), Layers([*([row] for row in past), new], 2)
    none, no_times = np.empty((0, 8), np.int64), np.empty((0, 2), np.int64)
    result = reduced(kinds.COUNT, 0, fresh.table, nothing_pending(2), all_rows.table, none, no_times)
    rows = rows_of(*result[:5])
    assert [accumulate(rows, (1, time)) for time in (0, 1, 2, 4)] == [{1: {count: 1}} for count in (1, 1, 2, 3)]


def test_a_pending_time_that_is_not_due_stays_pending() -> None:
    pending = (np.array([1, 1, 3]), EMPTY, np.array([[1, 5], [2, 4], [0, 9]]))
    rows, after, _ = call(kinds.COUNT, [], pending=pending, upper=[(0, 3)], depth=2)
    assert rows == []
    assert [column.tolist() for column in after] == [[1, 1, 3], [0, 0, 0], [[1, 5], [2, 4], [0, 9]]]


@pytest.mark.parametrize("seed", range(30))
def test_a_new_time_sees_the_rows_at_or_before_it_in_every_layer(seed: int) -> None:
    dice = random.Random(seed)
    past: list[list[Update]] = [
        [(1, dice.randrange(9), (dice.randrange(3), dice.randrange(3)), 1) for _ in range(3)] for _ in range(3)
    ]
    new: list[Update] = [(1, 5, (2, dice.randrange(3)), 1)]
    check_counts_of_the_first_key(past, new, range(3))


def check_counts_of_the_first_key(past: list[list[Update]], new: list[Update], coordinates: Iterable[int]) -> None:
    """Count the new rows, all of them due, after layers of the past; compare at all times of these two coordinates."""
    older = [row for rows in past for row in rows]
    emitted = reduce_by_replay(older, REDUCTIONS["COUNT"](0))
    fresh, inputs, outputs = Layers([new], 2), Layers([*past, new], 2), Layers([emitted], 2)
    no_times = np.empty((0, 2), np.int64)
    result = reduced(kinds.COUNT, 0, fresh.table, NONE_PENDING, inputs.table, outputs.table, no_times)
    rows = emitted + rows_of(*result[:5])
    for time in itertools.product(coordinates, repeat=2):
        count = sum(row[0] == 1 and row[2][0] <= time[0] and row[2][1] <= time[1] for row in older + new)
        assert accumulate(rows, time).get(1, {}) == ({count: 1} if count else {})


@pytest.mark.parametrize(
    "layers",
    [
        [[(1, (0, 9)), (2, (0, 0)), (2, (0, 1)), (2, (0, 2))]],
        [[(1, (9, 1)), (2, (0, 0))]],
        [[(1, (0, 0))], [(1, (0, 9))]],
        [[(2, (0, 0))], [(1, (0, 9))]],
        [[(1, (0, 70)), *((2, (0, time)) for time in range(63))]],
    ],
)
def test_rows_at_an_incomparable_time_do_not_count_at_the_new_time(layers: list[list[tuple[int, Time]]]) -> None:
    past: list[list[Update]] = [[(key, 5, time, 1) for key, time in layer] for layer in layers]
    check_counts_of_the_first_key(past, [(1, 5, (5, 3), 1)], (0, 1, 3, 5, 9, 70))


def test_a_group_is_found_however_far_it_is() -> None:
    for spread in (1, 2):
        keys = [number**spread for number in range(100)]
        past: list[Update] = [(key, 0, (0,), 1) for key in keys]
        emitted: list[Update] = [(key, 1, (0,), 1) for key in keys]
        for far in range(1, 100, spread):
            new: list[Update] = [(keys[0], 0, (1,), 1), (keys[far], 0, (1,), 1)]
            assert call(kinds.COUNT, new, past=past, emitted=emitted)[0] == [
                (key, count, (1,), count * 2 - 3) for key in (keys[0], keys[far]) for count in (1, 2)
            ]
        for far in (10**5, 10**15):
            new = [(keys[0], 0, (1,), 1), (far, 0, (1,), 1)]
            assert call(kinds.COUNT, new, past=past, emitted=emitted)[0][2:] == [(far, 1, (1,), 1)]


@pytest.mark.parametrize("order", [1, -1])
def test_records_of_several_batches_come_in_order(order: int) -> None:
    batches: list[list[Update]] = [[(2, 3, (0,), 1)], [(1, 9, (0,), 1), (2, 1, (0,), 1)]]
    layers = Layers(batches[::order], 1)
    none, no_times = np.empty((0, 8), np.int64), np.empty((0, 1), np.int64)
    result = reduced(kinds.DISTINCT, 0, layers.table, NONE_PENDING, layers.table, none, no_times)
    assert rows_of(*result[:5]) == [(1, 9, (0,), 1), (2, 1, (0,), 1), (2, 3, (0,), 1)]


def test_the_minimal_pending_times_are_kept_however_many_there_are() -> None:
    least = [[time, 40 - time, 9] for time in range(28)]
    later = [[time, 42 - time, 9] for time in range(28)]
    pending = (np.zeros(56, np.int64), EMPTY, np.array(later + least))
    _, after, _ = call(kinds.COUNT, [], pending=pending, upper=[(0, 0, 3)], depth=3)
    assert after[2].tolist() == least


def test_all_epochs_at_one_iteration_are_retired_in_one_call() -> None:
    new: list[Update] = [(0, epoch, (epoch, 4), 1) for epoch in range(1000)]
    past: list[Update] = [(0, 5000 + epoch, (epoch, 3), 1) for epoch in range(1000)]
    emitted: list[Update] = [(0, 5000, (0, 3), 1)]
    rows, pending, _ = call(kinds.MIN, new, past=past, emitted=emitted, upper=[(0, 5), (1000, 0)], depth=2)
    assert rows == [(0, 0, (0, 4), 1), (0, 5000, (0, 4), -1)]
    assert len(pending[0]) == 0


@pytest.mark.parametrize("kind", ["COUNT", "SUM", "MIN", "MAX", "LARGEST", "SMALLEST"])
@pytest.mark.parametrize("times", [[(0, 0), (0, 1), (2, 1)], [(0, 2), (1, 1), (2, 0)]])
def test_a_long_group_is_reduced_as_by_the_definition(kind: str, times: list[Time]) -> None:
    dice = random.Random(5)
    new: list[Update] = [(1, dice.randrange(200), dice.choice(times), dice.randrange(1, 3)) for _ in range(500)]
    rows = call(getattr(kinds, kind), new, parameter=30, depth=2)[0]
    assert sorted(rows) == sorted(reduce_by_replay(new, REDUCTIONS[kind](30)))


@pytest.mark.parametrize("sizes", [(1, 1, 20, 1, 1, 20), (20, 20, 1, 3), (1,) * 40])
def test_a_long_group_may_come_in_many_layers(sizes: tuple[int, ...]) -> None:
    dice = random.Random(len(sizes))
    batches: list[list[Update]] = [
        [(1, dice.randrange(200), (time,), 1) for _ in range(size)] for time, size in enumerate(sizes)
    ]
    batches[:2] = [[(1, -1, (0,), 1)], [(1, -2, (1,), 1)]]
    layers = Layers(batches, 1)
    none, no_times = np.empty((0, 8), np.int64), np.empty((0, 1), np.int64)
    result = reduced(kinds.SMALLEST, 1, layers.table, NONE_PENDING, layers.table, none, no_times)
    new = [update for batch in batches for update in batch]
    assert sorted(rows_of(*result[:5])) == sorted(reduce_by_replay(new, REDUCTIONS["SMALLEST"](1)))


@pytest.mark.parametrize("before", range(1, 20))
def test_a_group_may_be_at_as_many_times_as_there_is_room_for(before: int) -> None:
    past: list[Update] = [(1, val, (0, 2 + time), 1) for time in range(before) for val in (7 - time, 9)]
    new: list[Update] = [(1, val, time, 1) for time in ((0, 40), (1, 0)) for val in (20, 30)]
    emitted = reduce_by_replay(past, REDUCTIONS["MIN"](0))
    rows = call(kinds.MIN, new, past=past, emitted=emitted, depth=2)[0]
    assert sorted(emitted + rows) == sorted(reduce_by_replay(past + new, REDUCTIONS["MIN"](0)))


@pytest.mark.parametrize("depth", [1, 2])
def test_many_groups_and_times_return_one_entry_for_each_time(depth: int) -> None:
    dice = random.Random(1)
    times: list[Time] = [(time,) if depth == 1 else (time // 10, time % 10) for time in range(100)]
    new: list[Update] = [(key, 0, dice.choice(times), 1) for key in range(1000)]
    layers = Layers([new], depth)
    none, no_times = np.empty((0, 8), np.int64), np.empty((0, depth), np.int64)
    result = reduced(kinds.COUNT, 0, layers.table, NONE_PENDING, layers.table, none, no_times)
    assert sorted(map(tuple, result[2].tolist())) == times
    assert rows_of(*result[:5]) == [(key, 1, time, 1) for key, _, time, _ in new]


def test_a_record_may_have_more_output_rows_than_input_rows() -> None:
    past: list[Update] = [(1, 5, (0, time, 20 - time), 1) for time in range(20)]
    emitted = reduce_by_replay(past, REDUCTIONS["DISTINCT"](0))
    assert len(emitted) == 39
    new: list[Update] = [(1, 5, (0, 30, 30), 1), (1, 5, (1, 0, 0), 1), (1, 5, (1, 30, 30), -22)]
    rows = call(kinds.DISTINCT, new, past=past, emitted=emitted, depth=3)[0]
    assert sorted(emitted + rows) == sorted(reduce_by_replay(past + new, REDUCTIONS["DISTINCT"](0)))


@pytest.mark.parametrize("number", [2, 12, 30])
def test_there_is_room_for_two_folds_of_a_group(number: int) -> None:
    new: list[Update] = [(1, val, (val % 2,), 1) for val in range(2 * number)]
    rows = call(kinds.LARGEST, new, parameter=number)[0]
    assert sorted(rows) == sorted(reduce_by_replay(new, REDUCTIONS["LARGEST"](number)))


def test_each_group_has_room_for_its_pending_times() -> None:
    new: list[Update] = [(1, 0, (9, 9, 9), 1), *((2, 0, (time, 7 - time, 3), 1) for time in range(8))]
    rows, (keys, _, times), _ = call(kinds.COUNT, new, upper=[(0, 0, 0)], depth=3)
    assert rows == []
    assert [(key, 0, tuple(time), 1) for key, time in zip(keys.tolist(), times.tolist())] == new
    assert plan(new, [], [], [(0, 0, 0)]).pending[:, PENDING_TIME:].tolist() == times.tolist()


def test_as_many_times_may_become_pending_as_a_new_time_has_joins_with_the_history() -> None:
    past: list[Update] = [(1, 5, (time, 20 - time, 0), 1) for time in range(21)]
    emitted = reduce_by_replay(past, REDUCTIONS["COUNT"](0))
    new: list[Update] = [(1, 5, (0, 0, 9), 1)]
    rows, (_, _, times), _ = call(kinds.COUNT, new, past=past, emitted=emitted, upper=[(0, 1, 9), (1, 0, 9)], depth=3)
    assert rows == [(1, 1, (0, 0, 9), 1)]
    assert times.tolist() == [[time, 20 - time, 9] for time in range(21)]


def float_sums(numbers: list[tuple[float, int]]) -> float:
    """Return the sum that `SUM_FLOAT` emits for values and their diffs."""
    rows = call(kinds.SUM_FLOAT, [(1, encode_float(number), (0,), diff) for number, diff in numbers])[0]
    assert len(rows) == 1
    return decode_float(rows[0][1])


@pytest.mark.parametrize("seed", range(8))
def test_sums_of_floats_are_those_of_fsum(seed: int) -> None:
    dice = random.Random(seed)
    scale = [1, 30, 300, 1000][seed % 4]
    numbers = list({math.ldexp(dice.uniform(-1, 1), dice.randint(-scale, min(scale, 900))) for _ in range(200)})
    assert float_sums([(number, 1) for number in numbers]) == math.fsum(numbers)
    diffs = [dice.choice([1, -1, 3, 70_000, -(2**40)]) for _ in numbers]
    summands = [number * 2.0**part * sign for number, diff in zip(numbers, diffs) for part, sign in bits_of(diff)]
    assert float_sums(list(zip(numbers, diffs))) == math.fsum(summands)


def bits_of(diff: int) -> list[tuple[int, int]]:
    """Return the powers of two that add up to `diff`, with its sign."""
    sign = 1 if diff > 0 else -1
    return [(part, sign) for part in range(64) if abs(diff) >> part & 1]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([(0.1, 10)], 1.0),
        ([(1e308, 2)], math.inf),
        ([(-1e308, 2)], -math.inf),
        ([(1e308, 2), (-1.7e308, 1)], 2 * (1e308 - 0.85e308)),
        ([(5e-324, 1)], 5e-324),
        ([(5e-324, -3)], -1.5e-323),
        ([(2.2250738585072014e-308, 1), (5e-324, -1)], 2.225073858507201e-308),
        ([(-0.0, 1)], 0.0),
        ([(math.inf, 1), (1.0, 1)], math.inf),
        ([(-math.inf, 1), (1e308, 5)], -math.inf),
        ([(1.0, 1), (2.0**-53, 1)], 1.0),
        ([(1.0, 1), (2.0**-53, 1), (5e-324, 1)], 1.0 + 2.0**-52),
        ([(1.0 + 2.0**-52, 1), (2.0**-53, 1)], 1.0 + 2.0**-51),
        ([(1.7976931348623157e308, 1), (9.9e291, 1)], 1.7976931348623157e308),
        ([(1.7976931348623157e308, 1), (1e292, 1)], math.inf),
    ],
)
def test_sums_of_extreme_floats_are_those_of_fsum(numbers: list[tuple[float, int]], expected: float) -> None:
    assert float_sums(numbers) == expected


def test_every_lower_bit_affects_the_rounding_of_a_sum() -> None:
    halves = {
        key: [math.ldexp(1.0, shift), math.ldexp(1.0, shift - 53), math.ldexp(1.0, shift - 53 - below)]
        for key, (shift, below) in enumerate(itertools.product(range(32), (1, 2, 31, 32, 33, 64, 65)))
    }
    new: list[Update] = [(key, encode_float(one), (0,), 1) for key, parts in halves.items() for one in parts]
    emitted = {key: decode_float(code) for key, code, _, _ in call(kinds.SUM_FLOAT, new)[0]}
    assert emitted == {key: math.fsum(parts) for key, parts in halves.items()}


def test_a_sum_of_many_floats_is_carried_before_it_overflows() -> None:
    numbers = [2**53 - 1 - number for number in range(33_000)]
    assert float_sums([(float(number), 65_535) for number in numbers]) == float(sum(numbers) * 65_535)


def test_sums_of_floats_without_meaning_are_nan() -> None:
    assert math.isnan(float_sums([(math.inf, 1), (-math.inf, 1)]))
    assert math.isnan(float_sums([(math.nan, 1), (1.0, 1)]))


def test_a_sum_of_floats_keeps_no_trace_of_removed_terms() -> None:
    rows = call(
        kinds.SUM_FLOAT,
        [(1, encode_float(1e300), (0,), 1), (1, encode_float(0.1), (0,), 1), (1, encode_float(1e300), (1,), -1)],
    )[0]
    at_last = accumulate(rows, (1,))[1]
    assert [decode_float(code) for code in at_last] == [0.1]


def test_a_plan_of_nothing_has_no_rounds() -> None:
    none, no_times = np.empty((0, 8), np.int64), np.empty((0, 2), np.int64)
    state = rounds.plan(none, nothing_pending(2), none, none, no_times)
    assert state.rounds == 0
    assert len(state.keys) == 0
    assert len(state.pending) == 0


def plan(new: list[Update], past: list[Update], emitted: list[Update], upper: list[Time]) -> rounds.ReduceState:
    """Return the plan for new rows, each other row in a layer of its own."""
    depth = len(new[0][2])
    fresh, older, output = Layers([new], depth), *(Layers([[row] for row in rows], depth) for rows in (past, emitted))
    table = np.concatenate([older.table, fresh.table])
    frontier = np.array(upper, np.int64).reshape(-1, depth)
    return rounds.plan(fresh.table, nothing_pending(depth), table, output.table, frontier)


def test_a_round_is_at_a_new_time_or_its_join_with_others() -> None:
    past: list[Update] = [(1, 5, (0, 2), 1), (1, 6, (0, 3), 1)]
    state = plan([(1, 7, (1, 5), 1), (1, 8, (5, 1), 1)], past, [], [])
    assert visits(state) == [[1, 5], [5, 1], [5, 2], [5, 3], [5, 5]]


def test_the_joins_of_a_history_that_is_not_due_with_new_times_become_pending() -> None:
    new: list[Update] = [(1, 7, (1, 0, 5), 1), (1, 8, (1, 5, 0), 1)]
    state = plan(new, [(1, 5, (0, 1, 1), 1)], [], [(1, 1, 1)])
    assert state.pending[:, PENDING_TIME:].tolist() == [[1, 1, 5], [1, 5, 1]]


@pytest.mark.parametrize("val", [5, 9])
def test_a_history_that_cancels_leaves_nothing_pending(val: int) -> None:
    past: list[Update] = [(1, val, (0, 3), 1), (1, 5, (0, 4), 1), (1, val, (0, 3), -1)]
    new: list[Update] = [(1, 7, (1, 0), 1), (1, 8, (0, 9), 1)]
    for rows, count in itertools.product(itertools.permutations(past), (1, 2)):
        for input, output in ((rows, ()), ((), rows)):
            state = plan(new[:count], list(input), list(output), [(1, 1), (2, 0)])
            assert state.pending[:, PENDING_TIME:].tolist() == [[1, 4]]


def test_a_round_may_have_empty_groups_and_absent_values() -> None:
    past: list[Update] = [(1, 0, (0,), 1), (2, 0, (0,), 3)]
    new: list[Update] = [(1, 0, (1,), -1), (2, 0, (2,), 1)]
    fresh, both, emitted = Layers([new], 1), Layers([past, new], 1), Layers([[(1, 9, (0,), 1)]], 1)
    state = rounds.plan(fresh.table, NONE_PENDING, both.table, emitted.table, np.empty((0, 1), np.int64))
    active, offsets, vals, counts, fault = state.accumulate(0)
    columns = (state.keys[active], offsets, vals, counts, fault)
    assert [column.tolist() for column in columns] == [[1, 2], [0, 0, 1], [], [4], []]
    chunk = state.settle(np.array([0, 0, 2]), EMPTY, EMPTY)
    assert rows_of(*columns_in(*chunk)) == [(1, 9, (1,), -1), (2, 0, (2,), 2)]


def test_a_round_reports_a_negative_count() -> None:
    layers = Layers([[(3, 1, (5,), -1), (3, 2, (5,), 1)]], 1)
    none, no_times = np.empty((0, 8), np.int64), np.empty((0, 1), np.int64)
    state = rounds.plan(layers.table, NONE_PENDING, layers.table, none, no_times)
    assert state.accumulate(0)[4].tolist() == [3, 5]


def rows_replayed(new: list[Update]) -> int:
    """Return how many rows are read in all rounds that each emit the group as it is."""
    state = plan(new, [], [], [])
    count = 0
    for number in range(state.rounds):
        count += sum(map(len, state.carried))
        active, offsets, vals, counts, _ = state.accumulate(number)
        state.settle(offsets, vals, counts)
        for side in range(SIDES):
            entered = state.groups[active, ENTERS_TO + side] - state.groups[active, ENTERS_FROM + side]
            count += int(entered.sum())
    return count


def test_a_round_replays_what_is_new_in_it_and_what_is_present() -> None:
    """In each of many epochs one record takes the place of another."""

    def replaced(epochs: int) -> list[Update]:
        return [(1, epoch - gone, (epoch,), 1 - 2 * gone) for epoch in range(1, epochs) for gone in (0, 1)]

    assert rows_replayed(replaced(1000)) <= 4 * len(replaced(1000))


def test_rows_at_times_that_later_rounds_cannot_distinguish_are_added_up() -> None:
    """In each of many epochs one record takes the place of another in eight rounds of a loop."""

    def replaced(epochs: int) -> list[Update]:
        return [
            (1, 8 * (epoch - gone) + step, (epoch, step), 1 - 2 * gone)
            for epoch in range(1, epochs)
            for step in range(8)
            for gone in (0, 1)
        ]

    assert rows_replayed(replaced(80)) <= 2.1 * rows_replayed(replaced(40))


@pytest.mark.parametrize("by_order", [False, True])
def test_of_a_long_group_only_the_values_that_are_asked_for_are_read(by_order: bool) -> None:
    """The values in between occur a negative number of times, which is an error where they are read."""
    order = np.array([2, 1, 0, 0, 0, 0, 0, 0, 0])
    past: list[Update] = [(1, val, (0,), 1 if val in (0, 1, 98, 99) else -1) for val in range(100)]
    for first, last, kind, by in ((0, 1, kinds.SMALLEST, kinds.FIRST), (98, 99, kinds.LARGEST, kinds.LAST)):
        emitted: list[Update] = [(1, first, (0,), 1), (1, last, (0,), 1)]
        added, dropped = (-1, last) if first == 0 else (100, first)
        rows, _, fault = call(
            by if by_order else kind,
            [(1, added, (1,), 1)],
            parameter=order.ctypes.data if by_order else 2,
            past=past,
            emitted=emitted,
        )
        assert (rows, fault) == (sorted([(1, added, (1,), 1), (1, dropped, (1,), -1)]), [])
