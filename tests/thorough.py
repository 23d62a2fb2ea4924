"""How many examples properties try: all by `--hypothesis-profile thorough`, as in CI, and a third of them otherwise."""

from __future__ import annotations

from hypothesis import settings

THOROUGH = 150
"""Examples of a property that does not say how many it has."""

QUICK = THOROUGH // 3


def examples(number: int) -> int:
    """Return how many examples a property tries that has `number` of them where it is tried thoroughly."""
    return -(-number * settings().max_examples // THOROUGH)
