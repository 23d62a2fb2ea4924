"""Tests of `cogroup`."""

from __future__ import annotations

import numpy as np
import pytest

from differential import CoGroups, Collection, example
from tests.oracle.grid import on_workers, run
from timely import Scope
from timely.errors import OperatorError


def balances(groups: CoGroups) -> tuple[object, ...]:
    """Return incoming less outgoing, for each key."""
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


def test_both_sides_have_the_same_keys_and_no_key_is_without_values() -> None:
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


@pytest.mark.parametrize(
    ("widths", "keys", "message"),
    [
        ((2, 3), 1, r"the value had [12] column\(s\) and now has [12]$"),
        ((1, 2), 1, r"the value had [01] column\(s\) and now has [01]$"),
        ((1, 1), 2, r"a record has 1 column\(s\), but its key has 2$"),
        ((2, 2), 4, r"a record has 2 column\(s\), but its key has 4$"),
    ],
)
def test_columns_are_counted_as_the_user_gives_them(widths: tuple[int, int], keys: int, message: str) -> None:
    def program(scope: Scope) -> Collection:
        left, right = (Collection.of(scope, *[np.array([1, 2])] * width, keys=keys) for width in widths)
        return left.cogroup(right, lambda groups: (np.arange(len(groups)), groups.keys[0]))

    with pytest.raises(OperatorError, match=message):
        example(program)
