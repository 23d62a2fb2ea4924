"""PageRank of real numbers, in as many rounds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

UNIT = 1_000_000
"""A rank of 1."""


def ranks_in_floats(source: Ints, target: Ints, nodes: int, rounds: int) -> NDArray[np.float64]:
    """Return each node's rank in units; 0 if it has no edge."""
    present = np.zeros(nodes)
    present[source] = present[target] = 1
    degrees = np.maximum(np.bincount(source, minlength=nodes), 1)
    ranks = present
    for _ in range(rounds):
        ranks = present / 6 + np.bincount(target, (5 / 6 * ranks / degrees)[source], nodes)
    return UNIT * ranks
