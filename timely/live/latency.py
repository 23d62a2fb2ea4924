"""How long epochs take: from when no input sends at a time any more until all answers at that time are final.

An epoch begins to end when the frontier of all inputs moves past it, whichever worker moves it. It has ended when the
frontier of what leaves the dataflow (its probes, and the operators without outputs) has followed. One worker sees both,
as it sees all frontiers. So the time includes what workers wait for each other, and not what a program does before it
advances its inputs.

Watching a frontier costs a few microseconds whenever it moves. So only the first `AT_MOST` epochs are measured of each
span between two looks (`drain`), whichever moves the frontiers next.
"""

from __future__ import annotations

import time as clock
from collections import deque
from typing import NamedTuple

from timely.dataflow.dataflow import Dataflow
from timely.progress.antichain import Antichain

AT_MOST = 64
_PENDING = 1024
"""More epochs than these are never under way between inputs and answers as far as this is concerned."""


class Epoch(NamedTuple):
    """An epoch that has ended: the inputs' frontier since then, and when it began and ended, in nanoseconds."""

    frontier: Antichain
    begun: int
    ended: int

    @property
    def nanoseconds(self) -> int:
        """How long the epoch took."""
        return self.ended - self.begun


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
        self._begun: deque[tuple[Antichain, int]] = deque()
        self._ended: deque[Epoch] = deque(maxlen=_PENDING)
        self._last = self._frontier(self._inputs)
        self._left = AT_MOST
        self._is_following = False
        self.follow()

    def follow(self) -> None:
        """Measure up to `AT_MOST` more epochs."""
        self._left = AT_MOST
        if self._is_following or not (self._inputs and self._outputs) or self._dataflow.is_closed:
            return
        self._is_following = True
        self._begun.clear()
        self._last = self._frontier(self._inputs)
        for location in self._inputs:
            self._dataflow.follow(location, self._input_moved)
        for location in self._outputs:
            self._dataflow.follow(location, self._output_moved)

    def end(self) -> None:
        """Measure nothing more."""
        if self._is_following:
            self._is_following = False
            self._dataflow.unfollow(self._input_moved)
            self._dataflow.unfollow(self._output_moved)

    def drain(self) -> tuple[list[Epoch], bool]:
        """Return the epochs that have ended since the last time, and whether `follow` would measure more.

        Any thread may ask.
        """
        found = []
        while self._ended:
            found.append(self._ended.popleft())
        return found, self._left < AT_MOST

    def _outermost(self, locations: list[int]) -> list[int]:
        return sorted({each for each in locations if not self._dataflow.is_in_loop(each)})

    def _frontier(self, locations: list[int]) -> Antichain:
        tracker = self._dataflow.tracker
        if len(locations) == 1:
            return tracker.frontier(locations[0])
        return Antichain(time for location in locations for time in tracker.frontier(location).elements)

    def _input_moved(self) -> None:
        frontier = self._frontier(self._inputs)
        if frontier == self._last:
            return
        self._last = frontier
        if len(self._begun) < _PENDING:
            self._begun.append((frontier, clock.perf_counter_ns()))
        self._output_moved()  # the same change may have moved both

    def _output_moved(self) -> None:
        if not self._begun:
            return
        frontier, now = self._frontier(self._outputs), clock.perf_counter_ns()
        while self._begun and self._begun[0][0].dominates(frontier):
            self._ended.append(Epoch(*self._begun.popleft(), now))
            self._left -= 1
        if self._left <= 0:
            self.end()


def quantiles(epochs: list[Epoch]) -> tuple[int, int, int]:
    """Return the median, the 99th percentile and the maximum of what epochs took, in nanoseconds; zeros for none.

    >>> quantiles([Epoch(Antichain([(each,)]), 0, each) for each in range(1, 101)])
    (51, 100, 100)
    """
    taken = sorted(epoch.nanoseconds for epoch in epochs)
    if not taken:
        return 0, 0, 0
    return taken[len(taken) // 2], taken[len(taken) * 99 // 100], taken[-1]
