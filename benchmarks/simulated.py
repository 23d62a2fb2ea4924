"""A network in one thread, for tests and for counting traffic: a seeded random choice decides what arrives next.

A message stays in flight until `deliver_one` moves the oldest message of a randomly chosen pair of workers to its
receiver. So messages of one pair keep their order, and those of different pairs arrive in any order and arbitrarily
late: everything that a real network may do, and the same again for the same seed.

>>> from timely.communication.message import ProgressUpdate
>>> network = SimulatedNetwork(peers=2, seed=7)
>>> first, second = network.allocators
>>> first.send(1, ProgressUpdate(0, ((3, (0,), 1),)))
>>> second.receive(), network.pending
([], 1)
>>> network.deliver_one()
(0, 1)
>>> second.receive()
[(0, ProgressUpdate(dataflow=0, changes=((3, (0,), 1),)))]
"""

from __future__ import annotations

from collections import deque
from random import Random

from timely.communication.allocator import Allocator, admit
from timely.communication.message import Data, Failure, Message, weight
from timely.errors import StalledError


class SimulatedNetwork:
    """The allocators of `peers` workers and the messages in flight between them."""

    def __init__(self, peers: int, seed: int, queue_bytes: int = 64 << 20) -> None:
        self.allocators = [SimulatedAllocator(self, index, peers, queue_bytes) for index in range(peers)]
        self.pending = 0
        """The number of messages in flight."""
        self._random = Random(seed)
        self._in_flight: dict[tuple[int, int], deque[Message]] = {}
        self._pairs: list[tuple[int, int]] = []  # the pairs with a message in flight

    def deliver_one(self) -> tuple[int, int] | None:
        """Deliver one message; return its sender and receiver, or None if nothing is in flight."""
        pairs = self._pairs
        if not pairs:
            return None
        position = self._random.randrange(len(pairs))
        sender, receiver = pair = pairs[position]
        queue = self._in_flight[pair]
        self.allocators[receiver].arrived.append((sender, queue.popleft()))
        if not queue:
            pairs[position] = pairs[-1]
            pairs.pop()
        self.pending -= 1
        return pair

    def send(self, sender: int, receiver: int, message: Message) -> None:
        """Put a message in flight."""
        pair = sender, receiver
        queue = self._in_flight.setdefault(pair, deque())
        if not queue:
            self._pairs.append(pair)
        queue.append(message)
        self.pending += 1


class SimulatedAllocator(Allocator):
    """A worker's end of a `SimulatedNetwork`. See `Allocator`."""

    backlog = 0

    def __init__(self, network: SimulatedNetwork, index: int, peers: int, queue_bytes: int) -> None:
        super().__init__(index, peers, 0, queue_bytes)
        self.arrived: list[tuple[int, Message]] = []
        self._network = network
        self._woken = False

    def connect(self) -> None:
        """Return at once: all workers are connected."""

    def send(self, peer: int, message: Message) -> None:
        size = weight(message)
        self.backlog += size
        self.messages_sent += 1
        if type(message) is Data:
            self.data_bytes += size
        self._network.send(self.index, peer, message)

    def receive(self) -> list[tuple[int, Message]]:
        arrived, self.arrived = self.arrived, []
        for sender, message in arrived:
            self._network.allocators[sender].backlog -= weight(message)
        self.messages_received += len(arrived)
        return admit(self.index, arrived, self.farewells)

    def park(self, timeout: float | None) -> None:
        """Deliver one message of the network, to this worker or another.

        Raises `StalledError` where a real worker would sleep forever.
        """
        if self.arrived or self._woken or self._network.deliver_one() or timeout is not None:
            self._woken = False
            return
        raise StalledError(f"worker {self.index} sleeps forever: nothing is in flight")

    def wake(self) -> None:
        self._woken = True

    def interrupt(self) -> None:
        failure = Failure(self.index, "interrupted")
        self.backlog += weight(failure)
        self.arrived.append((self.index, failure))

    def close(self) -> None:
        """Do nothing: there are no resources to release."""
