"""Write the changes of a collection, so that another program reads them back exactly."""

from __future__ import annotations

from typing import cast

import numpy as np

from differential.arrangement.core import C
from differential.capture.messages import CapturedUpdates, Statement, counts_of
from differential.data.updates import Updates
from differential.operators.consolidate import consolidate
from timely.capture import EventSink
from timely.errors import BuildError
from timely.lowlevel import Antichain, Gather, InputPort, OperatorBuilder, Pipeline, Time, check_sink, sink as consume


def capture_into(collection: C, sink: EventSink, *, after: Antichain | None = None, name: str = "capture") -> C:
    """Return the collection itself; this worker's share of its updates goes to `sink`.

    Each worker needs a sink of its own; that of worker 0 receives the statements, too. Sinks are closed when the
    dataflow ends.

    With `after`, the frontier that `stated` returns for an earlier run's messages, only updates at times in advance of
    it are written: the program makes the same changes again and continues.

    Raises BuildError where `after` is not a frontier of the scope's times.

    >>> from timely.capture import EventQueue
    >>> queue = EventQueue()
    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         Collection.of(scope, np.array([3, 4])).capture_into(queue)
    >>> execute_directly(program)
    >>> queue.next_nowait()
    CapturedUpdates(Updates([((3,), (0,), 1), ((4,), (0,), 1)]))
    >>> queue.next_nowait()
    Statement(Antichain([(0,)]), Antichain([]), (((0,), 2),))
    """
    check_sink(name, sink)
    scope = collection.scope
    lower = Antichain([scope.minimum]) if after is None else _checked(after, scope.width, name)
    builder = OperatorBuilder(scope, name)
    input = builder.add_input(consolidate(collection).stream, Pipeline())
    output, counted = builder.add_output()

    def write() -> None:
        for capability, batch in input:
            updates = cast(Updates, batch)
            wanted = np.array([lower.admits(tuple(time)) for time in updates.times.tolist()], np.bool_)
            if not wanted.all():
                updates = updates.take(wanted[updates.each_time_index()])
            if len(updates):
                # Before their number: a statement must not count what is not in the sink.
                sink.push(CapturedUpdates(updates))
                output.give(capability, counts_of(updates))
        sink.flush()

    builder.build_from(write)
    statements = Statements(sink, lower)
    consume(counted, Gather(0), statements.write if scope.index == 0 else lambda _: None, name=f"{name}: state")
    scope.dataflow.when_complete(lambda: builder.operator.attempt(sink.close))
    return collection


def _checked(after: object, width: int, name: str) -> Antichain:
    """Return a frontier of times of `width` coordinates; raise BuildError unless it is one."""
    if not isinstance(after, Antichain) or any(len(time) != width for time in after.elements):
        raise BuildError(
            f"{name}: `after` is an Antichain of times of {width} coordinate(s), as `stated` returns, not {after!r:.80}"
        )
    return after


class Statements:
    """Gathers the counts of all workers, and states them once the frontier has passed their times."""

    def __init__(self, sink: EventSink, lower: Antichain) -> None:
        self._sink = sink
        self._lower = lower
        self._counts: dict[Time, int] = {}

    def write(self, input: InputPort) -> None:
        """Add up counts; write a statement when the frontier has moved since the last one."""
        for _, batch in input.drain():
            for time, count in cast(list[tuple[Time, int]], batch):
                self._counts[time] = self._counts.get(time, 0) + count
        # The frontier may be behind `lower` at first, where an earlier run has stated more.
        upper = self._lower.join(input.frontier)
        if upper == self._lower:
            return
        passed = sorted(time for time in self._counts if not upper.admits(time))
        counts = tuple((time, self._counts.pop(time)) for time in passed)
        self._sink.push(Statement(self._lower, upper, counts))
        self._sink.flush()
        self._lower = upper
