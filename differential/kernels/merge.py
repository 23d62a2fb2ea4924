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

from typing import NamedTuple

import numpy as np

from differential.kernels.compile import Batches, Ints, Table, Times, bare, inner, kernel
from differential.kernels.consolidate import sort_rows
from differential.kernels.memory import DIFFS, KEYS, TIME_INDEX, TIME_ROWS, VALS, at, column, item
from differential.kernels.seek import seek
from differential.kernels.times import copy_advanced, intern
from differential.kernels.wide import Overflow, carry, fits

MORE, DONE, NEEDS_DIFFS, GROUP, TOO_WIDE = range(5)
"""How a call of `merge` ends: the fuel is used up; the merge is complete; or a column of diffs is needed, in which all
rows so far have 1. The others are for the inner functions: next are the rows of one (key, value) that may be out of
order; and a sum does not fit into 64 bits."""

FIRST, SECOND, WRITTEN, HAS_VALS, HAS_DIFFS, USED = range(6)
"""The state of a merge: the rows read of either side; the rows written; whether some value is not 0, and some diff not
1; and from USED on, for each time, how many written rows have it, if time indices are written at all."""

_STRETCH = 32
"""A side that has more than this many rows before the other's next key is copied up to there."""
_BLOCK = 256


class MergeSide(NamedTuple):
    """One of the two batches: its columns, the place of each of its times, and whether these places increase."""

    keys: Ints
    vals: Ints
    time_index: Ints
    diffs: Ints
    place: Ints
    is_strict: bool


class MergeTarget(NamedTuple):
    """The columns that are written."""

    keys: Ints
    vals: Ints
    time_index: Ints
    diffs: Ints


@kernel
def plan(first: Table, second: Table, since: Times) -> tuple[Table, Ints]:
    """Return the table of the times of both sides under `since`, and for each time of either side its place there."""
    times = np.empty((len(first) + len(second), first.shape[1]), np.int64)
    copy_advanced(first, since, times, 0)
    copy_advanced(second, since, times, len(first))
    return intern(times)


@bare
def increases(place: Ints) -> bool:
    """Return whether the items strictly increase."""
    for time in range(1, len(place)):  # noqa: SIM110 (compiled)
        if place[time - 1] >= place[time]:
            return False
    return True


@inner
def side_of(batches: Table, which: int, place: Ints) -> MergeSide:
    """Return a batch as a side, given the places of its times."""
    return MergeSide(
        column(batches, which, KEYS),
        column(batches, which, VALS),
        column(batches, which, TIME_INDEX),
        column(batches, which, DIFFS),
        place,
        increases(place),
    )


@bare
def copy_rows(side: MergeSide, start: int, rows: int, target: MergeTarget, to: int) -> None:
    """Copy `rows` rows of a side, from `start` on, to the target columns from row `to` on."""
    for row in range(rows):
        target.keys[to + row] = side.keys[start + row]
    if len(target.vals) != 0:
        for row in range(rows):
            target.vals[to + row] = at(side.vals, start + row, 0)
    if len(target.time_index) != 0:
        for row in range(rows):
            # A side without a time index has one time, whose place is the first.
            target.time_index[to + row] = side.place[at(side.time_index, start + row, 0)]
    if len(target.diffs) != 0:
        for row in range(rows):
            target.diffs[to + row] = at(side.diffs, start + row, 1)


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
def note(state: Ints, target: MergeTarget, start: int, stop: int) -> None:
    """Update what the state keeps of the rows written, by those from `start` to `stop`."""
    vals, index, diffs = target.vals, target.time_index, target.diffs
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


@bare
def choose(
    a: MergeSide,
    b: MergeSide,
    positions: tuple[int, int],
    stop: int,
    chosen: Ints,
    tied: Ints,
    target: MergeTarget,
    to: int,
) -> tuple[int, int, int, int, int]:
    """Choose the next rows of either side, as many as `chosen` holds; return both positions, rows, ties and a status.

    Only the keys are written, to the target from row `to` on. Two rows of the same key, value and place are summed. If
    the sum is zero, both are skipped, up to the position at which rows of both sides add up to `stop`. Otherwise they
    become one row of the first side; `tied` has its place among the chosen rows and its diff. The status is MORE,
    GROUP, NEEDS_DIFFS or TOO_WIDE, by what comes next.
    """
    keys, a_keys, b_keys = target.keys, a.keys, b.keys
    i, j = positions
    rows = ties = 0
    while rows < len(chosen) and i < len(a_keys) and j < len(b_keys):
        a_key, b_key = a_keys[i], b_keys[j]
        is_first = a_key < b_key
        # Keys that both sides have, or that one side has twice, are rare; all others take this one branch.
        if (
            a_key == b_key
            or (not a.is_strict and i + 1 < len(a_keys) and a_keys[i + 1] == a_key)
            or (not b.is_strict and j + 1 < len(b_keys) and b_keys[j + 1] == b_key)
        ):
            a_val, b_val = at(a.vals, i, 0), at(b.vals, j, 0)
            is_same = a_key == b_key and a_val == b_val
            is_first |= a_key == b_key and a_val < b_val
            # Neither position moves before a return: the next step starts with these two rows.
            if not a.is_strict and (is_first or is_same) and has_next(a_keys, a.vals, i):
                return i, j, rows, ties, GROUP
            if not b.is_strict and not is_first and has_next(b_keys, b.vals, j):
                return i, j, rows, ties, GROUP
            if is_same:
                # Within this (key, value) both sides have increasing places, or a single row: they merge by place.
                a_place, b_place = a.place[at(a.time_index, i, 0)], b.place[at(b.time_index, j, 0)]
                is_first = a_place <= b_place
                if a_place == b_place:
                    a_diff, b_diff = at(a.diffs, i, 1), at(b.diffs, j, 1)
                    diff = a_diff + b_diff
                    if not fits(diff, (a_diff >> 63) + carry(diff, b_diff)):
                        return i, j, rows, ties, TOO_WIDE
                    if diff == 0:
                        i, j = i + 1, j + 1
                        # Rows that cancel do not fill `chosen`, so only the fuel bounds how many are skipped.
                        if i + j >= stop:
                            break
                        continue
                    if diff != 1 and len(target.diffs) == 0:
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
def is_next(a: MergeSide, b: MergeSide, i: int, j: int) -> bool:
    """Return whether the row `i` of the first side comes before the row `j` of the second, or has its key and value."""
    if i == len(a.keys) or j == len(b.keys):
        return j == len(b.keys)
    return a.keys[i] < b.keys[j] or (a.keys[i] == b.keys[j] and at(a.vals, i, 0) <= at(b.vals, j, 0))


@bare
def group_ends(a: MergeSide, b: MergeSide, i: int, j: int) -> tuple[int, int]:
    """Return where the rows of the next (key, value) end on both sides, given the next rows `i` and `j`."""
    is_first = is_next(a, b, i, j)
    key = a.keys[i] if is_first else b.keys[j]
    val = at(a.vals, i, 0) if is_first else at(b.vals, j, 0)
    while i < len(a.keys) and a.keys[i] == key and at(a.vals, i, 0) == val:
        i += 1
    while j < len(b.keys) and b.keys[j] == key and at(b.vals, j, 0) == val:
        j += 1
    return i, j


@bare
def merge_group(
    a: MergeSide,
    b: MergeSide,
    starts: tuple[int, int],
    ends: tuple[int, int],
    group: Table,
    target: MergeTarget,
    to: int,
) -> tuple[int, int]:
    """Merge the rows of one (key, value); return the next row to write, and MORE, NEEDS_DIFFS or TOO_WIDE.

    `group` has four columns of room for the rows. Nothing is written unless the status is MORE.
    """
    (i, j), (a_end, b_end) = starts, ends
    is_first = a_end > i
    key = a.keys[i] if is_first else b.keys[j]
    val = at(a.vals, i, 0) if is_first else at(b.vals, j, 0)
    size = a_end - i + b_end - j
    times, counts, order, spare = group[0], group[1], group[2], group[3]
    for row in range(i, a_end):
        times[row - i], counts[row - i] = a.place[at(a.time_index, row, 0)], at(a.diffs, row, 1)
    for row in range(j, b_end):
        spot = a_end - i + row - j
        times[spot], counts[spot] = b.place[at(b.time_index, row, 0)], at(b.diffs, row, 1)
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
            return to, TOO_WIDE
        if diff != 0:
            are_ones &= diff == 1
            # `order` is read ahead of `kept`, and `spare` is free after the sort: both take the results.
            spare[kept], order[kept] = diff, time
            kept += 1
    if not are_ones and len(target.diffs) == 0:
        return to, NEEDS_DIFFS  # the next call merges the group again
    for row in range(kept):
        target.keys[to + row] = key
        if len(target.vals) != 0:
            target.vals[to + row] = val
        if len(target.time_index) != 0:
            target.time_index[to + row] = order[row]
        if len(target.diffs) != 0:
            target.diffs[to + row] = spare[row]
    return to + kept, MORE


@kernel
def merge(
    batches: Batches, place: Ints, keys: Ints, vals: Ints, index: Ints, diffs: Ints, state: Ints, fuel: int
) -> int:
    """Merge about `fuel` rows of the two `batches` into the given columns; return MORE, DONE or NEEDS_DIFFS.

    The first call gets a `state` of zeros; `place` is that of `plan`.
    """
    target, base = MergeTarget(keys, vals, index, diffs), batches[0, TIME_ROWS]
    a, b = side_of(batches, 0, place[:base]), side_of(batches, 1, place[base:])
    a_keys, b_keys = a.keys, b.keys
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
            if not a.is_strict:
                # Rows that are alone in their (key, value) are in order; the copy ends before the first others.
                rows = single_rows(a_keys, a.vals, i, rows)
                status = MORE if rows != 0 else GROUP
            copy_rows(a, i, rows, target, out)
            i, out = i + rows, out + rows
        elif i == len(a_keys) or (j + _STRETCH < len(b_keys) and b_keys[j + _STRETCH] < a_keys[i]):
            end = len(b_keys) if i == len(a_keys) else seek(b_keys, j + _STRETCH, a_keys[i])
            rows = min(end - j, stop - i - j)
            if not b.is_strict:
                rows = single_rows(b_keys, b.vals, j, rows)
                status = MORE if rows != 0 else GROUP
            copy_rows(b, j, rows, target, out)
            j, out = j + rows, out + rows
        else:
            i, j, rows, ties, status = choose(a, b, (i, j), stop, chosen, tied, target, out)
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
            ends = group_ends(a, b, i, j)
            if ends[0] - i + ends[1] - j > scratch.shape[1]:
                scratch = np.empty((4, ends[0] - i + ends[1] - j), np.int64)
            out, status = merge_group(a, b, (i, j), ends, scratch, target, out)
            if status == MORE:
                i, j = ends
        if status == TOO_WIDE:
            # Both sides have a row of the same key and value next, or the side that is next has several.
            is_first = is_next(a, b, i, j)
            raise Overflow(a_keys[i] if is_first else b_keys[j], at(a.vals, i, 0) if is_first else at(b.vals, j, 0))
        note(state, target, before, out)
    state[FIRST], state[SECOND], state[WRITTEN] = i, j, out
    return DONE if i == len(a_keys) and j == len(b_keys) else status
