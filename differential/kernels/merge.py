"""Merging two batches into one, with times advanced, a bounded number of rows at a time.

`plan` unites the times of both, replaced by their representatives under `since`, into one sorted table, and says for
each old time its place there. Where the places of a side's times strictly increase (always when it has one time), its
rows keep their order and stay distinct: rows whose keys the other side does not have are copied, rows of common keys
are merged three ways. Where they do not, for the representatives of sorted times need not be sorted, the rows of one
(key, value) are taken from both sides, sorted by their new times, and summed.

`merge` goes on from where it stopped: it writes columns given to it and remembers its positions. A column is given
unless it will certainly be absent from the result. Only for diffs that is not known beforehand: when both sides have
none and two rows fall together, `merge` asks for the column.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, inner, kernel
from differential.kernels.consolidate import sort_rows
from differential.kernels.memory import at, column
from differential.kernels.times import copy_advanced, sorted_distinct

MORE, DONE, NEEDS_DIFFS = range(3)
"""What a call of `merge` ends with: out of fuel, at the end, or wanting a column of diffs, so far all 1."""

FIRST, SECOND, WRITTEN = range(3)
"""The positions in the state of a merge: rows read from either side, rows written."""


@kernel
def plan(first: Table, second: Table, since: Table) -> tuple[Table, Ints]:
    """Return the table of the times of both sides under `since`, and the place in it of each time of either side."""
    times = np.empty((len(first) + len(second), first.shape[1]), np.int64)
    copy_advanced(first, since, times, 0)
    copy_advanced(second, since, times, len(first))
    return sorted_distinct(times)


@inner
def increases(place: Ints) -> bool:
    """Return whether the items strictly increase."""
    for time in range(1, len(place)):  # noqa: SIM110 (compiled)
        if place[time - 1] >= place[time]:
            return False
    return True


@inner
def copy_rows(
    side: Table, place: Ints, start: int, stop: int, keys: Ints, vals: Ints, index: Ints, diffs: Ints, to: int
) -> None:
    """Copy rows `start` to `stop` of a side to row `to` on of the result."""
    keys[to : to + stop - start] = column(side, 0, 1)[start:stop]
    if len(vals) != 0:
        old_vals = column(side, 0, 2)
        for row in range(start, stop):
            vals[to + row - start] = at(old_vals, row, 0)
    if len(index) != 0:
        old_index = column(side, 0, 3)
        for row in range(start, stop):
            index[to + row - start] = place[at(old_index, row, 0)]
    if len(diffs) != 0:
        old_diffs = column(side, 0, 4)
        for row in range(start, stop):
            diffs[to + row - start] = at(old_diffs, row, 1)


@inner
def group_end(keys: Ints, vals: Ints, row: int, key: int, val: int) -> int:
    """Return the first row from `row` on that is not of (key, value)."""
    while row < len(keys) and keys[row] == key and at(vals, row, 0) == val:
        row += 1
    return row


@kernel
def merge(batches: Table, place: Ints, keys: Ints, vals: Ints, index: Ints, diffs: Ints, state: Ints, fuel: int) -> int:
    """Merge about `fuel` rows of the two `batches` into the given columns; return MORE, DONE or NEEDS_DIFFS."""
    a, b = batches[0:1], batches[1:2]
    a_keys, a_vals, a_index, a_diffs = column(a, 0, 1), column(a, 0, 2), column(a, 0, 3), column(a, 0, 4)
    b_keys, b_vals, b_index, b_diffs = column(b, 0, 1), column(b, 0, 2), column(b, 0, 3), column(b, 0, 4)
    a_place, b_place = place[: batches[0, 6]], place[batches[0, 6] :]
    a_strict, b_strict = increases(a_place), increases(b_place)
    i, j, out = state[0], state[1], state[2]
    a_rows, b_rows = len(a_keys), len(b_keys)
    stop = i + j + fuel
    group = np.empty((4, 64), np.int64)
    status = DONE
    while i < a_rows or j < b_rows:
        if i + j >= stop:
            status = MORE
            break
        if a_strict and i < a_rows and (j == b_rows or a_keys[i] < b_keys[j]):
            end, limit = i + 1, min(a_rows, i + stop - i - j)
            while end < limit and (j == b_rows or a_keys[end] < b_keys[j]):
                end += 1
            copy_rows(a, a_place, i, end, keys, vals, index, diffs, out)
            out += end - i
            i = end
            continue
        if b_strict and j < b_rows and (i == a_rows or b_keys[j] < a_keys[i]):
            end, limit = j + 1, min(b_rows, j + stop - i - j)
            while end < limit and (i == a_rows or b_keys[end] < a_keys[i]):
                end += 1
            copy_rows(b, b_place, j, end, keys, vals, index, diffs, out)
            out += end - j
            j = end
            continue
        if a_strict and b_strict:
            key, a_val, b_val = a_keys[i], at(a_vals, i, 0), at(b_vals, j, 0)
            a_time, b_time = a_place[at(a_index, i, 0)], b_place[at(b_index, j, 0)]
            is_both = a_val == b_val and a_time == b_time
            is_a = a_val < b_val or (a_val == b_val and a_time <= b_time)
            if is_both:
                diff = at(a_diffs, i, 1) + at(b_diffs, j, 1)
                if diff != 1 and diff != 0 and len(diffs) == 0:
                    status = NEEDS_DIFFS
                    break
            else:
                diff = at(a_diffs, i, 1) if is_a else at(b_diffs, j, 1)
            i += is_a
            j += is_both or not is_a
            if diff != 0:
                keys[out] = key
                if len(vals) != 0:
                    vals[out] = a_val if is_a else b_val
                if len(index) != 0:
                    index[out] = a_time if is_a else b_time
                if len(diffs) != 0:
                    diffs[out] = diff
                out += 1
            continue
        if j == b_rows:
            is_a = True
        elif i == a_rows:
            is_a = False
        else:
            a_val, b_val = at(a_vals, i, 0), at(b_vals, j, 0)
            is_a = a_keys[i] < b_keys[j] or (a_keys[i] == b_keys[j] and a_val <= b_val)
        key = a_keys[i] if is_a else b_keys[j]
        val = at(a_vals, i, 0) if is_a else at(b_vals, j, 0)
        a_end, b_end = group_end(a_keys, a_vals, i, key, val), group_end(b_keys, b_vals, j, key, val)
        size = a_end - i + b_end - j
        if size > group.shape[1]:
            group = np.empty((4, 2 * size), np.int64)
        times, counts, order, scratch = group[0], group[1], group[2], group[3]
        for row in range(i, a_end):
            times[row - i], counts[row - i] = a_place[at(a_index, row, 0)], at(a_diffs, row, 1)
        for row in range(j, b_end):
            times[a_end - i + row - j], counts[a_end - i + row - j] = b_place[at(b_index, row, 0)], at(b_diffs, row, 1)
        for row in range(size):
            order[row] = row
        sort_rows(order, scratch, 0, size, times, times[:0], times[:0])
        kept = row = 0
        is_wanting = False
        while row < size:
            time, diff = times[order[row]], 0
            while row < size and times[order[row]] == time:
                diff += counts[order[row]]
                row += 1
            if diff != 0:
                is_wanting |= diff != 1
                scratch[kept], order[kept] = diff, time
                kept += 1
        if is_wanting and len(diffs) == 0:
            status = NEEDS_DIFFS
            break
        for row in range(kept):
            keys[out] = key
            if len(vals) != 0:
                vals[out] = val
            if len(index) != 0:
                index[out] = order[row]
            if len(diffs) != 0:
                diffs[out] = scratch[row]
            out += 1
        i, j = a_end, b_end
    state[0], state[1], state[2] = i, j, out
    return status


@kernel
def trim(keys: Ints, vals: Ints, index: Ints, diffs: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return copies of the columns, without values that are all 0 and diffs that are all 1."""
    has_vals = has_diffs = False
    for row in range(len(vals)):
        if vals[row] != 0:
            has_vals = True
            break
    for row in range(len(diffs)):
        if diffs[row] != 1:
            has_diffs = True
            break
    return (
        keys.copy(),
        vals.copy() if has_vals else vals[:0].copy(),
        index.copy(),
        diffs.copy() if has_diffs else diffs[:0].copy(),
    )
