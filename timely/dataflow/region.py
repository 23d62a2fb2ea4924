"""Regions: operators that run as one, in an order that is known beforehand.

A region runs a section of a plan (`timely.dataflow.sections`). For the rest of the dataflow it is one operator:
progress is counted at one place, its *hub* (`timely.dataflow.hubs`), and the region is scheduled when one of its
operators receives a message or the frontier moves of what the section waits for. Inside there is no tracker: the region
knows in which order its operators run, and so what may still arrive where.

- In a **turn** of a scope its operators and loops run once, in topological order. An operator that runs has received
  everything at the times that are complete outside.
- A loop takes a turn for each **round** in which something is held, the least first. After round r, only messages of
  later rounds can follow at the times that are complete outside. So the frontier in the loop is the frontier outside,
  entered, and `(t, r + 1)` for the least times `t` outside at which something is held. These times go round together:
  one batch has the changes of a round at all of them.

The scopes count what is held by time (`timely.progress.static`), and the region holds the least of these times at its
hub, as they are outside of its loops.

**With several workers** each has its own part of a region, and nothing inside it comes from other workers. What these
send to the region's first operators is counted at the hub, by the ordinary protocol, until the region has run.

**One meaning.** An operator does not know whether it is in a region. The same capabilities permit the same messages. A
frontier is never ahead of what the tracker would compute, and is the same when the region has run.
`TIMELY_GENERAL=1` (`Config.general`) does without regions.

**Others get their turn.** A region that has run for `PATIENCE` seconds pauses before the next round. If an operator has
more to emit than it may at once, those that consume it run first, at the frontiers that they had; and the region waits
where there is no room for more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Final

from timely.dataflow.core import DataflowCore
from timely.dataflow.operator import Operator
from timely.dataflow.schedule import Schedulable
from timely.order import Time
from timely.progress.antichain import Antichain, minimal
from timely.progress.static import StaticProgress
from timely.progress.summary import PathSummary, images

PATIENCE = 0.001
"""Seconds after which a region lets its worker do other things."""

_now: Final = monotonic


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
        self.taken: list[Time] = []
        """The times of messages from other workers that the region counts already, and the tracker still counts."""
        self._sources: list[tuple[int, PathSummary | None]] = []
        self._revision = -1
        self._arriving: list[tuple[Antichain | None, Sequence[Time]]] = []
        self._frontier = Antichain()
        self._turn: Iterator[bool] | None = None
        self._progress.changed = self._changed
        self._progress.catch_up = self._catch_up
        for member in self.members:
            member.region = self

    def locate(self, location: int, sources: list[tuple[int, PathSummary | None]]) -> None:
        """Hold capabilities at `location`; wait for what may result from other locations, each along its summary."""
        self.location = location
        self._sources = sources
        self._arriving = [(None, ()) for _ in sources]

    def frontier(self) -> Antichain:
        """Return the times that may still come in; the same object until they change."""
        tracker = self.dataflow.tracker
        if tracker.revision != self._revision:
            self._revision = tracker.revision
            arriving, is_changed = self._arriving, False
            for place, (location, summary) in enumerate(self._sources):
                front = tracker.frontier(location)
                if front is not arriving[place][0]:
                    times = front.elements if summary is None else images(front.elements, summary)
                    arriving[place] = front, times
                    is_changed = True
            if is_changed:
                self._frontier = Antichain([time for _, times in arriving for time in times])
        return self._frontier

    @property
    def round(self) -> int:
        """The round that its outermost loop is in, 0 outside of loops. For any thread."""
        times = [time for scope in self._progress.within for time in scope.now.elements]
        return max([time[1] for time in times if len(time) > 1], default=0)

    def is_due(self) -> bool:
        """Return whether a member waits for a frontier. If none does, a turn would only move the frontiers inside."""
        self._progress.is_behind = True
        return any(member.waits and member.asks for member in self.members)

    def _catch_up(self) -> None:
        """Move the frontiers inside to those outside, between turns, while nothing is due."""
        self._progress.is_behind = False
        if self._turn is None and not self.active:  # otherwise the region is to run, and moves them then
            # Each scope comes after the one around it, whose frontier has moved by then.
            for scope in self._progress.within:
                outside = scope.outside
                scope.now = scope.before = self.frontier() if outside is None else scope.entered(outside.before)

    @property
    def counted(self) -> tuple[Time, ...]:
        """The times of everything that the tracker counts at the hub because of this worker: one each."""
        return (*self.held, *self.taken, *self._progress.arrived)

    def run(self) -> None:
        """Run until nothing is due, or another operator of the dataflow should run first."""
        self.active = self.is_held_back = False
        progress, turn = self._progress, self._turn
        self._turn = None  # where an operator fails, the turn is over
        self.is_running = progress.is_running = True
        if progress.arrived:
            self._take_over()
        is_resumed = turn is not None
        try:
            if turn is None:
                turn = self._take_turn() if len(progress.within) > 1 else self._run_through()
            if turn is not None:
                self._turn = self._unfinished(turn)
        finally:
            self.is_running = progress.is_running = False
            self.dataflow.running = self  # in the place of the member that ran last
        self._settle()
        if self._turn is not None:
            if not self.is_held_back:  # otherwise the schedule activates it when there is room
                self.dataflow.schedule.resume_later(self)
        elif (is_resumed and progress.before != self.frontier()) or self._is_more_due():
            # A turn has the frontier with which it began, which may have moved during a pause.
            self.dataflow.schedule.activate(self)

    def _is_more_due(self) -> bool:
        """Return whether a member is to run again."""
        return any(member.active or member.has_more for member in self.members)

    def _unfinished(self, turn: Iterator[bool]) -> Iterator[bool] | None:
        """Go on with a turn to its end, or until it pauses; return the rest of it."""
        pauses = _now() + PATIENCE
        for is_piece in turn:
            if self.is_held_back or (is_piece and self.dataflow.schedule.has_ready) or _now() > pauses:
                return turn
        return None

    def _run_through(self) -> Iterator[bool] | None:
        """Take a turn where there is no loop; return the rest of it if an operator has more to emit than at once."""
        progress = self._progress
        progress.is_behind = False
        progress.now = self.frontier()
        for operator in self.members:
            # One that asks for its frontier runs in every turn, since the frontier may have moved.
            if operator.active or operator.has_more or (operator.waits and operator.asks):
                progress.place = operator.turn
                self._run_operator(operator)
                if operator.has_more or self.is_held_back:
                    return self._finish_turn(operator)
        progress.before = progress.now
        progress.place = -1
        return None

    def _take_turn(self) -> Iterator[bool]:
        """Run the operators and loops outside of all loops, each once.

        Yield True where an operator has emitted a piece and has more, and False between the rounds of a loop.
        """
        progress = self._progress
        progress.is_behind = False
        progress.now = self.frontier()
        yield from self._run_items(self._outermost)
        progress.before = progress.now
        progress.place = -1

    def _finish_turn(self, unfinished: Operator) -> Iterator[bool]:
        """Do the same from an operator on that has run, and has more to emit, or must wait."""
        progress = self._progress
        yield from self._run_out(unfinished)
        yield from self._run_items(self._outermost, unfinished.turn + 1)
        progress.before = progress.now
        progress.place = -1

    def _go_round(self, loop: Loop, frontier: Antichain) -> Iterator[bool]:
        """Take turns in a loop until nothing is due there, while the scope around it is at `frontier`."""
        progress = loop.progress
        after = progress.next_round(frontier)
        while after is not None:
            progress.now = after  # later places stay at `before` until their turn: what this round emits may reach them
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

    def _run_items(self, loop: Loop, first: int = 0) -> Iterator[bool]:
        """Run what has something to do at the frontier that a scope has now, from the place `first` on."""
        progress = loop.progress
        for place in range(first, len(loop.items)):
            item = loop.items[place]
            progress.place = place
            if isinstance(item, Loop):
                yield from self._go_round(item, progress.now)
            elif item.active or item.has_more or (item.waits and item.asks):
                self._run_operator(item)
                yield from self._run_out(item)

    def _run_out(self, operator: Operator) -> Iterator[bool]:
        """Run an operator again while it has more to emit, or must wait; what it has emitted is received first."""
        while operator.has_more or self.is_held_back:
            self._drain(operator)
            yield True
            self._run_operator(operator)

    def _run_operator(self, operator: Operator) -> None:
        operator.has_more = False
        self.dataflow.running = operator
        if operator.recorder is None:
            operator.run()
        else:
            operator.recorder.run(operator.index, operator.run)

    def _drain(self, operator: Operator) -> None:
        """Let the other members receive what an operator has emitted that has more to emit."""
        for other in self.members:
            if other.active and other is not operator:  # at the frontier that it had: `place` does not move
                self._run_operator(other)

    def _take_over(self) -> None:
        """Count what has arrived from other workers."""
        # Until `_settle` the tracker counts it at the hub, too, so no frontier outside passes it before the region has
        # received it.
        progress = self._progress
        for time in progress.arrived:
            progress.update(self.location, time, 1)
        self.taken += progress.arrived
        progress.arrived.clear()

    def _settle(self) -> None:
        """Hold at the hub the least times that the scopes hold, and no longer what has been taken over."""
        for time in self.taken:
            self.dataflow.update(self.location, time, -1)
        self.taken.clear()
        # The order does not matter: all counts that change in a step reach the tracker and the peers together.
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
        """Hold `time` at the hub if something arrives at it; run again, to see what is left, if something leaves."""
        if self.location < 0:
            return  # the dataflow is not built yet
        if change > 0:
            if not Antichain.of_minimal(self.held).admits(time):
                self.dataflow.update(self.location, time, 1)
                for later in [held for held in self.held if Antichain.of_minimal((time,)).admits(held)]:
                    self.dataflow.update(self.location, later, -1)
                self.held = minimal((*self.held, time))
        else:
            # Others may be left at this time. `_settle` finds out when the region has run; too much is held until then.
            self.dataflow.schedule.activate(self)
