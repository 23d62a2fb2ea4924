"""The join kernel, called until it is done, returns exactly the pairs of the definition, in bounded pieces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from differential.kernels.join import DONE, join
from tests.oracle.join import Pair, join_by_loops
from tests.oracle.layers import Layers, Update, consolidated
from tests.thorough import examples

LEAST_PIECE, MOST_RANGES = 4096, 1 << 18


def pairs_of(new: Layers, past: Layers, limit: int) -> list[Pair]:
    """Return the pairs of all calls; check the guarantees of each."""
    pairs: list[Pair] = []
    position = 0
    while position != DONE:
        keys, new_vals, past_vals, times, time_index, diffs, onward = join(new.table, position, limit, past.table)
        assert onward == DONE or onward > position
        count = len(keys)
        assert count < limit + max(limit, LEAST_PIECE)
        assert onward == DONE or count >= min(limit, MOST_RANGES)
        table = [tuple(time) for time in times.tolist()]
        assert len(set(table)) == len(table)
        index = time_index.tolist() or [0] * count
        assert set(index) == set(range(len(table)))
        assert len(time_index) == (count if len(table) > 1 else 0)
        pairs += zip(
            keys.tolist(),
            new_vals.tolist() or [0] * count,
            past_vals.tolist() or [0] * count,
            [table[number] for number in index],
            diffs.tolist() or [1] * count,
        )
        position = onward
    return sorted(pairs)


@st.composite
def batches(draw: st.DrawFn, depth: int) -> list[list[Update]]:
    """Batches with columns present and absent, keys that repeat, and keys at the ends of int64."""
    keys = st.sampled_from([-(2**63), -1, 0, 1, 2, 3, 50, 2**63 - 1])
    vals = st.just(0) if draw(st.booleans()) else st.integers(-2, 2)
    diffs = st.just(1) if draw(st.booleans()) else st.sampled_from([-2, -1, 1, 3])
    times = st.tuples(*[st.integers(0, draw(st.sampled_from([0, 2, 9])))] * depth)
    rows = st.lists(st.tuples(keys, vals, times, diffs), max_size=25)
    return [consolidated(batch) for batch in draw(st.lists(rows, max_size=4))]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_all_calls_together_return_the_pairs_of_the_definition(depth: int) -> None:
    @settings(max_examples=examples(200), deadline=None)
    @given(batches(depth), batches(depth), st.sampled_from([1, 2, 7, 40, 10**6]))
    def check(new: list[list[Update]], past: list[list[Update]], limit: int) -> None:
        assert pairs_of(Layers(new, depth), Layers(past, depth), limit) == join_by_loops(new, past)

    check()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("limit", [1000, 10**9])
def test_very_different_sizes_and_many_times_return_the_pairs_of_the_definition(seed: int, limit: int) -> None:
    random = np.random.default_rng(seed)

    def layer(rows: int, times: int) -> list[Update]:
        columns = random.integers(0, 300, rows), random.integers(0, 50, rows), random.integers(0, times, (rows, 2))
        diffs = random.integers(1, 4, rows)
        return consolidated((int(k), int(v), (int(a), int(b)), int(d)) for k, v, (a, b), d in zip(*columns, diffs))

    new = [layer(rows, times) for rows, times in [(3, 1), (400, 2), (20, 30)]]
    past = [layer(rows, times) for rows, times in [(600, 30), (5, 2), (60, 1)]]
    assert pairs_of(Layers(new, 2), Layers(past, 2), limit) == join_by_loops(new, past)
