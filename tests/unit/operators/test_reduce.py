"""Tests of `reduce`: reductions of whole batches of groups."""

from __future__ import annotations

import numpy as np

from differential import Collection, Groups
from tests.oracle.grid import on_workers, run

UPDATES = [((1, 10), (0,), 2), ((2, 20), (0,), 1), ((1, 40), (1,), 1), ((2, 20), (2,), -1), ((1, 10), (3,), -1)]


def ranges(groups: Groups) -> tuple[object, ...]:
    """Return the least and the greatest value of each key, in two columns."""
    first = groups.offsets[:-1]
    return np.arange(len(groups)), *(f.reduceat(groups.values[0], first) for f in (np.minimum, np.maximum))


def multiples(groups: Groups) -> tuple[object, ...]:
    """Return each value as often as it occurs, numbered, so that a group has several values or none."""
    rows = np.repeat(np.arange(len(groups.counts)), np.where(groups.values[0] % 4 == 0, groups.counts, 0))
    return groups.index[rows], groups.values[0][rows]


@on_workers
def test_everything_that_has_changed_is_reduced_and_the_output_before_is_retracted(workers: int) -> None:
    assert run(lambda one: one.reduce(ranges), UPDATES, workers=workers) == [
        ((1, 10, 10), (0,), 1),
        ((2, 20, 20), (0,), 1),
        ((1, 10, 10), (1,), -1),
        ((1, 10, 40), (1,), 1),
        ((2, 20, 20), (2,), -1),
    ]


@on_workers
def test_a_group_may_have_several_values_or_none(workers: int) -> None:
    assert run(lambda one: one.reduce(multiples), UPDATES, workers=workers) == [
        ((2, 20), (0,), 1),
        ((1, 40), (1,), 1),
        ((2, 20), (2,), -1),
    ]


def test_groups_without_records_are_not_passed_and_groups_are_passed_together() -> None:
    sizes: list[int] = []

    def noted(groups: Groups) -> tuple[object, ...]:
        sizes.append(len(groups))
        assert np.diff(groups.offsets).all()
        assert groups.counts.all()
        return ranges(groups)

    run(lambda one: one.reduce(noted), [((key, 1), (0,), 1) for key in range(50)])
    assert sizes == [50]
    run(lambda one: one.reduce(noted), UPDATES)


@on_workers
def test_keys_of_several_columns_are_distinguished(workers: int) -> None:
    def program(one: Collection) -> Collection:
        return one.map(lambda number, letter, value: (number, letter, value), keys=2).reduce(ranges)

    updates = [((1, "a", 5), (0,), 1), ((1, "a", 7), (0,), 1), ((1, "b", 6), (0,), 1)]
    assert run(program, updates, workers=workers) == [((1, "a", 5, 7), (0,), 1), ((1, "b", 6, 6), (0,), 1)]
