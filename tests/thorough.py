"""How many examples properties try: all by `--hypothesis-profile thorough`, as in CI, and a fifth of them otherwise."""

from __future__ import annotations

from hypothesis import settings

THOROUGH = 150
"""The number of examples of a property that does not set its own."""

QUICK = THOROUGH // 5


def examples(number: int) -> int:
    """Return how many examples to try of a property that has `number` of them in a thorough run."""
    return -(-number * settings().max_examples // THOROUGH)
