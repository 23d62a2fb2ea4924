"""Rows (value, time, diff) of one group: sorted and consolidated in place.

A time is a small integer, the rank of a time (see `reduce_history`).

Rows come from several layers, and each layer is in order: to sort them is to merge a few ascending runs, pairwise until
one is left. Rows that are in order already cost one scan. A few rows are sorted by insertion.

All columns are in one array, int64[6, room]: three hold the rows, three are what runs are merged into. One array and
not six, because passing many arrays costs more than a group of a few rows does.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from differential.kernels.compile import Ints, Table, bare, inner
from differential.kernels.memory import empty
from differential.kernels.wide import carry, fits

Rows: TypeAlias = Table
"""The columns ROW_VAL, ROW_TIME and ROW_DIFF, and from SORTED on three more to merge into."""

ROW_VAL, ROW_TIME, ROW_DIFF, SORTED = range(4)

_FEW = 32


@inner
def with_room(columns: Table, room: int) -> Table:
    """Return `columns` with room for at least `room` items in each; the items that they hold are kept.

    The room at least doubles, so that growing costs a constant for each item.
    """
    width, held = columns.shape
    if room <= held:
        return columns
    room = max(room, 2 * held, 16)
    larger = empty(width * room).reshape((width, room))
    for column in range(width):
        for item in range(held):
            larger[column, item] = columns[column, item]
    return larger


@inner
def no_rows() -> Rows:
    """Return room for no rows."""
    return np.empty((2 * SORTED, 0), np.int64)


@inner
def transposed(columns: Table, n: int) -> Table:
    """Return the first `n` items of each column as `n` rows."""
    rows = np.empty((n, len(columns)), np.int64)
    for row in range(n):
        for column in range(len(columns)):
            rows[row, column] = columns[column, row]
    return rows


@inner
def copied(column: Ints, n: int) -> Ints:
    """Return a copy of the first `n` items."""
    result = empty(n)
    for item in range(n):
        result[item] = column[item]
    return result


@bare
def put_row(rows: Rows, row: int, val: int, time: int, diff: int) -> None:
    """Set a row for which there is room."""
    rows[ROW_VAL, row] = val
    rows[ROW_TIME, row] = time
    rows[ROW_DIFF, row] = diff


@bare
def move_row(rows: Rows, source: int, row: int, target: int, place: int) -> None:
    """Copy a row from one half of the columns to a place in the same or the other one."""
    # `source` and `target` are 0 or SORTED: the half of the columns that is read, and the one that is written.
    for column in range(SORTED):
        rows[target + column, place] = rows[source + column, row]


@bare
def _insert(rows: Rows, first: int, last: int) -> None:
    for row in range(first + 1, last):
        val, time, diff = rows[ROW_VAL, row], rows[ROW_TIME, row], rows[ROW_DIFF, row]
        place = row
        while place > first and (
            rows[ROW_VAL, place - 1] > val or (rows[ROW_VAL, place - 1] == val and rows[ROW_TIME, place - 1] > time)
        ):
            move_row(rows, 0, place - 1, 0, place)
            place -= 1
        if place != row:
            put_row(rows, place, val, time, diff)


@bare
def _in_order(rows: Rows, half: int, left: int, right: int) -> bool:
    """Whether the row `left` may stand before the row `right`."""
    if rows[half + ROW_VAL, left] != rows[half + ROW_VAL, right]:
        return bool(rows[half + ROW_VAL, left] < rows[half + ROW_VAL, right])
    return bool(rows[half + ROW_TIME, left] <= rows[half + ROW_TIME, right])


@bare
def _run(rows: Rows, half: int, first: int, last: int) -> int:
    """Return where the ascending run that starts at `first` ends."""
    row = first + 1
    while row < last and _in_order(rows, half, row - 1, row):
        row += 1
    return min(row, last)


@bare
def _merge_runs(rows: Rows, half: int, first: int, last: int) -> int:
    """Merge neighbouring runs from one half of the columns into the other; return how many runs are left."""
    runs = 0
    start = first
    while start < last:
        middle = _run(rows, half, start, last)
        stop = _run(rows, half, middle, last)
        i, j = start, middle
        for place in range(start, stop):
            if j == stop or (i < middle and _in_order(rows, half, i, j)):
                move_row(rows, half, i, SORTED - half, place)
                i += 1
            else:
                move_row(rows, half, j, SORTED - half, place)
                j += 1
        runs += 1
        start = stop
    return runs


@bare
def consolidate_rows(rows: Rows, first: int, last: int) -> int:
    """Sort the rows `first` to `last` by (value, time), add up equal ones and drop zeros; return the new end.

    Two equal rows stay apart if their sum does not fit into 64 bits; their accumulation is the same.
    """
    if last - first <= _FEW:
        _insert(rows, first, last)
    elif _run(rows, 0, first, last) < last:
        half = 0
        # Each pass halves the number of runs and changes the half in which the rows are.
        while _merge_runs(rows, half, first, last) > 1:
            half = SORTED - half
        if half == 0:
            for row in range(first, last):
                move_row(rows, SORTED, row, 0, row)
    kept = first
    row = first
    while row < last:
        val, time, diff = rows[ROW_VAL, row], rows[ROW_TIME, row], rows[ROW_DIFF, row]
        row += 1
        # Sorted rows of the same value and time are neighbours.
        while row < last and rows[ROW_VAL, row] == val and rows[ROW_TIME, row] == time:
            more = rows[ROW_DIFF, row]
            if not fits(diff + more, (diff >> 63) + carry(diff + more, more)):
                break
            diff += more
            row += 1
        if diff != 0:
            put_row(rows, kept, val, time, diff)
            kept += 1
    return kept
