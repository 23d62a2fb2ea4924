"""PageRank of real numbers, in as many rounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

UNIT = 1_000_000
"""A rank of 1."""


def ranks_in_floats(source: Ints, target: Ints, nodes: int, rounds: int, damping: float = 0.85) -> NDArray[np.float64]:
    """Return each node's rank in units; 0 if it has no edge."""
    present = np.zeros(nodes)
    present[source] = present[target] = 1
    degrees = np.bincount(source, minlength=nodes)
    ranks = present
    for _ in range(rounds):
        jumps = 1 - damping + damping * ranks[degrees == 0].sum() / present.sum()
        ranks = jumps * present + np.bincount(target, (damping * ranks / np.maximum(degrees, 1))[source], nodes)
    return UNIT * ranks
