"""Merging two batches into one, with times advanced, a bounded number of rows at a time.

`plan` unites the times of both, replaced by their representatives under `since`, into one sorted table, and says for
each old time its place there. Where the places of both sides' times strictly increase (always when each has one
time), rows keep their order and stay distinct, and the merge is three-way: stretches of keys that only one side has
are copied; otherwise a block of rows is first chosen, without writing anything but which row of which side comes
next, and then copied column by column, so that neither step has a branch that could not be foreseen. Only two rows
that fall together interrupt it.

Where places do not increase, for the representatives of sorted times need not be sorted, the rows of one (key, value)
are taken from both sides, sorted by their new times, and summed.

`merge` goes on from where it stopped: it writes columns given to it and remembers its positions. A column is given
unless it will certainly be absent from the result. Only for diffs that is not known beforehand: when both sides have
none and two rows fall together, `merge` asks for the column.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, inner, kernel
from differential.kernels.consolidate import sort_rows
from differential.kernels.memory import DIFFS, TIME_INDEX, TIME_ROWS, VALS, at, column, view
from differential.kernels.seek import seek
from differential.kernels.times import copy_advanced, sorted_distinct

MORE, DONE, NEEDS_DIFFS = range(3)
"""What a call of `merge` ends with: out of fuel, at the end, or wanting a column of diffs, so far all 1."""

FIRST, SECOND, WRITTEN, HAS_VALS, HAS_DIFFS = range(5)
"""The state of a merge: rows read from either side, rows written, whether a value is not 0, a diff is not 1."""

STATE_WIDTH = 5

_STRETCH = 32
_BLOCK = 256


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
def copy_rows(side: Table, place: Ints, start: int, rows: int, target: tuple[Ints, Ints, Ints, Ints], to: int) -> None:
    """Copy `rows` rows of a side, from `start` on, to rows `to` on of the target columns."""
    keys, vals, index, diffs = target
    held = column(side, 0, 1)
    for row in range(rows):
        keys[to + row] = held[start + row]
    if len(vals) != 0:
        held = column(side, 0, 2)
        for row in range(rows):
            vals[to + row] = held[start + row] if len(held) != 0 else 0
    if len(index) != 0:
        held = column(side, 0, 3)
        for row in range(rows):
            index[to + row] = place[held[start + row]] if len(held) != 0 else place[0]
    if len(diffs) != 0:
        held = column(side, 0, 4)
        for row in range(rows):
            diffs[to + row] = held[start + row] if len(held) != 0 else 1


@inner
def copy_chosen(batches: Table, which: int, absent: int, chosen: Ints, rows: int, target: Ints, to: int) -> None:
    """Copy one column of the chosen rows: row r of the first side where `chosen` is r, of the second where it is ~r."""
    first, second = batches[0, which], batches[1, which]
    if first != 0 and second != 0:
        for row in range(rows):
            source = chosen[row]
            address = first + 8 * source if source >= 0 else second + 8 * ~source
            target[to + row] = view(address, 1)[0]
        return
    for row in range(rows):
        source = chosen[row]
        address = first + 8 * source if source >= 0 else second + 8 * ~source
        is_held = first != 0 if source >= 0 else second != 0
        target[to + row] = view(address, 1)[0] if is_held else absent


@inner
def place_chosen(batches: Table, place: Ints, chosen: Ints, rows: int, target: Ints, to: int) -> None:
    """Write the places of the times of the chosen rows."""
    base, first, second = batches[0, TIME_ROWS], batches[0, TIME_INDEX], batches[1, TIME_INDEX]
    for row in range(rows):
        source = chosen[row]
        if source >= 0:
            target[to + row] = place[view(first + 8 * source, 1)[0] if first != 0 else 0]
        else:
            target[to + row] = place[base + (view(second + 8 * ~source, 1)[0] if second != 0 else 0)]


@inner
def note(state: Ints, vals: Ints, diffs: Ints, start: int, stop: int) -> None:
    """Keep up, for rows just written, whether there are values other than 0 and diffs other than 1."""
    if len(vals) != 0 and state[3] == 0:
        for row in range(start, stop):
            state[3] |= vals[row]
    if len(diffs) != 0 and state[4] == 0:
        for row in range(start, stop):
            state[4] |= diffs[row] ^ 1


@inner
def merge_in_order(batches: Table, place: Ints, target: tuple[Ints, Ints, Ints, Ints], state: Ints, fuel: int) -> int:
    """Merge where the places of both sides' times increase."""
    keys, vals, index, diffs = target
    a, b, base = batches[0:1], batches[1:2], batches[0, 6]
    a_keys, a_vals, a_index = column(a, 0, 1), column(a, 0, 2), column(a, 0, 3)
    b_keys, b_vals, b_index = column(b, 0, 1), column(b, 0, 2), column(b, 0, 3)
    i, j, out, a_rows, b_rows = state[0], state[1], state[2], len(a_keys), len(b_keys)
    stop = i + j + fuel
    chosen = np.empty(_BLOCK, np.int64)
    status = MORE
    while i + j < stop and (i < a_rows or j < b_rows):
        before = out
        if i < a_rows and (j == b_rows or (i + _STRETCH < a_rows and a_keys[i + _STRETCH] < b_keys[j])):
            end = a_rows if j == b_rows else seek(a_keys, i + _STRETCH, b_keys[j])
            rows = min(end - i, stop - i - j)
            copy_rows(a, place, i, rows, target, out)
            i, out = i + rows, out + rows
        elif i == a_rows or (j + _STRETCH < b_rows and b_keys[j + _STRETCH] < a_keys[i]):
            end = b_rows if i == a_rows else seek(b_keys, j + _STRETCH, a_keys[i])
            rows = min(end - j, stop - i - j)
            copy_rows(b, place[base:], j, rows, target, out)
            j, out = j + rows, out + rows
        else:
            rows, is_tie = 0, False
            while rows < _BLOCK and i < a_rows and j < b_rows:
                a_key, b_key = a_keys[i], b_keys[j]
                is_first = a_key < b_key
                if a_key == b_key:
                    a_val, b_val = at(a_vals, i, 0), at(b_vals, j, 0)
                    is_first = a_val < b_val
                    if a_val == b_val:
                        a_place, b_place = place[at(a_index, i, 0)], place[base + at(b_index, j, 0)]
                        is_first = a_place < b_place
                        if a_place == b_place:
                            is_tie = True
                            break
                chosen[rows] = i if is_first else ~j
                keys[out + rows] = a_key if is_first else b_key
                i += is_first
                j += not is_first
                rows += 1
            if len(vals) != 0:
                copy_chosen(batches, VALS, 0, chosen, rows, vals, out)
            if len(index) != 0:
                place_chosen(batches, place, chosen, rows, index, out)
            if len(diffs) != 0:
                copy_chosen(batches, DIFFS, 1, chosen, rows, diffs, out)
            out += rows
            if is_tie:
                diff = at(column(a, 0, 4), i, 1) + at(column(b, 0, 4), j, 1)
                if diff != 0 and diff != 1 and len(diffs) == 0:
                    status = NEEDS_DIFFS
                    break
                if diff != 0:
                    copy_rows(a, place, i, 1, target, out)
                    if len(diffs) != 0:
                        diffs[out] = diff
                    out += 1
                i, j = i + 1, j + 1
        note(state, vals, diffs, before, out)
    state[0], state[1], state[2] = i, j, out
    return DONE if i == a_rows and j == b_rows else status


@inner
def group_end(keys: Ints, vals: Ints, row: int, key: int, val: int) -> int:
    """Return the first row from `row` on that is not of (key, value)."""
    while row < len(keys) and keys[row] == key and at(vals, row, 0) == val:
        row += 1
    return row


@inner
def merge_by_group(batches: Table, place: Ints, target: tuple[Ints, Ints, Ints, Ints], state: Ints, fuel: int) -> int:
    """Merge where times change their order or fall together: a (key, value) at a time."""
    keys, vals, index, diffs = target
    a, b, base = batches[0:1], batches[1:2], batches[0, 6]
    a_keys, a_vals, a_index, a_diffs = column(a, 0, 1), column(a, 0, 2), column(a, 0, 3), column(a, 0, 4)
    b_keys, b_vals, b_index, b_diffs = column(b, 0, 1), column(b, 0, 2), column(b, 0, 3), column(b, 0, 4)
    i, j, out, a_rows, b_rows = state[0], state[1], state[2], len(a_keys), len(b_keys)
    stop = i + j + fuel
    group = np.empty((4, 64), np.int64)
    status = MORE
    while i + j < stop and (i < a_rows or j < b_rows):
        before = out
        is_first = j == b_rows
        if i < a_rows and j < b_rows:
            is_first = a_keys[i] < b_keys[j] or (a_keys[i] == b_keys[j] and at(a_vals, i, 0) <= at(b_vals, j, 0))
        key = a_keys[i] if is_first else b_keys[j]
        val = at(a_vals, i, 0) if is_first else at(b_vals, j, 0)
        a_end, b_end = group_end(a_keys, a_vals, i, key, val), group_end(b_keys, b_vals, j, key, val)
        size = a_end - i + b_end - j
        if size > group.shape[1]:
            group = np.empty((4, 2 * size), np.int64)
        times, counts, order, scratch = group[0], group[1], group[2], group[3]
        for row in range(i, a_end):
            times[row - i], counts[row - i] = place[at(a_index, row, 0)], at(a_diffs, row, 1)
        for row in range(j, b_end):
            to = a_end - i + row - j
            times[to], counts[to] = place[base + at(b_index, row, 0)], at(b_diffs, row, 1)
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
        note(state, vals, diffs, before, out)
    state[0], state[1], state[2] = i, j, out
    return DONE if i == a_rows and j == b_rows else status


@kernel
def merge(batches: Table, place: Ints, keys: Ints, vals: Ints, index: Ints, diffs: Ints, state: Ints, fuel: int) -> int:
    """Merge about `fuel` rows of the two `batches` into the given columns; return MORE, DONE or NEEDS_DIFFS."""
    target = (keys, vals, index, diffs)
    base = batches[0, 6]
    if increases(place[:base]) and increases(place[base:]):
        return merge_in_order(batches, place, target, state, fuel)
    return merge_by_group(batches, place, target, state, fuel)
