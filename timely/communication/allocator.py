"""How workers reach each other, whatever lies between them.

A worker knows only the `Allocator` protocol. Implementations: `thread` (queues inside one process), `sockets`
(ZeroMQ between processes, and queues to the workers of its own process), and `simulated` (one thread and a
seeded choice of what arrives next, for tests). One conformance suite runs over all of them.

The contract:

- Messages from one worker to another arrive in the order sent, once, and unchanged. A batch handed over is
  shared, not copied, so nobody writes to it.
- `send` and `receive` never block. What the receiver has not taken counts as `backlog`; over the configured
  bound the allocator is `congested`, and the worker's inputs should wait. Nothing is refused: a loop may
  always finish its turn.
- `park` may return early, and `wake` is never lost: one that comes before `park` ends that `park` at once.
- `receive` raises `PeerFailed` once a peer has said that it failed, `PeerLost` when a peer's process is gone
  without a farewell, and `KeyboardInterrupt` after `interrupt`. `Goodbye` is kept in `farewells`. Hence
  `receive` returns only what is for the worker: `Data`, `Progress`, `Taken`, `Shape`, `Question` and `Answer`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from timely.communication.message import Failure, Goodbye, Message
from timely.errors import PeerFailed


class Statistics(NamedTuple):
    """What passed through an allocator since it was made. Bytes are those sent, frame headers included."""

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
        """This worker, counted over all processes."""
        ...

    @property
    def peers(self) -> int:
        """The number of workers in all, this one included."""
        ...

    @property
    def process(self) -> int:
        """The process this worker lives in."""
        ...

    @property
    def farewells(self) -> dict[int, Goodbye]:
        """The peers that have said goodbye."""
        ...

    def connect(self) -> None:
        """Wait until every peer is there; raise `TransportError` naming the one that is not. Call before all else."""
        ...

    def send(self, peer: int, message: Message) -> None:
        """Hand a message over for worker `peer` (which may be this one)."""
        ...

    def receive(self) -> list[tuple[int, Message]]:
        """Return what has arrived, as (sender, message)."""
        ...

    def park(self, timeout: float | None) -> None:
        """Wait until something may have arrived, `wake` was called, or `timeout` seconds have passed."""
        ...

    def wake(self) -> None:
        """End `park`, from any thread or signal handler."""
        ...

    def interrupt(self) -> None:
        """Make the next `receive` raise `KeyboardInterrupt`, from any thread."""
        ...

    @property
    def backlog(self) -> int:
        """Bytes sent that no peer has taken yet."""
        ...

    @property
    def congested(self) -> bool:
        """Whether the backlog is over its bound, so that inputs should wait."""
        ...

    @property
    def last_refusal(self) -> str:
        """Why a message was refused last, for people; empty where none was."""
        ...

    @property
    def holds_back(self) -> bool:
        """Whether something sent waits here for room at its receiver. `close` would lose it."""
        ...

    def refuse(self, reason: str) -> None:
        """Count a message that arrived in good form and says what cannot be."""
        ...

    def statistics(self) -> Statistics: ...

    def close(self) -> None:
        """Let go of everything, after what was sent has left (or two seconds). May be called twice."""
        ...


def broadcast(allocator: Allocator, message: Message) -> None:
    """Send a message to every other worker."""
    for peer in range(allocator.peers):
        if peer != allocator.index:
            allocator.send(peer, message)


def admit(
    index: int, arrived: Iterable[tuple[int, Message]], farewells: dict[int, Goodbye]
) -> list[tuple[int, Message]]:
    """Return the messages that are for the worker; keep farewells, raise on failures.

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
