"""Rows (value, time, diff) of one group: sorted and consolidated in place.

Rows come from several layers, each of them in order, so what is to be sorted is a few ascending runs; they are merged
pairwise until one is left, which costs nothing when the rows are in order already. A few rows are sorted by insertion.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from differential.kernels.compile import Ints, inner

Rows: TypeAlias = tuple[Ints, Ints, Ints, Ints, Ints, Ints]
"""Values, times, diffs, and as much room again for sorting."""

_FEW = 32


@inner
def no_rows() -> Rows:
    """Return room for no rows."""
    nothing = np.empty(0, np.int64)
    return nothing, nothing, nothing, nothing, nothing, nothing


@inner
def roomy(rows: Rows, count: int) -> Rows:
    """Return `rows` with room for `count`; what they held is kept."""
    held = len(rows[0])
    if count <= held:
        return rows
    room = max(count, 2 * held, 32)
    vals, times, diffs = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    vals[:held] = rows[0]
    times[:held] = rows[1]
    diffs[:held] = rows[2]
    return vals, times, diffs, np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)


@inner
def _insert(vals: Ints, times: Ints, diffs: Ints, first: int, last: int) -> None:
    for row in range(first + 1, last):
        val, time, diff = vals[row], times[row], diffs[row]
        place = row
        while place > first and (vals[place - 1] > val or (vals[place - 1] == val and times[place - 1] > time)):
            vals[place], times[place], diffs[place] = vals[place - 1], times[place - 1], diffs[place - 1]
            place -= 1
        vals[place], times[place], diffs[place] = val, time, diff


@inner
def _run(vals: Ints, times: Ints, first: int, last: int) -> int:
    """Return where the ascending run that starts at `first` ends."""
    row = first + 1
    while row < last and (vals[row - 1] < vals[row] or (vals[row - 1] == vals[row] and times[row - 1] <= times[row])):
        row += 1
    return min(row, last)


@inner
def _merge_runs(rows: Rows, first: int, last: int, back: bool) -> int:
    """Merge neighbouring runs from one half of `rows` into the other; return how many runs are left."""
    if back:
        tovals, totimes, todiffs, vals, times, diffs = rows
    else:
        vals, times, diffs, tovals, totimes, todiffs = rows
    runs = 0
    start = first
    while start < last:
        middle = _run(vals, times, start, last)
        stop = _run(vals, times, middle, last) if middle < last else last
        i, j = start, middle
        for place in range(start, stop):
            if j == stop or (i < middle and (vals[i] < vals[j] or (vals[i] == vals[j] and times[i] <= times[j]))):
                tovals[place], totimes[place], todiffs[place] = vals[i], times[i], diffs[i]
                i += 1
            else:
                tovals[place], totimes[place], todiffs[place] = vals[j], times[j], diffs[j]
                j += 1
        runs += 1
        start = stop
    return runs


@inner
def consolidate_rows(rows: Rows, first: int, last: int) -> int:
    """Sort the rows `first` to `last` by (value, time), add up equal ones, drop zeros; return where they end then."""
    vals, times, diffs = rows[0], rows[1], rows[2]
    if last - first <= _FEW:
        _insert(vals, times, diffs, first, last)
    elif _run(vals, times, first, last) < last:
        back = False
        while _merge_runs(rows, first, last, back) > 1:
            back = not back
        if not back:
            vals[first:last] = rows[3][first:last]
            times[first:last] = rows[4][first:last]
            diffs[first:last] = rows[5][first:last]
    kept = first
    row = first
    while row < last:
        val, time, diff = vals[row], times[row], diffs[row]
        row += 1
        while row < last and vals[row] == val and times[row] == time:
            diff += diffs[row]
            row += 1
        if diff != 0:
            vals[kept], times[kept], diffs[kept] = val, time, diff
            kept += 1
    return kept
