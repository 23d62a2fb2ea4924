"""Random histories of collections: updates at times of one or two coordinates, at no time with a negative count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.oracle.grid import Update, contents, grid


class History(NamedTuple):
    """The updates of each input, the number of coordinates of time, the number of workers, and a seed."""

    inputs: list[list[Update]]
    outer: int
    workers: int
    seed: int

    @property
    def run(self) -> dict[str, int]:
        """The arguments `workers`, `outer` and `seed`."""
        return {"workers": self.workers, "outer": self.outer, "seed": self.seed}


PAIRS = st.tuples(st.integers(0, 3), st.integers(0, 3))


@st.composite
def histories(
    draw: st.DrawFn,
    inputs: int = 1,
    records: st.SearchStrategy[Any] = PAIRS,
    outer: Sequence[int] = (1, 2),
    size: int = 8,
    latest: int = 2,
) -> History:
    """Inputs of a few updates each: every removal retracts a record that is present at all later times."""
    width = draw(st.sampled_from(outer))
    times = st.tuples(*(st.integers(0, latest) for _ in range(width)))
    result = []
    for _ in range(inputs):
        updates: list[Update] = []
        for record, time, insert in draw(st.lists(st.tuples(records, times, st.booleans()), max_size=size)):
            removal = [*updates, (record, time, -1)]
            possible = all(contents(removal, each)[record] >= 0 for each in grid(removal))
            updates = [*updates, (record, time, 1)] if insert or not possible else removal
        result.append(updates)
    return History(result, width, draw(st.integers(1, 3)), draw(st.integers(0, 1 << 16)))
