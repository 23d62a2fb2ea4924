"""Change capture: a collection written so that any reader, in spite of what happens on the way, gets it back exactly.

Two kinds of message, as in the change capture of Frank McSherry's differential dataflow. `Changes` are updates; each
(record, time) is written once. A `Statement` says of an interval of times, those in advance of `lower` and not of
`upper`, how many distinct updates there are at each time. The messages are idempotent and in no order: a reader may
receive each several times, from several places, late or early. It drops updates that it has seen, and knows that a time
is complete when statements cover it and the number of distinct updates is the one stated. An update that is missing
holds its frontier back; messages that contradict each other are an error.

Each worker writes the updates it has; worker 0 states what all have written. After a crash the same program can go on
with the same or another number of workers, from the last statement on (`stated`): what was written beyond it is written
again, and must be the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from differential.updates import Updates
from timely.capture.event import EventSink, EventSource, as_integer, checked_time, register
from timely.data.container import Batch
from timely.dataflow.builder import OperatorBuilder
from timely.dataflow.operator import InputPort
from timely.dataflow.operators.generic import sink as consume
from timely.dataflow.pact import Gather, Pipeline
from timely.errors import BuildError, CaptureError
from timely.order import Time
from timely.progress.antichain import Antichain

if TYPE_CHECKING:
    from differential.collection import Collection

__all__ = ["Changes", "Statement", "capture_into", "stated"]

Counts = tuple[tuple[Time, int], ...]


@register
class Changes:
    """Some of the updates of a collection.

    >>> Changes(Updates.at((3,), (np.array([5, 6]),)))
    Changes(Updates([((5,), (3,), 1), ((6,), (3,), 1)]))
    """

    kind: ClassVar[str] = "changes"
    __slots__ = ("updates",)

    def __init__(self, updates: Updates) -> None:
        self.updates = updates

    def __repr__(self) -> str:
        return f"Changes({self.updates})"

    def parts(self) -> tuple[Any, Batch]:
        return None, self.updates

    @classmethod
    def from_parts(cls, plain: Any, batch: Batch | None) -> Changes:
        if not isinstance(batch, Updates):
            raise ValueError("changes without updates")
        return cls(batch)


@register
class Statement:
    """How many updates there are at each time in advance of `lower` and not of `upper`; 0 where it is not said.

    >>> Statement(Antichain([(0,)]), Antichain([(4,)]), (((3,), 2),))  # two at 3, none at 0, 1 and 2
    Statement(Antichain([(0,)]), Antichain([(4,)]), (((3,), 2),))
    """

    kind: ClassVar[str] = "statement"
    __slots__ = ("counts", "lower", "upper")

    def __init__(self, lower: Antichain, upper: Antichain, counts: Counts) -> None:
        self.lower = lower
        self.upper = upper
        self.counts = counts

    def __repr__(self) -> str:
        return f"Statement({self.lower}, {self.upper}, {self.counts})"

    def parts(self) -> tuple[Any, None]:
        return (self.lower.elements, self.upper.elements, self.counts), None

    @classmethod
    def from_parts(cls, plain: Any, batch: Batch | None) -> Statement:
        lower, upper, counts = plain
        return cls(
            Antichain(map(checked_time, lower)),
            Antichain(map(checked_time, upper)),
            tuple((checked_time(time), as_integer(count)) for time, count in counts),
        )


def capture_into(
    collection: Collection, sink: EventSink, *, after: Antichain | None = None, name: str = "capture"
) -> Collection:
    """Return the collection itself; this worker's share of its updates goes to `sink`.

    Each worker needs a sink of its own; that of worker 0 receives the statements, too. Sinks are closed when the
    dataflow ends.

    With `after`, what `stated` returned for an earlier run's messages, only updates at times in advance of that are
    written: the program makes the same changes again and goes on.

    Raises BuildError where `after` is no frontier of the scope's times.

    >>> from timely.capture import EventQueue
    >>> queue = EventQueue()
    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         Collection.of(scope, np.array([3, 4])).capture_into(queue)
    >>> execute_directly(program)
    >>> queue.next_nowait()
    Changes(Updates([((3,), (0,), 1), ((4,), (0,), 1)]))
    >>> queue.next_nowait()
    Statement(Antichain([(0,)]), Antichain([]), (((0,), 2),))
    """
    scope = collection.scope
    lower = Antichain([scope.minimum]) if after is None else _checked(after, scope.width, name)
    builder = OperatorBuilder(scope, name)
    input = builder.add_input(collection.consolidate().stream, Pipeline())
    output, counted = builder.add_output()

    def write() -> None:
        for capability, batch in input:
            updates = _in_advance(cast(Updates, batch), lower)
            if len(updates):
                sink.push(Changes(updates))
                output.give(capability, counts_of(updates))
        sink.flush()

    builder.build(lambda _: write)
    if scope.index == 0:
        statements = Statements(sink, lower)
        consume(counted, Gather(0), statements.write, name=f"{name}: state")
    else:
        consume(counted, Gather(0), _nothing, name=f"{name}: state")
    scope.dataflow.when_complete(lambda: builder.operator.attempt(sink.close))
    return collection


def _checked(after: object, width: int, name: str) -> Antichain:
    """Return a frontier of times of so many coordinates; raise BuildError unless it is one."""
    if not isinstance(after, Antichain) or any(len(time) != width for time in after.elements):
        raise BuildError(
            f"{name}: `after` is an Antichain of times of {width} coordinate(s), as `stated` returns, not {after!r:.80}"
        )
    return after


class Statements:
    """Gathers what all workers have written, and states it once the frontier has passed."""

    def __init__(self, sink: EventSink, lower: Antichain) -> None:
        self._sink = sink
        self._lower = lower
        self._counts: dict[Time, int] = {}

    def write(self, input: InputPort) -> None:
        """Take counts; write a statement when the frontier has moved past those made."""
        for _, batch in input.drain():
            for time, count in cast(list[tuple[Time, int]], batch):
                self._counts[time] = self._counts.get(time, 0) + count
        upper = self._lower.join(input.frontier)
        if upper == self._lower:
            return
        passed = sorted(time for time in self._counts if not upper.less_equal(time))
        counts = tuple((time, self._counts.pop(time)) for time in passed)
        self._sink.push(Statement(self._lower, upper, counts))
        self._sink.flush()
        self._lower = upper


def stated(sources: Iterable[EventSource], width: int = 1) -> Antichain:
    """Return the frontier up to which the statements among the messages of `sources` reach; it reads them all.

    `width` is the number of coordinates of the collection's times.

    Raises CaptureError where a message is none of a captured collection.

    >>> from timely.capture import EventQueue
    >>> first, end = Antichain([(0,)]), Antichain([(7,)])
    >>> stated([EventQueue([Statement(first, end, ())])])
    Antichain([(7,)])
    """
    chain: dict[Antichain, Antichain] = {}
    for source in sources:
        while (event := source.next_nowait()) is not None:
            if isinstance(event, Statement):
                chain[event.lower] = event.upper
            elif not isinstance(event, Changes):
                raise CaptureError(f"{source} holds {event.kind!r}, which is no message of a captured collection")
        source.close()
    reached = Antichain([(0,) * width])
    while reached in chain:
        reached = chain.pop(reached)
    return reached


def counts_of(updates: Updates) -> list[tuple[Time, int]]:
    """Return how many updates there are at each time."""
    if not len(updates.time_index):
        return [(tuple(updates.times[0].tolist()), len(updates))]
    numbers = np.bincount(updates.time_index, minlength=len(updates.times)).tolist()
    counts: dict[Time, int] = {}
    for time, number in zip(map(tuple, updates.times.tolist()), numbers):
        if number:
            counts[time] = counts.get(time, 0) + number
    return list(counts.items())


def _in_advance(updates: Updates, lower: Antichain) -> Updates:
    wanted = np.array([lower.less_equal(tuple(time)) for time in updates.times.tolist()], np.bool_)
    if wanted.all():
        return updates
    rows = wanted[updates.time_index] if len(updates.time_index) else np.full(len(updates), wanted[0])
    return updates.take(rows)


def _nothing(input: InputPort) -> None:
    """Take nothing: all counts are gathered elsewhere."""
