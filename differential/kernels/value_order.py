"""The order of values whose codes do not have it: strings, rows with strings, and rows that do not fit into a word.

An order is the address of a row of int64:

    [columns, strings, &strings, &tuples, bits, first offset, offset, is a string, ...]

It states how many columns a value has, and how many of them are numbers of strings; where strings and tuples are found
(`StringTable.address`); how small integers are packed into a word (`differential.data.codes`); and of each column
whether it is one of strings. Values are compared column by column: strings by their bytes, other codes as integers.

A reduction to the first or last values expects the rows of a key in a batch in this order, and then reads few of them
(`reduce_fold`). So `in_value_order` sorts the rows of each key of a batch, once. A change costs the sorting of its own
rows, and of the batches that merging makes of them.

*Cost.* Rows are sorted by merging runs that are in order already: rows that arrive in their order cost one scan. What
decides most comparisons, a number or the first eight bytes of a string, is read once for each row.
"""

from __future__ import annotations

from differential.kernels.compile import Batches, Ints, Table, bare, kernel
from differential.kernels.memory import DIFFS, KEYS, ROWS, TIME_INDEX, VALS, empty
from differential.kernels.reduce_layers import diff_at, load, time_index_at, value_at
from differential.kernels.reduce_rows import SORTED, Rows, move_row, no_rows, put_row, with_room
from differential.kernels.strings import first_word, is_less, start_of

INTERNED = 1 << 62
"""Codes of interned tuples start here, above every packed word. Words of three columns and more are negative."""

COLUMNS, STRINGS, STRING_TABLE, TUPLE_TABLE, BITS, FIRST_OFFSET, OFFSET, IS_STRING = range(8)
"""The items of an order. From IS_STRING on there is one for each column."""

CODE, PLACE, FIRST = range(3)
"""The columns of values to be sorted: the code, its place before, and what is compared first."""


@bare
def _column_of(order: int, code: int, position: int) -> int:
    """Return the code in one column of a value."""
    columns = load(order, COLUMNS)
    if columns == 1:
        return code
    if code >= INTERNED:
        table = load(order, TUPLE_TABLE)
        # The first word of a tuple is its form (see `Interner.encode_tuples`).
        return load(start_of(table, code - INTERNED), 1 + position)
    bits = load(order, BITS)
    word = code >> (bits * (columns - 1 - position))
    if position == 0:
        return word - load(order, FIRST_OFFSET)
    return (word & ((1 << bits) - 1)) - load(order, OFFSET)


@bare
def is_before(order: int, one: int, other: int) -> bool:
    """Return whether one value comes before another in an order; an order of 0 is that of the codes."""
    if order == 0 or (load(order, STRINGS) == 0 and one < INTERNED and other < INTERNED):
        return one < other  # packing keeps the order
    if one == other:
        return False
    for position in range(load(order, COLUMNS)):
        left, right = _column_of(order, one, position), _column_of(order, other, position)
        if left != right:
            if load(order, IS_STRING + position) != 0:
                return is_less(load(order, STRING_TABLE), left, right)
            return left < right
    return False


@bare
def _in_order(order: int, values: Rows, half: int, left: int, right: int) -> bool:
    """Whether the value `left` may stand before the value `right`."""
    if values[half + FIRST, left] != values[half + FIRST, right]:
        return bool(values[half + FIRST, left] < values[half + FIRST, right])
    return not is_before(order, values[half + CODE, right], values[half + CODE, left])


@bare
def _run(order: int, values: Rows, half: int, first: int, last: int) -> int:
    """Return where the run in order that starts at `first` ends."""
    row = first + 1
    while row < last and _in_order(order, values, half, row - 1, row):
        row += 1
    return min(row, last)


@kernel
def sort_values(order: int, values: Table, count: int) -> None:
    """Sort the first `count` values of `Rows` with CODE and PLACE; FIRST is set here. Equal values keep their order."""
    is_string = load(order, IS_STRING) != 0
    for row in range(count):
        first = _column_of(order, values[CODE, row], 0)
        values[FIRST, row] = first_word(load(order, STRING_TABLE), first) if is_string else first
    half, start = 0, 0
    stop = _run(order, values, half, 0, count)
    while stop < count:
        # Each pass merges neighbouring runs into the other half of the columns.
        start, stop = 0, 0
        while stop < count:
            start = stop
            middle = _run(order, values, half, start, count)
            stop = _run(order, values, half, middle, count)
            i, j = start, middle
            for place in range(start, stop):
                if j == stop or (i < middle and _in_order(order, values, half, i, j)):
                    move_row(values, half, i, SORTED - half, place)
                    i += 1
                else:
                    move_row(values, half, j, SORTED - half, place)
                    j += 1
        half = SORTED - half
        stop = count if start == 0 else 0
    if half != 0:
        for row in range(count):
            move_row(values, SORTED, row, 0, row)


@bare
def _is_sorted(batch: Batches, order: int) -> bool:
    """Whether the rows of each key are in the order of their values."""
    if batch[0, VALS] == 0:
        return True
    for row in range(1, batch[0, ROWS]):
        if load(batch[0, KEYS], row - 1) == load(batch[0, KEYS], row):
            before, here = load(batch[0, VALS], row - 1), load(batch[0, VALS], row)
            if before != here and is_before(order, here, before):
                return False
    return True


@kernel
def in_value_order(batch: Batches, order: int) -> tuple[Ints, Ints, Ints, bool]:
    """Return values, time index and diffs of a batch, a table of one, with the rows of each key in an order of values.

    They are empty, and the last item is true, if the rows are in that order as they are.
    """
    rows, values = batch[0, ROWS], no_rows()
    if _is_sorted(batch, order):
        return empty(0), empty(0), empty(0), True
    vals = empty(rows)
    index, diffs = empty(rows if batch[0, TIME_INDEX] != 0 else 0), empty(rows if batch[0, DIFFS] != 0 else 0)
    start, stop = 0, 0
    while start < rows:
        while stop < rows and load(batch[0, KEYS], stop) == load(batch[0, KEYS], start):
            stop += 1
        values = with_room(values, stop - start)
        for row in range(start, stop):
            put_row(values, row - start, value_at(batch, 0, row), row, 0)
        sort_values(order, values, stop - start)
        for row in range(start, stop):
            place = values[PLACE, row - start]
            vals[row] = values[CODE, row - start]
            if len(index) != 0:
                index[row] = time_index_at(batch, 0, place)
            if len(diffs) != 0:
                diffs[row] = diff_at(batch, 0, place)
        start = stop
    return vals, index, diffs, False
