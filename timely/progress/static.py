"""Progress in a scope whose operators run in a fixed order, and receive nothing from other workers while they do.

Where the order is known, no tracker is needed to know what may still arrive. `StaticProgress` counts what is held in a
scope, by time: capabilities, and messages in queues. The operators of the scope take *turns*, in topological order.
During a turn, the places up to the present one have the frontier `now`, and the later ones have `before`, that of the
turn before.

Whoever runs the operators sees to it that these frontiers are right (`timely.dataflow.region`): that of the outermost
scope is that of what comes in, and that of a loop follows from what is due there (`next_round`).

>>> outermost = StaticProgress(None, 1)
>>> loop = StaticProgress(outermost, 2)
>>> for time in [(3, 7), (4, 2), (6, 1)]:
...     loop.update(0, time, 1)
>>> loop.next_round(Antichain([(6,)]))  # the least round at an epoch before 6 is 2
Antichain([(3, 3), (6, 0)])
>>> loop.update(0, (4, 2), -1)
>>> loop.next_round(Antichain([(6,)])), loop.next_round(Antichain([(2,)]))
(Antichain([(3, 8), (6, 0)]), None)
"""

from __future__ import annotations

from collections.abc import Callable

from timely.order import Time
from timely.progress.antichain import Antichain, minimal


class StaticProgress:
    """What is held in one scope, and what its operators know of it.

    The frontier at a place depends on whether its turn has come:

        in a turn       places up to `place`: `now`      later places: `before`
        between turns   `place` is -1, so `before` everywhere, and what is held is at times in advance of it

    Counts that change while no operator of the region runs are reported to `changed` of the outermost scope: with the
    time outside of all loops, and by how much. `catch_up` is called to move the frontiers between turns when somebody
    asks for one.
    """

    def __init__(self, outside: StaticProgress | None, width: int) -> None:
        """Begin with the least frontier, in a loop directly inside of `outside` or in the outermost scope.

        Times have `width` coordinates.
        """
        self.outside = outside
        self.outermost: StaticProgress = self if outside is None else outside.outermost
        self.width = width
        self.within: list[StaticProgress] = [self]
        """This scope, and all loops in it."""
        self.held: dict[Time, int] = {}
        """How many capabilities and messages there are at each time."""
        self.place = -1
        """The place in the order whose turn it is; -1 between turns."""
        self.now = self.before = Antichain.of_minimal(((0,) * width,))
        """The frontier of the present or last turn, and that of the turn before; equal between turns."""
        self._entered = Antichain(), Antichain()
        """The last frontier outside that was asked for, and the same as it is in this loop."""

        # Used of the outermost scope only.
        self.arrived: list[Time] = []
        """The times of messages from other workers that have come since the region ran, and are not counted here."""
        self.is_running = False
        """Whether operators of the region run."""
        self.is_behind = False
        """Whether a frontier outside has moved, and those in here have not: until the next turn, or `catch_up`."""
        self.changed: Callable[[Time, int], None] | None = None
        self.catch_up: Callable[[], None] | None = None

        around = outside
        while around is not None:
            around.within.append(self)
            around = around.outside

    def update(self, location: int, time: Time, change: int) -> None:
        """Count `change` more held at `time`, wherever in the scope."""
        held = self.held
        count = held.get(time, 0) + change
        if count:
            held[time] = count
        else:
            del held[time]  # counts are never negative: this worker counts everything here before it is taken
        outermost = self.outermost
        if not outermost.is_running and outermost.changed is not None:
            outermost.changed(time[: outermost.width], change)

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is held in the region, so that only what comes in can result in anything."""
        outermost = self.outermost
        return not outermost.is_running and not any(scope.held for scope in outermost.within)

    def frontier(self, place: int) -> Antichain:
        """Return the times that may still arrive at a place in the order."""
        outermost = self.outermost
        if outermost.is_behind and not outermost.is_running and outermost.catch_up is not None:
            outermost.catch_up()
        return self.now if place <= self.place else self.before

    def entered(self, frontier: Antichain) -> Antichain:
        """Return a frontier of the scope around this loop as it is in the loop."""
        known, inside = self._entered
        if known is not frontier:  # a frontier is the same object until it moves; another that is equal costs little
            inside = Antichain.of_minimal(tuple([(*time, 0) for time in frontier.elements]))
            self._entered = frontier, inside
        return inside

    def next_round(self, frontier: Antichain) -> Antichain | None:
        """Return the frontier after the next round of this loop: the least in which something is due.

        Due is what is held, here or in loops inside, at times that the scope around waits for no more: those not in
        advance of its `frontier`. Return None if nothing is due.
        """
        outer = self.width - 1
        heads: list[Time] = []
        least = -1
        for scope in self.within:
            for time in scope.held:
                head = time[:outer]
                if not frontier.admits(head):
                    if not heads or head != heads[-1]:
                        heads.append(head)
                    if least < 0 or time[outer] < least:
                        least = time[outer]
        if least < 0:
            return None
        # The result is an antichain. No head is in advance of `frontier`, so no time ahead is at or before one with a
        # head. And no time with a head is at or before one ahead: its round is at least 1, and the other's is 0.
        after = (least + 1,)
        later, ahead = minimal(heads), self.entered(frontier).elements
        if len(later) == 1:
            first = later[0] + after
            if len(ahead) == 1:  # mostly: one epoch is in the loop, and the next has yet to come
                second = ahead[0]
                return Antichain.of_minimal((first, second) if first < second else (second, first))
        return Antichain.of_minimal(tuple(sorted([*[head + after for head in later], *ahead])))

    def least_held(self) -> tuple[Time, ...]:
        """Return the least times at which anything is held in this scope and the loops in it, as they are here."""
        width = self.width
        if len(self.within) == 1:
            return minimal(list(self.held.keys()))
        return minimal({time[:width] for scope in self.within for time in scope.held})
