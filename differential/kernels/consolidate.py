"""Consolidation: rows sorted by (key, value, time), equal ones summed, those that sum to zero dropped.

Consolidation is the main cost of arranging, so one kernel does all of it and chooses a way by size. Up to `SMALL` rows
are merge-sorted. More are packed into words of 64 bits, one or two a row, which are radix-sorted (see `words`). Only if
two words do not hold a row (keys and values both of all magnitudes, and many times) are they merge-sorted too. Rows
that come in order are only folded. The rows may come in several parts, and are packed from where they are.

*Cost.* Merge sort costs n log n comparisons of rows; the words cost at most a pass for each 7 to 9 bits that the rows
differ in. Folding is two passes.

Absent columns (see `memory`) take no bits of a word and are not written out. A column of the result is absent if it
would hold only the default: values of 0, diffs of 1, one time.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Batches, Ints, Table, Times, bare, bulk, inner, kernel
from differential.kernels.memory import (
    COORDINATES,
    DIFFS,
    KEYS,
    ROWS,
    TIME_INDEX,
    TIME_ROWS,
    VALS,
    address_of,
    at,
    column,
    empty,
    times_of,
)
from differential.kernels.times import copy_advanced, drop_unused, intern
from differential.kernels.wide import Overflow, carry, fits
from differential.kernels.words import TWO_WORDS, UNFIT, lay_out, pack, sorted_words, unpack

SMALL = 96
"""Up to this many rows merge sort is faster than radix sort."""

_RUN = 12


@bare
def is_ordered(keys: Ints, vals: Ints, time_index: Ints, i: int, j: int) -> bool:
    """Return whether row `i` is before row `j` by (key, value, time), or equal."""
    if keys[i] != keys[j]:
        return bool(keys[i] < keys[j])
    if len(vals) != 0 and vals[i] != vals[j]:
        return bool(vals[i] < vals[j])
    return len(time_index) == 0 or time_index[i] <= time_index[j]


@bare
def is_same(keys: Ints, vals: Ints, time_index: Ints, i: int, j: int) -> bool:
    """Return whether two rows agree in key, value and time."""
    return (
        keys[i] == keys[j]
        and (len(vals) == 0 or vals[i] == vals[j])
        and (len(time_index) == 0 or time_index[i] == time_index[j])
    )


@bare
def sort_rows(order: Ints, scratch: Ints, low: int, high: int, keys: Ints, vals: Ints, time_index: Ints) -> None:
    """Sort the row numbers `order[low:high]` by (key, value, time), by merge sort; `scratch` is as long as `order`."""
    for start in range(low, high, _RUN):
        for i in range(start + 1, min(start + _RUN, high)):
            row, j = order[i], i
            while j > start and not is_ordered(keys, vals, time_index, order[j - 1], row):
                order[j] = order[j - 1]
                j -= 1
            order[j] = row
    width = _RUN
    while width < high - low:
        for start in range(low, high - width, 2 * width):
            middle, stop = start + width, min(start + 2 * width, high)
            if is_ordered(keys, vals, time_index, order[middle - 1], order[middle]):
                continue
            # Only the left half moves out: `place` never passes `right`, so no row of the right half is overwritten.
            for i in range(width):
                scratch[i] = order[start + i]
            left, right = 0, middle
            for place in range(start, stop):
                if right == stop or (left < width and is_ordered(keys, vals, time_index, scratch[left], order[right])):
                    order[place] = scratch[left]
                    left += 1
                else:
                    order[place] = order[right]
                    right += 1
        width *= 2


@inner
def fold(order: Ints, keys: Ints, vals: Ints, time_index: Ints, diffs: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the columns with equal neighbours summed; `order` has the row numbers in order, and is absent if rows are.

    The first pass sums, and finds which columns the result has and how long they are. The second writes them.
    """
    rows = len(keys)
    sums = empty(rows)
    kept, are_ones, are_zeros = 0, True, True
    first = 0
    while first < rows:
        # With `order` absent the rows stand in order, and a row's number is its place.
        row = at(order, first, first)
        total = at(diffs, row, 1)
        high, after = total >> 63, first + 1
        while after < rows and is_same(keys, vals, time_index, row, at(order, after, after)):
            diff = at(diffs, at(order, after, after), 1)
            total += diff
            high += carry(total, diff)
            after += 1
        if not fits(total, high):
            raise Overflow(keys[row], at(vals, row, 0))
        # The sum stands at the first of the equal rows, and zeros at the others, so the second pass skips those.
        sums[first] = total
        for place in range(first + 1, after):
            sums[place] = 0
        if total != 0:
            kept += 1
            are_ones &= total == 1
            are_zeros &= at(vals, row, 0) == 0
        first = after
    new_keys = empty(kept)
    new_vals = empty(0 if are_zeros else kept)
    new_index = empty(kept if len(time_index) != 0 else 0)
    new_diffs = empty(0 if are_ones else kept)
    kept = 0
    for place in range(rows):
        if sums[place] == 0:
            continue
        row = at(order, place, place)
        new_keys[kept] = keys[row]
        if not are_zeros:
            new_vals[kept] = vals[row]
        if len(time_index) != 0:
            new_index[kept] = time_index[row]
        if not are_ones:
            new_diffs[kept] = sums[place]
        kept += 1
    return new_keys, new_vals, new_index, new_diffs


@inner
def spelled_out(parts: Table, rows: int, which: int, absent: int) -> Ints:
    """Return a column of all parts, absent if all parts lack it. It may be a part's own, so it must not be changed."""
    if len(parts) == 1:
        return column(parts, 0, which)
    is_absent = True
    for part in range(len(parts)):
        is_absent &= parts[part, which] == 0
    items, row = empty(0 if is_absent else rows), 0
    for part in range(0 if is_absent else len(parts)):
        own = column(parts, part, which)
        for item in range(parts[part, ROWS]):
            items[row] = at(own, item, absent)
            row += 1
    return items


@inner
def places(parts: Table, rows: int, place: Ints, times: int) -> Ints:
    """Return the place of every row's time among `times` distinct ones; absent if there is only one."""
    index, row, base = empty(rows if times > 1 else 0), 0, 0
    for part in range(len(parts) if times > 1 else 0):
        own = column(parts, part, TIME_INDEX)
        for item in range(parts[part, ROWS]):
            index[row] = place[base + at(own, item, 0)]
            row += 1
        base += parts[part, TIME_ROWS]
    return index


@inner
def all_times(parts: Table, since: Table) -> tuple[Table, Ints]:
    """Return the distinct times of all parts, sorted, and the place there of each part's times.

    Times are first advanced to `since`, unless it is a table without coordinates.
    """
    count = 0
    for part in range(len(parts)):
        count += parts[part, TIME_ROWS]
    times, base = np.empty((count, parts[0, COORDINATES]), np.int64), 0
    for part in range(len(parts)):
        own = times_of(parts, part)
        if since.shape[1] != 0:
            copy_advanced(own, since, times, base)
        else:
            times[base : base + len(own)] = own
        base += len(own)
    return intern(times)


@bare
def is_in_order(keys: Ints, vals: Ints, index: Ints) -> bool:
    """Return whether the rows are sorted by (key, value, time)."""
    for row in range(1, len(keys)):  # noqa: SIM110 (compiled)
        if not is_ordered(keys, vals, index, row - 1, row):
            return False
    return True


@bulk
@kernel
def consolidate_parts(parts: Batches, since: Times) -> tuple[Ints, Ints, Ints, Ints, Table]:
    """Return the updates of all parts, consolidated: columns sorted by (key, value, time), and a table of times that is
    sorted, without duplicates or unused times.

    `parts` is a table as of batches, but rows and times may be in any order, and repeat. Times are first advanced to
    `since`, unless it is a table without coordinates.
    """
    rows = 0
    for part in range(len(parts)):
        rows += parts[part, ROWS]
    times, place = all_times(parts, since)
    words, is_by_row, layout = UNFIT, False, np.zeros((0, 0), np.int64)
    # Rows in order need no sort, and `fold` alone costs less than packing.
    if rows > SMALL and not (len(parts) == 1 and is_part_in_order(parts, place)):
        words, is_by_row, layout = lay_out(parts, rows, len(times))
    if words == UNFIT:
        keys, vals = spelled_out(parts, rows, KEYS, 0), spelled_out(parts, rows, VALS, 0)
        diffs, index = spelled_out(parts, rows, DIFFS, 1), places(parts, rows, place, len(times))
        # `places` has replaced time indices by places in the sorted table, so comparing them compares times.
        order = np.arange(0 if is_in_order(keys, vals, index) else rows)
        sort_rows(order, empty(len(order)), 0, len(order), keys, vals, index)
        keys, vals, index, sums = fold(order, keys, vals, index, diffs)
    else:
        first, second = pack(parts, rows, place, words, is_by_row, layout)
        first, second, spare = sorted_words(first, second, layout)
        diffs = spelled_out(parts, rows, DIFFS, 1) if is_by_row else np.empty(0, np.int64)
        keys, vals, index, sums = unpack(first, second, spare, diffs, is_by_row, layout)
    index, times = drop_unused(index, times if len(keys) != 0 else times[:0])
    return keys, vals, index, sums, times


@kernel
def plan_words(parts: Table) -> tuple[int, Ints, Ints, int, Table, Ints, Table, Ints]:
    """Return how the rows of all parts become words, for `pack_part` and `unpack_words`.

    The result is: how many words a row takes; room for the first and the second words; whether a row's number stands
    for its diff; the layout; the diffs if so; the times; and each time's place. The number of words is UNFIT if the
    rows do not fit, or are one part in order already.
    """
    rows = 0
    for part in range(len(parts)):
        rows += parts[part, ROWS]
    times, place = all_times(parts, np.empty((0, 0), np.int64))
    words, is_by_row, layout = lay_out(parts, rows, len(times))
    if len(parts) == 1 and is_part_in_order(parts, place):
        words = UNFIT
    first, second = empty(rows if words != UNFIT else 0), empty(rows if words == TWO_WORDS else 0)
    diffs = spelled_out(parts, rows, DIFFS, 1) if words != UNFIT and is_by_row else np.empty(0, np.int64)
    return words, first, second, int(is_by_row), layout, diffs, times, place


@bulk
@kernel
def unpack_words(
    first: Ints, second: Ints, layout: Table, is_by_row: int, diffs: Ints, times: Table
) -> tuple[Ints, Ints, Ints, Ints, Table]:
    """Return the consolidated updates that the words stand for; the words are overwritten.

    With `plan_words` and `pack_part` this is `consolidate_parts` for parts that are not all in memory at the same time.
    """
    first, second, spare = sorted_words(first, second, layout)
    keys, vals, index, sums = unpack(first, second, spare, diffs, is_by_row != 0, layout)
    index, times = drop_unused(index, times if len(keys) != 0 else times[:0])
    return keys, vals, index, sums, times


@inner
def is_part_in_order(parts: Table, place: Ints) -> bool:
    """Return whether the one part's table of times is in order, and its rows are by (key, value, time index)."""
    for time in range(1, len(place)):
        # Equal times do no harm: rows sorted by index are then sorted by place.
        if place[time] < place[time - 1]:
            return False
    return is_in_order(column(parts, 0, KEYS), column(parts, 0, VALS), column(parts, 0, TIME_INDEX))


@kernel
def consolidate(
    keys: Ints, vals: Ints, time_index: Ints, diffs: Ints, times: Table
) -> tuple[Ints, Ints, Ints, Ints, Table]:
    """Return one part, consolidated (see `consolidate_parts`)."""
    part = address_of(keys, vals, time_index, diffs, times)
    return consolidate_parts(part.reshape((1, len(part))), np.empty((0, 0), np.int64))
