"""Hold updates until everything before their times is final.

Updates may be at times far in the future. An operator that indexes a collection looks through all waiting updates at
each epoch. This operator keeps them by time, and emits them when everything before their time is final. So an epoch
costs what is due in it, however much waits. The operator holds capabilities for the least times that wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import cast

import numpy as np

from differential.arrangement.core import C
from differential.data.updates import Updates
from differential.kernels.compile import NOTHING
from timely.lowlevel import Antichain, Capability, CapabilitySet, InputPort, OutputPort, Pipeline, Time, UnaryLogic


def hold(collection: C, *, name: str = "hold") -> C:
    """Return the same collection; its updates are emitted once everything before their times is final.

    >>> def program(scope):
    ...     later = Collection.of(scope, np.array([7])).delay(lambda time: time[0] + 5)
    ...     return hold(later).inspect(print)
    >>> _ = example(program)
    (7,) (5,) 1
    """

    def constructor(capability: Capability) -> UnaryLogic:
        assert capability.output is not None
        held = CapabilitySet(capability.output)
        capability.drop()
        return Holding(held, collection.scope.width).run

    stream = collection.stream.unary_frontier(Pipeline(), constructor, name=name)
    return collection.with_stream(stream)


class Holding:
    """The operator. `_times`, those that wait, are a heap where times are totally ordered, else a list."""

    def __init__(self, held: CapabilitySet, width: int) -> None:
        self._held = held
        self._is_ordered = width == 1
        self._times: list[Time] = []
        self._waiting: dict[Time, list[Updates]] = {}

    def run(self, input: InputPort, output: OutputPort) -> None:
        for right, batch in input.received():
            for time, updates in by_time(cast(Updates, batch)):
                if time not in self._waiting:
                    self._waiting[time] = []
                    heappush(self._times, time)  # each time once, as `_waiting` has it
                    self._held.insert(right.delayed(time))
                self._waiting[time].append(updates)
        due = list(self._due(input.frontier))
        for time in due:
            # A capability held covers each time until the downgrade below, which is up to what still waits.
            for updates in self._waiting.pop(time):
                output.give(self._held.covering(time), updates)
        if due:
            self._held.downgrade(self._times[:1] if self._is_ordered else Antichain(self._times))

    def _due(self, frontier: Antichain) -> Iterator[Time]:
        """Take out the times before which everything is final."""
        if self._is_ordered:
            while self._times and not frontier.less_than(self._times[0]):
                yield heappop(self._times)
            return
        times, self._times = self._times, [time for time in self._times if frontier.less_than(time)]
        yield from (time for time in times if not frontier.less_than(time))


def by_time(updates: Updates) -> Iterator[tuple[Time, Updates]]:
    """Yield (time, the updates at it) for each time in the table of a batch that a row has."""
    if len(updates.times) == 1:
        yield tuple(updates.times[0].tolist()), updates
        return
    order = np.argsort(updates.time_index, kind="stable")
    ends = np.cumsum(np.bincount(updates.time_index, minlength=len(updates.times))).tolist()
    start = 0
    for row, end in enumerate(ends):
        if end > start:
            part = updates.take(order[start:end])
            table = updates.times[row : row + 1]
            yield tuple(table[0].tolist()), Updates(part.columns, table, NOTHING, part.diffs)
        start = end
