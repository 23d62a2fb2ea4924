"""Regions: operators of a worker without peers that run as one, in an order that is known beforehand.

A region runs a section of a plan (`timely.dataflow.sections`). For the rest of the dataflow it is one operator:
progress is counted at one place, its *hub* (`timely.dataflow.hubs`), and the region is scheduled when one of its
operators receives a message or the frontier moves of what the section waits for. Inside there is no tracker: the region
knows in which order its operators run, and so what may still arrive where.

- In a **turn** of a scope its operators and loops run once, in topological order. Whoever has its turn has received
  everything at the times that are complete outside.
- A loop takes a turn for each **round** in which something is held, the least first. After round r, only messages of
  later rounds can follow at the times that are complete outside. So the frontier in the loop is the frontier outside,
  entered, and `(t, r + 1)` for the least times `t` outside at which something is held. All of these times go round
  together, and a batch has what changes in a round at all of them.

The scopes count what is held by time (`timely.progress.static`), and the region holds the least of these times at its
hub, as they are outside of its loops.

**One meaning.** An operator does not know whether it is in a region. The same capabilities permit the same messages. A
frontier is never ahead of what the tracker would compute, and is the same when the region has run.
`TIMELY_GENERAL=1` (`Config.general`) does without regions.

**Others get their turn.** A region that has run for `PATIENCE` seconds pauses before the next round. If an operator has
more to emit than it may at once, those that consume it run first, at the frontiers that they had; and the region waits
where there is no room for more.
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterator

from timely.dataflow.core import DataflowCore
from timely.dataflow.operator import Operator
from timely.dataflow.schedule import Schedulable
from timely.order import Time
from timely.progress.antichain import Antichain, minimal
from timely.progress.static import StaticProgress
from timely.progress.summary import PathSummary, images

PATIENCE = 0.001
"""Seconds after which a region lets its worker do other things."""


class Loop:
    """What a region runs of one scope: operators and inner loops, in topological order."""

    def __init__(self, progress: StaticProgress) -> None:
        self.progress = progress
        self.items: list[Operator | Loop] = []
        self.operators: list[Operator] = []
        """All operators, those of inner loops included."""

    def add(self, item: Operator | Loop) -> None:
        """Add what comes next in the order."""
        self.items.append(item)
        self.operators += item.operators if isinstance(item, Loop) else [item]


class Region(Schedulable):
    """The operators of a section. `location` is that of the hub."""

    def __init__(self, dataflow: DataflowCore, outermost: Loop) -> None:
        super().__init__()
        self.dataflow = dataflow
        self.location = -1
        self.members = outermost.operators
        self.has_inputs = True
        self.held: tuple[Time, ...] = ()
        """The times at which this holds capabilities at the hub: an antichain."""
        self._outermost = outermost
        self._progress = outermost.progress
        self._sources: list[tuple[int, PathSummary | None]] = []
        self._turn: Iterator[bool] | None = None
        self._progress.changed = self._changed
        for member in self.members:
            member.region = self

    def locate(self, location: int, sources: list[tuple[int, PathSummary | None]]) -> None:
        """Hold capabilities at `location`; wait for what may result from other locations, each along its summary."""
        self.location = location
        self._sources = sources

    def frontier(self) -> Antichain:
        """Return the times that may still come in."""
        tracker = self.dataflow.tracker
        times: list[Time] = []
        for location, summary in self._sources:
            times += images(tracker.frontier(location).elements, summary)
        return Antichain(times)

    def run(self) -> None:
        """Run until all that can be done is done, or another one should run before."""
        self.active = self.is_held_back = False
        self.is_running = self._progress.is_running = True
        pauses = clock.monotonic() + PATIENCE
        schedule, turn = self.dataflow.schedule, self._turn
        self._turn = None  # where an operator fails, the turn is over
        is_resumed = turn is not None
        try:
            turn = self._take_turn() if turn is None else turn
            for is_piece in turn:
                if self.is_held_back or (is_piece and schedule.has_ready) or clock.monotonic() > pauses:
                    self._turn = turn
                    break
        except BaseException:
            for scope in self._progress.within:
                scope.place = -1
            schedule.activate(self)  # whoever goes on after an interrupt goes on with all that is left
            raise
        finally:
            self.is_running = self._progress.is_running = False
            self.dataflow.running = self
        self._settle()
        if self._turn is not None:
            if not self.is_held_back:
                schedule.resume_later(self)
        elif (is_resumed and self._progress.before != self.frontier()) or any(
            member.active or member.has_more for member in self.members
        ):
            # A turn has the frontier with which it began, which may have moved during a pause.
            schedule.activate(self)

    def _take_turn(self) -> Iterator[bool]:
        """Run the operators and loops outside of all loops, each once.

        Yield True where an operator has emitted a piece and has more, and False between the rounds of a loop.
        """
        progress = self._progress
        progress.now = self.frontier()
        yield from self._run_items(self._outermost)
        progress.before = progress.now
        progress.place = -1

    def _go_round(self, loop: Loop, frontier: Antichain) -> Iterator[bool]:
        """Take turns in a loop until nothing is due there, while the scope around it is at `frontier`."""
        progress = loop.progress
        after = progress.next_round(frontier)
        while after is not None:
            progress.now = after
            yield from self._run_items(loop)
            progress.before = after
            progress.place = -1
            yield False
            after = progress.next_round(frontier)
            assert after != progress.before, f"an operator of {self.members} holds a time that its frontier has passed"
        progress.now = progress.entered(frontier)
        if any(operator.active or operator.has_more for operator in loop.operators):
            # Messages at times that are yet to be complete: they are received so that they need not wait in queues.
            yield from self._run_items(loop)
        progress.before = progress.now
        progress.place = -1

    def _run_items(self, loop: Loop) -> Iterator[bool]:
        """Run what has something to do at the frontier that a scope has now."""
        progress = loop.progress
        for place, item in enumerate(loop.items):
            progress.place = place
            if isinstance(item, Loop):
                yield from self._go_round(item, progress.now)
            elif item.active or item.has_more or (item.waits and item.asks):
                self._run_operator(item)
                while item.has_more or self.is_held_back:
                    self._drain(item)
                    yield True
                    self._run_operator(item)

    def _run_operator(self, operator: Operator) -> None:
        operator.has_more = False
        self.dataflow.running = operator
        if operator.recorder is None:
            operator.run()
        else:
            operator.recorder.run(operator.index, operator.run)

    def _drain(self, operator: Operator) -> None:
        """Have the others receive what an operator has emitted that has more to emit."""
        for other in self.members:
            if other.active and other is not operator:
                self._run_operator(other)

    def _settle(self) -> None:
        """Hold at the hub what the scopes hold."""
        least = self._progress.least_held()
        if least != self.held:
            for time in least:
                if time not in self.held:
                    self.dataflow.update(self.location, time, 1)
            for time in self.held:
                if time not in least:
                    self.dataflow.update(self.location, time, -1)
            self.held = least

    def _changed(self, time: Time, change: int) -> None:
        """Hold `time` at the hub, too, where something comes in; look again at what is held where something goes."""
        if self.location < 0:
            return
        if change > 0:
            if not Antichain.of_minimal(self.held).less_equal(time):
                self.dataflow.update(self.location, time, 1)
                for later in [held for held in self.held if Antichain.of_minimal((time,)).less_equal(held)]:
                    self.dataflow.update(self.location, later, -1)
                self.held = minimal((*self.held, time))
        else:
            self.dataflow.schedule.activate(self)
