"""Rows as words: packed into one word of 64 bits or two, sorted, summed and unpacked.

A row is

    (key - least key | value - least value | place of its time | diff - least diff)

with as many bits for each field as the bounds of its column require. If all keys (or values) agree in a run of bits in
their midst, as codes of two small columns do, that run is left out.

*The invariant.* To sort the words by their fields key, value and time, as unsigned numbers, is to sort the rows: every
field is at least 0, and the bits that are left out are the same in every row. In a single word the three fields are
neighbours, the key highest, and are sorted as one. So the words are radix-sorted (see `radix`); equal rows are then
neighbours. The diff is the lowest field of its word, and is not part of the order.

If the diffs do not fit, the number of the row takes their place, and the diff is fetched when rows are summed.

*Cost.* One pass to bound the columns, one to pack, those of the radix sort, one to sum, and one for each column to
unpack. Only words are moved, and nearly all passes run in the order of memory.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, bare, bulk, inner, kernel
from differential.kernels.memory import DIFFS, KEYS, ROWS, TIME_INDEX, TIME_ROWS, VALS, at, column, empty
from differential.kernels.radix import WORD, mask_of, sort_words
from differential.kernels.wide import Overflow, carry, fits

_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1

KEY, VAL, TIME, DIFF = range(4)
LOW, BITS, SHIFT, IN_SECOND, GAP_AT, GAP = range(6)
"""The columns of a layout, which has a row for each of key, value, time and diff (or row number): the least item, which
is subtracted; the bits that the field takes; its lowest bit; whether it is in the second word; and the run of bits left
out of what the subtraction leaves: its lowest bit, and its length."""

UNFIT, ONE_WORD, TWO_WORDS = range(3)
"""How many words a row takes; UNFIT if two do not hold it."""


@bare
def bound(items: Ints, bounds: Table, which: int) -> None:
    """Widen the bounds so that they hold for `items`: least, greatest, the bits set in any, the bits set in all."""
    low, high, any_has, all_have = bounds[which]
    for item in items:
        low, high = min(low, item), max(high, item)
        any_has |= item
        all_have &= item
    bounds[which] = low, high, any_has, all_have


@inner
def bounds_of(parts: Table, times: int) -> Table:
    """Return the bounds of keys, values, places among `times` times, and diffs."""
    bounds = np.empty((4, 4), np.int64)
    for which in range(4):
        bounds[which] = _GREATEST, _LEAST, 0, -1
    bounds[TIME, 0], bounds[TIME, 1] = 0, times - 1
    absent = np.empty(1, np.int64)
    for part in range(len(parts)):
        bound(column(parts, part, KEYS), bounds, KEY)
        for which, field, instead in ((VALS, VAL, 0), (DIFFS, DIFF, 1)):
            absent[0] = instead
            bound(column(parts, part, which) if parts[part, which] != 0 else absent, bounds, field)
    return bounds


@bare
def bits_of(number: int) -> int:
    """Return how many bits a number takes, `WORD` if it is negative."""
    bits = 0
    while bits < WORD and number != 0:
        # A negative number never becomes 0 by shifting.
        number >>= 1
        bits += 1
    return bits


@bare
def measure(bounds: Table, layout: Table, which: int) -> None:
    """Set the least item of a field, and the bits that the greatest distance from it takes."""
    layout[which, LOW] = bounds[which, 0]
    # A distance of 2**63 or more wraps to a negative number, of which `bits_of` returns all 64 bits.
    layout[which, BITS] = bits_of(bounds[which, 1] - bounds[which, 0])


@bare
def leave_out(bounds: Table, layout: Table, which: int) -> None:
    """Leave out the longest run of bits in which all items agree, if that saves any.

    LOW becomes the bits that all items have set: subtracting them clears these bits in every item and borrows nothing.
    """
    varying = bounds[which, 2] ^ bounds[which, 3]
    bits = bits_of(varying)
    # Items of both signs would be out of order as unsigned numbers.
    if bits == WORD:
        return
    run = longest = above = 0
    for bit in range(bits):
        run = 0 if varying >> bit & 1 != 0 else run + 1
        if run > longest:
            longest, above = run, bit + 1
    if bits - longest < layout[which, BITS]:
        layout[which, LOW], layout[which, BITS] = bounds[which, 3], bits - longest
        layout[which, GAP_AT], layout[which, GAP] = above - longest, longest


@bare
def stack(layout: Table, which: int, word: int, shift: int) -> int:
    """Place a field at `shift` of a word; return where the next one begins."""
    layout[which, SHIFT], layout[which, IN_SECOND] = shift, word
    return int(shift + layout[which, BITS])


@bare
def arrange_fields(layout: Table) -> int:
    """Place the fields in one word or in two; return ONE_WORD, TWO_WORDS or UNFIT."""
    key, val = layout[KEY, BITS], layout[VAL, BITS]
    tail = layout[TIME, BITS] + layout[DIFF, BITS]
    if key + val + tail <= WORD:
        stack(layout, KEY, 0, stack(layout, VAL, 0, stack(layout, TIME, 0, stack(layout, DIFF, 0, 0))))
        return ONE_WORD
    if val + tail <= WORD:
        stack(layout, VAL, 1, stack(layout, TIME, 1, stack(layout, DIFF, 1, 0)))
        stack(layout, KEY, 0, 0)
        return TWO_WORDS
    if key + tail <= WORD:
        stack(layout, KEY, 0, stack(layout, TIME, 0, stack(layout, DIFF, 0, 0)))
        stack(layout, VAL, 1, 0)
        return TWO_WORDS
    return UNFIT


@inner
def lay_out(parts: Table, rows: int, times: int) -> tuple[int, bool, Table]:
    """Return how many words a row takes, whether its number stands for its diff, and the layout."""
    layout, bounds = np.zeros((4, 6), np.int64), bounds_of(parts, times)
    for which in (KEY, VAL, TIME, DIFF):
        measure(bounds, layout, which)
    for which in (KEY, VAL):
        leave_out(bounds, layout, which)
    words, is_by_row = arrange_fields(layout), False
    if words != ONE_WORD and layout[DIFF, BITS] != 0:
        by_row = layout.copy()
        # Row numbers start at 0, and equal rows are summed by fetching the diffs at their numbers.
        by_row[DIFF, LOW] = by_row[DIFF, BITS] = 0
        while rows >> by_row[DIFF, BITS] != 0:
            by_row[DIFF, BITS] += 1
        words_by_row = arrange_fields(by_row)
        if words == UNFIT or words_by_row == ONE_WORD:
            words, is_by_row, layout = words_by_row, True, by_row
    return words, is_by_row, layout


@bare
def start_words(words: Ints, keys: Ints, layout: Table) -> None:
    """Set every word to the field of its key."""
    low, shift = layout[KEY, LOW], layout[KEY, SHIFT]
    gap_at, above, below = layout[KEY, GAP_AT], layout[KEY, GAP_AT] + layout[KEY, GAP], mask_of(layout[KEY, GAP_AT])
    if layout[KEY, BITS] == 0:
        words[:] = 0
        return
    for row in range(len(words)):
        # The bits above the run move down next to those below it.
        item = keys[row] - low
        words[row] = (item >> above << gap_at | item & below) << shift


@bare
def insert_field(words: Ints, items: Ints, absent: int, layout: Table, which: int) -> None:
    """Add a column's field to every word."""
    low, shift, gap_at = layout[which, LOW], layout[which, SHIFT], layout[which, GAP_AT]
    above, below = gap_at + layout[which, GAP], mask_of(gap_at)
    if layout[which, BITS] == 0:
        return
    if len(items) != 0:
        for row in range(len(words)):
            item = items[row] - low
            words[row] |= (item >> above << gap_at | item & below) << shift
    elif absent != low:  # no bits are left out: with a 0 among the items, `low` would be 0, and be `absent`
        for row in range(len(words)):
            words[row] |= (absent - low) << shift


@bare
def insert_times(words: Ints, index: Ints, place: Ints, layout: Table) -> None:
    """Add the field of the times to every word."""
    shift = layout[TIME, SHIFT]
    if layout[TIME, BITS] == 0:
        return
    for row in range(len(words)):
        words[row] |= place[at(index, row, 0)] << shift


@bulk
@kernel
def pack_part(
    parts: Table, part: int, start: int, first: Ints, second: Ints, place: Ints, is_by_row: int, layout: Table
) -> None:
    """Write the words of one part's rows from `start` on; `place` has the places of the part's times."""
    stop = start + parts[part, ROWS]
    own, other = first[start:stop], second[start:stop]
    # `start_words` sets the first words; fields are added to the second ones, which must be clear.
    other[:] = 0
    start_words(own, column(parts, part, KEYS), layout)
    insert_field(other if layout[VAL, IN_SECOND] != 0 else own, column(parts, part, VALS), 0, layout, VAL)
    timed = other if layout[TIME, IN_SECOND] != 0 else own
    insert_times(timed, column(parts, part, TIME_INDEX), place, layout)
    tails = other if layout[DIFF, IN_SECOND] != 0 else own
    if is_by_row != 0:
        for row in range(len(tails)):
            tails[row] |= start + row
    else:
        insert_field(tails, column(parts, part, DIFFS), 1, layout, DIFF)


@inner
def pack(parts: Table, rows: int, place: Ints, words: int, is_by_row: bool, layout: Table) -> tuple[Ints, Ints]:
    """Return the words, one or two a row."""
    first, second = empty(rows), empty(rows if words == TWO_WORDS else 0)
    start = base = 0
    for part in range(len(parts)):
        pack_part(parts, part, start, first, second, place[base:], int(is_by_row), layout)
        start += parts[part, ROWS]
        base += parts[part, TIME_ROWS]
    return first, second


@inner
def fields_of(words: int, layout: Table) -> Table:
    """Return the fields to sort by (see `sort_words`): time, value and key, the least significant first."""
    end = layout[KEY, SHIFT] + layout[KEY, BITS]
    fields = np.empty((1 if words == ONE_WORD else 3, 3), np.int64)
    if words == ONE_WORD:
        fields[0] = 0, layout[TIME, SHIFT], end
    else:
        for place, which in enumerate((TIME, VAL, KEY)):
            low = layout[which, SHIFT]
            fields[place] = layout[which, IN_SECOND], low, low + layout[which, BITS]
    return fields


@inner
def sorted_words(first: Ints, second: Ints, layout: Table) -> tuple[Ints, Ints, Ints]:
    """Return the words sorted, and a spare array of their length."""
    return sort_words(first, second, fields_of(TWO_WORDS if len(second) != 0 else ONE_WORD, layout))


@inner
def extract_field(first: Ints, second: Ints, rows: int, layout: Table, which: int, room: Ints) -> Ints:
    """Return a column of the first `rows` words; absent if it is all 0.

    It is written to `room`, which may be the words themselves, unless `room` takes far more memory than the column.
    """
    bits, low, shift = layout[which, BITS], layout[which, LOW], layout[which, SHIFT]
    if bits == 0 and low == 0:
        return np.empty(0, np.int64)
    words = second if layout[which, IN_SECOND] != 0 else first
    gap_at, above, below = (
        layout[which, GAP_AT],
        layout[which, GAP_AT] + layout[which, GAP],
        mask_of(layout[which, GAP_AT]),
    )
    mask, any_bit = mask_of(bits), 0
    items = room[:rows] if rows <= len(room) <= rows + rows // 4 else empty(rows)
    if bits == 0:
        items[:] = low
        return items
    for row in range(rows):
        item = words[row] >> shift & mask
        item = (item >> gap_at << above | item & below) + low
        items[row] = item
        any_bit |= item
    return items if any_bit != 0 else items[:0].copy()


@bare
def fold_until(
    first: Ints, second: Ints, diffs: Ints, layout: Table, is_by_row: bool, sums: Ints, row: int, kept: int
) -> tuple[int, int]:
    """Sum equal rows from `row` on, and move the words of those that are not zero to the front; return (row, kept).

    These are how far the rows are read and how many are kept. Without room for sums it stops before the first sum that
    is neither 0 nor 1. If a sum does not fit it returns ~row, where its rows begin. Diffs, or row numbers, are the
    lowest bits of their word.
    """
    low, tail_mask = layout[DIFF, LOW], mask_of(layout[DIFF, BITS])
    # Rows are equal if their words agree in all bits but those of the diff.
    is_tail_first = len(second) == 0 or layout[DIFF, IN_SECOND] == 0
    first_mask = ~tail_mask if is_tail_first else -1
    second_mask = -1 if is_tail_first else ~tail_mask
    while row < len(first):
        head, head_second, total, high, after = first[row], at(second, row, 0), 0, 0, row
        while (
            after < len(first)
            and ((first[after] ^ head) & first_mask) == 0
            and ((at(second, after, 0) ^ head_second) & second_mask) == 0
        ):
            field = (first[after] if is_tail_first else second[after]) & tail_mask
            diff = diffs[field] if is_by_row else field + low
            total += diff
            high += carry(total, diff)
            after += 1
        if not fits(total, high):
            return ~row, kept
        if total != 0:
            if len(sums) != 0:
                sums[kept] = total
            elif total != 1:
                return row, kept
            # `kept` never passes `row`: no word is overwritten before it is read.
            first[kept] = head
            if len(second) != 0:
                second[kept] = head_second
            kept += 1
        row = after
    return row, kept


@inner
def fold_words(first: Ints, second: Ints, diffs: Ints, layout: Table, is_by_row: bool) -> tuple[int, Ints]:
    """Sum equal rows, and move the words of those that are not zero to the front; return how many, and the sums.

    The sums are absent if all are 1. Raises Overflow, with the number of the time, if a sum does not fit into 64 bits.
    """
    sums, row, kept = np.empty(0, np.int64), 0, 0
    while True:
        row, kept = fold_until(first, second, diffs, layout, is_by_row, sums, row, kept)
        if row < 0:
            words, seconds, room = first[~row:], second[~row:], np.empty(0, np.int64)
            key = extract_field(words, seconds, 1, layout, KEY, room)
            val = extract_field(words, seconds, 1, layout, VAL, room)
            time = extract_field(words, seconds, 1, layout, TIME, room)
            raise Overflow(at(key, 0, 0), at(val, 0, 0), at(time, 0, 0))
        if row == len(first):
            return kept, sums[:kept] if len(sums) <= kept + kept // 4 else sums[:kept].copy()
        sums = empty(kept + len(first) - row)
        sums[:kept] = 1


@inner
def unpack(
    first: Ints, second: Ints, spare: Ints, diffs: Ints, is_by_row: bool, layout: Table
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the columns that sorted words stand for, equal rows summed; the index is absent if all are at time 0."""
    kept, sums = fold_words(first, second, diffs, layout, is_by_row)
    keys = extract_field(first, second, kept, layout, KEY, spare)
    if len(keys) == 0:
        keys = np.zeros(kept, np.int64)
    index = extract_field(first, second, kept, layout, TIME, np.empty(0, np.int64))
    # The values may overwrite the first words: they are the last field read, and each word is read before its place is
    # written.
    return keys, extract_field(first, second, kept, layout, VAL, first), index, sums
