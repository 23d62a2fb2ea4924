"""How long epochs take: from when no input sends at a time any more until all answers at that time are final.

An epoch begins to end when the frontier of all inputs moves past it, whichever worker moves it. It has ended when the
frontier of what leaves the dataflow (its probes, and the operators without outputs) has followed. One worker sees both,
as it sees all frontiers. So the time includes what workers wait for each other, but not what a program does before it
advances its inputs.

Watching a frontier costs a few microseconds whenever it moves: that of several inputs or answers together is kept up to
date (`_Front`). So only the first `AT_MOST` epochs are measured of each span between two looks (`drain`), or fewer if
that takes `NANOSECONDS_AT_MOST`.
"""

from __future__ import annotations

import time as clock
from collections import deque
from typing import NamedTuple

from timely.dataflow.dataflow import Dataflow
from timely.order import Time
from timely.progress.antichain import Antichain, MutableAntichain

AT_MOST = 64
NANOSECONDS_AT_MOST = 500_000
"""How long measuring may take in a span in which an epoch has ended; ten times as long if none has."""
_PENDING = 1024
"""At most this many epochs under way between inputs and answers are followed."""


class Epoch(NamedTuple):
    """An epoch that has ended: the inputs' frontier since then, and when it began and ended, in nanoseconds."""

    frontier: Antichain
    begun: int
    ended: int

    @property
    def nanoseconds(self) -> int:
        return self.ended - self.begun


class _Front:
    """The frontier of several locations together, kept up to date as some of them move."""

    def __init__(self, dataflow: Dataflow, locations: list[int]) -> None:
        self._tracker = dataflow.tracker
        self._of: dict[int, tuple[Time, ...]] = {each: self._tracker.frontier(each).elements for each in locations}
        self._all = MutableAntichain((time, 1) for elements in self._of.values() for time in elements)

    @property
    def frontier(self) -> Antichain:
        """The times that may still arrive at one of the locations."""
        return self._all.frontier

    def update(self, moved: list[int]) -> bool:
        """Take the frontiers that some locations have now; return whether that of all has changed."""
        changes: list[tuple[Time, int]] = []
        for location in moved:
            if location in self._of:
                before, after = self._of[location], self._tracker.frontier(location).elements
                self._of[location] = after
                changes += [*((time, -1) for time in before), *((time, 1) for time in after)]
        return self._all.update_all(changes)


class Epochs:
    """Measures the epochs of a dataflow, from now until `end`. Only the worker's thread makes or ends one."""

    def __init__(self, dataflow: Dataflow) -> None:
        self._dataflow = dataflow
        self._inputs = self._outermost(
            [port.location for op in dataflow.operators if not op.inputs for port in op.outputs]
        )
        probes = [dataflow.location(place) for place in dataflow.plan.observed]
        leaves = [port.location for op in dataflow.operators if not op.outputs for port in op.inputs]
        self._outputs = self._outermost([*probes, *leaves])
        self._sent = self._answered = _Front(dataflow, [])
        self._begun: deque[tuple[Antichain, int]] = deque()
        self._ended: deque[Epoch] = deque(maxlen=_PENDING)
        self._left, self._taken = AT_MOST, 0
        self._is_following = False
        self.follow()

    def follow(self) -> None:
        """Measure up to `AT_MOST` more epochs."""
        self._left, self._taken = AT_MOST, 0
        if self._is_following or not (self._inputs and self._outputs) or self._dataflow.is_closed:
            return
        self._is_following = True
        self._begun.clear()
        self._sent = _Front(self._dataflow, self._inputs)
        self._answered = _Front(self._dataflow, self._outputs)
        for location in {*self._inputs, *self._outputs}:
            self._dataflow.follow(location, self._moved)

    def end(self) -> None:
        if self._is_following:
            self._is_following = False
            for location in {*self._inputs, *self._outputs}:
                self._dataflow.unfollow(location, self._moved)

    def drain(self) -> tuple[list[Epoch], bool]:
        """Return the epochs that have ended since the last time, and whether `follow` would measure more.

        Any thread may ask.
        """
        found = []
        # Not `clear`: the worker may add one meanwhile.
        while self._ended:
            found.append(self._ended.popleft())
        return found, self._taken > 0

    def _outermost(self, locations: list[int]) -> list[int]:
        return sorted({each for each in locations if not self._dataflow.is_in_loop(each)})

    def _moved(self, locations: list[int]) -> None:
        begun = clock.perf_counter_ns()
        has_begun, has_answered = self._sent.update(locations), self._answered.update(locations)
        if has_begun or has_answered:
            self._record(has_begun, begun)
        self._taken += clock.perf_counter_ns() - begun
        if self._left <= 0 or self._taken >= NANOSECONDS_AT_MOST * (1 if self._left < AT_MOST else 10):
            self.end()

    def _record(self, has_begun: bool, now: int) -> None:
        """Note that an epoch has begun to end, and those that have ended."""
        # An epoch that is left out here is not measured; those after it are.
        if has_begun and len(self._begun) < _PENDING:
            self._begun.append((self._sent.frontier, now))
        frontier = self._answered.frontier
        while self._begun and self._begun[0][0].dominates(frontier):
            self._ended.append(Epoch(*self._begun.popleft(), now))
            self._left -= 1


def quantiles(epochs: list[Epoch]) -> tuple[int, int, int]:
    """Return the median, the 99th percentile and the maximum of what epochs took, in nanoseconds; zeros for none.

    >>> quantiles([Epoch(Antichain([(each,)]), 0, each) for each in range(1, 101)])
    (51, 100, 100)
    """
    taken = sorted(epoch.nanoseconds for epoch in epochs)
    if not taken:
        return 0, 0, 0
    return taken[len(taken) // 2], taken[len(taken) * 99 // 100], taken[-1]
