"""The search for keys in sorted columns: from a start in growing steps, then by halving the last step.

The cost is the logarithm of the distance, so a walk over ascending keys costs no more than a scan. Each step over a far
distance waits for memory, so a far key is first guessed: `guess` reads a few keys, and each of them corrects the row at
which the sought key would stand if keys were spread evenly. The search goes on from the guess, in either direction. If
keys are not spread evenly, the guess is wrong, and the search costs the logarithm of the distance from it.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Batches, Ints, bare, kernel
from differential.kernels.memory import KEYS, column, item

NEAR, FAR = 64, 1024
"""A key more than `FAR` rows ahead is guessed. The key `NEAR` rows ahead is read first: it rules most others out."""
_CLOSE = 8
"""The first step from a guess; as many keys as a line of the cache has."""
GUESSES = 3


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
