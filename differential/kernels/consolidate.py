"""Consolidation: rows sorted by (key, value, time), equal ones summed, those that sum to zero dropped.

This is what arranging costs, so one kernel does all of it, and chooses by size. A few rows are merge-sorted. Many
rows are packed, each into one word of 64 bits, or two,

    (key - least key | value - least value | time index | diff - least diff),

and the words are radix-sorted, by as many digits as the bounds of the columns require; equal rows are then
neighbours, and one pass sums and one unpacks them. So nothing is moved but words, and always in the order of memory.
A diff that does not fit is replaced by the number of its row and fetched. Only when two words do not hold a row (keys
and values both of all magnitudes, and many times) is it merge sort again. Rows that come sorted are only folded.

(Radix sort of 34-bit words takes 8 ns a word, `np.sort` 15 to 60, by processor; sorting row numbers and fetching the
rows several times that.)

Absent columns (see `differential.kernels.memory`) take no room in a word and are not spelled out; columns of the
result are absent whenever they can be: no value but 0, no diff but 1, no time but one.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, inner, kernel
from differential.kernels.memory import (
    COORDINATES,
    DIFFS,
    KEYS,
    ROWS,
    TIME_INDEX,
    TIME_ROWS,
    VALS,
    at,
    column,
    empty,
    times_of,
)
from differential.kernels.times import copy_advanced, only_used, sorted_distinct

SMALL = 96
"""Up to so many rows merge sort is faster than radix sort."""

_RUN = 12
_WORD = 64
_DIGIT = 10
_SMALL_DIGIT = 7
_SMALL_DIGIT_ROWS = 2000

KEY, VAL, TIME, DIFF = range(4)
LOW, BITS, SHIFT, IN_SECOND = range(4)
"""A layout has a row for each of key, value, time and diff (or row number): the least, which is subtracted, the bits
it takes, where they begin, and whether they are in the second word."""

UNFIT, ONE_WORD, TWO_WORDS = range(3)


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
def fold(order: Ints, keys: Ints, vals: Ints, time_index: Ints, diffs: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the columns with equal neighbours summed; `order`: row numbers sorted, absent when the rows are.

    The first pass sums and finds how long and which the resulting columns are; the second writes them.
    """
    rows = len(keys)
    sums = empty(rows)
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
def bound(items: Ints, layout: Table, which: int) -> None:
    """Write the least item and the bits that the others' distance from it takes."""
    if len(items) == 0:
        return
    low = high = items[0]
    for item in items:
        low, high = min(low, item), max(high, item)
    span = high - low
    layout[which, LOW] = low
    bits = 0
    while bits < _WORD and span != 0:
        # A distance of 2**63 or more is a negative number, which never becomes 0 by shifting.
        span >>= 1
        bits += 1
    layout[which, BITS] = bits


@inner
def stack(layout: Table, which: int, word: int, shift: int) -> int:
    """Place a field at `shift` of a word; return where the next one begins."""
    layout[which, SHIFT], layout[which, IN_SECOND] = shift, word
    return int(shift + layout[which, BITS])


@inner
def arrange_fields(layout: Table) -> int:
    """Place the fields in one word, or in two, and return which: UNFIT when they do not fit."""
    key, val = layout[KEY, BITS], layout[VAL, BITS]
    tail = layout[TIME, BITS] + layout[DIFF, BITS]
    if key + val + tail <= _WORD:
        stack(layout, KEY, 0, stack(layout, VAL, 0, stack(layout, TIME, 0, stack(layout, DIFF, 0, 0))))
        return ONE_WORD
    if val + tail <= _WORD:
        stack(layout, VAL, 1, stack(layout, TIME, 1, stack(layout, DIFF, 1, 0)))
        stack(layout, KEY, 0, 0)
        return TWO_WORDS
    if key + tail <= _WORD:
        stack(layout, KEY, 0, stack(layout, TIME, 0, stack(layout, DIFF, 0, 0)))
        stack(layout, VAL, 1, 0)
        return TWO_WORDS
    return UNFIT


@inner
def key_words(keys: Ints, layout: Table) -> Ints:
    """Return words that hold the keys' field, and nothing else."""
    low, shift = layout[KEY, LOW], layout[KEY, SHIFT]
    words = empty(len(keys))
    for row in range(len(keys)):
        # A field without bits may be placed where a shift would have no meaning.
        words[row] = (keys[row] - low) << shift if layout[KEY, BITS] != 0 else 0
    return words


@inner
def insert_field(words: Ints, items: Ints, layout: Table, which: int) -> None:
    """Add a column's field to every word."""
    low, shift = layout[which, LOW], layout[which, SHIFT]
    if layout[which, BITS] != 0:
        for row in range(len(items)):
            words[row] |= (items[row] - low) << shift


@inner
def mask_of(bits: int) -> int:
    """Return that many ones."""
    return int((1 << bits) - 1) if bits < _WORD else -1


@inner
def radix_sort(
    words: Ints, others: Ints, spares: tuple[Ints, Ints], low: int, high: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the words, and with them the others unless absent, sorted stably by their bits from `low` to `high`.

    The arrays given, spares of the same lengths included, change places; the spares are returned last.
    """
    spare, other_spare = spares
    bits, most = high - low, _SMALL_DIGIT if len(words) < _SMALL_DIGIT_ROWS else _DIGIT
    if bits == 0:
        return words, others, spare, other_spare
    digits = (bits + most - 1) // most
    width = (bits + digits - 1) // digits
    ends = np.empty((1 << width) + 1, np.int64)
    for digit in range(digits):
        shift = low + digit * width
        mask = mask_of(min(width, high - shift))
        ends[:] = 0
        for word in words:
            ends[((word >> shift) & mask) + 1] += 1
        for value in range(mask):
            ends[value + 1] += ends[value]
        if len(others) != 0:
            for row in range(len(words)):
                value = (words[row] >> shift) & mask
                spare[ends[value]], other_spare[ends[value]] = words[row], others[row]
                ends[value] += 1
        else:
            for word in words:
                value = (word >> shift) & mask
                spare[ends[value]] = word
                ends[value] += 1
        words, spare = spare, words
        others, other_spare = other_spare, others
    return words, others, spare, other_spare


@inner
def sort_words(first: Ints, second: Ints, layout: Table) -> tuple[Ints, Ints, Ints]:
    """Return the words sorted by time, value and key, the last counting most; and an array to spare."""
    spare, other_spare = empty(len(first)), empty(len(second))
    for which in (TIME, VAL, KEY):
        low = layout[which, SHIFT]
        high = low + layout[which, BITS]
        if len(second) == 0:
            if which == KEY:
                low = layout[TIME, SHIFT]
                first, second, spare, other_spare = radix_sort(first, second, (spare, other_spare), low, high)
        elif layout[which, IN_SECOND] != 0:
            second, first, other_spare, spare = radix_sort(second, first, (other_spare, spare), low, high)
        else:
            first, second, spare, other_spare = radix_sort(first, second, (spare, other_spare), low, high)
    return first, second, spare


@inner
def extract_field(first: Ints, second: Ints, rows: int, layout: Table, which: int, room: Ints) -> Ints:
    """Return a column of the first `rows` words; absent when it is nothing but 0.

    It is written to `room`, which may be the words themselves, unless that would keep far more memory than it takes.
    """
    bits, low, shift = layout[which, BITS], layout[which, LOW], layout[which, SHIFT]
    if bits == 0 and low == 0:
        return np.empty(0, np.int64)
    words = second if layout[which, IN_SECOND] != 0 else first
    mask, any_bit = mask_of(bits), 0
    items = room[:rows] if rows <= len(room) <= rows + rows // 4 else empty(rows)
    if bits == 0:
        items[:] = low
        return items
    for row in range(rows):
        item = ((words[row] >> shift) & mask) + low
        items[row] = item
        any_bit |= item
    return items if any_bit != 0 else items[:0].copy()


@inner
def fold_words(first: Ints, second: Ints, diffs: Ints, layout: Table, is_by_row: bool) -> tuple[int, Ints]:
    """Sum equal rows and leave the words of those not zero in front; return how many, and the sums, absent if all 1.

    Diffs, or row numbers, are the lowest bits of their word.
    """
    low, tail_mask = layout[DIFF, LOW], mask_of(layout[DIFF, BITS])
    is_tail_first = len(second) == 0 or layout[DIFF, IN_SECOND] == 0
    first_mask = ~tail_mask if is_tail_first else -1
    second_mask = -1 if is_tail_first else ~tail_mask
    rows, kept, row = len(first), 0, 0
    sums = np.empty(0, np.int64)
    while row < rows:
        head, head_second, total = first[row], at(second, row, 0), 0
        while (
            row < rows
            and ((first[row] ^ head) & first_mask) == 0
            and ((at(second, row, 0) ^ head_second) & second_mask) == 0
        ):
            field = (first[row] if is_tail_first else second[row]) & tail_mask
            total += diffs[field] if is_by_row else field + low
            row += 1
        if total != 0:
            if len(sums) == 0 and total != 1:
                sums = empty(kept + 1 + rows - row)
                sums[:kept] = 1
            if len(sums) != 0:
                sums[kept] = total
            first[kept] = head
            if len(second) != 0:
                second[kept] = head_second
            kept += 1
    return kept, sums[:kept].copy() if len(sums) != 0 else sums


@inner
def consolidate_words(
    keys: Ints, vals: Ints, index: Ints, diffs: Ints, layout: Table, is_by_row: bool, words: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the columns consolidated, by sorting words laid out as `layout` says."""
    rows = len(keys)
    first, second = key_words(keys, layout), np.zeros(rows if words == TWO_WORDS else 0, np.int64)
    insert_field(second if layout[VAL, IN_SECOND] != 0 else first, vals, layout, VAL)
    insert_field(second if layout[TIME, IN_SECOND] != 0 else first, index, layout, TIME)
    tails = second if layout[DIFF, IN_SECOND] != 0 else first
    if is_by_row:
        for row in range(rows):
            tails[row] |= row
    else:
        insert_field(tails, diffs, layout, DIFF)
    first, second, spare = sort_words(first, second, layout)
    kept, sums = fold_words(first, second, diffs, layout, is_by_row)
    new_keys = extract_field(first, second, kept, layout, KEY, spare)
    if len(new_keys) == 0:
        new_keys = np.zeros(kept, np.int64)
    new_index = extract_field(first, second, kept, layout, TIME, np.empty(0, np.int64))
    if len(index) != 0 and len(new_index) == 0:
        new_index = np.zeros(kept, np.int64)
    # Each word is read before its place is written, and no field is read after the values.
    room = second if layout[VAL, IN_SECOND] != 0 else first
    return new_keys, extract_field(first, second, kept, layout, VAL, room), new_index, sums


@inner
def consolidate_columns(keys: Ints, vals: Ints, index: Ints, diffs: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the columns consolidated, by whichever way is best for so many rows."""
    rows = len(keys)
    row = 1
    while row < rows and is_ordered(keys, vals, index, row - 1, row):
        row += 1
    if row >= rows:
        return fold(keys[:0], keys, vals, index, diffs)
    if rows > SMALL:
        layout = np.zeros((4, 4), np.int64)
        layout[DIFF, LOW] = 1
        bound(keys, layout, KEY)
        bound(vals, layout, VAL)
        bound(index, layout, TIME)
        bound(diffs, layout, DIFF)
        words, is_by_row = arrange_fields(layout), False
        if words != ONE_WORD and layout[DIFF, BITS] != 0:
            by_row = layout.copy()
            by_row[DIFF, BITS] = 0
            while rows >> by_row[DIFF, BITS] != 0:
                by_row[DIFF, BITS] += 1
            words_by_row = arrange_fields(by_row)
            if words == UNFIT or words_by_row == ONE_WORD:
                words, is_by_row, layout = words_by_row, True, by_row
        if words != UNFIT:
            return consolidate_words(keys, vals, index, diffs, layout, is_by_row, words)
    order, scratch = np.arange(rows), empty(rows)
    sort_rows(order, scratch, 0, rows, keys, vals, index)
    return fold(order, keys, vals, index, diffs)


@kernel
def consolidate(
    keys: Ints, vals: Ints, time_index: Ints, diffs: Ints, times: Table
) -> tuple[Ints, Ints, Ints, Ints, Table]:
    """Return the same updates consolidated: columns sorted by (key, value, time), and a table of times sorted,
    distinct and in use. The times given may be in any order and repeat.
    """
    index, table = time_index, times
    if len(time_index) != 0:
        table, place = sorted_distinct(times)
        index = empty(len(time_index))
        for row in range(len(time_index)):
            index[row] = place[time_index[row]]
    new_keys, new_vals, new_index, new_diffs = consolidate_columns(keys, vals, index, diffs)
    new_index, table = only_used(new_index, table if len(new_keys) != 0 else table[:0])
    return new_keys, new_vals, new_index, new_diffs, table


@kernel
def merge_few(batches: Table, since: Table) -> tuple[Ints, Ints, Ints, Ints, Table]:
    """Return the rows of all batches of a table, with times advanced to `since`, consolidated: for few rows in all."""
    rows = distinct = 0
    for batch in range(len(batches)):
        rows += batches[batch, ROWS]
        distinct += batches[batch, TIME_ROWS]
    keys, vals = np.empty(rows, np.int64), np.empty(rows, np.int64)
    index, diffs = np.empty(rows, np.int64), np.empty(rows, np.int64)
    times = np.empty((distinct, batches[0, COORDINATES]), np.int64)
    rows = distinct = 0
    for batch in range(len(batches)):
        copy_advanced(times_of(batches, batch), since, times, distinct)
        own_keys, own_vals = column(batches, batch, KEYS), column(batches, batch, VALS)
        own_index, own_diffs = column(batches, batch, TIME_INDEX), column(batches, batch, DIFFS)
        for row in range(len(own_keys)):
            keys[rows] = own_keys[row]
            vals[rows] = at(own_vals, row, 0)
            index[rows] = distinct + at(own_index, row, 0)
            diffs[rows] = at(own_diffs, row, 1)
            rows += 1
        distinct += batches[batch, TIME_ROWS]
    return consolidate(keys, vals, index, diffs, times)
