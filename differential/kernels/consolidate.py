"""Consolidation: rows sorted by (key, value, time), equal ones summed, those that sum to zero dropped.

This is what arranging costs, so the work is chosen by size. A few hundred rows are merge-sorted and folded by one
kernel call. Many rows are packed, each into one word,

    (key - least key | value - least value | time index | diff - least diff),

whenever that takes no more than 63 bits, and `np.sort` sorts the words (with vector instructions, several times as
fast as any sort of rows); equal rows are then neighbours, and one pass unpacks and sums them. Diffs that do not fit
are replaced by row numbers and fetched. When not even that fits, rows are ordered by key alone, by `np.argsort`, and
runs of equal keys are merge-sorted. Rows that come sorted are only folded. A first pass over the columns decides.

Absent columns (see `differential.kernels.memory`) take no room in a word and are not spelled out; columns of the
result are absent whenever they can be: no value but 0, no diff but 1, no time but one.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import NOTHING, Ints, Table, inner, kernel
from differential.kernels.memory import at, column, times_of
from differential.kernels.times import copy_advanced, drop_unused, intern, only_used, remapped, sorted_distinct

SMALL = 200
"""Up to so many rows one call of a kernel is faster than sorting words."""

_RUN = 12
_WORD = 63

IS_SORTED, KEY_LOW, KEY_HIGH, VAL_LOW, VAL_HIGH, TIME_HIGH, DIFF_LOW, DIFF_HIGH = range(8)
KEY_SHIFT, VAL_SHIFT, TIME_SHIFT, KEY_BASE, VAL_BASE, DIFF_BASE, BY_ROW = range(7)


def consolidate(
    keys: Ints, vals: Ints, time_index: Ints, diffs: Ints, times: Table
) -> tuple[Ints, Ints, Ints, Ints, Table]:
    """Return the same updates consolidated: columns sorted by (key, value, time), and a table of times sorted,
    distinct and in use. The times given may be in any order and repeat.
    """
    if len(keys) <= SMALL:
        return consolidate_few(keys, vals, time_index, diffs, times)
    if len(time_index):
        times, place = intern(times)
        time_index = remapped(time_index, place)
    keys, vals, time_index, diffs = _consolidate_many(keys, vals, time_index, diffs)
    time_index, times = drop_unused(time_index, times if len(keys) else times[:0])
    return keys, vals, time_index, diffs, times


def _consolidate_many(keys: Ints, vals: Ints, time_index: Ints, diffs: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    found = survey(keys, vals, time_index, diffs).tolist()
    if found[IS_SORTED]:
        return fold(NOTHING, keys, vals, time_index, diffs)
    key_bits = (found[KEY_HIGH] - found[KEY_LOW]).bit_length()
    val_bits = (found[VAL_HIGH] - found[VAL_LOW]).bit_length()
    time_bits = found[TIME_HIGH].bit_length()
    diff_bits = (found[DIFF_HIGH] - found[DIFF_LOW]).bit_length()
    row_bits = (len(keys) - 1).bit_length()
    bits = key_bits + val_bits + time_bits
    if bits + min(diff_bits, row_bits) > _WORD:
        return fold_by_key(np.argsort(keys), keys, vals, time_index, diffs)
    by_row = bits + diff_bits > _WORD
    shift = row_bits if by_row else diff_bits
    shifts = [shift + time_bits + val_bits, shift + time_bits, shift]
    layout = np.array([*shifts, found[KEY_LOW], found[VAL_LOW], found[DIFF_LOW], by_row], np.int64)
    words = pack(keys, vals, time_index, diffs, layout)
    words.sort()
    return unpack(words, diffs, layout, len(vals) != 0, len(time_index) != 0)


@inner
def is_ordered(keys: Ints, vals: Ints, time_index: Ints, i: int, j: int) -> bool:
    """Return whether row `i` is before row `j` by (key, value, time), or equal."""
    if keys[i] != keys[j]:
        return bool(keys[i] < keys[j])
    if len(vals) != 0 and vals[i] != vals[j]:
        return bool(vals[i] < vals[j])
    return len(time_index) == 0 or time_index[i] <= time_index[j]


@inner
def is_same(keys: Ints, vals: Ints, time_index: Ints, i: int, j: int) -> bool:
    """Return whether two rows agree in key, value and time."""
    return (
        keys[i] == keys[j]
        and (len(vals) == 0 or vals[i] == vals[j])
        and (len(time_index) == 0 or time_index[i] == time_index[j])
    )


@inner
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
def fold_rows(order: Ints, keys: Ints, vals: Ints, time_index: Ints, diffs: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the columns with equal neighbours summed; `order` are the sorted row numbers, absent when rows are
    sorted.

    The first pass sums and finds how long and which the resulting columns are; the second writes them.
    """
    rows = len(keys)
    sums = np.empty(rows, np.int64)
    kept, are_ones, are_zeros = 0, True, True
    first = 0
    while first < rows:
        row = at(order, first, first)
        total = at(diffs, row, 1)
        after = first + 1
        while after < rows and is_same(keys, vals, time_index, row, at(order, after, after)):
            total += at(diffs, at(order, after, after), 1)
            after += 1
        sums[first] = total
        for place in range(first + 1, after):
            sums[place] = 0
        if total != 0:
            kept += 1
            are_ones &= total == 1
            are_zeros &= at(vals, row, 0) == 0
        first = after
    new_keys = np.empty(kept, np.int64)
    new_vals = np.empty(0 if are_zeros else kept, np.int64)
    new_index = np.empty(kept if len(time_index) != 0 else 0, np.int64)
    new_diffs = np.empty(0 if are_ones else kept, np.int64)
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
def consolidated(
    keys: Ints, vals: Ints, time_index: Ints, diffs: Ints, times: Table
) -> tuple[Ints, Ints, Ints, Ints, Table]:
    """Return the columns and the times of few rows, consolidated."""
    rows = len(keys)
    index, table = time_index, times
    if len(time_index) != 0:
        table, place = sorted_distinct(times)
        index = np.empty_like(time_index)
        for row in range(rows):
            index[row] = place[time_index[row]]
    order, scratch = np.arange(rows), np.empty(rows, np.int64)
    sort_rows(order, scratch, 0, rows, keys, vals, index)
    new_keys, new_vals, new_index, new_diffs = fold_rows(order, keys, vals, index, diffs)
    new_index, table = only_used(new_index, table if len(new_keys) != 0 else table[:0])
    return new_keys, new_vals, new_index, new_diffs, table


@kernel
def consolidate_few(
    keys: Ints, vals: Ints, time_index: Ints, diffs: Ints, times: Table
) -> tuple[Ints, Ints, Ints, Ints, Table]:
    """Return the columns and the times of few rows, consolidated."""
    return consolidated(keys, vals, time_index, diffs, times)


@kernel
def merge_few(batches: Table, since: Table) -> tuple[Ints, Ints, Ints, Ints, Table]:
    """Return the rows of all batches of a table, with times advanced to `since`, consolidated: for few rows in all."""
    rows = distinct = 0
    for batch in range(len(batches)):
        rows += batches[batch, 0]
        distinct += batches[batch, 6]
    keys, vals = np.empty(rows, np.int64), np.empty(rows, np.int64)
    index, diffs = np.empty(rows, np.int64), np.empty(rows, np.int64)
    times = np.empty((distinct, batches[0, 7]), np.int64)
    rows = distinct = 0
    for batch in range(len(batches)):
        copy_advanced(times_of(batches, batch), since, times, distinct)
        own_keys, own_vals = column(batches, batch, 1), column(batches, batch, 2)
        own_index, own_diffs = column(batches, batch, 3), column(batches, batch, 4)
        for row in range(len(own_keys)):
            keys[rows] = own_keys[row]
            vals[rows] = at(own_vals, row, 0)
            index[rows] = distinct + at(own_index, row, 0)
            diffs[rows] = at(own_diffs, row, 1)
            rows += 1
        distinct += batches[batch, 6]
    return consolidated(keys, vals, index, diffs, times)


@kernel
def survey(keys: Ints, vals: Ints, time_index: Ints, diffs: Ints) -> Ints:
    """Return whether the rows are sorted, and the bounds of every column, in the order of IS_SORTED, KEY_LOW, ..."""
    found = np.zeros(8, np.int64)
    found[1], found[2] = keys.min(), keys.max()
    if len(vals) != 0:
        found[3], found[4] = vals.min(), vals.max()
    if len(time_index) != 0:
        found[5] = time_index.max()
    found[6] = found[7] = 1
    if len(diffs) != 0:
        found[6], found[7] = diffs.min(), diffs.max()
    found[0] = 1
    for row in range(1, len(keys)):
        if not is_ordered(keys, vals, time_index, row - 1, row):
            found[0] = 0
            break
    return found


@kernel
def fold(order: Ints, keys: Ints, vals: Ints, time_index: Ints, diffs: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the columns with equal neighbours summed; `order`: row numbers sorted, absent when the rows are."""
    return fold_rows(order, keys, vals, time_index, diffs)


@kernel
def fold_by_key(order: Ints, keys: Ints, vals: Ints, time_index: Ints, diffs: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the columns consolidated; `order` are row numbers in the order of their keys."""
    scratch = np.empty(len(order), np.int64)
    first = 0
    while first < len(order):
        after = first + 1
        while after < len(order) and keys[order[after]] == keys[order[first]]:
            after += 1
        if after > first + 1:
            sort_rows(order, scratch, first, after, keys, vals, time_index)
        first = after
    return fold_rows(order, keys, vals, time_index, diffs)


@kernel
def pack(keys: Ints, vals: Ints, time_index: Ints, diffs: Ints, layout: Ints) -> Ints:
    """Return a word for every row, laid out as the module says."""
    key_shift, val_shift, time_shift = layout[0], layout[1], layout[2]
    key_base, val_base, diff_base, by_row = layout[3], layout[4], layout[5], layout[6]
    words = np.empty(len(keys), np.int64)
    for row in range(len(keys)):
        words[row] = (keys[row] - key_base) << key_shift
    if len(vals) != 0:
        for row in range(len(keys)):
            words[row] |= (vals[row] - val_base) << val_shift
    if len(time_index) != 0:
        for row in range(len(keys)):
            words[row] |= time_index[row] << time_shift
    if by_row != 0:
        for row in range(len(keys)):
            words[row] |= row
    elif len(diffs) != 0:
        for row in range(len(keys)):
            words[row] |= diffs[row] - diff_base
    return words


@kernel
def unpack(words: Ints, diffs: Ints, layout: Ints, has_vals: int, has_times: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the columns that sorted words stand for, equal rows summed.

    The words are overwritten: the first pass leaves the distinct rows in front, and their sums.
    """
    key_shift, val_shift, time_shift = layout[0], layout[1], layout[2]
    key_base, val_base, diff_base, by_row = layout[3], layout[4], layout[5], layout[6]
    low_mask = (np.int64(1) << time_shift) - 1
    rows, kept, are_ones = len(words), 0, True
    sums = np.empty(rows, np.int64)
    row = 0
    while row < rows:
        prefix, total = words[row] >> time_shift, 0
        while row < rows and words[row] >> time_shift == prefix:
            low = words[row] & low_mask
            total += diffs[low] if by_row != 0 else low + diff_base
            row += 1
        if total != 0:
            words[kept], sums[kept] = prefix, total
            are_ones &= total == 1
            kept += 1
    key_shift, val_shift = key_shift - time_shift, val_shift - time_shift
    val_mask, time_mask = (np.int64(1) << (key_shift - val_shift)) - 1, (np.int64(1) << val_shift) - 1
    keys = np.empty(kept, np.int64)
    vals = np.empty(kept if has_vals != 0 and (val_mask != 0 or val_base != 0) else 0, np.int64)
    time_index = np.empty(kept if has_times != 0 else 0, np.int64)
    for row in range(kept):
        keys[row] = (words[row] >> key_shift) + key_base
    if len(vals) != 0:
        any_value = np.int64(0)
        for row in range(kept):
            vals[row] = ((words[row] >> val_shift) & val_mask) + val_base
            any_value |= vals[row]
        if any_value == 0:
            vals = np.empty(0, np.int64)
    if has_times != 0:
        for row in range(kept):
            time_index[row] = words[row] & time_mask
    return keys, vals, time_index, np.empty(0, np.int64) if are_ones else sums[:kept].copy()
