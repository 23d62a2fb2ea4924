"""What workers say to each other.

Eight kinds of message, all immutable. `Failure` and `Goodbye` are for whoever runs a worker, and every allocator keeps
them back (see `allocator`); all others are for the worker.

Between two workers messages arrive in the order they were sent. Between different pairs there is no order at
all.
"""

from __future__ import annotations

from typing import NamedTuple

from timely.data.container import Batch, weight_of
from timely.order import Changes, Time


class Data(NamedTuple):
    """A batch for an input of an operator on another worker."""

    dataflow: int
    channel: int
    time: Time
    batch: Batch


class Progress(NamedTuple):
    """One atomic set of changes (location, time, difference) to the counts of pointstamps."""

    dataflow: int
    changes: Changes


class Taken(NamedTuple):
    """So many more messages from the receiver have been taken by operators: (dataflow, channel, messages)."""

    counts: tuple[tuple[int, int, int], ...]


class Shape(NamedTuple):
    """What a worker built: a digest to compare, and the operators' descriptions to name the first that differs."""

    dataflow: int
    digest: bytes
    operators: tuple[str, ...]


class Question(NamedTuple):
    """What does the receiver hold that holds up `time` at a location, or at all if the location is -1?

    With location -1 a `time` that is not empty is a number of milliseconds: the receiver answers only if nothing has
    moved on it for so long, and nothing outside may wake it.
    """

    number: int
    dataflow: int
    location: int
    time: Time


class Answer(NamedTuple):
    """To a question: a line for each thing held, for people."""

    number: int
    lines: tuple[str, ...]


class Failure(NamedTuple):
    """A worker raised; the computation cannot go on. `text` says what happened, for people."""

    worker: int
    text: str


class Goodbye(NamedTuple):
    """A worker has completed all of its dataflows and will send nothing more."""

    worker: int
    dataflows: int


Message = Data | Progress | Taken | Shape | Question | Answer | Failure | Goodbye


def weight(message: Message) -> int:
    """Return about how many bytes a message holds: exact for columns of numbers, an estimate for everything else.

    Queues inside a process are measured with it. It looks at no record, so it costs the same for every batch.
    """
    return 64 + weight_of(message.batch) if type(message) is Data else 64
