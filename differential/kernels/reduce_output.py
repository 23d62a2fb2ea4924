"""What a reduction says: a chunk of rows, and the times it put off, as they grow during a call."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from differential.kernels.compile import Ints, Table, inner
from differential.kernels.reduce_layers import GROUP_WIDTH, KEY, VAL
from differential.kernels.reduce_rows import ROW_DIFF, ROW_VAL, Rows, copied, roomy
from differential.kernels.reduce_times import add_distinct, same_entry, sort_entries

SAID_KEY, SAID_VAL, SAID_TIME, SAID_DIFF, SAID = range(5)
"""The columns of the rows; the time is an index into the set of times."""

Times: TypeAlias = tuple[Ints, Ints]
"""The distinct times, and the hash table of them."""

ROW_COUNT, TIME_COUNT, WITH_VALS, WITH_DIFFS, POSTPONED, COUNTS = range(6)
"""How many rows, times and postponed times there are; not 0 if some value is not 0, if some diff is not 1."""


@inner
def say(
    output: Table, output_times: Times, counts: Ints, key: int, rows: Rows, n: int, times: Ints, time: int, depth: int
) -> tuple[Table, Times]:
    """Return `output` and its times with `n` rows of a key added, at least one, at an entry of `times`."""
    count = counts[ROW_COUNT]
    output = roomy(output, count + n)
    index = output[SAID_TIME, count - 1] if count > 0 else 0
    if count == 0 or not same_entry(output_times[0], index, times, time, depth):
        slots, table, known, index = add_distinct(
            output_times[1], output_times[0], counts[TIME_COUNT], times, time, depth
        )
        counts[TIME_COUNT] = known
        output_times = (table, slots)
    for row in range(n):
        output[SAID_KEY, count + row] = key
        output[SAID_VAL, count + row] = rows[ROW_VAL, row]
        output[SAID_TIME, count + row] = index
        output[SAID_DIFF, count + row] = rows[ROW_DIFF, row]
        counts[WITH_VALS] |= rows[ROW_VAL, row]
        counts[WITH_DIFFS] |= rows[ROW_DIFF, row] - 1
    counts[ROW_COUNT] = count + n
    return output, output_times


@inner
def chunk(output: Table, output_times: Times, counts: Ints, depth: int) -> tuple[Ints, Ints, Table, Ints, Ints]:
    """Return the rows as keys, values, times, time indices and diffs, without the columns that say nothing."""
    n, times = counts[ROW_COUNT], counts[TIME_COUNT]
    return (
        copied(output[SAID_KEY], n),
        copied(output[SAID_VAL], n if counts[WITH_VALS] != 0 else 0),
        copied(output_times[0], times * depth).reshape((times, depth)),
        copied(output[SAID_TIME], n if times > 1 else 0),
        copied(output[SAID_DIFF], n if counts[WITH_DIFFS] != 0 else 0),
    )


@inner
def put_off(postponed: Table, counts: Ints, group: Ints, pending: Ints, pendings: int, depth: int) -> Table:
    """Return `postponed` (columns: key, value, coordinates of the time) with the pending times of a group added."""
    count = counts[POSTPONED]
    postponed = roomy(postponed, count + pendings)
    order, spare = np.empty(pendings, np.int64), np.empty(pendings, np.int64)
    sort_entries(pending, pendings, order, spare, depth)
    for place in range(pendings):
        row = count + place
        postponed[0, row] = group[KEY]
        postponed[1, row] = group[VAL]
        for d in range(depth):
            postponed[2 + d, row] = pending[order[place] * depth + d]
    counts[POSTPONED] = count + pendings
    return postponed


@inner
def put_off_times(postponed: Table, n: int, depth: int) -> Table:
    """Return the first `n` postponed times, a row each."""
    times = np.empty((n, depth), np.int64)
    for row in range(n):
        for d in range(depth):
            times[row, d] = postponed[2 + d, row]
    return times


@inner
def no_group() -> Ints:
    """Return a group before the first."""
    return np.zeros(GROUP_WIDTH, np.int64)
