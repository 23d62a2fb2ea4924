"""Frontiers: sets of times none of which is at or before another.

An antichain A stands for all times at or after one of its elements:

    times(A) = { t : a ≤ t for some a in A }

The frontier of an input is an antichain: times(A) are the times that may still arrive. The empty antichain stands for
no time at all: the input is closed. (Traces are compacted up to an antichain, and the empty one lets them drop
everything.)

`A.dominates(B)` if times(A) contains times(B): B is A or later progress. The empty antichain comes last. Under this
order antichains form a lattice: times(A.meet(B)) is the union of times(A) and times(B), and times(A.join(B)) is their
intersection.

`Antichain` is immutable. `MutableAntichain` counts occurrences of times and keeps the frontier of those whose count is
positive.

>>> Antichain([(1, 0), (0, 5), (2, 2)])
Antichain([(0, 5), (1, 0)])
>>> Antichain([(0, 5), (1, 0)]).less_equal((1, 3)), Antichain([(0, 5), (1, 0)]).less_equal((0, 4))
(True, False)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from timely import order
from timely.errors import BuildError
from timely.order import Moment, Time, as_time
from timely.progress.earliest import FEW, appear, earliest


def minimal(times: Collection[Time]) -> tuple[Time, ...]:
    """Return the minimal elements of `times`, sorted lexicographically and without repetition.

    Costs O(n) for one coordinate, O(n log n) for two, and O(n) per element of the result for more.
    """
    if len(times) <= 1:
        return tuple(times)
    if len(next(iter(times))) == 1:
        return (min(times),)
    ordered = sorted(times)
    first = ordered[0]
    found = [first]
    if len(first) == 2:
        # Earlier times in lexicographic order have a first coordinate that is not larger, so a time is minimal exactly
        # if its second coordinate is below those of all earlier times.
        lowest = first[1]
        for time in ordered:
            if time[1] < lowest:
                lowest = time[1]
                found.append(time)
        return tuple(found)
    # What is at or before a time precedes it in lexicographic order, so no element found is ever displaced.
    for time in ordered:
        for element in found:
            if order.less_equal(element, time):
                break
        else:
            found.append(time)
    return tuple(found)


def is_among(time: Time, elements: tuple[Time, ...]) -> bool:
    """Return whether a time is one of the elements of an antichain, which are sorted."""
    if len(elements) <= FEW:
        return time in elements
    place = bisect_left(elements, time)
    return place < len(elements) and elements[place] == time


def _is_below(stairs: tuple[Time, ...], times: tuple[Time, ...]) -> bool:
    """Return whether each of some times is at or after one of `stairs`; both are antichains of two coordinates.

    Of the elements whose first coordinate is not larger than that of a time, the last has the least second one.
    """
    place, last = 0, len(stairs) - 1
    for time in times:
        while place < last and stairs[place + 1][0] <= time[0]:  # `times` are sorted, so there is no way back
            place += 1
        if not order.less_equal(stairs[place], time):
            return False
    return True


def _alike(moments: tuple[Moment, ...]) -> tuple[Time, ...]:
    """Return times that a user gave, which must have the same number of coordinates."""
    times = tuple([moment if type(moment) is tuple else as_time(moment) for moment in moments])
    for time in times:
        if len(time) != len(times[0]):
            raise BuildError(f"{times[0]} and {time} cannot be compared: they have different numbers of coordinates")
    return times


class Antichain:
    """An immutable set of mutually incomparable times. Hashable, and equal to another with the same elements.

    >>> frontier = Antichain([(1, 0), (0, 5), (2, 2)])
    >>> frontier
    Antichain([(0, 5), (1, 0)])
    >>> frontier.less_equal((0, 5)), frontier.less_than((0, 5)), frontier.less_equal((0, 4))
    (True, False, False)
    >>> frontier.dominates(Antichain([(3, 0)])), frontier.dominates(Antichain([(0, 0)]))
    (True, False)

    Times of one coordinate may be given as integers:

    >>> Antichain([3]), Antichain([3]).less_equal(2)
    (Antichain([(3,)]), False)
    """

    __slots__ = ("elements",)

    elements: tuple[Time, ...]
    """The elements, sorted lexicographically."""

    def __init__(self, times: Iterable[Moment] = ()) -> None:
        """Keep the minimal elements of `times`. Raises BuildError where these have different numbers of coordinates."""
        self.elements = minimal(_alike(tuple(times))) if times else ()

    @classmethod
    def of_minimal(cls, elements: tuple[Time, ...]) -> Antichain:
        """Return the antichain of `elements`, which must be sorted and mutually incomparable. This is not checked."""
        antichain = Antichain()
        antichain.elements = elements
        return antichain

    def less_equal(self, time: Moment) -> bool:
        """Return whether some element is at or before `time`. For a frontier: whether `time` may still arrive.

        Raises BuildError where `time` has another number of coordinates than the elements.
        """
        return bool(self.elements) and self.admits(self._time(time))

    def admits(self, time: Time) -> bool:
        """Return the same as `less_equal` for a time that is known to have as many coordinates as the elements."""
        for element in self.elements:  # noqa: SIM110 (a generator would double the cost)
            if order.less_equal(element, time):
                return True
        return False

    def less_than(self, time: Moment) -> bool:
        """Return whether some element is strictly before `time`. Raises BuildError as `less_equal` does."""
        if not self.elements:
            return False
        given = self._time(time)
        for element in self.elements:  # noqa: SIM110 (a generator would double the cost)
            if element != given and order.less_equal(element, given):
                return True
        return False

    def _time(self, moment: Moment) -> Time:
        """Return a time that a user gave, which must be like the elements, of which there are some."""
        given, width = as_time(moment), len(self.elements[0])
        if len(given) != width:
            raise BuildError(f"{given} cannot be compared with {self}, whose times have {width} coordinate(s)")
        return given

    def dominates(self, other: Antichain) -> bool:
        """Return whether every element of `other` is at or after some element of this antichain."""
        elements, others = self.elements, other.elements
        if len(elements) == 1 and len(others) == 1 and len(elements[0]) == len(others[0]):  # as most are
            return order.less_equal(elements[0], others[0])
        if elements == others:
            return True
        if elements and others:
            self._time(others[0])
            if len(elements) > FEW and len(elements[0]) == 2:
                return _is_below(elements, others)
        for element in others:  # noqa: SIM110 (a generator would double the cost)
            if not self.admits(element):
                return False
        return True

    def join(self, other: Antichain) -> Antichain:
        """Return the least antichain that both dominate: it stands for the times that both stand for.

        >>> Antichain([(0, 5), (1, 0)]).join(Antichain([(0, 7)]))
        Antichain([(0, 7)])
        >>> Antichain([(3,)]).join(Antichain())
        Antichain([])
        """
        if self.elements == other.elements:
            return self
        if self.dominates(other):
            return other
        return Antichain([order.join(a, b) for a in self.elements for b in other.elements])

    def meet(self, other: Antichain) -> Antichain:
        """Return the greatest antichain that dominates both: it stands for the times that either stands for.

        >>> Antichain([(0, 5)]).meet(Antichain([(1, 0)]))
        Antichain([(0, 5), (1, 0)])
        """
        if self.elements == other.elements:
            return self
        return Antichain(self.elements + other.elements)

    def __iter__(self) -> Iterator[Time]:
        return iter(self.elements)

    def __len__(self) -> int:
        return len(self.elements)

    def __bool__(self) -> bool:
        return bool(self.elements)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Antichain) and self.elements == other.elements

    def __ne__(self, other: object) -> bool:  # compiled code would ask for a method of Python otherwise
        return not self == other

    def __hash__(self) -> int:
        return hash(self.elements)

    def __repr__(self) -> str:
        return f"Antichain({list(self.elements)})"


CLOSED: Final = Antichain()
"""The empty frontier: nothing arrives any more."""


class MutableAntichain:
    """A count per time, and the frontier of the times with a positive count.

    Counts may be negative for a while, when the consumption of a message is counted before its production. A time whose
    count is not positive does not affect the frontier.

    >>> counts = MutableAntichain([((3,), 2), ((5,), 1)])
    >>> counts.update((3,), -1), counts.count((3,)), counts.frontier
    (False, 1, Antichain([(3,)]))
    >>> counts.update_all([((3,), -1), ((9,), 1)]), counts.frontier
    (True, Antichain([(5,)]))
    >>> sorted(counts.items())
    [((5,), 1), ((9,), 1)]
    """

    __slots__ = ("_counts", "_frontier", "_heap")

    def __init__(self, updates: Iterable[tuple[Time, int]] = ()) -> None:
        self._counts: dict[Time, int] = {}
        self._frontier = Antichain()
        self._heap: list[Time] = []  # see `timely.progress.earliest`
        self.update_all(updates)

    @property
    def frontier(self) -> Antichain:
        """The minimal times with a positive count."""
        return self._frontier

    def count(self, time: Time) -> int:
        """Return the count of `time`: negative if more occurrences were removed than added."""
        return self._counts.get(time, 0)

    def update(self, time: Time, diff: int) -> bool:
        """Add `diff` to the count of `time`; return whether the frontier changed."""
        return self.update_all([(time, diff)])

    def update_all(self, updates: Iterable[tuple[Time, int]]) -> bool:
        """Add to many counts; return whether the frontier changed. The frontier is computed once, at the end.

        Where times have several coordinates, an element that leaves the frontier costs a pass over all of them.
        """
        appeared: list[Time] = []
        vanished = False
        elements = self._frontier.elements
        counts = self._counts
        for time, diff in updates:
            before = counts.get(time, 0)
            after = before + diff
            if after:
                counts[time] = after
            elif before:
                del counts[time]
            if before <= 0 < after:
                appeared.append(time)
            elif after <= 0 < before:
                vanished = vanished or is_among(time, elements)
        heap = self._heap
        if heap:
            for time in appeared:
                appear(heap, time, counts)
        if vanished:
            # Times that only the vanished element was before may now be minimal, so all of them are candidates.
            # One of `elements` has vanished, so there is a first.
            if len(counts) > FEW and len(elements[0]) == 1:
                elements = earliest(heap, counts)
            else:
                heap.clear()  # it would have to contain every time with a positive count
                elements = minimal([time for time, count in counts.items() if count > 0])
        elif appeared:
            # An earlier update may have made a count positive that a later one took back.
            elements = minimal(elements + tuple(time for time in appeared if counts.get(time, 0) > 0))
        if elements == self._frontier.elements:
            return False
        self._frontier = Antichain.of_minimal(elements)
        return True

    def items(self) -> Iterator[tuple[Time, int]]:
        """Iterate over the times whose count is not zero, with their counts."""
        return iter(self._counts.items())

    def __bool__(self) -> bool:
        return bool(self._counts)

    def __repr__(self) -> str:
        return f"MutableAntichain({sorted(self._counts.items())})"
