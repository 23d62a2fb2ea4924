"""What happens on a worker, as frozen records.

The log, accounts and tests read the same records; see `timely.observe.log` for how to listen. A record begins with the
time, in nanoseconds since the worker was made, and the worker. Times of a dataflow are tuples; every other field is a
number or a text. Dataflows, operators and channels are numbered in the order in which they were built, so their numbers
are the same on every worker. A channel is an input of an operator. Operators that run in line with their producer
(`map`, `filter`, `enter`, ...) have numbers of their own; they run within an activation of their producer.

Other packages define further kinds, as `NamedTuple`s that begin with the same two fields.

>>> ScheduleStopped(time=2_000, worker=0, dataflow=0, operator=3, nanoseconds=1_500)
ScheduleStopped(time=2000, worker=0, dataflow=0, operator=3, nanoseconds=1500)
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from timely.errors import BuildError
from timely.order import Changes, Time


class LogEvent(Protocol):
    """The fields that all records have.

    >>> event: Event = Parked(time=2_000, worker=0)
    >>> event.time, event.worker
    (2000, 0)
    """

    @property
    def time(self) -> int:
        """Nanoseconds since the worker was made."""

    @property
    def worker(self) -> int:
        """The worker on which it happened."""


class DataflowBuilt(NamedTuple):
    """A dataflow is complete and begins to run."""

    time: int
    worker: int
    dataflow: int
    name: str


class OperatorBuilt(NamedTuple):
    """An operator of a dataflow that begins to run: its name, the path of its scope, and the user's line."""

    time: int
    worker: int
    dataflow: int
    operator: int
    name: str
    path: str
    origin: str


class InlineBuilt(NamedTuple):
    """An operator that runs in line with its producer: its name, the path of its scope, and the user's line."""

    time: int
    worker: int
    dataflow: int
    inline: int
    name: str
    path: str
    origin: str


class ChannelBuilt(NamedTuple):
    """An input of an operator, how its messages are spread over the workers, and the operators that send them."""

    time: int
    worker: int
    dataflow: int
    channel: int
    operator: int
    input: int
    pact: str
    sources: tuple[int, ...]


class DataflowCompleted(NamedTuple):
    """A dataflow is complete, or was dropped."""

    time: int
    worker: int
    dataflow: int


class ScheduleStarted(NamedTuple):
    """An operator is activated."""

    time: int
    worker: int
    dataflow: int
    operator: int


class ScheduleStopped(NamedTuple):
    """An activation has ended; it took this many nanoseconds."""

    time: int
    worker: int
    dataflow: int
    operator: int
    nanoseconds: int


class InlineRan(NamedTuple):
    """An operator in line has turned a batch into this many records; its own function took this many nanoseconds."""

    time: int
    worker: int
    dataflow: int
    inline: int
    records_in: int
    records_out: int
    nanoseconds: int


class BatchEmitted(NamedTuple):
    """An operator emitted a batch on one of its outputs, whatever receives it."""

    time: int
    worker: int
    dataflow: int
    operator: int
    output: int
    records: int
    bytes: int


class MessageSent(NamedTuple):
    """A batch was sent on a channel, to the worker `target`."""

    time: int
    worker: int
    dataflow: int
    channel: int
    records: int
    bytes: int
    target: int


class MessageReceived(NamedTuple):
    """An operator received a batch from the worker `source` (-1 if it was queued before anybody listened)."""

    time: int
    worker: int
    dataflow: int
    channel: int
    records: int
    bytes: int
    source: int


class StateResized(NamedTuple):
    """The state of an operator, such as an arrangement, has grown by this many rows and bytes, or shrunk."""

    time: int
    worker: int
    dataflow: int
    operator: int
    rows: int
    bytes: int


class ProgressSent(NamedTuple):
    """One atomic batch of changes (location, time, difference) was sent to the workers that are `Route.targets`.

    These are all other workers, unless some add up the progress of others (`Config.accumulation`). To those in other
    processes it took `nbytes` on the wire, for all of them together.
    """

    time: int
    worker: int
    dataflow: int
    changes: Changes
    nbytes: int = 0


class ProgressReceived(NamedTuple):
    """Another worker's batch of changes arrived."""

    time: int
    worker: int
    dataflow: int
    changes: Changes
    source: int


class FrontierChanged(NamedTuple):
    """The frontier at a location, which `port` names, has moved."""

    time: int
    worker: int
    dataflow: int
    location: int
    port: str
    frontier: tuple[Time, ...]


class CapabilityMade(NamedTuple):
    """A capability for the time `at` is held at an output; `origin` is the line that made it.

    A dataflow that begins records those that its operators start with, and a new listener receives those held then.
    """

    time: int
    worker: int
    dataflow: int
    operator: int
    output: int
    at: Time
    origin: str


class CapabilityMoved(NamedTuple):
    """A capability was downgraded."""

    time: int
    worker: int
    dataflow: int
    operator: int
    output: int
    at: Time
    to: Time


class CapabilityDropped(NamedTuple):
    """A capability was released."""

    time: int
    worker: int
    dataflow: int
    operator: int
    output: int
    at: Time


class Parked(NamedTuple):
    """The worker has nothing to do, and begins to wait."""

    time: int
    worker: int


class Unparked(NamedTuple):
    """The worker has waited for this many nanoseconds."""

    time: int
    worker: int
    nanoseconds: int


class ApplicationText(NamedTuple):
    """A text that the program itself has recorded."""

    time: int
    worker: int
    text: str


BUILT = (DataflowBuilt, OperatorBuilt, InlineBuilt, ChannelBuilt)
"""What dataflows consist of; a listener that comes later receives these, too."""

SCHEDULE = (ScheduleStarted, ScheduleStopped)
INLINE = (InlineRan,)
MESSAGES = (MessageSent, MessageReceived)
PROGRESS = (ProgressSent, ProgressReceived)
CAPABILITIES = (CapabilityMade, CapabilityMoved, CapabilityDropped)


def check_kind(kind: Any) -> None:
    """Raise BuildError unless `kind` is a kind of record.

    >>> check_kind(MESSAGES)
    Traceback (most recent call last):
        ...
    timely.errors.BuildError: (<class ... is not a kind of record: give one, such as timely.observe.events.OperatorBuilt
    """
    if not (isinstance(kind, type) and getattr(kind, "_fields", ())[:2] == ("time", "worker")):
        raise BuildError(f"{kind!r:.80} is not a kind of record: give one, such as timely.observe.events.OperatorBuilt")
