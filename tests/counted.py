"""Times whose comparisons are counted, to see how the work for many of them grows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timely.order import Time


class Coordinate(int):
    """An integer that counts how often one of its kind is compared. Compiled code compares without counting."""

    comparisons = 0

    def _counted(self, compare: Callable[[int, Any], bool], other: Any) -> bool:
        Coordinate.comparisons += 1
        return compare(self, other)

    def __lt__(self, other: Any) -> bool:
        return self._counted(int.__lt__, other)

    def __le__(self, other: Any) -> bool:
        return self._counted(int.__le__, other)

    def __gt__(self, other: Any) -> bool:
        return self._counted(int.__gt__, other)

    def __ge__(self, other: Any) -> bool:
        return self._counted(int.__ge__, other)

    def __eq__(self, other: Any) -> bool:
        return self._counted(int.__eq__, other)

    __hash__ = int.__hash__


def counted(*coordinates: int) -> Time:
    """Return a time that counts its comparisons, equal to others with these coordinates but not the same object."""
    return tuple(map(Coordinate, coordinates))


def comparisons(work: Callable[[], object]) -> int:
    """Return how often coordinates are compared during `work`."""
    before = Coordinate.comparisons
    work()
    return Coordinate.comparisons - before
