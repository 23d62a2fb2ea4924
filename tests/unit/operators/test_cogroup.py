"""Tests of `cogroup`."""

from __future__ import annotations

import numpy as np

from differential import CoGroups
from tests.oracle.grid import on_workers, run


def balances(groups: CoGroups) -> tuple[object, ...]:
    """Say what came in less what went out, for each key."""
    came, went = (np.bincount(side.index, side.values[0] * side.counts, len(groups)) for side in groups)
    return np.arange(len(groups)), (came - went).astype(np.int64)


@on_workers
def test_a_key_of_either_side_has_a_group(workers: int) -> None:
    came = [((1, 10), (0,), 1), ((2, 20), (1,), 2), ((1, 10), (3,), -1)]
    went = [((1, 4), (0,), 1), ((3, 5), (1,), 1), ((1, 4), (4,), -1)]
    assert run(lambda one, other: one.cogroup(other, balances), came, went, workers=workers) == [
        ((1, 6), (0,), 1),
        ((2, 40), (1,), 1),
        ((3, -5), (1,), 1),
        ((1, -4), (3,), 1),
        ((1, 6), (3,), -1),
        ((1, -4), (4,), -1),
    ]


def test_both_sides_have_the_same_keys_and_never_is_a_key_without_any() -> None:
    def look(groups: CoGroups) -> tuple[object, ...]:
        assert groups.left.keys[0].tolist() == groups.right.keys[0].tolist() == groups.keys[0].tolist()
        sizes = np.diff(groups.left.offsets) + np.diff(groups.right.offsets)
        assert sizes.all()
        return np.arange(len(groups)), sizes

    updates = [((1, 10), (0,), 1), ((1, 10), (1,), -1), ((1, 11), (2,), 1)]
    others = [((2, 4), (0,), 1), ((1, 5), (2,), 1)]
    changes = run(lambda one, other: one.cogroup(other, look), updates, others)
    assert changes == [
        ((1, 1), (0,), 1), ((2, 1), (0,), 1), ((1, 1), (1,), -1), ((1, 2), (2,), 1),
    ]  # fmt: skip
