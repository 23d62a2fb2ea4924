"""What a reduction says of a multiset of values: the kinds of built-in reductions.

| kind        | says of a group                                                                                          |
|-------------|----------------------------------------------------------------------------------------------------------|
| `COUNT`     | the sum of its diffs; nothing when that is 0                                                             |
| `SUM`       | the sum of value times diff; nothing when no value has a diff other than 0                               |
| `SUM_FLOAT` | the same of values that are codes of floats: the exact sum, rounded once                                 |
| `MIN`       | the smallest value                                                                                       |
| `MAX`       | the largest value                                                                                        |
| `DISTINCT`  | of a group (key, value): that value, once, when the sum of its diffs is positive                         |
| `SMALLEST`  | the `parameter` smallest values; a value of diff c takes c places, and is said with the places it takes  |
| `LARGEST`   | the `parameter` largest values, likewise                                                                 |

Integers wrap around at 64 bits. `MIN` to `LARGEST`, `DISTINCT` excepted, have no meaning when a value accumulates to a
negative diff: that is an error, found among the values that are looked at.

A multiset is read in one of two ways. When the whole group is at one time, `fold_layers` reads it from the layers where
it lies, and for `MIN` to `LARGEST` only as far as it must: a smallest value costs as many steps as there are layers,
however long the group. When a group is visited at several times, a `tally` is kept up to date by `tally_row`, and
`fold_tally` reads it.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, inner
from differential.kernels.memory import DIFFS
from differential.kernels.reduce_float import SUM_WIDTH, add_float, float_sum
from differential.kernels.reduce_layers import HIGH, LOW, VAL, diff_at, value_at
from differential.kernels.reduce_rows import Rows, roomy

COUNT, SUM, SUM_FLOAT, MIN, MAX, DISTINCT, SMALLEST, LARGEST = range(8)

TOTAL, NONZERO, NEGATIVE, FIRST, TALLY_WIDTH = range(5)
"""Of a tally: the sum; how many values have a diff other than 0, and less than 0; no value before FIRST has one."""

NEGATIVE_DIFF = -1
"""What a fold returns in place of a number of rows when a value has a negative diff."""


@inner
def is_ordered(kind: int) -> bool:
    """Whether a reduction says the first values in ascending or descending order."""
    return kind == MIN or kind == MAX or kind == SMALLEST or kind == LARGEST


@inner
def is_descending(kind: int) -> bool:
    """Whether a reduction looks at the largest values first."""
    return kind == MAX or kind == LARGEST


@inner
def add_row(rows: Rows, count: int, val: int, diff: int) -> tuple[Rows, int]:
    """Return `rows` with a row added, and their number."""
    rows = roomy(rows, count + 1)
    rows[0][count] = val
    rows[1][count] = 0
    rows[2][count] = diff
    return rows, count + 1


@inner
def _take_value(layers: Table, first: int, last: int, descending: bool) -> tuple[int, int]:
    """Take the smallest (or largest) value off the group's rows; return it and its diff."""
    val = 0
    found = False
    for layer in range(first, last):
        low, high = layers[layer, LOW], layers[layer, HIGH]
        if low < high:
            here = value_at(layers, layer, high - 1 if descending else low)
            if not found or (here > val if descending else here < val):
                found = True
                val = here
    diff = 0
    for layer in range(first, last):
        low, high = layers[layer, LOW], layers[layer, HIGH]
        if descending:
            while low < high and value_at(layers, layer, high - 1) == val:
                high -= 1
                diff += diff_at(layers, layer, high)
        else:
            while low < high and value_at(layers, layer, low) == val:
                diff += diff_at(layers, layer, low)
                low += 1
        layers[layer, LOW] = low
        layers[layer, HIGH] = high
    return val, diff


@inner
def _rows_left(layers: Table, first: int, last: int) -> int:
    rows = 0
    for layer in range(first, last):
        rows += layers[layer, HIGH] - layers[layer, LOW]
    return rows


@inner
def _first_values(
    kind: int, parameter: int, layers: Table, first: int, last: int, said: Rows, count: int
) -> tuple[Rows, int]:
    descending = is_descending(kind)
    places = parameter if kind == SMALLEST or kind == LARGEST else 1
    while places > 0 and _rows_left(layers, first, last) > 0:
        val, diff = _take_value(layers, first, last, descending)
        if diff < 0:
            return said, NEGATIVE_DIFF
        if diff > 0:
            taken = min(diff, places)
            said, count = add_row(said, count, val, 1 if kind == MIN or kind == MAX else taken)
            places -= taken
    return said, count


@inner
def fold_layers(
    kind: int, parameter: int, layers: Table, first: int, last: int, group: Ints, exact: Ints, said: Rows, count: int
) -> tuple[Rows, int]:
    """Return `said` with what the group's rows in the layers `first` to `last` reduce to added; uses these rows up."""
    if is_ordered(kind):
        return _first_values(kind, parameter, layers, first, last, said, count)
    diffs, total, mixed = 0, 0, False
    if kind == SUM_FLOAT:
        exact[:] = 0
    for layer in range(first, last):
        low, high = layers[layer, LOW], layers[layer, HIGH]
        if layers[layer, DIFFS] == 0:
            diffs += high - low
        for row in range(low, high):
            diff = 1
            if layers[layer, DIFFS] != 0:
                diff = diff_at(layers, layer, row)
                diffs += diff
                mixed |= diff < 0
            if kind == SUM:
                total += diff * value_at(layers, layer, row)
            elif kind == SUM_FLOAT:
                add_float(exact, value_at(layers, layer, row), diff)
    if kind == COUNT:
        return add_row(said, count, diffs, 1) if diffs != 0 else (said, count)
    if kind == DISTINCT:
        return add_row(said, count, group[VAL], 1) if diffs > 0 else (said, count)
    # Rows whose diffs do not add up to 0 are not empty; nor are rows without a negative diff; else one must look.
    present = diffs != 0
    if diffs == 0 and mixed:
        while not present and _rows_left(layers, first, last) > 0:
            _, diff = _take_value(layers, first, last, False)
            present = diff != 0
    if not present:
        return said, count
    return add_row(said, count, total if kind == SUM else float_sum(exact), 1)


@inner
def tally_row(kind: int, tally: Ints, exact: Ints, vals: Ints, diffs: Ints, place: int, diff: int) -> None:
    """Add a row to a tally: `vals` are the group's distinct values, `diffs` what each accumulates to."""
    before = diffs[place]
    after = before + diff
    diffs[place] = after
    tally[NONZERO] += int(after != 0) - int(before != 0)
    tally[NEGATIVE] += int(after < 0) - int(before < 0)
    tally[FIRST] = min(tally[FIRST], place)
    tally[TOTAL] += diff * vals[place] if kind == SUM else diff
    if kind == SUM_FLOAT:
        add_float(exact, vals[place], diff)


@inner
def fold_tally(
    kind: int, parameter: int, group: Ints, tally: Ints, exact: Ints, vals: Ints, diffs: Ints, n: int, said: Rows
) -> tuple[Rows, int]:
    """Return what a tally over `n` distinct values, the first to look at first, reduces to."""
    count = 0
    if kind == COUNT:
        return add_row(said, count, tally[TOTAL], 1) if tally[TOTAL] != 0 else (said, count)
    if kind == DISTINCT:
        return add_row(said, count, group[VAL], 1) if tally[TOTAL] > 0 else (said, count)
    if tally[NONZERO] == 0:
        return said, count
    if kind == SUM or kind == SUM_FLOAT:
        return add_row(said, count, tally[TOTAL] if kind == SUM else float_sum(exact), 1)
    if tally[NEGATIVE] > 0:
        return said, NEGATIVE_DIFF
    while diffs[tally[FIRST]] == 0:
        tally[FIRST] += 1
    if kind == MIN or kind == MAX:
        return add_row(said, count, vals[tally[FIRST]], 1)
    places = parameter
    place = tally[FIRST]
    while places > 0 and place < n:
        if diffs[place] > 0:
            taken = min(diffs[place], places)
            said, count = add_row(said, count, vals[place], taken)
            places -= taken
        place += 1
    return said, count


@inner
def no_sum() -> Ints:
    """Return the empty sum of floats."""
    return np.zeros(SUM_WIDTH, np.int64)
