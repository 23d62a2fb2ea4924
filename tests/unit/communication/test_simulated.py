"""The network for tests loses nothing, keeps the order of each pair, and reports a worker that sleeps forever."""

from __future__ import annotations

import doctest
from collections import Counter
from itertools import product

import pytest

from benchmarks import simulated
from benchmarks.simulated import SimulatedNetwork
from timely.communication.message import Message, ProgressUpdate
from timely.errors import StalledError

WEIGHT = 64
PEERS, EACH = 3, 5


def change(number: int) -> ProgressUpdate:
    return ProgressUpdate(0, ((number, (0,), 1),))


def crowded(seed: int) -> SimulatedNetwork:
    """Return a network in which every worker has sent a few messages to every other one."""
    network = SimulatedNetwork(PEERS, seed)
    assert network.pending == 0
    for number, sender, receiver in product(range(EACH), network.allocators, range(PEERS)):
        sender.send(receiver, change(number))
    assert network.pending == EACH * PEERS * PEERS
    return network


def deliveries(network: SimulatedNetwork) -> list[tuple[int, int]]:
    """Deliver all messages in transit; return the sender and the receiver of each."""
    pairs = []
    while (pair := network.deliver_one()) is not None:
        pairs.append(pair)
    return pairs


def test_the_example_of_the_module_holds() -> None:
    assert doctest.testmod(simulated).failed == 0


@pytest.mark.parametrize("seed", range(5))
def test_every_message_arrives_once_and_those_of_a_pair_in_order(seed: int) -> None:
    network = crowded(seed)
    arrived: dict[tuple[int, int], list[Message]] = {pair: [] for pair in product(range(PEERS), repeat=2)}
    for left in reversed(range(network.pending)):
        sender, receiver = network.deliver_one() or (-1, -1)
        ((origin, message),) = network.allocators[receiver].receive()
        assert origin == sender
        assert network.pending == left
        arrived[sender, receiver].append(message)
    assert network.deliver_one() is None
    assert network.pending == 0
    assert all(messages == [change(number) for number in range(EACH)] for messages in arrived.values())


def test_equal_seeds_give_equal_orders_and_different_seeds_different_ones() -> None:
    orders = {tuple(deliveries(crowded(seed))) for seed in (1, 2, 3)}
    assert len(orders) == 3
    assert tuple(deliveries(crowded(1))) in orders
    for order in orders:
        assert set(Counter(order).values()) == {EACH}


def test_a_pair_with_nothing_in_flight_may_send_again() -> None:
    network = SimulatedNetwork(2, seed=0)
    for number in range(3):
        network.allocators[0].send(1, change(number))
        assert deliveries(network) == [(0, 1)]
        assert network.allocators[1].receive() == [(0, change(number))]


def test_parking_delivers_a_message_unless_there_is_something_to_do() -> None:
    network = SimulatedNetwork(2, seed=0)
    first, second = network.allocators
    for number in range(4):
        first.send(1, change(number))
    first.park(None)
    assert network.pending == 3
    second.park(None)  # it has something to receive
    assert network.pending == 3
    assert len(second.receive()) == 1
    second.wake()
    second.park(None)
    assert network.pending == 3
    second.park(None)
    assert network.pending == 2
    second.receive()
    second.park(1.0)
    assert network.pending == 1


def test_a_worker_that_would_sleep_forever_is_reported() -> None:
    network = SimulatedNetwork(2, seed=0)
    _, second = network.allocators
    with pytest.raises(StalledError, match="worker 1 sleeps forever"):
        second.park(None)
    second.park(1.0)
    second.wake()
    second.park(None)
    with pytest.raises(StalledError):
        second.park(None)


def test_sent_messages_are_backlog_until_they_are_received() -> None:
    network = SimulatedNetwork(2, seed=0, queue_bytes=2 * WEIGHT)
    first, second = network.allocators
    for number in range(2):
        first.send(1, change(number))
    assert (first.backlog, first.congested) == (2 * WEIGHT, False)
    first.send(1, change(2))
    assert (first.backlog, first.congested) == (3 * WEIGHT, True)
    network.deliver_one()
    assert first.backlog == 3 * WEIGHT
    second.receive()
    assert (first.backlog, first.congested) == (2 * WEIGHT, False)
    assert second.backlog == 0


def test_an_interrupt_is_backlog_of_the_receiver() -> None:
    (alone,) = SimulatedNetwork(1, seed=0).allocators
    alone.interrupt()
    assert alone.backlog == WEIGHT
    alone.park(None)
    with pytest.raises(KeyboardInterrupt):
        alone.receive()
    assert alone.backlog == 0


def test_all_live_in_one_process() -> None:
    assert [allocator.process for allocator in SimulatedNetwork(3, seed=0).allocators] == [0, 0, 0]
