"""Notifications arrive when their time is complete: never early, once, in an order that the partial order permits."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given, strategies as st

from timely import Antichain, FrontierNotificator, Time
from timely.order import less_equal, less_than

times = st.tuples(st.integers(0, 3), st.integers(0, 3))
rounds = st.lists(st.tuples(st.lists(times, max_size=6), st.lists(times, max_size=3)), min_size=1, max_size=6)


@given(rounds)
def test_each_notification_arrives_once_when_its_time_is_complete(steps: list[tuple[list[Time], list[Time]]]) -> None:
    requests = FrontierNotificator()
    pending: set[Time] = set()
    frontier = Antichain([(0, 0)])
    for requested, moved in [*steps, ([], [])]:
        for time in requested:
            requests.notify_after(time)
            pending.add(time)
        frontier = frontier.join(Antichain(moved)) if moved else frontier
        delivered = [time for time, _ in requests.available([frontier])]
        assert set(delivered) == {
            time for time in pending if not any(less_equal(element, time) for element in frontier.elements)
        }
        assert len(delivered) == len(set(delivered))
        assert not any(
            less_than(later, earlier) for place, earlier in enumerate(delivered) for later in delivered[place + 1 :]
        )
        pending -= set(delivered)
    assert len(requests) == len(pending)
    assert {time for time, _ in requests.available([Antichain()])} == pending


@given(st.lists(times, min_size=1), st.dictionaries(st.integers(0, 12), st.lists(times, min_size=1)), times)
def test_notifications_requested_meanwhile_arrive_in_order(
    requested: list[Time], meanwhile: dict[int, list[Time]], element: Time
) -> None:
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
def test_many_requests_are_each_compared_with_the_frontier_once() -> None:
    requests, frontier = FrontierNotificator(), CountedLooks(Antichain([(900,)]))
    for epoch in range(1000):
        requests.notify_after((epoch,))
    assert [time for time, _ in requests.available([cast(Antichain, frontier)])] == [(epoch,) for epoch in range(900)]
    assert frontier.looks == 1000
