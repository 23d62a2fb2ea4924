"""The search for keys in sorted columns: from a start in growing steps, then by halving the last step.

The cost is the logarithm of the distance, so a walk over ascending keys costs no more than a scan. Each step over a far
distance waits for memory, so a far key is first guessed: `guess` reads a few keys, and each of them corrects the row at
which the sought key would stand if keys were spread evenly. The search goes on from the guess, in either direction. If
keys are not spread evenly, the guess is wrong, and the search costs the logarithm of the distance from it.

A search that waits for memory does so for each row that it reads, for one key and one layer after the other. Together
these waits take three quarters of the time in which a kernel answers a change of one row. But all searches begin with
guesses. So `prefetch` makes these for all keys and layers abreast: it asks for the row of each guess, and reads none of
them before it has asked for all. Then the processor waits once for each correction, however many keys and layers there
are. Nothing depends on it but speed. It costs some nanoseconds for each key, layer and guess.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Batches, Ints, Table, bare, inner, kernel
from differential.kernels.memory import DIFFS, KEYS, ROWS, TIME_INDEX, VALS, column, fetch, item

NEAR, FAR = 64, 1024
"""A key more than `FAR` rows ahead is guessed. The key `NEAR` rows ahead is read first: it rules most others out."""
_CLOSE = 8
"""The first step from a guess; as many keys as a line of the cache has."""
GUESSES = 3
MOST_KEYS = 16
"""A walk over more keys waits less for each, because what it reads is closer together."""
_LARGE = 1 << 10
"""Layers of fewer rows are assumed to be in the cache."""


@bare
def corrected(row: int, here: int, key: int, rows_per_key: float, last: int) -> int:
    """Return the row up to `last` where `key` is to be expected, if `row` has the key `here`."""
    return int(min(max(float(row) + (float(key) - float(here)) * rows_per_key, 0.0), float(last)))


@bare
def density(keys: int, last: int) -> float:
    """Return how many rows there are for each key up to row `last` of the column at address `keys`, on the average."""
    span = float(item(keys + 8 * last)) - float(item(keys))
    return float(last) / span if span > 0.0 else 0.0


@bare
def guess(keys: int, rows: int, key: int) -> int:
    """Return the row at which `key` is to be expected in the column of `rows` rows at address `keys`."""
    row, rows_per_key = 0, density(keys, rows - 1)
    for _ in range(GUESSES):
        row = corrected(row, item(keys + 8 * row), key, rows_per_key, rows - 1)
    return row


@bare
def seek(keys: Ints, start: int, key: int) -> int:
    """Return the first row from `start` on whose key is at least `key`."""
    count = len(keys)
    if start >= count or keys[start] >= key:
        return start
    # The key of `low` is less throughout; that of `high` is not, or `high` is the end.
    low, high, step = start, count, 1
    if start + FAR < count and keys[start + NEAR] < key and keys[start + FAR] < key:
        low, step = start + FAR, _CLOSE
        row = guess(keys.ctypes.data, count, key)
        while row > low and keys[row] >= key:
            high, row, step = row, row - step, 2 * step
        low, step = max(row, low), _CLOSE
    while low + step < high and keys[low + step] < key:
        low += step
        step *= 4
    high = min(low + step, high)
    while high - low > 1:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle
        else:
            high = middle
    return high


@bare
def after(keys: Ints, start: int) -> int:
    """Return the first row after `start` whose key differs from that of `start`."""
    count, key = len(keys), keys[start]
    if start + 1 >= count or keys[start + 1] != key:
        return start + 1
    return seek(keys, start + 1, key + 1) if key != 9223372036854775807 else count


@kernel
def occurrences(keys: Ints, past: Batches) -> Ints:
    """Return for each of `keys`, in any order, how many rows of all batches of `past` have it, whatever their diffs.

    Costs a search of each batch for each key.
    """
    found = np.zeros(len(keys), np.int64)
    for layer in range(len(past)):
        held = column(past, layer, KEYS)
        for row in range(len(keys)):
            place = seek(held, 0, keys[row])
            if place < len(held) and held[place] == keys[row]:
                found[row] += after(held, place) - place
    return found


@inner
def prefetch(keys: Ints, past: Table) -> None:
    """Ask for the rows of `past`, a table of batches, that searches for `keys` read, unless there are many keys."""
    if not 0 < len(keys) <= MOST_KEYS:
        return
    rows = np.zeros((len(past), len(keys)), np.int64)
    for turn in range(GUESSES):
        for layer in range(len(past)):
            if past[layer, ROWS] < _LARGE:
                continue
            last, held = past[layer, ROWS] - 1, past[layer, KEYS]
            rows_per_key = density(held, last)
            for place in range(len(keys)):
                row = rows[layer, place]
                row = corrected(row, item(held + 8 * row), keys[place], rows_per_key, last)
                rows[layer, place] = row
                fetch(held + 8 * row)
                if turn == GUESSES - 1:
                    # The row sought is mostly within a line of the cache before or after this one.
                    fetch(held + 8 * max(row - 8, 0))
                    fetch(held + 8 * min(row + 8, last))
                    for which in (VALS, TIME_INDEX, DIFFS):
                        if past[layer, which] != 0:
                            fetch(past[layer, which] + 8 * row)
