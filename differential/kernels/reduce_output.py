"""What a reduction says: a chunk of rows, and the times it put off, as they grow during a call."""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, bare, inner
from differential.kernels.reduce_layers import GROUP_WIDTH, KEY, VAL
from differential.kernels.reduce_rows import ROW_DIFF, ROW_VAL, Rows, copied, roomy
from differential.kernels.reduce_times import enlarged, is_full, put_distinct, same_entry, sort_entries

SAID_KEY, SAID_VAL, SAID_TIME, SAID_DIFF, SAID = range(5)
"""The columns of the rows; the time is an index into the set of times."""

ROW_COUNT, TIME_COUNT, WITH_VALS, WITH_DIFFS, POSTPONED, COUNTS = range(6)
"""How many rows, times and postponed times there are; not 0 if some value is not 0, if some diff is not 1."""


@bare
def must_grow(output: Table, slots: Ints, counts: Ints, n: int) -> bool:
    """Whether there is no room for `n` rows more, or for one more time.

    What has not changed is not to be assigned: that counts references, which costs more than saying a row does.
    """
    return counts[ROW_COUNT] + n > output.shape[1] or is_full(slots, counts[TIME_COUNT])


@inner
def grown(output: Table, table: Ints, slots: Ints, counts: Ints, n: int, depth: int) -> tuple[Table, Ints, Ints]:
    """Return the output, the times and their slots with room for `n` rows more, and for one more time."""
    if is_full(slots, counts[TIME_COUNT]):
        slots, table = enlarged(slots, table, counts[TIME_COUNT], depth)
    return roomy(output, counts[ROW_COUNT] + n), table, slots


@bare
def say(
    output: Table,
    table: Ints,
    slots: Ints,
    counts: Ints,
    key: int,
    rows: Rows,
    n: int,
    times: Ints,
    time: int,
    depth: int,
) -> None:
    """Add `n` rows of a key, at least one, at an entry of `times`; there must be room (see `must_grow`)."""
    count = counts[ROW_COUNT]
    index = output[SAID_TIME, count - 1] if count > 0 else 0
    if count == 0 or not same_entry(table, index, times, time, depth):
        index = put_distinct(slots, table, counts[TIME_COUNT], times, time, depth)
        counts[TIME_COUNT] = max(counts[TIME_COUNT], index + 1)
    for row in range(n):
        output[SAID_KEY, count + row] = key
        output[SAID_VAL, count + row] = rows[ROW_VAL, row]
        output[SAID_TIME, count + row] = index
        output[SAID_DIFF, count + row] = rows[ROW_DIFF, row]
        counts[WITH_VALS] |= rows[ROW_VAL, row]
        counts[WITH_DIFFS] |= rows[ROW_DIFF, row] - 1
    counts[ROW_COUNT] = count + n


@inner
def chunk(output: Table, table: Ints, counts: Ints, depth: int) -> tuple[Ints, Ints, Table, Ints, Ints]:
    """Return the rows as keys, values, times, time indices and diffs, without the columns that say nothing."""
    n, times = counts[ROW_COUNT], counts[TIME_COUNT]
    return (
        copied(output[SAID_KEY], n),
        copied(output[SAID_VAL], n if counts[WITH_VALS] != 0 else 0),
        copied(table, times * depth).reshape((times, depth)),
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
