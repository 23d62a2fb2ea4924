"""What happened in a simulation, event for event, as one digest: two runs of a seed must have the same."""

from __future__ import annotations

from hashlib import blake2b

from timely.communication.message import Data, Message, Progress
from timely.communication.simulated import SimulatedNetwork
from timely.data.container import records


class Trace:
    """Everything that has been told to `add`, in order."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)

    def add(self, *event: object) -> None:
        """Note an event: anything whose `repr` says what it is, whichever process says it."""
        self._hash.update(repr(event).encode())

    @property
    def digest(self) -> str:
        """What was noted until now, in 32 letters."""
        return self._hash.hexdigest()


class TracedNetwork(SimulatedNetwork):
    """A simulated network that notes what is sent, with its content, and in which order it arrives."""

    def __init__(self, peers: int, seed: int, trace: Trace) -> None:
        super().__init__(peers, seed)
        self._trace = trace

    def fly(self, sender: int, receiver: int, message: Message) -> None:
        self._trace.add("send", sender, receiver, content_of(message))
        super().fly(sender, receiver, message)

    def deliver_one(self) -> tuple[int, int] | None:
        pair = super().deliver_one()
        self._trace.add("arrive", pair)
        return pair


def content_of(message: Message) -> object:
    """What a message says."""
    if isinstance(message, Data):
        return message.channel, message.time, list(records(message.batch))
    if isinstance(message, Progress):
        return message.changes
    return type(message).__name__
