"""Which dataflows of a worker have something to do, so that a step need not look at the others.

Something is due in a dataflow once a count of it has changed, an operator of it is scheduled, or an error has ended it.
Whatever does that sets `Due`, which adds the dataflow to the worker's `Agenda`. A step visits what is on the agenda in
the order in which the dataflows were built, so a dataflow that has its turn before another one can still make something
due there in the same step.

Invariant: a dataflow in which something is due is on the agenda, or has its turn just now, after which it is put back
if something is still due. An interrupt may come at any line, so a dataflow stays on the agenda during its turn.

>>> agenda = Agenda()
>>> first, second = Due(agenda, 0), Due(agenda, 1)
>>> agenda.add(0), agenda.add(1), agenda.begin()
(None, None, None)
>>> agenda.next(), first.end_turn(False), agenda.next(), second.end_turn(False), agenda.next()
(0, None, 1, None, -1)
>>> first.set()
>>> agenda.next()  # its turn in this step is over
-1
>>> agenda.begin()
>>> agenda.next()
0
"""

from __future__ import annotations

from heapq import heappop, heappush


class Agenda:
    """The numbers of the dataflows in which something is due."""

    __slots__ = ("_last", "_later", "_now")

    def __init__(self) -> None:
        self._now: list[int] = []
        self._later: list[int] = []
        self._last = -1

    def begin(self) -> None:
        """Begin a step."""
        self._last = -1
        while self._later:
            # Pushed before it is popped: an interrupt in between leaves the number here twice, which `remove` permits.
            heappush(self._now, self._later[-1])
            self._later.pop()

    def next(self) -> int:
        """Return the dataflow whose turn it is, and which stays here until its turn ends; -1 at the end of a step."""
        if not self._now:
            return -1
        self._last = self._now[0]
        return self._last

    def add(self, number: int) -> None:
        """Add a dataflow: to this step if its turn is still to come, else to the next."""
        if number > self._last:
            heappush(self._now, number)
        else:
            self._later.append(number)

    def remove(self, number: int) -> None:
        """Remove the dataflow whose turn it is. It is here twice if an interrupt came while it was added."""
        while self._now and self._now[0] == number:
            heappop(self._now)

    def numbers(self) -> list[int]:
        """Return the dataflows in which something may be due."""
        return [*self._now, *self._later]


class Due:
    """Whether something is due in a dataflow. What builds the dataflow puts it on the agenda for the first time."""

    __slots__ = ("_agenda", "_number", "is_set")

    def __init__(self, agenda: Agenda, number: int) -> None:
        self._agenda = agenda
        self._number = number
        self.is_set = True  # and on the agenda once it is built

    def set(self) -> None:
        """Have the dataflow visited; to be called if `is_set` is False, which costs less to look at."""
        # In this order: if an interrupt left `is_set` True without an entry, nobody would ever visit the dataflow.
        self._agenda.add(self._number)
        self.is_set = True

    def end_turn(self, is_due: bool) -> None:
        """End the turn of the dataflow, in which something is still due or not."""
        self.is_set = is_due
        if is_due:
            self._agenda.add(self._number)  # to the next step, since its turn in this one is not over
        # Last, so that the dataflow is on the agenda wherever an interrupt strikes.
        self._agenda.remove(self._number)
