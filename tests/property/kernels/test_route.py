"""Partitioning by destination."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from differential.kernels.route import mixed, partition
from tests.strategies_batches import EXTREMES

_MASK = 2**64 - 1


def _mixed(key: int) -> int:
    word = key & _MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
    return (word ^ (word >> 31)) >> 1


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(-5, 5), st.sampled_from(EXTREMES)), max_size=50), st.integers(1, 7))
def test_each_row_goes_to_the_peer_its_mixed_key_names(keys: list[int], peers: int) -> None:
    column = np.array(keys, np.int64)
    assert mixed(column).tolist() == [_mixed(key) for key in keys]
    order, offsets = partition(column, peers)
    assert len(offsets) == peers + 1
    for peer in range(peers):
        expected = [row for row, key in enumerate(keys) if _mixed(key) % peers == peer]
        assert order[offsets[peer] : offsets[peer + 1]].tolist() == expected


def test_consecutive_identifiers_spread_evenly() -> None:
    _, offsets = partition(np.arange(0, 64_000, 64), 8)
    assert np.diff(offsets).min() > 90
