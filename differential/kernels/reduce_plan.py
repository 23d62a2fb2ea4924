"""The plan of a reduction in rounds: the groups to reduce, their interesting times, and their consolidated histories.

*A first batch* may be all there is (`is_first`). If its rows are at one time, each group has one visit, at this time,
and accumulates to its rows as they stand. `plan_rounds` would come to the same, but looks at the times of each group.

*Cost.* That of gathering each group, as in `reduce`: the groups are planned by functions that make no array, because
counting references to arrays costs more than a small group. A first batch costs two passes over its rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from differential.kernels.compile import Batches, Ints, Table, Times, bare, inner, kernel
from differential.kernels.memory import DIFFS, KEYS, ROWS, TIME_INDEX, TIMES, VALS, at, column, times_of
from differential.kernels.reduce_history import (
    TABLE,
    VISITS,
    Scratch,
    distinct_at_most,
    due_chain,
    gather,
    interesting,
    new_times,
    no_times,
    room_for_times,
)
from differential.kernels.reduce_layers import FROM, KEY, PENDING_TIME, TO, Walk, next_group, seek, unseek, walk_through
from differential.kernels.reduce_output import COUNTS, POSTPONED, add_postponed
from differential.kernels.reduce_replay import (
    DIFF,
    GROUP_KEY,
    INPUT,
    OUTPUT,
    PLANNED,
    ROW_WIDTH,
    ROWS_FROM,
    SIDES,
    TIME,
    VAL,
    VISIT,
    VISITS_FROM,
    to_meets,
)
from differential.kernels.reduce_rows import (
    ROW_DIFF,
    ROW_TIME,
    ROW_VAL,
    Rows,
    consolidate_rows,
    copied,
    no_rows,
    transposed,
    with_room,
)
from differential.kernels.reduce_times import copy_entries, is_due
from differential.kernels.reduce_visit import (
    DONE,
    GOES_ON,
    HAS_PENDING,
    NEEDS_CLOSURE,
    NEEDS_ROOM,
    PENDINGS,
    RANKED,
    ROOM_ROWS,
    ROOM_TIMES,
    STATE_WIDTH,
)

_GROUPS, _VISITS, _TIMES, _ROWS, _LENGTHS = 0, 1, 2, 3, 3 + SIDES
"""How many groups, visits, times of the history, and rows of the input and of the output are planned."""


class ReducePlan(NamedTuple):
    """The state before round 0, as columns with room for more, and how many items they have."""

    groups: Table
    visits: Table
    times: Table
    input: Table
    output: Table
    lengths: Ints


@inner
def _no_plan() -> ReducePlan:
    visits, times = np.empty((1, 0), np.int64), np.empty((1, 0), np.int64)
    input, output = np.empty((ROW_WIDTH, 0), np.int64), np.empty((ROW_WIDTH, 0), np.int64)
    return ReducePlan(np.empty((PLANNED, 1), np.int64), visits, times, input, output, np.zeros(_LENGTHS, np.int64))


@inner
def _with_room(plan: ReducePlan, visits: int, times: int, rows: int, depth: int) -> ReducePlan:
    """Return a plan with room for one more group, of as many visits, times and rows."""
    lengths = plan.lengths
    return ReducePlan(
        with_room(plan.groups, lengths[_GROUPS] + 2),
        with_room(plan.visits, (lengths[_VISITS] + visits) * depth),
        with_room(plan.times, (lengths[_TIMES] + times) * depth),
        with_room(plan.input, lengths[_ROWS + INPUT] + rows),
        with_room(plan.output, lengths[_ROWS + OUTPUT] + rows),
        lengths,
    )


@bare
def _has_room(plan: ReducePlan, visits: int, times: int, rows: int, depth: int) -> bool:
    """Whether there is room for one more group, of as many visits, times and rows."""
    lengths = plan.lengths
    return bool(
        lengths[_GROUPS] + 2 <= plan.groups.shape[1]
        and (lengths[_VISITS] + visits) * depth <= plan.visits.shape[1]
        and (lengths[_TIMES] + times) * depth <= plan.times.shape[1]
        and lengths[_ROWS + INPUT] + rows <= plan.input.shape[1]
        and lengths[_ROWS + OUTPUT] + rows <= plan.output.shape[1]
    )


@bare
def _put_rows(rows: Table, count: int, more: Rows, first: int, last: int, base: int) -> None:
    """Put rows after `count` others. Ranks become rows of `times`, where those of the group start at `base`."""
    for row in range(first, last):
        place = count + row - first
        rows[VAL, place] = more[ROW_VAL, row]
        rows[TIME, place] = more[ROW_TIME, row] + base
        rows[DIFF, place] = more[ROW_DIFF, row]


@bare
def _put_group(
    plan: ReducePlan, key: int, scratch: Scratch, rows: Rows, bounds: Ints, n: int, steps: int, depth: int
) -> None:
    """Put a gathered group with `n` times and as many visits as `steps` into a plan, which has room for it."""
    lengths = plan.lengths
    times = lengths[_TIMES]
    if steps > 1:
        _sort_by_time(rows, 0, bounds[0])
        _sort_by_time(rows, bounds[1], bounds[2])
    _begin(plan.groups, lengths, key)
    copy_entries(scratch.vectors[VISITS], 0, plan.visits[0], lengths[_VISITS], steps, depth)
    copy_entries(scratch.vectors[TABLE], 0, plan.times[0], times, n, depth)
    _put_rows(plan.input, lengths[_ROWS + INPUT], rows, 0, bounds[0], times)
    _put_rows(plan.output, lengths[_ROWS + OUTPUT], rows, bounds[1], bounds[2], times)
    lengths[_GROUPS] += 1
    lengths[_VISITS] += steps
    lengths[_TIMES] += n
    lengths[_ROWS + INPUT] += bounds[0]
    lengths[_ROWS + OUTPUT] += bounds[2] - bounds[1]


@bare
def _begin(groups: Table, lengths: Ints, key: int) -> None:
    """Note the key of a group, and where its visits, its input rows and its output rows start."""
    group = lengths[_GROUPS]
    groups[VISITS_FROM, group], groups[VISIT, group], groups[GROUP_KEY, group] = lengths[_VISITS], lengths[_VISITS], key
    for side in range(SIDES):
        groups[ROWS_FROM + side, group] = lengths[_ROWS + side]


@bare
def _swap_columns(rows: Rows, first: int, last: int) -> None:
    for row in range(first, last):
        rows[ROW_VAL, row], rows[ROW_TIME, row] = rows[ROW_TIME, row], rows[ROW_VAL, row]


@bare
def _sort_by_time(rows: Rows, first: int, last: int) -> None:
    """Sort consolidated rows by (time, value)."""
    _swap_columns(rows, first, last)
    consolidate_rows(rows, first, last)
    _swap_columns(rows, first, last)


@inner
def _times_of_state(times: Table, count: int, visits: Table, groups: Table, n: int, depth: int) -> Table:
    """Return the `count` times of the history, the meets and the visits of `n` groups; refer `groups` to these."""
    visit_count = groups[VISITS_FROM, n]
    times = with_room(times, (count + 2 * visit_count) * depth)
    for _ in range(2):
        copy_entries(visits[0], 0, times[0], count, visit_count, depth)
        count += visit_count
    for group in range(n):
        first, last = groups[VISITS_FROM, group] - 2 * visit_count, groups[VISITS_FROM, group + 1] - 2 * visit_count
        to_meets(times[0], count + first, count + last, depth)
    for group in range(n + 1):
        groups[VISITS_FROM, group] += count - visit_count
    return copied(times[0], count * depth).reshape((count, depth))


@bare
def _plan_group(
    walk: Walk, earlier: Table, upper: Table, scratch: Scratch, rows: Rows, bounds: Ints, plan: ReducePlan, state: Ints
) -> int:
    """Put the present group into a plan, or return why only the caller can (see `reduce_visit`)."""
    depth, layers, group, room = upper.shape[1], walk.layers, walk.group, scratch.marks.shape[1]
    seek(layers, 0, walk.deltas, group, False)
    state[ROOM_TIMES] = 1 + group[TO] - group[FROM] + distinct_at_most(layers, 0, walk.deltas)
    if state[ROOM_TIMES] > room:
        return NEEDS_ROOM
    state[RANKED] = 0
    state[PENDINGS], new_count = new_times(walk, earlier, upper, scratch)
    if new_count == 0:
        return HAS_PENDING
    state[ROOM_ROWS] = seek(layers, walk.deltas, len(layers), group, False)
    state[ROOM_TIMES] = 1 + new_count + distinct_at_most(layers, walk.deltas, len(layers))
    if state[ROOM_ROWS] > rows.shape[1] or state[ROOM_TIMES] > room:
        return NEEDS_ROOM
    n = state[RANKED] = gather(walk, upper, scratch, new_count, rows, bounds, False, False)
    if not _has_room(plan, n, n, state[ROOM_ROWS], depth):
        return NEEDS_ROOM
    steps = due_chain(scratch.vectors, scratch.marks, n, depth) if state[PENDINGS] == 0 else -1
    if steps < 0:
        return NEEDS_CLOSURE
    _put_group(plan, group[KEY], scratch, rows, bounds, n, steps, depth)
    return GOES_ON


@bare
def _plan_groups(
    walk: Walk, earlier: Table, upper: Table, scratch: Scratch, rows: Rows, bounds: Ints, plan: ReducePlan, state: Ints
) -> int:
    """Plan group after group until only the caller can go on; return why (see `reduce_visit`).

    Nothing is allocated here. After NEEDS_ROOM the group is the next one again.
    """
    while next_group(walk, earlier, False):
        why = _plan_group(walk, earlier, upper, scratch, rows, bounds, plan, state)
        if why == NEEDS_ROOM:
            unseek(walk.layers, walk.group)
        if why != GOES_ON:
            return why
    return DONE


@kernel
def plan_rounds(
    delta_table: Batches, earlier: Table, input_table: Batches, output_table: Batches, upper: Times
) -> tuple[Table, Table, Table, Table, Table]:
    """Return `(groups, times, input, output, pending)` of the state before round 0."""
    depth = upper.shape[1]
    walk = walk_through(delta_table, input_table, output_table, depth)
    scratch, rows, plan = no_times(walk, depth), no_rows(), _no_plan()
    bounds, counts, state = np.empty(3, np.int64), np.zeros(COUNTS, np.int64), np.zeros(STATE_WIDTH, np.int64)
    postponed = np.empty((PENDING_TIME + depth, 0), np.int64)
    while True:
        scratch, rows = room_for_times(scratch, state[ROOM_TIMES], depth), with_room(rows, state[ROOM_ROWS])
        plan = _with_room(plan, state[RANKED], state[RANKED], state[ROOM_ROWS], depth)
        # Counting references costs more than planning a small group, so the loop over groups is a function of its own.
        why = _plan_groups(walk, earlier, upper, scratch, rows, bounds, plan, state)
        if why == DONE:
            break
        if why == NEEDS_ROOM:
            continue
        pending_count = state[PENDINGS]
        if why == NEEDS_CLOSURE:
            n = state[RANKED]
            scratch, steps, _, pending_count = interesting(scratch, n, upper, False, pending_count)
            plan = _with_room(plan, steps, n, state[ROOM_ROWS], depth)
            _put_group(plan, walk.group[KEY], scratch, rows, bounds, n, steps, depth)
        if pending_count > 0:
            postponed = add_postponed(postponed, counts, walk.group, scratch.pending, pending_count, depth)
    lengths = plan.lengths
    _begin(plan.groups, lengths, 0)
    times = _times_of_state(plan.times, lengths[_TIMES], plan.visits, plan.groups, lengths[_GROUPS], depth)
    return (
        transposed(plan.groups, lengths[_GROUPS] + 1),
        times,
        transposed(plan.input, lengths[_ROWS + INPUT]),
        transposed(plan.output, lengths[_ROWS + OUTPUT]),
        transposed(postponed, counts[POSTPONED]),
    )


def is_first(delta_table: Batches, earlier: Table, input_table: Batches, output_table: Batches) -> bool:
    """Whether one new batch, at one time, is all that there is."""
    if len(delta_table) != 1 or len(input_table) != 1 or len(output_table) or len(earlier):
        return False
    delta, input = delta_table[0], input_table[0]
    return bool(delta[ROWS]) and not delta[TIME_INDEX] and bool(np.array_equal(delta[:TIMES], input[:TIMES]))


@bare
def _groups_in(keys: Ints) -> int:
    count = 0
    for row in range(len(keys)):
        if row == 0 or keys[row] != keys[row - 1]:
            count += 1
    return count


@kernel
def plan_first(delta_table: Batches, upper: Times) -> tuple[Table, Table, Table]:
    """Return `(groups, times, input)` of the state before round 0, without groups if the time is not due."""
    keys, vals = column(delta_table, 0, KEYS), column(delta_table, 0, VALS)
    diffs, time = column(delta_table, 0, DIFFS), times_of(delta_table, 0)
    depth, rows = upper.shape[1], delta_table[0, ROWS]
    count = _groups_in(keys) if is_due(upper, time[0], 0, depth) else 0
    groups, input = np.zeros((count + 1, PLANNED), np.int64), np.empty((rows, ROW_WIDTH), np.int64)
    # One time of the history, and for each visit its meet and its time.
    times = np.empty((1 + 2 * count, depth), np.int64)
    for row in range(len(times)):
        for d in range(depth):
            times[row, d] = time[0, d]
    if count == 0:
        return groups, times, input
    group = -1
    for row in range(rows):
        if row == 0 or keys[row] != keys[row - 1]:
            group += 1
            groups[group, GROUP_KEY], groups[group, ROWS_FROM + INPUT] = keys[row], row
        input[row, VAL], input[row, TIME], input[row, DIFF] = at(vals, row, 0), 0, at(diffs, row, 1)
    groups[count, ROWS_FROM + INPUT] = rows
    for group in range(count + 1):
        groups[group, VISITS_FROM] = 1 + count + group
    return groups, times, input
