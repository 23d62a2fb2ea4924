"""What a multiset of values reduces to: the kinds of built-in reductions.

| kind        | emits for a group                                                                                 |
|-------------|---------------------------------------------------------------------------------------------------|
| `COUNT`     | the sum of its diffs; nothing if that is 0; negative only if the parameter has `SIGNED`           |
| `SUM`       | the sum of value times diff; nothing if no value has a diff other than 0                          |
| `SUM_FLOAT` | the same for values that are codes of floats: the exact sum, rounded once                         |
| `MIN`       | the smallest value                                                                                |
| `MAX`       | the largest value                                                                                 |
| `DISTINCT`  | for a group (key, value): that value, once, if the sum of its diffs is not 0                      |
| `SMALLEST`  | the `parameter` smallest values; a value of diff c takes c places, and is emitted with that diff  |
| `LARGEST`   | the `parameter` largest values, likewise                                                          |
| `FIRST`     | the first values in an order that codes do not have, likewise: `parameter` is the address of how  |
|             | many, which the order follows (`value_order`)                                                     |
| `LAST`      | the last values in such an order                                                                  |

`FIRST` and `LAST` expect each key's rows of a batch of input in the order of their values (`in_value_order`).

A sum or a count that does not fit into 64 bits is an error. `MIN` to `LAST` have no meaning if a value accumulates to a
negative diff: that is an error too, for `MIN` to `LARGEST` if the value is looked at. So is a negative `COUNT`, unless
the collection is a difference of others, which is what `SIGNED` permits.

A multiset is read in one of two ways:

- If the whole group is at one time, `fold_layers` reads it from the layers. `MIN` to `LAST` read only as far as they
  must: the smallest value costs a step for each layer, however long the group is. A `SUM` that has been emitted before
  is changed by the new rows (`change_of_total`).
- If a group is visited at several times, `tally_row` keeps a tally, and `fold_tally` reads it. A row costs a few adds;
  a fold for `MIN` to `LAST` scans from the first value that may occur.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from differential.kernels.compile import Ints, Table, bare, inner
from differential.kernels.memory import DIFFS
from differential.kernels.reduce_float import SUM_WIDTH, add_float, float_sum
from differential.kernels.reduce_layers import FROM, HIGH, LOW, TO, VAL, Walk, diff_at, load, value_at
from differential.kernels.reduce_rows import Rows, consolidate_rows, put_row
from differential.kernels.value_order import is_before
from differential.kernels.wide import carry, fits, product_high

COUNT, SUM, SUM_FLOAT, MIN, MAX, DISTINCT, SMALLEST, LARGEST, FIRST, LAST = range(10)

SIGNED, LINEAR = 1, 2
"""The parameter of a `COUNT`, or a `SUM`, has these bits: a count may be negative; and no new row is at a time in
advance of `upper`, so that the output and the new rows are enough to change a count or a sum (see `reduce_times`)."""

TALLY_VALS, TALLY_DIFFS, TALLY, FREE = range(4)
"""The columns of a tally: the group's distinct values, in the order in which the kind looks at them; the diff that each
accumulates to; the items below. The columns from FREE on belong to the visit (`reduce_visit`)."""

TOTAL, NONZERO, NEGATIVE, LEADING, TOTAL_HIGH, TOO_WIDE, TALLY_WIDTH = range(7)
"""The items of a tally: the low word of the sum; how many values have a diff other than 0, and a negative one; a place
before which no value has a diff other than 0; the high word of the sum; whether a value's diff did not fit into 64
bits."""


class Fold(NamedTuple):
    """A built-in reduction: its kind and parameter, the sum of floats, which is empty for other kinds, and the order.

    The order is 0 where codes order as values do. `FIRST` and `LAST` are `SMALLEST` and `LARGEST` in another order.
    """

    kind: int
    parameter: int
    exact: Ints
    order: int


FAULT, UNKNOWN = -1, -2
"""What a fold returns instead of a number of rows: the group cannot be reduced, because a value has a negative diff, or
a sum does not fit; or what is known of the group is not enough."""


@bare
def is_linear(fold: Fold) -> bool:
    """Whether the output and the new rows of a group are enough to reduce it, at least unless its sum is 0."""
    return fold.kind in (COUNT, SUM) and fold.parameter & LINEAR != 0


@bare
def is_ordered(kind: int) -> bool:
    """Whether a reduction emits the first values in ascending or descending order."""
    return kind in (MIN, MAX, SMALLEST, LARGEST)


@bare
def is_descending(kind: int) -> bool:
    """Whether a reduction looks at the largest values first."""
    return kind in (MAX, LARGEST)


@bare
def _take_value(layers: Table, first: int, last: int, descending: bool, order: int) -> tuple[int, int]:
    """Remove the smallest (or largest) value from the group's rows; return it and its diff, -1 if that does not fit."""
    val = 0
    found = False
    for layer in range(first, last):
        low, high = layers[layer, LOW], layers[layer, HIGH]
        if low < high:
            # The group's rows in a layer are sorted by value: its extremes are at the ends.
            here = value_at(layers, layer, high - 1 if descending else low)
            if not found or is_before(order, val if descending else here, here if descending else val):
                found = True
                val = here
    diff = grown = 0
    for layer in range(first, last):
        low, high = layers[layer, LOW], layers[layer, HIGH]
        if descending:
            while low < high and value_at(layers, layer, high - 1) == val:
                high -= 1
                diff += diff_at(layers, layer, high)
                grown += carry(diff, diff_at(layers, layer, high))
        else:
            while low < high and value_at(layers, layer, low) == val:
                diff += diff_at(layers, layer, low)
                grown += carry(diff, diff_at(layers, layer, low))
                low += 1
        layers[layer, LOW] = low
        layers[layer, HIGH] = high
    return val, diff if fits(diff, grown) else -1


@bare
def rows_left(layers: Table, first: int, last: int) -> int:
    """Return how many rows of the group are left in the layers `first` to `last`."""
    rows = 0
    for layer in range(first, last):
        rows += layers[layer, HIGH] - layers[layer, LOW]
    return rows


@bare
def _accumulates(layers: Table, first: int, last: int, val: int, order: int) -> int:
    """Return the diff of a value in the group's rows in the layers `first` to `last`; -1 if it does not fit."""
    diff = grown = 0
    for layer in range(first, last):
        low, high = layers[layer, LOW], layers[layer, HIGH]
        while low < high:
            middle = (low + high) >> 1
            if is_before(order, value_at(layers, layer, middle), val):
                low = middle + 1
            else:
                high = middle
        while low < layers[layer, HIGH] and value_at(layers, layer, low) == val:
            diff += diff_at(layers, layer, low)
            grown += carry(diff, diff_at(layers, layer, low))
            low += 1
    return diff if fits(diff, grown) else -1


@bare
def _is_one_negative(layers: Table, first: int, last: int, order: int) -> bool:
    """Whether a value that new input, in the layers before `first`, retracts accumulates to a negative diff."""
    for layer in range(first):
        if layers[layer, DIFFS] == 0:
            continue
        for row in range(layers[layer, LOW], layers[layer, HIGH]):
            val, diff = value_at(layers, layer, row), diff_at(layers, layer, row)
            if diff < 0 and _accumulates(layers, first, last, val, order) < 0:
                return True
    return False


@bare
def _first_values(fold: Fold, layers: Table, first: int, last: int, group: Ints, rows: Rows, count: int) -> int:
    kind, descending = fold.kind, is_descending(fold.kind)
    places = fold.parameter if kind in (SMALLEST, LARGEST) else 1
    # Where codes are ordered, only values that are reached are checked for negative diffs. Elsewhere all are: without
    # pending times only those that new rows retract can have become negative; with some, the whole group is read.
    has_pending = group[FROM] != group[TO]
    if fold.order != 0 and not has_pending and _is_one_negative(layers, first, last, fold.order):
        return FAULT
    while (places > 0 or (fold.order != 0 and has_pending)) and rows_left(layers, first, last) > 0:
        val, diff = _take_value(layers, first, last, descending, fold.order)
        if diff < 0:
            return FAULT
        if diff > 0 and places > 0:
            taken = min(diff, places)
            put_row(rows, count, val, 0, 1 if kind in (MIN, MAX) else taken)
            count += 1
            places -= taken
    return count


@bare
def fold_layers(fold: Fold, layers: Table, first: int, last: int, group: Ints, rows: Rows, count: int) -> int:
    """Append what the group's rows in the layers `first` to `last` reduce to to the `count` rows of `rows`.

    Returns the new number of rows, or FAULT. There must be room. LOW and HIGH of these layers may change.
    """
    kind, parameter, exact, _ = fold
    if is_ordered(kind):
        return _first_values(fold, layers, first, last, group, rows, count)
    diffs, diffs_high, total, total_high, mixed = 0, 0, 0, 0, False
    for item in range(len(exact)):
        exact[item] = 0
    for layer in range(first, last):
        low, high = layers[layer, LOW], layers[layer, HIGH]
        if layers[layer, DIFFS] == 0:
            # An absent column of diffs is all ones: the rows are counted, not read.
            diffs += high - low
            diffs_high += carry(diffs, high - low)
            if kind in (COUNT, DISTINCT):
                continue
        for row in range(low, high):
            diff = 1
            if layers[layer, DIFFS] != 0:
                diff = diff_at(layers, layer, row)
                diffs += diff
                diffs_high += carry(diffs, diff)
                mixed |= diff < 0
            if kind == SUM:
                val = value_at(layers, layer, row)
                total += diff * val
                total_high += product_high(diff, val) + (carry(total, diff * val) - (diff * val >> 63))
            elif kind == SUM_FLOAT:
                add_float(exact, value_at(layers, layer, row), diff)
    # A group is present if some value accumulates to a diff other than 0. If the diffs do not add up to 0, one does. If
    # they add up to 0 and none is negative, there are none. Otherwise each value has to be looked at.
    present = diffs != 0 or diffs_high != 0
    if diffs_high < 0 and (kind == DISTINCT or (kind == COUNT and parameter & SIGNED == 0)):
        return FAULT
    if kind in (COUNT, DISTINCT) and not fits(diffs, diffs_high):
        return FAULT
    if kind == SUM and not fits(total, total_high):
        return FAULT
    if kind != COUNT and kind != DISTINCT and not present and mixed:
        present = _has_value(layers, first, last)
    if present:
        put_row(rows, count, _single(kind, group, diffs, total, exact), 0, 1)
    return count + int(present)


@bare
def _has_value(layers: Table, first: int, last: int) -> bool:
    """Whether some value accumulates to a diff other than 0 in the group's rows in the layers `first` to `last`."""
    while rows_left(layers, first, last) > 0:
        if _take_value(layers, first, last, False, 0)[1] != 0:
            return True
    return False


@bare
def change_of_total(fold: Fold, layers: Table, deltas: int, inputs: int, rows: Rows, alone: bool) -> int:
    """Put the change of a group's count or sum into `rows`; return how many rows that is, some perhaps equal, or FAULT.

    The layers of output, from `inputs` on, have the total without the new rows, which are in the layers up to `deltas`.
    So of the input only as much is read as shows, where a sum is 0, whether a value is left; if these layers are
    `alone`, nothing is read of it, and UNKNOWN returned. There must be room for the rows of output and one more.
    """
    counts, count, total, total_high = fold.kind == COUNT, 0, 0, 0
    for layer in range(len(layers)):
        if deltas <= layer < inputs:
            continue
        low, high = layers[layer, LOW], layers[layer, HIGH]
        if counts and layer < deltas and layers[layer, DIFFS] == 0:
            total += high - low
            total_high += carry(total, high - low)
            continue
        for row in range(low, high):
            val = 1 if counts and layer < deltas else value_at(layers, layer, row)
            diff = diff_at(layers, layer, row)
            total += diff * val
            total_high += product_high(diff, val) + (carry(total, diff * val) - (diff * val >> 63))
            if layer >= inputs:
                put_row(rows, count, val, 0, -diff)
                count += 1
    if not fits(total, total_high) or (counts and total < 0 and fold.parameter & SIGNED == 0):
        return FAULT
    if total == 0 and not counts and alone:
        return UNKNOWN
    present = total != 0 or (not counts and _has_value(layers, deltas, inputs))
    if present:
        put_row(rows, count, total, 0, 1)
    return count + int(present)


@bare
def fold_at_once(fold: Fold, walk: Walk, changes: Rows) -> int:
    """Put the correction of a group into `changes`, and return its length, or FAULT if the input cannot be reduced.

    All rows of the group must be at or before one time. `changes` must have room for the group's output rows and for
    what the group reduces to.
    """
    layers, count = walk.layers, 0
    for layer in range(walk.inputs, len(layers)):
        for row in range(layers[layer, LOW], layers[layer, HIGH]):
            put_row(changes, count, value_at(layers, layer, row), 0, -diff_at(layers, layer, row))
            count += 1
    count = fold_layers(fold, layers, walk.deltas, walk.inputs, walk.group, changes, count)
    return count if count == FAULT else consolidate_rows(changes, 0, count)


@bare
def _occurrences(layers: Table, first: int, last: int) -> int:
    """Return the sum of the diffs of the group's rows in the layers `first` to `last`; -1 if it does not fit."""
    # The sum of the new batches fits: it is the difference of two counts, each from 0 to 2**63 - 1. A sum of the input
    # that does not fit is a fault, as any negative one is.
    total, grown = 0, 0
    for layer in range(first, last):
        low, high = layers[layer, LOW], layers[layer, HIGH]
        if layers[layer, DIFFS] == 0:
            total += high - low
            grown += carry(total, high - low)
        else:
            for row in range(low, high):
                diff = diff_at(layers, layer, row)
                total += diff
                grown += carry(total, diff)
    return total if fits(total, grown) else -1


@bare
def change_of_record(walk: Walk, changes: Rows) -> int:
    """Put the change of a record's presence into `changes`; return how many rows that is, 0 or 1, or FAULT.

    All rows of the record must be at or before one time.
    """
    now = _occurrences(walk.layers, walk.deltas, walk.inputs)
    if now < 0:
        return FAULT
    # The input includes the new batches, the layers up to `deltas`: the count before is the difference of the two.
    diff = int(now > 0) - int(now - _occurrences(walk.layers, 0, walk.deltas) > 0)
    put_row(changes, 0, walk.group[VAL], 0, diff)
    return abs(diff)


@bare
def _single(kind: int, group: Ints, diffs: int, total: int, exact: Ints) -> int:
    """Return the value that a reduction to one value emits for a group that is present."""
    if kind == COUNT:
        return diffs
    if kind == DISTINCT:
        return int(group[VAL])
    return total if kind == SUM else float_sum(exact)


@bare
def empty_tally(tally: Table, exact: Ints, n: int) -> None:
    """Set the diffs of the tally's `n` values, and all its items, to those of no rows."""
    for value in range(n):
        tally[TALLY_DIFFS, value] = 0
    for item in range(TALLY_WIDTH):
        tally[TALLY, item] = 0
    tally[TALLY, LEADING] = n
    for item in range(len(exact)):
        exact[item] = 0


@bare
def tally_row(fold: Fold, tally: Table, place: int, diff: int) -> None:
    """Add `diff` to the diff of the value at `place`."""
    before = tally[TALLY_DIFFS, place]
    after = before + diff
    tally[TALLY_DIFFS, place] = after
    # Set once, it stays set: the diff has wrapped, and its true value is lost.
    tally[TALLY, TOO_WIDE] |= int(not fits(after, (before >> 63) + carry(after, diff)))
    tally[TALLY, NONZERO] += int(after != 0) - int(before != 0)
    tally[TALLY, NEGATIVE] += int(after < 0) - int(before < 0)
    tally[TALLY, LEADING] = min(tally[TALLY, LEADING], place)
    term, high = diff, diff >> 63
    if fold.kind in (COUNT, SUM):  # the values of a count are 1, and its output
        term, high = diff * tally[TALLY_VALS, place], product_high(diff, tally[TALLY_VALS, place])
    total = tally[TALLY, TOTAL] + term
    tally[TALLY, TOTAL] = total
    tally[TALLY, TOTAL_HIGH] += high + (carry(total, term) - (term >> 63))
    if fold.kind == SUM_FLOAT:
        add_float(fold.exact, tally[TALLY_VALS, place], diff)


@bare
def fold_at_most(fold: Fold, n: int) -> int:
    """Return how many rows a tally over `n` distinct values reduces to at most."""
    return min(fold.parameter, n) if fold.kind in (SMALLEST, LARGEST) else 1


@bare
def fold_tally(fold: Fold, group: Ints, tally: Table, n: int, rows: Rows, first: int) -> int:
    """Put what a tally over `n` distinct values reduces to into `rows`, from row `first` on.

    Returns how many rows that is, or FAULT.
    """
    kind, parameter, exact, _ = fold
    total, high = tally[TALLY, TOTAL], tally[TALLY, TOTAL_HIGH]
    if tally[TALLY, TOO_WIDE] != 0:
        return FAULT
    if not is_ordered(kind):
        present = tally[TALLY, NONZERO] != 0
        if kind in (COUNT, DISTINCT):
            present = total != 0 or high != 0
        if high < 0 and (kind == DISTINCT or (kind == COUNT and parameter & SIGNED == 0)):
            return FAULT
        if present and kind != SUM_FLOAT and not fits(total, high):
            return FAULT
        if present:
            put_row(rows, first, _single(kind, group, total, total, exact), 0, 1)
        return int(present)
    if tally[TALLY, NONZERO] == 0:
        return 0
    if tally[TALLY, NEGATIVE] > 0:
        return FAULT
    place = tally[TALLY, LEADING]
    while tally[TALLY_DIFFS, place] == 0:
        place += 1
    # No value before `place` has a diff other than 0. `tally_row` moves LEADING back when one gets one.
    tally[TALLY, LEADING] = place
    if kind in (MIN, MAX):
        put_row(rows, first, tally[TALLY_VALS, place], 0, 1)
        return 1
    count, places = 0, parameter
    while places > 0 and place < n:
        diff = tally[TALLY_DIFFS, place]
        if diff > 0:
            put_row(rows, first + count, tally[TALLY_VALS, place], 0, min(diff, places))
            count += 1
            places -= min(diff, places)
        place += 1
    return count


@inner
def fold_of(kind: int, parameter: int) -> Fold:
    """Return a built-in reduction."""
    exact = np.zeros(SUM_WIDTH if kind == SUM_FLOAT else 0, np.int64)
    if kind in (FIRST, LAST):
        return Fold(SMALLEST if kind == FIRST else LARGEST, load(parameter, 0), exact, parameter + 8)
    return Fold(kind, parameter, exact, 0)
