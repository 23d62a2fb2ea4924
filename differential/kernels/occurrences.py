"""How many rows a trace has for each key."""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Batches, Ints, kernel
from differential.kernels.memory import KEYS, column
from differential.kernels.seek import after, seek


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
