"""Counting in the order of times: what was said last, and what is new, are all there is to know.

What was said of a key adds up, value times diff, to its count now, for each change takes the count before back. So the
input need not be looked at again, and no history needs to be visited.

What a record's own count does, as for `distinct`, is told from the input's trace and nothing that was said.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, bare, inner, kernel
from differential.kernels.memory import DIFFS, KEYS, VALS, at, column, empty
from differential.kernels.reduce_rows import copied
from differential.kernels.seek import seek
from differential.kernels.wide import Overflow, carry, fits


class Negative(ArithmeticError):
    """A key has a negative number of records. Has the code of the key, the number, and the index of the time."""


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
def count_changes(
    keys: Ints, time_index: Ints, diffs: Ints, past: Table, is_signed: int
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the changes of the counts, as keys, counts, time index and diffs, when the given rows are new.

    The rows are sorted by (key, time), times indexed in their order; `past` holds the counts emitted so far, all of
    them earlier. What is emitted at one time is sorted by (key, count); diffs are absent when all are 1.

    Raises Overflow where a count does not fit into 64 bits, Negative where one is negative and not `is_signed`.
    """
    rows = len(keys)
    new_keys, counts, new_diffs = empty(2 * rows), empty(2 * rows), empty(2 * rows)
    new_index = empty(2 * rows if len(time_index) != 0 else 0)
    places = np.zeros(len(past), np.int64)
    row = said = total = taken_back = 0
    while row < rows:
        key, time = keys[row], at(time_index, row, 0)
        if row == 0 or keys[row - 1] != key:
            total = _said(past, places, key)
        before, high = total, total >> 63
        while row < rows and keys[row] == key and at(time_index, row, 0) == time:
            total += at(diffs, row, 1)
            high += carry(total, at(diffs, row, 1))
            row += 1
        if not fits(total, high):
            raise Overflow(key, 0)
        if total < 0 and is_signed == 0:
            raise Negative(key, total, time)
        if total != before:
            for count in (min(before, total), max(before, total)):
                if count != 0:
                    new_keys[said], counts[said], new_diffs[said] = key, count, 1 if count == total else -1
                    if len(time_index) != 0:
                        new_index[said] = time
                    taken_back += count == before
                    said += 1
    return (
        copied(new_keys, said),
        copied(counts, said),
        copied(new_index, said if len(time_index) != 0 else 0),
        copied(new_diffs, said if taken_back != 0 else 0),
    )


@bare
def _is_before(keys: Ints, vals: Ints, row: int, key: int, val: int) -> bool:
    """Return whether a row's key and value are before the given ones."""
    return keys[row] < key or (keys[row] == key and at(vals, row, 0) < val)


@bare
def _seek_record(keys: Ints, vals: Ints, start: int, key: int, val: int) -> int:
    """Return the first row from `start` on that is not before (key, val); costs the logarithm of the distance."""
    rows = len(keys)
    if start >= rows or not _is_before(keys, vals, start, key, val):
        return start
    low, step = start, 1
    while low + step < rows and _is_before(keys, vals, low + step, key, val):
        low += step
        step *= 4
    high = min(low + step, rows)
    while high - low > 1:
        middle = (low + high) >> 1
        if _is_before(keys, vals, middle, key, val):
            low = middle
        else:
            high = middle
    return high


@inner
def _occurrences(past: Table, places: Ints, key: int, val: int) -> int:
    """Return how often a record occurs, and move `places`, where each layer was left, behind it."""
    total = 0
    for layer in range(len(past)):
        keys, vals = column(past, layer, KEYS), column(past, layer, VALS)
        row = _seek_record(keys, vals, places[layer], key, val)
        while row < len(keys) and keys[row] == key and at(vals, row, 0) == val:
            total += at(column(past, layer, DIFFS), row, 1)
            row += 1
        places[layer] = row
    return total


@kernel
def record_changes(keys: Ints, vals: Ints, diffs: Ints, through: Table) -> tuple[Ints, Ints]:
    """Return how often the record of each row occurs before and after the row.

    The rows are new, sorted by (key, value, time); `through` is the trace with them in it, and nothing later.
    """
    rows = len(keys)
    before, after = empty(rows), empty(rows)
    places = np.zeros(len(through), np.int64)
    total = 0
    for row in range(rows):
        key, val = keys[row], at(vals, row, 0)
        if row == 0 or _is_before(keys, vals, row - 1, key, val):
            total = _occurrences(through, places, key, val)
            own = row
            while own < rows and keys[own] == key and at(vals, own, 0) == val:
                total -= at(diffs, own, 1)
                own += 1
        before[row], diff = total, at(diffs, row, 1)
        total += diff
        if not fits(total, (before[row] >> 63) + carry(total, diff)):
            raise Overflow(key, val)
        after[row] = total
    return before, after
