"""Queues between the workers of one process: when workers sleep, and which are woken."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from threading import TIMEOUT_MAX
from types import SimpleNamespace
from typing import Any, cast

import pytest

from timely.communication.message import ProgressUpdate
from timely.communication.thread import Bell, thread_allocators

CHANGE = ProgressUpdate(0, ((1, (0,), 1),))
WEIGHT = 64
LONG = 20.0
"""More seconds than anything immediate takes, however busy the machine is."""


def seconds(action: Callable[[], object]) -> float:
    """Return how long something takes."""
    start = clock.perf_counter()
    action()
    return clock.perf_counter() - start


@pytest.mark.parametrize(("timeout", "waited"), [(None, -1), (0.5, 0.5), (0.0, 0.0), (-0.5, 0.0), (1e10, TIMEOUT_MAX)])
def test_waiting_for_a_bell_lasts_as_long_as_requested_and_has_no_end_by_default(
    timeout: float | None, waited: float
) -> None:
    timeouts: list[float] = []
    bell = Bell()
    bell._silent = cast(Any, SimpleNamespace(acquire=lambda timeout: timeouts.append(timeout)))
    bell.wait(timeout)
    assert timeouts == [waited]


def test_a_bell_wakes_once_however_often_it_was_rung() -> None:
    bell = Bell()
    for _ in range(3):
        bell.ring()
    assert seconds(lambda: bell.wait(2 * LONG)) < LONG
    assert seconds(lambda: bell.wait(0.1)) > 0.05


def test_workers_of_one_process_live_in_it() -> None:
    assert [allocator.process for allocator in thread_allocators(3)] == [0, 0, 0]


def test_a_worker_that_is_awake_is_not_woken() -> None:
    first, second = thread_allocators(2)
    for _ in range(2):
        second.send(0, CHANGE)
        assert first.receive() == [(1, CHANGE)]
        assert seconds(lambda: first.park(0.1)) > 0.05


def test_a_worker_is_congested_by_more_than_the_queues_may_hold() -> None:
    first, second = thread_allocators(2, queue_bytes=2 * WEIGHT)
    first.send(0, CHANGE)
    first.send(1, CHANGE)
    assert first.backlog == 2 * WEIGHT
    assert not first.congested
    first.send(1, CHANGE)
    assert first.congested
    second.receive()
    assert first.backlog == WEIGHT
    assert not first.congested


def test_a_congested_worker_sleeps() -> None:
    first, _ = thread_allocators(2, queue_bytes=0)
    first.send(1, CHANGE)
    assert first.congested
    assert seconds(lambda: first.park(0.1)) > 0.05


def test_a_congested_worker_for_whom_there_is_room_just_before_it_asks_to_be_woken_does_not_sleep() -> None:
    first, second = thread_allocators(2, queue_bytes=0)

    class Waiting(dict[int, Callable[[], None]]):
        def __setitem__(self, sender: int, ring: Callable[[], None]) -> None:
            second.receive()
            super().__setitem__(sender, ring)

    second._own.waiting = Waiting()
    first.send(1, CHANGE)
    assert seconds(lambda: first.park(2 * LONG)) < LONG


def test_room_wakes_all_waiting_workers_once() -> None:
    *senders, receiver = thread_allocators(3, queue_bytes=0)
    for sender in senders:
        sender.send(2, CHANGE)
        sender.park(0)
        assert sorted(receiver._own.waiting) == list(range(sender.index + 1))
    receiver.receive()
    for sender in senders:
        assert seconds(lambda: sender.park(2 * LONG)) < LONG  # noqa: B023
        assert seconds(lambda: sender.park(0.1)) > 0.05  # noqa: B023
    assert not receiver._own.waiting
