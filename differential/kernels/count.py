"""Counting in the order of times: what was said last, and what is new, are all there is to know.

What was said of a key adds up, value times diff, to its count now, for each change takes the count before back. So the
input need not be looked at again, and no history needs to be visited.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, inner, kernel
from differential.kernels.memory import DIFFS, KEYS, VALS, at, column, empty
from differential.kernels.reduce_rows import copied
from differential.kernels.seek import seek


@inner
def _said(past: Table, places: Ints, key: int) -> int:
    """Return the count said last of a key, and move `places`, where each layer was left, behind it."""
    total = 0
    for layer in range(len(past)):
        keys = column(past, layer, KEYS)
        row = seek(keys, places[layer], key)
        while row < len(keys) and keys[row] == key:
            total += at(column(past, layer, VALS), row, 0) * at(column(past, layer, DIFFS), row, 1)
            row += 1
        places[layer] = row
    return total


@kernel
def count_changes(keys: Ints, time_index: Ints, diffs: Ints, past: Table) -> tuple[Ints, Ints, Ints, Ints]:
    """Return what to say, as keys, counts, time index and diffs, when the given rows are new.

    The rows are sorted by (key, time), times indexed in their order; `past` is what was said before, all of it earlier.
    """
    rows = len(keys)
    new_keys, counts, new_diffs = empty(2 * rows), empty(2 * rows), empty(2 * rows)
    new_index = empty(2 * rows if len(time_index) != 0 else 0)
    places = np.zeros(len(past), np.int64)
    row = said = total = 0
    while row < rows:
        key, time = keys[row], at(time_index, row, 0)
        if row == 0 or keys[row - 1] != key:
            total = _said(past, places, key)
        before = total
        while row < rows and keys[row] == key and at(time_index, row, 0) == time:
            total += at(diffs, row, 1)
            row += 1
        if total != before:
            for count, diff in ((before, -1), (total, 1)):
                if count != 0:
                    new_keys[said], counts[said], new_diffs[said] = key, count, diff
                    if len(time_index) != 0:
                        new_index[said] = time
                    said += 1
    return (
        copied(new_keys, said),
        copied(counts, said),
        copied(new_index, said if len(time_index) != 0 else 0),
        copied(new_diffs, said),
    )
