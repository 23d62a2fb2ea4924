"""The two orders on timestamps.

A timestamp is a tuple of ints: the epoch coordinate(s) of the outermost scope, then one loop counter per
enclosing loop. What progress means is the **product order**, a partial one, and that is `less_equal`.
Python's `<` on tuples is the lexicographic order: it extends the product order (`less_equal(a, b)` implies `a
<= b`), so it serves for sorting, and for nothing else.

Under the product order timestamps of one length form a lattice: `join` is the least upper bound, `meet` the
greatest lower bound. Times of different lengths belong to different scopes and are never compared.

>>> less_equal((0, 5), (1, 5)), less_equal((0, 5), (1, 4))
(True, False)
>>> join((0, 5), (1, 4)), meet((0, 5), (1, 4))
((1, 5), (0, 4))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import SupportsIndex, TypeGuard

Time = tuple[int, ...]

Changes = tuple[tuple[int, Time, int], ...]
"""Net changes of how many pointstamps there are: (location, time, difference)."""

LIMIT = 2**62
"""No coordinate of a time is larger, and none is below 0."""

Moment = SupportsIndex | Sequence[SupportsIndex]
"""A time as users give it; where times have one coordinate, an integer will do."""


def as_time(moment: Moment) -> Time:
    """Return a time that a user gave, as a tuple of Python's integers; raise `TypeError` if it is none.

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
        raise TypeError(f"a time is an integer, or a tuple of them, and not {moment!r:.80}") from None


def _is_exact(moment: tuple[SupportsIndex, ...]) -> TypeGuard[Time]:
    """Return whether all coordinates are Python's integers; `True` is another kind."""
    for coordinate in moment:  # noqa: SIM110 (a generator would double the cost)
        if type(coordinate) is not int:
            return False
    return True


def less_equal(a: Time, b: Time) -> bool:
    """Return whether every coordinate of `a` is at most that of `b`.

    >>> less_equal((0, 5), (1, 5)), less_equal((0, 5), (1, 4)), less_equal((1, 4), (0, 5))
    (True, False, False)
    """
    # `a[0] > b[0]` settles most questions, and one or two coordinates are nearly all timestamps there are.
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
    """Return whether `a` is at most `b` and they differ.

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
