"""Few rows at one time, or of which a part is due: sorted and summed straight into a block.

`consolidate` allocates some fifteen arrays, which for two rows costs ten times what sorting them does. Here are two:
the order of the rows, and the block. A column of the block has room for all rows, so what follows the rows that are
left after summing is unused.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.blocks import HEAD, block_of
from differential.kernels.compile import Ints, Table, Times, bare, inner, kernel
from differential.kernels.consolidate import consolidate, sort_rows
from differential.kernels.memory import (
    COORDINATES,
    DIFFS,
    KEYS,
    ROWS,
    TIME_INDEX,
    TIME_ROWS,
    TIMES,
    VALS,
    at,
    column,
    empty,
    times_of,
)
from differential.kernels.times import compare_times, is_in_advance, minimal
from differential.kernels.wide import Overflow, carry, fits

_RUN = 12
"""Up to this many rows are sorted without room to merge into."""


@bare
def _sum_rows(block: Ints, order: Ints, count: int, keys: Ints, vals: Ints, diffs: Ints) -> int:
    """Write the rows to a block, equal ones summed; return how many are left, or -1 - row if a sum does not fit.

    The block's addresses of values and diffs become 0 if these are not spelled out.
    """
    kept = first = any_val = any_diff = 0
    while first < count:
        row = order[first]
        key, val, total = keys[row], at(vals, row, 0), at(diffs, row, 1)
        high, first = total >> 63, first + 1
        while first < count and keys[order[first]] == key and at(vals, order[first], 0) == val:
            diff = at(diffs, order[first], 1)
            total += diff
            high += carry(total, diff)
            first += 1
        if not fits(total, high):
            return int(-1 - row)
        if total != 0:
            block[HEAD + kept] = key
            block[HEAD + count + kept] = val
            block[HEAD + 2 * count + kept] = total
            any_val |= val
            any_diff |= total ^ 1
            kept += 1
    block[VALS], block[DIFFS] = any_val, any_diff
    return int(kept)


@inner
def _block_at(
    order: Ints, count: int, keys: Ints, vals: Ints, diffs: Ints, times: Table, time: int
) -> tuple[Ints, int]:
    """Return the first `count` rows of `order`, all at one of the times, consolidated, and how many are left."""
    depth = times.shape[1]
    scratch = np.empty(count, np.int64) if count > _RUN else order
    sort_rows(order, scratch, 0, count, keys, vals, order[:0])
    block = empty(HEAD + 3 * count + depth)
    start, end = block.ctypes.data, len(block) - depth
    kept = _sum_rows(block, order, count, keys, vals, diffs)
    if kept < 0:
        raise Overflow(keys[-1 - kept], at(vals, -1 - kept, 0))
    block[ROWS], block[TIME_ROWS], block[COORDINATES] = kept, min(kept, 1), depth
    block[KEYS] = start + 8 * HEAD if kept != 0 else 0
    block[VALS] = start + 8 * (HEAD + count) if block[VALS] != 0 and kept != 0 else 0
    block[TIME_INDEX] = 0
    block[DIFFS] = start + 8 * (HEAD + 2 * count) if block[DIFFS] != 0 and kept != 0 else 0
    block[TIMES] = start + 8 * end if kept != 0 else 0
    for coordinate in range(depth):
        block[end + coordinate] = times[time, coordinate]
    return block, kept


@kernel
def due_block(keys: Ints, vals: Ints, diffs: Ints, times: Table, upper: Times) -> tuple[Ints, int]:
    """Return updates at one time consolidated, as a block, and their number: -1 if that time is not due at `upper`."""
    if is_in_advance(upper, times, 0):
        return np.empty(0, np.int64), -1
    return _block_at(np.arange(len(keys)), len(keys), keys, vals, diffs, times, 0)


@kernel
def due_of(block: Ints, upper: Times) -> tuple[Ints, int]:
    """Return the same for updates in a block."""
    part = block[:HEAD].reshape((1, HEAD))
    return due_block(column(part, 0, KEYS), column(part, 0, VALS), column(part, 0, DIFFS), times_of(part, 0), upper)


@kernel
def split_rows(
    keys: Ints, vals: Ints, time_index: Ints, diffs: Ints, times: Table, upper: Times
) -> tuple[Ints, int, int, Ints, int, int, Ints]:
    """Return the rows that are not in advance of `upper`, consolidated, and the others as they are.

    Each is a block, with its numbers of rows and of times. The last item has the minimal times of the others, one after
    another; it is empty if these are at one time.
    """
    rows, due, time = len(keys), 0, -1
    rest, is_at_once = rows, True
    waits, order = np.zeros(len(times), np.int64), np.empty(rows, np.int64)
    for each in range(len(times)):
        waits[each] = is_in_advance(upper, times, each)
    for row in range(rows):
        own = at(time_index, row, 0)
        if waits[own] != 0:
            rest -= 1
            order[rest] = row
        else:
            order[due] = row
            due += 1
            if time < 0:
                time = own
            is_at_once &= own == time or compare_times(times, own, times, time) == 0
    if is_at_once:
        passed, count = _block_at(order, due, keys, vals, diffs, times, max(time, 0))
        distinct = min(count, 1)
    else:
        passed, count, distinct = _consolidated(order[:due], keys, vals, time_index, diffs, times)
    waiting, left = _rest_of(order[rest:], keys, vals, time_index, diffs, times, waits)
    least = np.empty(0, np.int64)
    if left > 1:
        part = waiting[:HEAD].reshape((1, HEAD))
        least = minimal(times_of(part, 0)).reshape(-1)
    return passed, count, distinct, waiting, rows - rest, left, least


@kernel
def split_of(block: Ints, upper: Times) -> tuple[Ints, int, int, Ints, int, int, Ints]:
    """Return the same for updates in a block."""
    part = block[:HEAD].reshape((1, HEAD))
    keys, vals, time_index = column(part, 0, KEYS), column(part, 0, VALS), column(part, 0, TIME_INDEX)
    return split_rows(keys, vals, time_index, column(part, 0, DIFFS), times_of(part, 0), upper)


@inner
def _consolidated(
    order: Ints, keys: Ints, vals: Ints, time_index: Ints, diffs: Ints, times: Table
) -> tuple[Ints, int, int]:
    """Return some rows at several times, consolidated, as a block, with the numbers of rows and of times."""
    count = len(order)
    columns = np.empty((4, count), np.int64)
    for place in range(count):
        row = order[place]
        columns[0, place], columns[1, place] = keys[row], at(vals, row, 0)
        columns[2, place], columns[3, place] = at(time_index, row, 0), at(diffs, row, 1)
    keys, vals, index, diffs, table = consolidate(columns[0], columns[1], columns[2], columns[3], times)
    return block_of(keys, vals, index, diffs, table), len(keys), len(table)


@inner
def _rest_of(
    order: Ints, keys: Ints, vals: Ints, time_index: Ints, diffs: Ints, times: Table, waits: Ints
) -> tuple[Ints, int]:
    """Return some rows as they are, as a block, and the number of times: those of `waits` that a row has."""
    count, depth = len(order), times.shape[1]
    # `waits` is 1 at each time that waits; then 2 where a row has it; and then the place of each such time.
    for place in range(count):
        waits[at(time_index, order[place], 0)] = 2
    used = 0
    for time in range(len(times)):
        if waits[time] == 2:
            waits[time] = used
            used += 1
    block = empty(HEAD + 4 * count + used * depth)
    start, table = block.ctypes.data, HEAD + 4 * count
    for place in range(count):
        row = order[place]
        time = at(time_index, row, 0)
        block[HEAD + place], block[HEAD + count + place] = keys[row], at(vals, row, 0)
        block[HEAD + 2 * count + place], block[HEAD + 3 * count + place] = waits[time], at(diffs, row, 1)
        for coordinate in range(depth):
            block[table + waits[time] * depth + coordinate] = times[time, coordinate]
    block[ROWS], block[TIME_ROWS], block[COORDINATES] = count, used, depth
    for each, which in enumerate((KEYS, VALS, TIME_INDEX, DIFFS)):
        block[which] = start + 8 * (HEAD + each * count) if count != 0 else 0
    if used == 1:
        block[TIME_INDEX] = 0
    block[TIMES] = start + 8 * table if used != 0 else 0
    return block, used
