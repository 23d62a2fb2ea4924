"""The merge of two batches into one, with times advanced to `since`, a bounded number of rows at a time.

`plan` replaces the times of both batches by their representatives under `since` (see `times`), unites them in one
sorted table, and returns for each old time its place there.

*The order of rows.* A batch is sorted by (key, value, time). The representatives of sorted times may be equal, or in
another order. So the places of a side's times are checked first: if they strictly increase, the side is in order as it
is. If not, its order may break, but only within the rows of one (key, value). The merge goes one of three ways:

- A stretch of keys that only one side has is copied.
- Otherwise a block of rows is chosen: first only which row of which side comes next is written down, then the block is
  copied column by column. So neither step has a branch that the processor mispredicts often.
- The rows of one (key, value), of which a side that is not in order has several, are taken from both sides, sorted by
  their new times and summed.

*Going on.* `merge` writes columns that it is given and keeps its positions in `state`, so the next call goes on where
this one stopped. The caller gives each column that the result may need. For diffs that is not known beforehand: if
neither side has diffs and two rows fall together, `merge` returns NEEDS_DIFFS, and the caller gives it a column of
ones.

*Cost.* A few writes for each row; a stretch costs a copy, however many keys it has.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Batches, Ints, Table, Times, bare, inner, kernel
from differential.kernels.consolidate import sort_rows
from differential.kernels.memory import DIFFS, KEYS, TIME_INDEX, TIME_ROWS, VALS, at, column, item
from differential.kernels.seek import seek
from differential.kernels.times import copy_advanced, sorted_distinct
from differential.kernels.wide import Overflow, carry, fits

MORE, DONE, NEEDS_DIFFS, GROUP = range(4)
"""How a call of `merge` ends: the fuel is used up; the merge is complete; or a column of diffs is needed, in which all
rows so far have 1. GROUP is for the inner functions: next are the rows of one (key, value) that may be out of order."""

FIRST, SECOND, WRITTEN, HAS_VALS, HAS_DIFFS, USED = range(6)
"""The state of a merge: the rows read of either side; the rows written; whether some value is not 0, and some diff not
1; and from USED on, for each time, how many written rows have it, if time indices are written at all."""

_STRETCH = 32
"""A side that has more than this many rows before the other's next key is copied up to there."""
_BLOCK = 256


@kernel
def plan(first: Table, second: Table, since: Times) -> tuple[Table, Ints]:
    """Return the table of the times of both sides under `since`, and for each time of either side its place there."""
    times = np.empty((len(first) + len(second), first.shape[1]), np.int64)
    copy_advanced(first, since, times, 0)
    copy_advanced(second, since, times, len(first))
    return sorted_distinct(times)


@bare
def increases(place: Ints) -> bool:
    """Return whether the items strictly increase."""
    for time in range(1, len(place)):  # noqa: SIM110 (compiled)
        if place[time - 1] >= place[time]:
            return False
    return True


@inner
def copy_rows(side: Table, place: Ints, start: int, rows: int, target: tuple[Ints, Ints, Ints, Ints], to: int) -> None:
    """Copy `rows` rows of a side, from `start` on, to the target columns from row `to` on."""
    keys, vals, index, diffs = target
    held = column(side, 0, KEYS)
    for row in range(rows):
        keys[to + row] = held[start + row]
    if len(vals) != 0:
        held = column(side, 0, VALS)
        for row in range(rows):
            vals[to + row] = held[start + row] if len(held) != 0 else 0
    if len(index) != 0:
        held = column(side, 0, TIME_INDEX)
        for row in range(rows):
            # A side without a time index has one time, whose place is the first.
            index[to + row] = place[held[start + row]] if len(held) != 0 else place[0]
    if len(diffs) != 0:
        held = column(side, 0, DIFFS)
        for row in range(rows):
            diffs[to + row] = held[start + row] if len(held) != 0 else 1


@bare
def copy_chosen(batches: Table, which: int, absent: int, chosen: Ints, rows: int, target: Ints, to: int) -> None:
    """Copy one column of the chosen rows: `chosen` is r for row r of the first side, ~r for row r of the second."""
    first, second = batches[0, which], batches[1, which]
    if first != 0 and second != 0:
        for row in range(rows):
            source = chosen[row]
            address = first + 8 * source if source >= 0 else second + 8 * ~source
            target[to + row] = item(address)
        return
    for row in range(rows):
        source = chosen[row]
        address = first + 8 * source if source >= 0 else second + 8 * ~source
        is_held = first != 0 if source >= 0 else second != 0
        target[to + row] = item(address) if is_held else absent


@bare
def place_chosen(batches: Table, place: Ints, chosen: Ints, rows: int, target: Ints, to: int) -> None:
    """Write the time indices of the chosen rows, which are the places of their times."""
    # In `place` the times of the second side follow those of the first, from `base` on.
    base, first, second = batches[0, TIME_ROWS], batches[0, TIME_INDEX], batches[1, TIME_INDEX]
    for row in range(rows):
        source = chosen[row]
        if source >= 0:
            target[to + row] = place[item(first + 8 * source) if first != 0 else 0]
        else:
            target[to + row] = place[base + (item(second + 8 * ~source) if second != 0 else 0)]


@bare
def note(state: Ints, target: tuple[Ints, Ints, Ints, Ints], start: int, stop: int) -> None:
    """Update what the state keeps of the rows written, by those from `start` to `stop`."""
    _, vals, index, diffs = target
    if len(vals) != 0 and state[HAS_VALS] == 0:
        for row in range(start, stop):
            state[HAS_VALS] |= vals[row]
    if len(diffs) != 0 and state[HAS_DIFFS] == 0:
        for row in range(start, stop):
            # A diff XOR 1 is 0 exactly if the diff is 1.
            state[HAS_DIFFS] |= diffs[row] ^ 1
    if len(index) != 0:
        for row in range(start, stop):
            state[USED + index[row]] += 1


@bare
def has_next(keys: Ints, vals: Ints, row: int) -> bool:
    """Return whether the row after `row` has the same key and value."""
    return row + 1 < len(keys) and keys[row + 1] == keys[row] and at(vals, row + 1, 0) == at(vals, row, 0)


@bare
def single_rows(keys: Ints, vals: Ints, start: int, most: int) -> int:
    """Return how many rows from `start` on, up to `most`, are the only ones of their key and value."""
    rows = 0
    while rows < most and not has_next(keys, vals, start + rows):
        rows += 1
    return rows


@inner
def choose(
    batches: Table,
    place: Ints,
    positions: tuple[int, int],
    stop: int,
    is_strict: tuple[bool, bool],
    chosen: Ints,
    tied: Ints,
    target: tuple[Ints, Ints, Ints, Ints],
    to: int,
) -> tuple[int, int, int, int, int]:
    """Choose the next rows of either side, as many as `chosen` holds; return both positions, rows, ties and a status.

    Only the keys are written, to the target from row `to` on. Two rows of the same key, value and place are summed. If
    the sum is zero, both are skipped, up to the position at which rows of both sides add up to `stop`. Otherwise they
    become one row of the first side; `tied` has its place among the chosen rows and its diff. The status is MORE, GROUP
    or NEEDS_DIFFS, by what comes next.
    """
    base = batches[0, TIME_ROWS]
    a, b = batches[0:1], batches[1:2]
    a_keys, a_vals, a_index, a_diffs = (
        column(a, 0, KEYS),
        column(a, 0, VALS),
        column(a, 0, TIME_INDEX),
        column(a, 0, DIFFS),
    )
    b_keys, b_vals, b_index, b_diffs = (
        column(b, 0, KEYS),
        column(b, 0, VALS),
        column(b, 0, TIME_INDEX),
        column(b, 0, DIFFS),
    )
    a_strict, b_strict = is_strict
    keys, has_diffs = target[0], len(target[3]) != 0
    i, j = positions
    rows = ties = 0
    while rows < len(chosen) and i < len(a_keys) and j < len(b_keys):
        a_key, b_key = a_keys[i], b_keys[j]
        is_first = a_key < b_key
        # Keys that both sides have, or that one side has twice, are rare; all others take this one branch.
        if (
            a_key == b_key
            or (not a_strict and i + 1 < len(a_keys) and a_keys[i + 1] == a_key)
            or (not b_strict and j + 1 < len(b_keys) and b_keys[j + 1] == b_key)
        ):
            a_val, b_val = at(a_vals, i, 0), at(b_vals, j, 0)
            is_same = a_key == b_key and a_val == b_val
            is_first |= a_key == b_key and a_val < b_val
            # Neither position moves before a return: the next step starts with these two rows.
            if not a_strict and (is_first or is_same) and has_next(a_keys, a_vals, i):
                return i, j, rows, ties, GROUP
            if not b_strict and not is_first and has_next(b_keys, b_vals, j):
                return i, j, rows, ties, GROUP
            if is_same:
                # Within this (key, value) both sides have increasing places, or a single row: they merge by place.
                a_place, b_place = place[at(a_index, i, 0)], place[base + at(b_index, j, 0)]
                is_first = a_place <= b_place
                if a_place == b_place:
                    a_diff, b_diff = at(a_diffs, i, 1), at(b_diffs, j, 1)
                    diff = a_diff + b_diff
                    if not fits(diff, (a_diff >> 63) + carry(diff, b_diff)):
                        raise Overflow(a_key, a_val)
                    if diff == 0:
                        i, j = i + 1, j + 1
                        # Rows that cancel do not fill `chosen`, so only the fuel bounds how many are skipped.
                        if i + j >= stop:
                            break
                        continue
                    if diff != 1 and not has_diffs:
                        # The rows chosen before are written all the same; the next call starts with this pair.
                        return i, j, rows, ties, NEEDS_DIFFS
                    tied[ties], tied[ties + 1] = rows, diff
                    ties, j = ties + 2, j + 1
                    chosen[rows], keys[to + rows] = i, a_key
                    i, rows = i + 1, rows + 1
                    continue
        chosen[rows] = i if is_first else ~j
        keys[to + rows] = a_key if is_first else b_key
        i += is_first
        j += not is_first
        rows += 1
    return i, j, rows, ties, MORE


@bare
def group_end(keys: Ints, vals: Ints, row: int, key: int, val: int) -> int:
    """Return the first row from `row` on that is not of (key, value)."""
    while row < len(keys) and keys[row] == key and at(vals, row, 0) == val:
        row += 1
    return row


@inner
def merge_group(
    batches: Table,
    place: Ints,
    positions: tuple[int, int],
    scratch: Table,
    target: tuple[Ints, Ints, Ints, Ints],
    to: int,
) -> tuple[int, int, int, int]:
    """Merge the rows of the next (key, value); return positions, the next row to write, and MORE or NEEDS_DIFFS."""
    keys, vals, index, diffs = target
    a, b, base = batches[0:1], batches[1:2], batches[0, TIME_ROWS]
    a_keys, a_vals, a_index, a_diffs = (
        column(a, 0, KEYS),
        column(a, 0, VALS),
        column(a, 0, TIME_INDEX),
        column(a, 0, DIFFS),
    )
    b_keys, b_vals, b_index, b_diffs = (
        column(b, 0, KEYS),
        column(b, 0, VALS),
        column(b, 0, TIME_INDEX),
        column(b, 0, DIFFS),
    )
    i, j = positions
    is_first = j == len(b_keys)
    if i < len(a_keys) and j < len(b_keys):
        is_first = a_keys[i] < b_keys[j] or (a_keys[i] == b_keys[j] and at(a_vals, i, 0) <= at(b_vals, j, 0))
    key = a_keys[i] if is_first else b_keys[j]
    val = at(a_vals, i, 0) if is_first else at(b_vals, j, 0)
    a_end, b_end = group_end(a_keys, a_vals, i, key, val), group_end(b_keys, b_vals, j, key, val)
    size = a_end - i + b_end - j
    group = scratch if size <= scratch.shape[1] else np.empty((4, size), np.int64)
    times, counts, order, spare = group[0], group[1], group[2], group[3]
    for row in range(i, a_end):
        times[row - i], counts[row - i] = place[at(a_index, row, 0)], at(a_diffs, row, 1)
    for row in range(j, b_end):
        spot = a_end - i + row - j
        times[spot], counts[spot] = place[base + at(b_index, row, 0)], at(b_diffs, row, 1)
    for row in range(size):
        order[row] = row
    # The rows agree in key and value, so the places of their times are all that `sort_rows` compares.
    sort_rows(order, spare, 0, size, times, times[:0], times[:0])
    kept = row = 0
    are_ones = True
    while row < size:
        time, diff, high = times[order[row]], 0, 0
        while row < size and times[order[row]] == time:
            diff += counts[order[row]]
            high += carry(diff, counts[order[row]])
            row += 1
        if not fits(diff, high):
            raise Overflow(key, val)
        if diff != 0:
            are_ones &= diff == 1
            # `order` is read ahead of `kept`, and `spare` is free after the sort: both take the results.
            spare[kept], order[kept] = diff, time
            kept += 1
    if not are_ones and len(diffs) == 0:
        return i, j, to, NEEDS_DIFFS  # nothing is written yet, so the next call merges the group again
    for row in range(kept):
        keys[to + row] = key
        if len(vals) != 0:
            vals[to + row] = val
        if len(index) != 0:
            index[to + row] = order[row]
        if len(diffs) != 0:
            diffs[to + row] = spare[row]
    return a_end, b_end, to + kept, MORE


@kernel
def merge(
    batches: Batches, place: Ints, keys: Ints, vals: Ints, index: Ints, diffs: Ints, state: Ints, fuel: int
) -> int:
    """Merge about `fuel` rows of the two `batches` into the given columns; return MORE, DONE or NEEDS_DIFFS.

    The first call gets a `state` of zeros; `place` is that of `plan`.
    """
    target = (keys, vals, index, diffs)
    a, b, base = batches[0:1], batches[1:2], batches[0, TIME_ROWS]
    a_keys, a_vals, b_keys, b_vals = column(a, 0, KEYS), column(a, 0, VALS), column(b, 0, KEYS), column(b, 0, VALS)
    a_strict, b_strict = increases(place[:base]), increases(place[base:])
    i, j, out = state[FIRST], state[SECOND], state[WRITTEN]
    stop = i + j + fuel
    chosen, tied = np.empty(_BLOCK, np.int64), np.empty(2 * _BLOCK, np.int64)
    scratch = np.empty((4, 64), np.int64)
    status = MORE
    while status != NEEDS_DIFFS and i + j < stop and (i < len(a_keys) or j < len(b_keys)):
        before, status = out, MORE
        if j == len(b_keys) or (i + _STRETCH < len(a_keys) and a_keys[i + _STRETCH] < b_keys[j]):
            # All keys up to `end` are less than the other side's next key, so nothing has to be summed across sides.
            end = len(a_keys) if j == len(b_keys) else seek(a_keys, i + _STRETCH, b_keys[j])
            rows = min(end - i, stop - i - j)
            if not a_strict:
                # Rows that are alone in their (key, value) are in order; the copy ends before the first others.
                rows = single_rows(a_keys, a_vals, i, rows)
                status = MORE if rows != 0 else GROUP
            copy_rows(a, place, i, rows, target, out)
            i, out = i + rows, out + rows
        elif i == len(a_keys) or (j + _STRETCH < len(b_keys) and b_keys[j + _STRETCH] < a_keys[i]):
            end = len(b_keys) if i == len(a_keys) else seek(b_keys, j + _STRETCH, a_keys[i])
            rows = min(end - j, stop - i - j)
            if not b_strict:
                rows = single_rows(b_keys, b_vals, j, rows)
                status = MORE if rows != 0 else GROUP
            copy_rows(b, place[base:], j, rows, target, out)
            j, out = j + rows, out + rows
        else:
            i, j, rows, ties, status = choose(
                batches, place, (i, j), stop, (a_strict, b_strict), chosen, tied, target, out
            )
            if len(vals) != 0:
                copy_chosen(batches, VALS, 0, chosen, rows, vals, out)
            if len(index) != 0:
                place_chosen(batches, place, chosen, rows, index, out)
            if len(diffs) != 0:
                copy_chosen(batches, DIFFS, 1, chosen, rows, diffs, out)
                for tie in range(0, ties, 2):
                    diffs[out + tied[tie]] = tied[tie + 1]
            out += rows
        if status == GROUP:
            i, j, out, status = merge_group(batches, place, (i, j), scratch, target, out)
        note(state, target, before, out)
    state[FIRST], state[SECOND], state[WRITTEN] = i, j, out
    return DONE if i == len(a_keys) and j == len(b_keys) else status
