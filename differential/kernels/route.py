"""Routing: which worker a key belongs to, the same in every process.

Integers are mixed first (the finaliser of splitmix64), because low bits of identifiers are anything but random.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, inner, kernel


@inner
def mix(key: int) -> int:
    """Return 63 well-mixed bits of a key."""
    word = np.uint64(key)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((word ^ (word >> np.uint64(31))) >> np.uint64(1))  # type: ignore[return-value]


@kernel
def mixed(keys: Ints) -> Ints:
    """Return 63 well-mixed bits of every key."""
    hashes = np.empty_like(keys)
    for row in range(len(keys)):
        hashes[row] = mix(keys[row])
    return hashes


@kernel
def partition(keys: Ints, peers: int) -> tuple[Ints, Ints]:
    """Return (order, offsets): the rows for peer p are `order[offsets[p]:offsets[p + 1]]`, in their order here."""
    count = len(keys)
    offsets = np.zeros(peers + 1, np.int64)
    targets, order = np.empty(count, np.int64), np.empty(count, np.int64)
    for row in range(count):
        targets[row] = mix(keys[row]) % peers
        offsets[targets[row] + 1] += 1
    for peer in range(peers):
        offsets[peer + 1] += offsets[peer]
    place = offsets.copy()
    for row in range(count):
        order[place[targets[row]]] = row
        place[targets[row]] += 1
    return order, offsets
