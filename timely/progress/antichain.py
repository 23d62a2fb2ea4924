"""Frontiers: sets of times none of which is at or before another.

An antichain stands for everything at or after one of its elements:

    times(A) = { t : there is an a in A with a ≤ t }

As the frontier of an input it says which times may still arrive. The empty antichain stands for nothing at
all: the input is closed (and, where times are forgotten up to a frontier, everything may be forgotten). So
antichains are ordered by what has passed: `A.dominates(B)` when times(B) is within times(A), and the empty
one is the last of all. Under this order they form a lattice, whose `meet` stands for the union of the two
sets and whose `join` for their intersection.

`Antichain` does not change. `MutableAntichain` counts occurrences of times and knows the frontier of those
whose count is positive.

>>> Antichain([(1, 0), (0, 5), (2, 2)])
Antichain([(0, 5), (1, 0)])
>>> Antichain([(0, 5), (1, 0)]).less_equal((1, 3)), Antichain([(0, 5), (1, 0)]).less_equal((0, 4))
(True, False)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from timely import order
from timely.order import Time


def minimal(times: Collection[Time]) -> tuple[Time, ...]:
    """Return the minimal elements of `times` (which may repeat), sorted lexicographically.

    O(n log n) for up to two coordinates; beyond, O(n) for each element found.
    """
    if len(times) <= 1:
        return tuple(times)
    ordered = sorted(times)
    first = ordered[0]
    if len(first) == 1:
        return (first,)
    found = [first]
    if len(first) == 2:
        # In lexicographic order a time is minimal exactly if its second coordinate is below all those before it.
        lowest = first[1]
        for time in ordered:
            if time[1] < lowest:
                lowest = time[1]
                found.append(time)
        return tuple(found)
    for time in ordered:
        for element in found:
            if order.less_equal(element, time):
                break
        else:
            found.append(time)
    return tuple(found)


class Antichain:
    """An immutable set of mutually incomparable times. Hashable, and equal to another with the same elements.

    >>> frontier = Antichain([(1, 0), (0, 5), (2, 2)])
    >>> frontier
    Antichain([(0, 5), (1, 0)])
    >>> frontier.less_equal((0, 5)), frontier.less_than((0, 5)), frontier.less_equal((0, 4))
    (True, False, False)
    >>> frontier.dominates(Antichain([(3, 0)])), frontier.dominates(Antichain([(0, 0)]))
    (True, False)
    """

    __slots__ = ("elements",)

    elements: tuple[Time, ...]
    """The elements, sorted lexicographically."""

    def __init__(self, times: Iterable[Time] = ()) -> None:
        """Take the minimal ones of `times`."""
        self.elements = minimal(tuple(times)) if times else ()

    @classmethod
    def of_minimal(cls, elements: tuple[Time, ...]) -> Antichain:
        """Return the antichain of `elements`, which must be sorted and mutually incomparable; nothing is checked."""
        antichain = cls()
        antichain.elements = elements
        return antichain

    def less_equal(self, time: Time) -> bool:
        """Return whether some element is at or before `time`: as a frontier, whether `time` may still come."""
        for element in self.elements:  # noqa: SIM110 (a generator would double the cost)
            if order.less_equal(element, time):
                return True
        return False

    def less_than(self, time: Time) -> bool:
        """Return whether some element is strictly before `time`."""
        for element in self.elements:  # noqa: SIM110 (a generator would double the cost)
            if element != time and order.less_equal(element, time):
                return True
        return False

    def dominates(self, other: Antichain) -> bool:
        """Return whether each element of `other` is at or after some element of this antichain."""
        return self.elements == other.elements or all(map(self.less_equal, other.elements))

    def join(self, other: Antichain) -> Antichain:
        """Return the least antichain that both dominate: times that both permit.

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
        """Return the greatest antichain that dominates both: times that either permits.

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

    def __hash__(self) -> int:
        return hash(self.elements)

    def __repr__(self) -> str:
        return f"Antichain({list(self.elements)})"


CLOSED = Antichain()
"""The frontier of what is done: nothing comes any more."""


class MutableAntichain:
    """A count per time, and the frontier of the times whose count is positive.

    Counts may go negative for a while (a message's consumption can be heard of before its production); a
    count that is not positive takes no part in the frontier.

    >>> counts = MutableAntichain([((3,), 2), ((5,), 1)])
    >>> counts.update((3,), -1), counts.count((3,)), counts.frontier
    (False, 1, Antichain([(3,)]))
    >>> counts.update_all([((3,), -1), ((9,), 1)]), counts.frontier
    (True, Antichain([(5,)]))
    >>> sorted(counts.items())
    [((5,), 1), ((9,), 1)]
    """

    __slots__ = ("_counts", "_frontier")

    def __init__(self, updates: Iterable[tuple[Time, int]] = ()) -> None:
        self._counts: dict[Time, int] = {}
        self._frontier = Antichain()
        self.update_all(updates)

    @property
    def frontier(self) -> Antichain:
        """The minimal times of positive count."""
        return self._frontier

    def count(self, time: Time) -> int:
        """Return how often `time` occurs; negative when more occurrences were removed than added."""
        return self._counts.get(time, 0)

    def update(self, time: Time, diff: int) -> bool:
        """Add `diff` to the count of `time`; return whether the frontier changed."""
        return self.update_all([(time, diff)])

    def update_all(self, updates: Iterable[tuple[Time, int]]) -> bool:
        """Add to many counts at once; return whether the frontier changed. It is brought up to date once."""
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
                vanished = vanished or time in elements
        if vanished:
            elements = minimal([time for time, count in counts.items() if count > 0])
        elif appeared:
            # A time may have appeared and vanished again among the updates.
            elements = minimal(elements + tuple(time for time in appeared if counts.get(time, 0) > 0))
        if elements == self._frontier.elements:
            return False
        self._frontier = Antichain.of_minimal(elements)
        return True

    def items(self) -> Iterator[tuple[Time, int]]:
        """Return each time with its count, where that is not zero."""
        return iter(self._counts.items())

    def __bool__(self) -> bool:
        return bool(self._counts)

    def __repr__(self) -> str:
        return f"MutableAntichain({sorted(self._counts.items())})"
