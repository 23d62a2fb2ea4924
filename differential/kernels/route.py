"""The distribution of rows over workers by their keys: a hash of each key, then a counting sort by worker."""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, bare, kernel
from differential.kernels.memory import empty


@bare
def mix(key: int) -> int:
    """Return the hash of an integer that `timely.dataflow.routing` gives: the SplitMix64 finaliser."""
    word = np.uint64(key) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))  # type: ignore[return-value]


@kernel
def partition(keys: Ints, peers: int) -> tuple[Ints, Ints]:
    """Return (order, offsets): the rows for peer p are `order[offsets[p]:offsets[p + 1]]`, in their original order."""
    count = len(keys)
    targets = np.empty(count, np.uint16)
    if peers & (peers - 1):
        for row in range(count):
            targets[row] = mix(keys[row]) % np.uint64(peers)
    else:  # a mask costs half as much as a division
        for row in range(count):
            targets[row] = mix(keys[row]) & np.uint64(peers - 1)
    offsets = np.zeros(peers + 1, np.int64)
    for row in range(count):
        offsets[np.int64(targets[row]) + 1] += 1
    for peer in range(peers):
        offsets[peer + 1] += offsets[peer]
    place = offsets.copy()
    order = empty(count)
    for row in range(count):
        target = np.int64(targets[row])
        order[place[target]] = row
        place[target] += 1
    return order, offsets
