"""Updates in the order of their times, so that those of some times can be taken out without looking at the others."""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, kernel
from differential.kernels.memory import at, empty
from differential.kernels.times import sorted_distinct


@kernel
def by_time(
    keys: Ints, vals: Ints, time_index: Ints, diffs: Ints, times: Table
) -> tuple[Ints, Ints, Ints, Table, Table]:
    """Return keys, values and diffs in the order of times, the distinct times, and for each its first row and the row
    after its last.
    """
    table, place = sorted_distinct(times)
    runs = np.zeros((len(table), 2), np.int64)
    for row in range(len(keys)):
        runs[place[at(time_index, row, 0)], 1] += 1
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
    """Return the rows in `runs`, a run for each time, as keys, values, time index, diffs and times."""
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
