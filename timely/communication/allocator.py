"""The network as one worker sees it, whatever connects the workers.

A worker knows only the `Allocator` protocol. Its implementations are `thread` (queues within a process), `sockets`
(ZeroMQ between processes, and queues to the workers of its own process) and `simulated` (one thread and a seeded random
choice of what arrives next, for tests). One conformance suite runs over all of them.

The contract:

- Messages from one worker to another arrive once, unchanged, and in the order in which they were sent. Within a process
  a batch is shared, not copied, so nobody may write to it after it was sent.
- `send` and `receive` never block. The bytes that receivers have not taken yet are the sender's `backlog`. Above its
  bound the allocator is `congested`, and the worker's inputs should wait. `send` never refuses a message, so a loop can
  always finish its round.
- `park` may return early, and no `wake` is lost: one that precedes `park` ends that `park` at once.
- `receive` raises `PeerFailed` when a peer reports its failure, `PeerLost` when a peer's process has ended without a
  farewell, and `KeyboardInterrupt` after `interrupt`. A farewell is a peer's `Goodbye`, which `farewells` keeps. So
  `receive` returns only messages for the worker itself: `Data`, `Progress`, `Taken`, `Shape`, `Question` and `Answer`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from timely.communication.message import Failure, Goodbye, Message
from timely.errors import PeerFailed


class Statistics(NamedTuple):
    """What has passed through an allocator so far. Bytes are bytes sent, including frame headers."""

    messages_sent: int
    messages_received: int
    data_bytes: int
    progress_bytes: int
    refused: int
    backlog: int


class Allocator(Protocol):
    """One worker's end of the network."""

    @property
    def index(self) -> int:
        """The index of this worker among those of all processes."""
        ...

    @property
    def peers(self) -> int:
        """The number of workers in the cluster, including this one."""
        ...

    @property
    def process(self) -> int:
        """The process that this worker belongs to."""
        ...

    @property
    def farewells(self) -> dict[int, Goodbye]:
        """The `Goodbye` of each peer that has sent one."""
        ...

    def connect(self) -> None:
        """Wait until every peer is connected; raise `TransportError` naming the missing ones. Must be called first."""
        ...

    def send(self, peer: int, message: Message) -> None:
        """Send a message to worker `peer`, which may be this one."""
        ...

    def receive(self) -> list[tuple[int, Message]]:
        """Return the messages that have arrived, as (sender, message)."""
        ...

    def park(self, timeout: float | None) -> None:
        """Wait until something may have arrived, `wake` was called, or `timeout` seconds have passed."""
        ...

    def wake(self) -> None:
        """End `park`. May be called from any thread or signal handler."""
        ...

    def interrupt(self) -> None:
        """Make the next `receive` raise `KeyboardInterrupt`. May be called from any thread."""
        ...

    @property
    def backlog(self) -> int:
        """The number of bytes sent that receivers have not taken yet."""
        ...

    @property
    def congested(self) -> bool:
        """Whether the backlog exceeds its bound, so that inputs should wait."""
        ...

    @property
    def last_refusal(self) -> str:
        """The reason why a message was last refused, for people; empty if none was."""
        ...

    @property
    def has_unsent(self) -> bool:
        """Whether a message is still queued here for lack of room at its receiver. `close` would lose it."""
        ...

    def refuse(self, reason: str) -> None:
        """Count a well-formed message whose contents are impossible."""
        ...

    def statistics(self) -> Statistics: ...

    def close(self) -> None:
        """Release all resources once everything sent has left, or after two seconds. May be called twice."""
        ...


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
