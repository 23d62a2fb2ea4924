"""The messages that workers send to each other.

There are eight kinds, all immutable. Allocators intercept `Failure` and `Goodbye`, which concern the run; all others
are for the worker (see `allocator`).

Messages between two workers arrive in the order in which they were sent. Between different pairs of workers there is no
order at all.
"""

from __future__ import annotations

from typing import NamedTuple

from timely.data.container import Batch
from timely.data.weight import weight_of
from timely.order import Changes, Time


class Data(NamedTuple):
    """A batch for an input of an operator on another worker."""

    dataflow: int
    channel: int
    time: Time
    batch: Batch


class ProgressUpdate(NamedTuple):
    """One atomic set of changes (location, time, difference) to the counts of pointstamps."""

    dataflow: int
    changes: Changes


class Taken(NamedTuple):
    """Operators of the sender have taken this many more of the receiver's messages: (dataflow, channel, messages)."""

    counts: tuple[tuple[int, int, int], ...]


class Shape(NamedTuple):
    """What a worker has built: a digest to compare, and descriptions of its operators to find the first difference."""

    dataflow: int
    digest: bytes
    operators: tuple[str, ...]


class StallQuestion(NamedTuple):
    """A request to report what the receiver holds that holds back `time` at a location, or anything if that is -1.

    With location -1, a `time` that is not empty is a number of milliseconds: the receiver answers only if nothing has
    moved on it for that long, and nothing from outside can wake it.
    """

    number: int
    dataflow: int
    location: int
    time: Time


class StallAnswer(NamedTuple):
    """The answer to a question: a line for each thing held, for people."""

    number: int
    lines: tuple[str, ...]


class Failure(NamedTuple):
    """A worker raised, so the computation cannot continue. `text` describes the error, for people."""

    worker: int
    text: str


class Goodbye(NamedTuple):
    """A farewell: the worker has completed all of its dataflows and will send nothing more.

    A process that ends without having sent it is lost, and its peers raise `PeerLost`.
    """

    worker: int
    dataflows: int
    has_left: bool = False
    """Whether its program has called `sys.exit(0)`."""


Message = Data | ProgressUpdate | Taken | Shape | StallQuestion | StallAnswer | Failure | Goodbye


def weight(message: Message) -> int:
    """Return the approximate size of a message in bytes: exact for columns of numbers, an estimate for everything else.

    Queues inside a process are measured by it. It samples records, so it costs the same for every batch.
    """
    return 64 + weight_of(message.batch) if type(message) is Data else 64
