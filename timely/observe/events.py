"""What happens on a worker, as frozen records.

The log, per-operator accounting and tests read the same records; see `timely.observe.log` for how to listen. Each
states when it happened, in nanoseconds since the worker was made, and on which worker. Times of a dataflow are tuples;
everything else is a number or a text. Dataflows, operators and channels are numbered as on every worker: in the order
in which they were built; a channel is an input of an operator. Operators that run in line with their producer (`map`,
`filter`, `enter`, ...) are numbered apart; what they do happens within an activation of their producer.

Other packages define further kinds, as `NamedTuple`s that begin with the same two fields.

>>> ScheduleStopped(time=2_000, worker=0, dataflow=0, operator=3, nanoseconds=1_500)
ScheduleStopped(time=2000, worker=0, dataflow=0, operator=3, nanoseconds=1500)
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from timely.errors import BuildError
from timely.order import Changes, Time


class Event(Protocol):
    """What all records have.

    >>> event: Event = Parked(time=2_000, worker=0)
    >>> event.time, event.worker
    (2000, 0)
    """

    @property
    def time(self) -> int:
        """Nanoseconds since the worker was made."""
        ...

    @property
    def worker(self) -> int:
        """The worker it happened on."""
        ...


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
    """An input of an operator, how messages are spread over the workers, and the operators they come from."""

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
    """An activation ended, after so many nanoseconds."""

    time: int
    worker: int
    dataflow: int
    operator: int
    nanoseconds: int


class InlineRan(NamedTuple):
    """An operator in line has made so many records of a batch; its own function took so many nanoseconds."""

    time: int
    worker: int
    dataflow: int
    inline: int
    records_in: int
    records_out: int
    nanoseconds: int


class MessageSent(NamedTuple):
    """A batch was handed to a channel, for the worker `target`."""

    time: int
    worker: int
    dataflow: int
    channel: int
    records: int
    bytes: int
    target: int


class MessageReceived(NamedTuple):
    """An operator took a batch from its input; it came from `source` (-1: it was queued before anybody listened)."""

    time: int
    worker: int
    dataflow: int
    channel: int
    records: int
    bytes: int
    source: int


class StateResized(NamedTuple):
    """What an operator keeps has grown by so many rows and bytes, or shrunk: an arrangement, say."""

    time: int
    worker: int
    dataflow: int
    operator: int
    rows: int
    bytes: int


class ProgressSent(NamedTuple):
    """One atomic batch of changes (location, time, difference) was sent to those that `Route.targets` says.

    These are all other workers, unless some add up the progress of others (`Config.accumulation`).
    """

    time: int
    worker: int
    dataflow: int
    changes: Changes


class ProgressReceived(NamedTuple):
    """Another worker's batch of changes arrived."""

    time: int
    worker: int
    dataflow: int
    changes: Changes
    source: int


class FrontierChanged(NamedTuple):
    """The tracker found another frontier at a location, which `port` names."""

    time: int
    worker: int
    dataflow: int
    location: int
    port: str
    frontier: tuple[Time, ...]


class CapabilityMade(NamedTuple):
    """A capability for the time `at` is held at an output; `origin` is the line that made it.

    Told, like what was built, also of those that a dataflow begins with or that a listener finds held.
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
    """A capability was given up."""

    time: int
    worker: int
    dataflow: int
    operator: int
    output: int
    at: Time


class Parked(NamedTuple):
    """The worker has nothing to do and waits."""

    time: int
    worker: int


class Unparked(NamedTuple):
    """The worker has waited for so many nanoseconds."""

    time: int
    worker: int
    nanoseconds: int


class ApplicationText(NamedTuple):
    """Something the program itself had to say."""

    time: int
    worker: int
    text: str


BUILT = (DataflowBuilt, OperatorBuilt, InlineBuilt, ChannelBuilt)
"""What there is; a listener that comes later is told of it too."""

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
    timely.errors.BuildError: (<class ... is no kind of record: give one, such as timely.observe.events.OperatorBuilt
    """
    if not (isinstance(kind, type) and getattr(kind, "_fields", ())[:2] == ("time", "worker")):
        raise BuildError(f"{kind!r:.80} is no kind of record: give one, such as timely.observe.events.OperatorBuilt")
