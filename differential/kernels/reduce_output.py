"""What a reduction says: a chunk of rows, and the times it put off, as they grow during a call."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from differential.kernels.compile import Ints, Table, inner
from differential.kernels.reduce_layers import GROUP_WIDTH, KEY, VAL
from differential.kernels.reduce_rows import Rows
from differential.kernels.reduce_times import add_distinct, sort_entries

Output: TypeAlias = tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints]
"""Keys, values, time indices and diffs of the rows; the distinct times; the hash table of these; and the counts below."""

ROW_COUNT, TIME_COUNT, WITH_VALS, WITH_DIFFS, COUNTS = range(5)

Postponed: TypeAlias = tuple[Ints, Ints, Ints]
"""Keys, values and times, a row each for what is pending, in order."""


@inner
def no_output() -> Output:
    """Return an output with no rows."""
    nothing = np.empty(0, np.int64)
    return nothing, nothing, nothing, nothing, nothing, nothing, np.zeros(COUNTS, np.int64)


@inner
def _larger(column: Ints, room: int) -> Ints:
    result = np.empty(room, np.int64)
    result[: len(column)] = column
    return result


@inner
def say(output: Output, key: int, rows: Rows, n: int, times: Ints, time: int, depth: int) -> Output:
    """Return `output` with `n` rows of a key added, at an entry of `times`."""
    if n == 0:
        return output
    keys, vals, indices, diffs, table, slots, counts = output
    count = counts[ROW_COUNT]
    if count + n > len(keys):
        room = max(2 * len(keys), count + n, 16)
        keys, vals = _larger(keys, room), _larger(vals, room)
        indices, diffs = _larger(indices, room), _larger(diffs, room)
    index = indices[count - 1] if count > 0 else -1
    same = index >= 0
    for d in range(depth):
        same = same and table[index * depth + d] == times[time * depth + d]
    if not same:
        slots, table, counts[TIME_COUNT], index = add_distinct(slots, table, counts[TIME_COUNT], times, time, depth)
    for row in range(n):
        keys[count + row] = key
        vals[count + row] = rows[0][row]
        indices[count + row] = index
        diffs[count + row] = rows[2][row]
        counts[WITH_VALS] |= rows[0][row]
        counts[WITH_DIFFS] |= rows[2][row] - 1
    counts[ROW_COUNT] = count + n
    return keys, vals, indices, diffs, table, slots, counts


@inner
def chunk(output: Output, depth: int) -> tuple[Ints, Ints, Table, Ints, Ints]:
    """Return the rows as keys, values, times, time indices and diffs, without the columns that say nothing."""
    keys, vals, indices, diffs, table, _, counts = output
    n, times = counts[ROW_COUNT], counts[TIME_COUNT]
    return (
        keys[:n],
        vals[: n if counts[WITH_VALS] != 0 else 0],
        table[: times * depth].reshape((times, depth)),
        indices[: n if times > 1 else 0],
        diffs[: n if counts[WITH_DIFFS] != 0 else 0],
    )


@inner
def put_off(
    postponed: Postponed, count: int, group: Ints, pending: Ints, pendings: int, depth: int
) -> tuple[Postponed, int]:
    """Return what is postponed with the pending times of a group added, and how many rows it has."""
    if pendings == 0:
        return postponed, count
    keys, vals, times = postponed
    if count + pendings > len(keys):
        room = max(2 * len(keys), count + pendings, 16)
        keys, vals, times = _larger(keys, room), _larger(vals, room), _larger(times, room * depth)
    order, spare = np.empty(pendings, np.int64), np.empty(pendings, np.int64)
    sort_entries(pending, pendings, order, spare, depth)
    for place in range(pendings):
        entry = order[place]
        row = count + place
        keys[row] = group[KEY]
        vals[row] = group[VAL]
        times[row * depth : (row + 1) * depth] = pending[entry * depth : (entry + 1) * depth]
    return (keys, vals, times), count + pendings


@inner
def no_postponed() -> Postponed:
    """Return nothing postponed."""
    nothing = np.empty(0, np.int64)
    return nothing, nothing, nothing


@inner
def no_group() -> Ints:
    """Return a group before the first."""
    return np.zeros(GROUP_WIDTH, np.int64)
