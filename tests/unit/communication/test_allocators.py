"""The contract of `Allocator`, the same for every network."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from tests.strategies_communication import same_message
from tests.unit.communication.networks import KINDS, collect, exchange, network, until
from timely.communication.allocator import Allocator, broadcast
from timely.communication.codec import MessageEncoder
from timely.communication.message import Data, Failure, Goodbye, ProgressUpdate, Shape
from timely.communication.sockets import SocketAllocator
from timely.data.container import Columns
from timely.errors import PeerFailed

QUEUE_BYTES = 1 << 20
LONG = 20.0
"""More seconds than anything immediate takes, however busy the machine is."""


@pytest.fixture(params=KINDS)
def allocators(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Allocator]]:
    with network(request.param, tmp_path, QUEUE_BYTES) as made:
        yield made


@pytest.fixture(params=[kind for kind in KINDS if kind != "simulated"])
def sleeping(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Allocator]]:
    """The networks whose workers sleep in real time."""
    with network(request.param, tmp_path, QUEUE_BYTES) as made:
        yield made


def change(number: int) -> ProgressUpdate:
    return ProgressUpdate(0, ((number, (0,), 1),))


def megabyte(number: int = 0) -> Data:
    return Data(0, number, (0,), Columns((np.arange(1 << 17),)))


def test_workers_know_their_index(allocators: list[Allocator]) -> None:
    assert [allocator.index for allocator in allocators] == list(range(len(allocators)))
    assert {allocator.peers for allocator in allocators} == {len(allocators)}


def test_messages_of_a_pair_keep_their_order_and_come_once(allocators: list[Allocator]) -> None:
    for number in range(300):
        for sender in allocators:
            for receiver in allocators:
                sender.send(receiver.index, change(number))
    for receiver in allocators:
        arrived = collect(receiver, 300 * len(allocators))
        for sender in allocators:
            assert [message for origin, message in arrived if origin == sender.index] == [
                change(number) for number in range(300)
            ]
    assert all(allocator.receive() == [] for allocator in allocators)
    assert not any(allocator.has_unsent for allocator in allocators)


def test_progress_is_counted_by_its_bytes_where_it_is_encoded(allocators: list[Allocator]) -> None:
    first = allocators[0]
    far = next((each for each in allocators if each.process != first.process), allocators[1])
    assert first.progress_bytes == 0
    first.send(0, change(1))
    assert first.progress_bytes == 0, "it has not left the worker"
    sizes = []
    for changes in (1, 200):
        before = first.progress_bytes
        first.send(far.index, ProgressUpdate(0, ((0, (0,), 1),) * changes))
        sizes.append(first.progress_bytes - before)
    if far.process != first.process and isinstance(first, SocketAllocator):
        frames = MessageEncoder(0, first._config.generation).encode(change(0), far.index)
        assert sizes[0] == pytest.approx(sum(map(len, frames)), abs=4)
        assert 200 * 4 < sizes[1] - sizes[0] < 200 * 12
    else:
        assert sizes == [0, 0], "nothing is encoded inside of a process"
    first.send(far.index, megabyte())
    assert first.progress_bytes == sum(sizes)
    collect(first, 1)
    collect(far, 3)


def test_messages_arrive_unchanged(allocators: list[Allocator]) -> None:
    big = np.arange(50_000)
    messages = [
        Data(1, 2, (3, 4), Columns((big, big * 0.5, big.astype(np.int8)))),
        Data(1, 2, (3, 4), Columns((np.array([True, False]), np.array(["a", "wörter"], np.dtypes.StringDType())))),
        Data(1, 2, (3,), [("text", 1, None), [b"bytes", 2.5]]),
        ProgressUpdate(1, ((7, (2**61, 0), -3),)),
        Shape(2, b"digest", ("map", "filter")),
    ]
    for message in messages:
        allocators[0].send(1, message)
    arrived = collect(allocators[1], len(messages))
    assert all(sender == 0 for sender, _ in arrived)
    assert all(same_message(message, sent) for (_, message), sent in zip(arrived, messages, strict=True))


def test_receive_returns_at_once_when_there_is_nothing(allocators: list[Allocator]) -> None:
    start = clock.perf_counter()
    assert allocators[0].receive() == []
    assert clock.perf_counter() - start < LONG


def test_sending_never_blocks_however_much(allocators: list[Allocator]) -> None:
    start = clock.perf_counter()
    for number in range(30):
        for sender in allocators:
            broadcast(sender, megabyte(number))
    assert clock.perf_counter() - start < LONG
    everything = exchange(allocators, [30 * (len(allocators) - 1)] * len(allocators))
    for receiver, arrived in zip(allocators, everything, strict=True):
        for other in set(range(len(allocators))) - {receiver.index}:
            numbers = [message.channel for sender, message in arrived if sender == other]  # type: ignore[union-attr]
            assert numbers == list(range(30))


def test_the_backlog_grows_with_messages_sent_and_shrinks_with_messages_taken(allocators: list[Allocator]) -> None:
    sender, receiver = allocators[0], allocators[-1]
    for _ in range(3):
        sender.send(receiver.index, megabyte())
    assert 3 << 20 <= sender.backlog < 4 << 20
    assert sender.congested
    collect(receiver, 3, others=[sender])
    until(lambda: sender.backlog < QUEUE_BYTES // 2, [sender, receiver])
    assert not sender.congested


def test_a_failure_of_a_peer_is_raised_with_its_text(allocators: list[Allocator]) -> None:
    allocators[1].send(0, change(1))
    broadcast(allocators[1], Failure(1, "ValueError: no"))
    with pytest.raises(PeerFailed, match="worker 1 failed: ValueError: no"):
        collect(allocators[0], 2)


def test_a_failure_arrives_however_much_was_sent_before_it(allocators: list[Allocator]) -> None:
    for _ in range(20):
        allocators[1].send(0, megabyte())
    allocators[1].send(0, Failure(1, "enough"))
    with pytest.raises(PeerFailed, match="enough"):
        collect(allocators[0], 21)


def test_an_allocator_keeps_the_farewells_of_its_peers(allocators: list[Allocator]) -> None:
    for allocator in allocators:
        broadcast(allocator, Goodbye(allocator.index, 3))
    for allocator in allocators:
        until(lambda: len(allocator.farewells) == allocator.peers - 1, [allocator])  # noqa: B023
        assert {goodbye.dataflows for goodbye in allocator.farewells.values()} == {3}


def test_an_interrupt_is_raised_by_receive(allocators: list[Allocator]) -> None:
    allocators[0].interrupt()
    with pytest.raises(KeyboardInterrupt):
        allocators[0].receive()


def test_messages_and_the_bytes_of_batches_are_counted(allocators: list[Allocator]) -> None:
    allocators[0].send(1, megabyte())
    allocators[0].send(1, change(1))
    collect(allocators[1], 2, others=[allocators[0]])
    assert allocators[0].messages_sent == allocators[1].messages_received == 2
    assert 1 << 20 <= allocators[0].data_bytes < 2 << 20
    assert allocators[1].refused == 0


def test_nothing_is_counted_before_anything_is_sent(allocators: list[Allocator]) -> None:
    for allocator in allocators:
        assert allocator.messages_sent == allocator.messages_received == allocator.data_bytes == 0
        assert allocator.refused == allocator.backlog == 0


def test_refused_messages_are_counted(allocators: list[Allocator]) -> None:
    allocators[0].refuse("its contents are impossible")
    assert [allocator.refused for allocator in allocators[:2]] == [1, 0]


def test_closing_twice_and_waking_a_closed_worker_do_nothing(allocators: list[Allocator]) -> None:
    for allocator in allocators:
        broadcast(allocator, Goodbye(allocator.index, 0))
        allocator.close()
        allocator.close()
        allocator.wake()


def when_asleep(allocator: Allocator, action: Callable[[], object]) -> Thread:
    """Return a started thread that acts when the worker checks for work for the last time."""

    def act() -> None:
        while not allocator._own.parked:  # type: ignore[attr-defined]
            clock.sleep(0.001)
        action()

    thread = Thread(target=act, daemon=True)
    thread.start()
    return thread


def test_park_lasts_as_long_as_it_should(sleeping: list[Allocator]) -> None:
    start = clock.perf_counter()
    sleeping[0].park(0.2)
    assert 0.15 < clock.perf_counter() - start < LONG


def test_park_returns_at_once_when_something_is_there(sleeping: list[Allocator]) -> None:
    sleeping[1].send(0, change(1))
    sleeping[0].send(0, change(2))
    start = clock.perf_counter()
    sleeping[0].park(2 * LONG)
    assert clock.perf_counter() - start < LONG


def test_a_message_ends_park(sleeping: list[Allocator]) -> None:
    sender = when_asleep(sleeping[0], lambda: sleeping[-1].send(0, change(1)))
    start = clock.perf_counter()
    sleeping[0].park(2 * LONG)
    assert clock.perf_counter() - start < LONG
    sender.join()
    assert collect(sleeping[0], 1) == [(sleeping[-1].index, change(1))]


def test_wake_ends_park_from_another_thread(sleeping: list[Allocator]) -> None:
    waker = when_asleep(sleeping[0], sleeping[0].wake)
    start = clock.perf_counter()
    sleeping[0].park(2 * LONG)
    assert clock.perf_counter() - start < LONG
    waker.join()


def test_wake_before_park_is_not_lost_and_not_counted_twice(sleeping: list[Allocator]) -> None:
    sleeping[0].wake()
    sleeping[0].wake()
    start = clock.perf_counter()
    sleeping[0].park(2 * LONG)
    assert clock.perf_counter() - start < LONG
    start = clock.perf_counter()
    sleeping[0].park(0.2)
    assert clock.perf_counter() - start > 0.15


def test_a_congested_worker_is_woken_when_there_is_room(sleeping: list[Allocator]) -> None:
    sender, receiver = sleeping[0], sleeping[1]
    for _ in range(3):
        sender.send(1, megabyte())
    assert sender.congested
    taken: list[object] = []
    receiving = when_asleep(sender, lambda: taken.extend(collect(receiver, 3)))
    start = clock.perf_counter()
    while sender.congested:
        sender.park(2 * LONG)
        sender.receive()
    assert clock.perf_counter() - start < LONG
    receiving.join()
    assert len(taken) == 3
