"""Updates in the order of their times, so that those of some times can be taken without a look at the others.

A batcher receives updates of many times and gives out those that are not in advance of a frontier. `by_time` sorts
updates by time once (a counting sort: two passes), so that the rows of a time are a run; `take_times` copies the runs
of given times, and costs their rows. `take_passed` is for few rows in several parts, which it puts together and splits
(`few`).
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Batches, Ints, Table, Times, kernel
from differential.kernels.few import split_rows
from differential.kernels.memory import (
    COORDINATES,
    DIFFS,
    KEYS,
    ROWS,
    TIME_INDEX,
    TIME_ROWS,
    VALS,
    at,
    column,
    empty,
    times_of,
)
from differential.kernels.times import intern


@kernel
def by_time(
    keys: Ints, vals: Ints, time_index: Ints, diffs: Ints, times: Table
) -> tuple[Ints, Ints, Ints, Table, Table]:
    """Return keys, values and diffs in the order of times, the distinct times, and each time's first row and end."""
    table, place = intern(times)
    runs = np.zeros((len(table), 2), np.int64)
    for row in range(len(keys)):
        runs[place[at(time_index, row, 0)], 1] += 1
    # `runs[time, 1]` is first the number of the time's rows, then the next row, and finally the end.
    start = 0
    for time in range(len(table)):
        count = runs[time, 1]
        runs[time, 0] = runs[time, 1] = start
        start += count
    new_keys, new_vals, new_diffs = empty(len(keys)), empty(len(vals)), empty(len(diffs))
    for row in range(len(keys)):
        time = place[at(time_index, row, 0)]
        target = runs[time, 1]
        runs[time, 1] += 1
        new_keys[target] = keys[row]
        if len(vals) != 0:
            new_vals[target] = vals[row]
        if len(diffs) != 0:
            new_diffs[target] = diffs[row]
    return new_keys, new_vals, new_diffs, table, runs


@kernel
def take_times(keys: Ints, vals: Ints, diffs: Ints, times: Table, runs: Table) -> tuple[Ints, Ints, Ints, Ints, Table]:
    """Return the rows of `runs`, a run for each of `times`, as keys, values, time index, diffs and times."""
    rows = 0
    for time in range(len(runs)):
        rows += runs[time, 1] - runs[time, 0]
    new_keys = empty(rows)
    new_vals = empty(rows if len(vals) != 0 else 0)
    new_index = empty(rows if len(times) > 1 else 0)
    new_diffs = empty(rows if len(diffs) != 0 else 0)
    target = 0
    for time in range(len(runs)):
        for row in range(runs[time, 0], runs[time, 1]):
            new_keys[target] = keys[row]
            if len(vals) != 0:
                new_vals[target] = vals[row]
            if len(times) > 1:
                new_index[target] = time
            if len(diffs) != 0:
                new_diffs[target] = diffs[row]
            target += 1
    return new_keys, new_vals, new_index, new_diffs, times


@kernel
def take_passed(parts: Batches, upper: Times) -> tuple[Ints, int, int, Ints, int, int, Ints]:
    """Return what `split_rows` does for the rows of all parts."""
    rows = distinct = 0
    for part in range(len(parts)):
        rows += parts[part, ROWS]
        distinct += parts[part, TIME_ROWS]
    # The tables of times of all parts are put one after another; a part's index is valid from its base on.
    times, columns = np.empty((distinct, parts[0, COORDINATES]), np.int64), np.empty((4, rows), np.int64)
    row = base = 0
    for part in range(len(parts)):
        own = times_of(parts, part)
        for time in range(len(own)):
            for coordinate in range(own.shape[1]):
                times[base + time, coordinate] = own[time, coordinate]
        keys, vals = column(parts, part, KEYS), column(parts, part, VALS)
        index, diffs = column(parts, part, TIME_INDEX), column(parts, part, DIFFS)
        for each in range(len(keys)):
            columns[0, row], columns[1, row] = keys[each], at(vals, each, 0)
            columns[2, row], columns[3, row] = base + at(index, each, 0), at(diffs, each, 1)
            row += 1
        base += len(own)
    return split_rows(columns[0], columns[1], columns[2], columns[3], times, upper)
