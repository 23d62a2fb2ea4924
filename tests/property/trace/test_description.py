"""The theory of descriptions: which times they cover, and as of which times batches may be read."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from differential.kernels.times import advance
from differential.trace.batch import frontier_table
from differential.trace.description import Description
from tests.invariants import check
from tests.strategies_batches import frontiers, times
from timely.order import Time, less_equal
from timely.progress.antichain import Antichain


def _covers(description: Description, time: Time) -> bool:
    return description.lower.less_equal(time) and not description.upper.less_equal(time)


@given(frontiers(2), frontiers(2), frontiers(2), times(2))
def test_of_adjacent_descriptions_exactly_one_covers_each_time_of_both(
    one: Antichain, other: Antichain, last: Antichain, time: Time
) -> None:
    lower, middle, upper = one, one.join(other), one.join(other).join(last)
    first, second = Description(lower, middle, lower), Description(middle, upper, lower)
    assert first.precedes(second)
    both = first.through(second, lower)
    for each in (first, second, both):
        check(each)
    assert _covers(first, time) + _covers(second, time) == _covers(both, time)


@given(frontiers(2), times(2), times(2))
def test_no_time_in_advance_of_since_distinguishes_a_time_from_its_representative(
    since: Antichain, time: Time, asked: Time
) -> None:
    representative = tuple(advance(np.array([time], np.int64), frontier_table(since, 2))[0].tolist())
    if since.less_equal(asked):
        assert less_equal(time, asked) == less_equal(representative, asked)


@given(frontiers(2), frontiers(2), times(2))
def test_advancing_since_in_steps_equals_advancing_it_at_once(since: Antichain, other: Antichain, time: Time) -> None:
    later = since.join(other)
    start = np.array([time], np.int64)
    stepwise = advance(advance(start, frontier_table(since, 2)), frontier_table(later, 2))
    assert stepwise.tolist() == advance(start, frontier_table(later, 2)).tolist()
