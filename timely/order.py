"""Timestamps and their two orders.

A timestamp is a tuple of integers: the coordinates of the outermost scope (usually one, the epoch), then one loop
counter per enclosing loop. Progress is defined by the **product order**, `less_equal`, which is partial. Python's `<`
on tuples is the lexicographic order. It extends the product order (`less_equal(a, b)` implies `a <= b`), so it is
suitable for sorting, and for nothing else.

Under the product order timestamps of one length form a lattice: `join` is the least upper bound, `meet` the greatest
lower bound. Times of different lengths belong to different scopes and are never compared.

>>> less_equal((0, 5), (1, 5)), less_equal((0, 5), (1, 4))
(True, False)
>>> join((0, 5), (1, 4)), meet((0, 5), (1, 4))
((1, 5), (0, 4))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Final, SupportsIndex, TypeGuard

Time = tuple[int, ...]

Changes = tuple[tuple[int, Time, int], ...]
"""Net changes of the counts of pointstamps: (location, time, difference)."""

LIMIT: Final = 2**62
"""The largest coordinate of a time; the smallest is 0."""

Moment = SupportsIndex | Sequence[SupportsIndex]
"""A time as users write it: a tuple of integers, or an integer where times have one coordinate."""


def as_time(moment: Moment) -> Time:
    """Return a time written by a user as a tuple of Python integers; raise `TypeError` if it is not a time.

    >>> as_time(3), as_time([2, 5])
    ((3,), (2, 5))
    """
    if type(moment) is int:
        return (moment,)
    if type(moment) is tuple and _is_exact(moment):
        return moment
    try:
        return tuple(map(index, moment)) if isinstance(moment, Iterable) else (index(moment),)
    except TypeError:
        raise TypeError(f"a time is an integer or a tuple of integers, not {moment!r:.80}") from None


def _is_exact(moment: tuple[SupportsIndex, ...]) -> TypeGuard[Time]:
    """Return whether all coordinates are of type int itself, not a subclass such as bool."""
    for coordinate in moment:  # noqa: SIM110 (a generator would double the cost)
        if type(coordinate) is not int:
            return False
    return True


def less_equal(a: Time, b: Time) -> bool:
    """Return whether every coordinate of `a` is at most that of `b`.

    >>> less_equal((0, 5), (1, 5)), less_equal((0, 5), (1, 4)), less_equal((1, 4), (0, 5))
    (True, False, False)
    """
    # The first coordinate decides most comparisons, and nearly all timestamps have one or two coordinates.
    if a[0] > b[0]:
        return False
    length = len(a)
    if length == 1:
        return True
    if length == 2:
        return a[1] <= b[1]
    for x, y in zip(a, b):  # noqa: SIM110 (a generator would double the cost)
        if x > y:
            return False
    return True


def less_than(a: Time, b: Time) -> bool:
    """Return whether `a` is at most `b` and different from it.

    >>> less_than((0, 5), (0, 6)), less_than((0, 5), (0, 5))
    (True, False)
    """
    return a != b and less_equal(a, b)


def join(a: Time, b: Time) -> Time:
    """Return the least time that is at or after both.

    >>> join((0, 5), (1, 4))
    (1, 5)
    """
    return tuple([x if x >= y else y for x, y in zip(a, b)])


def meet(a: Time, b: Time) -> Time:
    """Return the greatest time that is at or before both.

    >>> meet((0, 5), (1, 4))
    (0, 4)
    """
    return tuple([x if x <= y else y for x, y in zip(a, b)])
