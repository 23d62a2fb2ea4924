"""Have the memory that a search for few keys in large layers reads brought into the cache beforehand.

A search that waits for memory does so for each row that it reads, for one key and one layer after the other. Together
these waits take three quarters of the time in which a kernel answers a change of one row. But all searches begin with
the guesses of `seek`. So `prefetch` makes these for all keys and layers abreast: it asks for the row of each guess, and
reads none of them before it has asked for all. Then the processor waits once for each correction, however many keys and
layers there are.

Nothing depends on it but speed. It costs some nanoseconds for each key, layer and guess.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, inner
from differential.kernels.memory import DIFFS, KEYS, ROWS, TIME_INDEX, VALS, fetch, item
from differential.kernels.seek import GUESSES, corrected, density

MOST_KEYS = 16
"""A walk over more keys waits less for each, because what it reads is closer together."""
_LARGE = 1 << 10
"""Layers of fewer rows are assumed to be in the cache."""


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
