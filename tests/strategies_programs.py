"""Random programs over pairs of small integers, and random circumstances."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from tests.oracle.drawing import Drawing
from tests.oracle.scenario import Scenario


def scenarios(
    depth: int = 4, most: int = 8, size: int = 8, latest: int = 2, dressed: bool = False
) -> st.SearchStrategy[Scenario]:
    """Some programs and everything that happens to them; `tests.oracle.shrink` reduces a failing scenario."""
    seeds = st.integers(0, (1 << 63) - 1)
    return seeds.map(lambda seed: Drawing(Random(seed), dressed).scenario(depth, most, size, latest))
