"""Pseudo-random numbers that depend on nothing but their place: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def splitmix(numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the outputs of SplitMix64, seeded with 0, at the given positions."""
    bits = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
