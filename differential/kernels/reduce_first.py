"""The state of a reduction in rounds whose groups have no history: that of the first batch, which may be all there is.

All rows are new and at one time, so each group has one visit, at this time, and accumulates to its rows as they stand.
`plan_rounds` would come to the same, but looks at the times of each group.

*Cost.* Two passes over the rows.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Batches, Ints, Table, Times, bare, kernel
from differential.kernels.memory import DIFFS, KEYS, ROWS, TIME_INDEX, TIMES, VALS, at, column, times_of
from differential.kernels.reduce_replay import (
    DIFF,
    GROUP_KEY,
    INPUT,
    PLANNED,
    ROW_WIDTH,
    ROWS_FROM,
    TIME,
    VAL,
    VISITS_FROM,
)
from differential.kernels.reduce_times import is_due


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
