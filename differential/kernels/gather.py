"""Gathering: all rows of given keys, from every layer of a trace.

Keys are sorted, so each layer is walked once, forwards, by galloping: few keys cost a logarithm each, many cost a
scan.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, inner, kernel
from differential.kernels.memory import DIFFS, KEYS, TIME_INDEX, VALS, at, column, times_of
from differential.kernels.seek import after, seek


@inner
def gather_rows(keys: Ints, batches: Table, depth: int) -> tuple[Ints, Ints, Table, Ints]:
    """Return (offsets, values, times, diffs): the rows of `keys[i]` are those from `offsets[i]` to `offsets[i + 1]`.

    Within a key, rows come layer by layer, oldest first. Nothing is absent and nothing consolidated. `keys` is sorted
    and distinct.
    """
    count = len(keys)
    offsets = np.zeros(count + 1, np.int64)
    for layer in range(len(batches)):
        held, row = column(batches, layer, KEYS), 0
        for place in range(count):
            row = seek(held, row, keys[place])
            if row == len(held):
                break
            if held[row] == keys[place]:
                first, row = row, after(held, row)
                offsets[place + 1] += row - first
    for place in range(count):
        offsets[place + 1] += offsets[place]
    rows = offsets[count]
    vals, diffs, times = np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty((rows, depth), np.int64)
    target = offsets.copy()
    for layer in range(len(batches)):
        held, row = column(batches, layer, KEYS), 0
        held_vals, held_index = column(batches, layer, VALS), column(batches, layer, TIME_INDEX)
        held_diffs, held_times = column(batches, layer, DIFFS), times_of(batches, layer)
        for place in range(count):
            row = seek(held, row, keys[place])
            if row == len(held):
                break
            while row < len(held) and held[row] == keys[place]:
                to = target[place]
                target[place] += 1
                vals[to] = at(held_vals, row, 0)
                diffs[to] = at(held_diffs, row, 1)
                time = at(held_index, row, 0)
                for coordinate in range(depth):
                    times[to, coordinate] = held_times[time, coordinate]
                row += 1
    return offsets, vals, times, diffs


@kernel
def gather(keys: Ints, batches: Table, depth: int) -> tuple[Ints, Ints, Table, Ints]:
    """Return (offsets, values, times, diffs): the rows of `keys[i]` are those from `offsets[i]` to `offsets[i + 1]`."""
    return gather_rows(keys, batches, depth)
