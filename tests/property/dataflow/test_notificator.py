"""Notifications arrive when their time is complete: never early, once, in an order that the partial order permits."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given, strategies as st

from timely import Antichain, FrontierNotificator, Time
from timely.order import less_equal, less_than

times = st.tuples(st.integers(0, 3), st.integers(0, 3))
ROUNDS = [
    st.lists(
        st.tuples(st.lists(each, max_size=6), st.lists(each, max_size=3), st.integers(0, 4)), min_size=1, max_size=6
    )
    for each in (times, st.tuples(st.integers(0, 9)))
]


@given(st.one_of(ROUNDS))
def test_each_notification_arrives_once_when_its_time_is_complete(
    steps: list[tuple[list[Time], list[Time], int]],
) -> None:
    """A loop ends early after as many as the last item of a step, and the next one delivers the rest."""
    requests = FrontierNotificator()
    pending: set[Time] = set()
    width = max((len(time) for requested, moved, _ in steps for time in (*requested, *moved)), default=1)
    frontier = Antichain([(0,) * width])
    for requested, moved, most in [*steps, ([], [], 100)]:
        for time in requested:
            requests.notify_after(time)
            pending.add(time)
        frontier = frontier.join(Antichain(moved)) if moved else frontier
        delivered = [time for _, (time, _) in zip(range(most), requests.available([frontier]))]
        due = {time for time in pending if not any(less_equal(element, time) for element in frontier.elements)}
        assert set(delivered) <= due
        assert len(delivered) == min(most, len(due))
        assert len(delivered) == len(set(delivered))
        assert not any(
            less_than(later, earlier) for place, earlier in enumerate(delivered) for later in delivered[place + 1 :]
        )
        pending -= set(delivered)
    assert len(requests) == len(pending)
    assert {time for time, _ in requests.available([Antichain()])} == pending


@given(
    st.one_of(
        st.tuples(st.lists(each, min_size=1), st.dictionaries(st.integers(0, 12), st.lists(each, min_size=1)), each)
        for each in (times, st.tuples(st.integers(0, 9)))
    )
)
def test_notifications_requested_meanwhile_arrive_in_order(
    request: tuple[list[Time], dict[int, list[Time]], Time],
) -> None:
    requested, meanwhile, element = request
    requests, pending = FrontierNotificator(), set(requested)
    for time in requested:
        requests.notify_after(time)
    for number, (delivered, _) in enumerate(requests.available([Antichain([element])])):
        assert delivered == min(time for time in pending if not less_equal(element, time))
        pending.remove(delivered)
        for time in meanwhile.get(number, ()):
            requests.notify_after(time)
            pending.add(time)
    assert all(less_equal(element, time) for time in pending)
    assert len(requests) == len(pending)


class CountedLooks:
    """A frontier that counts how often it is compared with a time."""

    def __init__(self, frontier: Antichain) -> None:
        self._frontier = frontier
        self.looks = 0

    def admits(self, time: Time) -> bool:
        self.looks += 1
        return self._frontier.admits(time)


@pytest.mark.interpreted
@pytest.mark.parametrize(("after", "first", "again"), [((), 901, 1), ((7,), 1000, 100)])
def test_requests_are_compared_with_the_frontier_once_each_and_in_order_only_while_they_are_due(
    after: Time, first: int, again: int
) -> None:
    """Those of one coordinate are in order; of others, each is compared every time."""
    requests, frontier = FrontierNotificator(), CountedLooks(Antichain([(900, *after)]))
    for epoch in range(1000):
        requests.notify_after((epoch, *after))
    delivered = [time for time, _ in requests.available([cast(Antichain, frontier)])]
    assert delivered == [(epoch, *after) for epoch in range(900)]
    assert frontier.looks == first
    assert not list(requests.available([cast(Antichain, frontier)]))
    assert frontier.looks == first + again
