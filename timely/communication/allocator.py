"""The network as one worker sees it, whatever connects the workers.

A worker knows only the `Allocator`. Its implementations are `thread` (queues within a process) and `sockets` (ZeroMQ
between processes, and queues to the workers of its own process). Tests have a third, `benchmarks/simulated.py`: one
thread, and a seeded random choice of what arrives next. One conformance suite runs over all of them.

The contract:

- Messages from one worker to another arrive once, unchanged, and in the order in which they were sent. Within a process
  a batch is shared, not copied, so nobody may write to it after it was sent.
- `send` and `receive` never block. The bytes that receivers have not taken yet are the sender's `backlog`. Above its
  bound the allocator is `congested`, and the worker's inputs should wait. `send` never refuses a message, so a loop can
  always finish its round.
- `park` may return early, and no `wake` is lost: one that precedes `park` ends that `park` at once.
- `receive` raises `PeerFailed` when a peer reports its failure, `PeerLost` when a peer's process has ended without a
  farewell, and `KeyboardInterrupt` after `interrupt`. A farewell is a peer's `Goodbye`, which `farewells` keeps. So
  `receive` returns only messages for the worker itself: `Data`, `ProgressUpdate`, `Taken`, `Shape`, `StallQuestion` and
  `StallAnswer`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sized

from timely.communication.message import Failure, Goodbye, Message
from timely.errors import PeerFailed


class Allocator(ABC):
    """One worker's end of the network."""

    def __init__(self, index: int, peers: int, process: int, queue_bytes: int) -> None:
        self.index = index
        """The index of this worker among those of all processes."""
        self.peers = peers
        """The number of workers in the cluster, including this one."""
        self.process = process
        """The process that this worker belongs to."""
        self.farewells: dict[int, Goodbye] = {}
        """The `Goodbye` of each peer that has sent one."""
        self.last_refusal = ""
        """The reason why a message was last refused, for people; empty if none was."""
        self.incoming: Sized | None = None
        """What has arrived at a worker without peers, which need not `receive` while this is empty; None for others."""
        self.messages_sent = self.messages_received = 0
        self.data_bytes = 0
        """The bytes of the batches that were sent, including frame headers."""
        self.progress_bytes = 0
        """The bytes of the progress that was sent to other processes, including frame headers."""
        self._refused = 0
        self._queue_bytes = queue_bytes

    @abstractmethod
    def connect(self) -> None:
        """Wait until every peer is connected; raise `TransportError` naming the missing ones. Must be called first."""

    @abstractmethod
    def send(self, peer: int, message: Message) -> None:
        """Send a message to worker `peer`, which may be this one."""

    @abstractmethod
    def receive(self) -> list[tuple[int, Message]]:
        """Return the messages that have arrived, as (sender, message)."""

    @abstractmethod
    def park(self, timeout: float | None) -> None:
        """Wait until something may have arrived, `wake` was called, or `timeout` seconds have passed."""

    @abstractmethod
    def wake(self) -> None:
        """End `park`. May be called from any thread or signal handler."""

    @abstractmethod
    def interrupt(self) -> None:
        """Make the next `receive` raise `KeyboardInterrupt`. May be called from any thread."""

    @property
    @abstractmethod
    def backlog(self) -> int:
        """The number of bytes sent that receivers have not taken yet."""

    @property
    def congested(self) -> bool:
        """Whether the backlog exceeds its bound, so that inputs should wait."""
        return self.backlog > self._queue_bytes

    @property
    def has_unsent(self) -> bool:
        """Whether a message is still queued here for lack of room at its receiver. `close` would lose it."""
        return False

    @property
    def refused(self) -> int:
        """The number of messages and connections that were refused."""
        return self._refused

    def refuse(self, reason: str) -> None:
        """Count a well-formed message whose contents are impossible."""
        self._refused += 1
        self.last_refusal = reason

    @abstractmethod
    def close(self) -> None:
        """Release all resources once everything sent has left, or after two seconds. May be called twice."""


def broadcast(allocator: Allocator, message: Message) -> None:
    """Send a message to every other worker."""
    for peer in range(allocator.peers):
        if peer != allocator.index:
            allocator.send(peer, message)


def admit(
    index: int, arrived: Iterable[tuple[int, Message]], farewells: dict[int, Goodbye]
) -> list[tuple[int, Message]]:
    """Return the messages for the worker; keep farewells and raise on failures.

    A failure in the receiver's own name is how `interrupt` reaches a worker in another thread.
    """
    messages = []
    for sender, message in arrived:
        kind = type(message)
        if kind is Goodbye:
            farewells[sender] = message  # type: ignore[assignment]
        elif kind is Failure:
            if sender == index:
                raise KeyboardInterrupt
            raise PeerFailed(f"worker {message.worker} failed: {message.text}")  # type: ignore[union-attr]
        else:
            messages.append((sender, message))
    return messages
