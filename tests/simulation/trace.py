"""The events of a simulation as one digest: two runs of a seed must have the same."""

from __future__ import annotations

from hashlib import blake2b

from benchmarks.simulated import SimulatedNetwork
from timely.communication.message import Data, Message, ProgressUpdate
from timely.data.container import records


class Trace:
    """The digest of all events added, in order."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)

    def add(self, *event: object) -> None:
        """Add an event: anything whose `repr` identifies it, and is the same in every process."""
        self._hash.update(repr(event).encode())

    @property
    def digest(self) -> str:
        """The digest of the events so far, 32 letters."""
        return self._hash.hexdigest()


class TracedNetwork(SimulatedNetwork):
    """A simulated network that records which messages are sent, with their content, and in which order they arrive."""

    def __init__(self, peers: int, seed: int, trace: Trace) -> None:
        super().__init__(peers, seed)
        self._trace = trace

    def send(self, sender: int, receiver: int, message: Message) -> None:
        self._trace.add("send", sender, receiver, content_of(message))
        super().send(sender, receiver, message)

    def deliver_one(self) -> tuple[int, int] | None:
        pair = super().deliver_one()
        self._trace.add("arrive", pair)
        return pair


def content_of(message: Message) -> object:
    """Return the content of a message."""
    if isinstance(message, Data):
        return message.channel, message.time, list(records(message.batch))
    if isinstance(message, ProgressUpdate):
        return message.changes
    return type(message).__name__
