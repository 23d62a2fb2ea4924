"""Let records be in a collection for a while: windows that slide or tumble over times.

With `size` and `slide`, the window at a time t that is a multiple of `slide` holds what happened after t - size, up to
and including t; between two such times it is what it was at the first. A window whose slide is its size tumbles: what
there is at t is the last window that is over. In other words, what happens at time e is in the collection from the
first multiple of `slide` at or after e, until the first at or after e + size.

So a change enters at one time and is taken back at another, both of which are known when it comes. What is to enter or
to leave later is held until then: an epoch costs what enters and leaves in it, however large the window. No clock
ticks, and at the end of the input everything leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from differential.kernels.compile import NOTHING
from differential.operators.hold import hold
from differential.operators.linear import linear
from differential.updates import Ints, Updates
from timely.errors import BuildError, DataError
from timely.order import LIMIT

if TYPE_CHECKING:
    from differential.collection import Collection


def window(
    collection: Collection,
    size: int,
    slide: int = 1,
    *,
    at: Callable[..., Any] | None = None,
    name: str = "window",
) -> Collection:
    """Return the collection of what has happened lately: each change lasts for `size`, in steps of `slide`.

    A change happens at its epoch (the first coordinate of its time) or, if `at` is given, at the event time that
    `at(*columns)` returns for each record: a column of integers, in the unit of epochs. What comes after its event time
    is in from then on, for as long as it would have been had it come in time, or not at all if that is over; what comes
    before it waits.

    Raises BuildError where `size` or `slide` is less than 1, or no whole number. A DataError ends the run where `at`
    does not return an integer for each record, or a window would end after 2 ** 62.

    >>> def lately(scope):
    ...     visits = Collection.of(scope, np.array(["ann", "bob"]), np.array([3, 5]))
    ...     return visits.window(10, 5, at=lambda name, second: second).inspect(print)
    >>> _ = example(lately)
    ('ann', 3) (5,) 1
    ('bob', 5) (5,) 1
    ('ann', 3) (15,) -1
    ('bob', 5) (15,) -1
    """
    if not (isinstance(size, Integral) and isinstance(slide, Integral) and size >= 1 and slide >= 1):
        raise BuildError(f"{name}: a window of size {size} and slide {slide}: both must be whole numbers of at least 1")

    latest = LIMIT - size - slide

    def in_bounds(happened: NDArray[Any]) -> None:
        if happened.size and int(happened.max()) > latest:
            raise DataError(f"a time of {name}, {happened.max()}, is too large: its window ends after 2 ** 62")

    def bounds(happened: Ints, now: Ints) -> tuple[Ints, Ints]:
        first, last = (-(-each // slide) * slide for each in (happened, happened + size))
        return np.maximum(first, now), np.maximum(last, now)

    def by_epoch(updates: Updates) -> Updates:
        now = updates.times[:, 0]
        in_bounds(now)
        index = updates.time_index if len(updates.time_index) else np.zeros(len(updates), np.int64)
        return _for_a_while(updates, *bounds(now, now), index)

    def by_event(updates: Updates) -> Updates:
        happened = np.asarray(at(*updates.columns) if at is not None else 0)
        if happened.dtype.kind not in "iu" or happened.shape not in ((), (len(updates),)):
            raise DataError(
                f"the event times of {name} must be one integer for each of {len(updates)} record(s), not "
                f"{happened.dtype} of shape {happened.shape}"
            )
        in_bounds(happened)
        table = updates.times[updates.time_index if len(updates.time_index) else np.zeros(len(updates), np.int64)]
        begin, end = bounds(np.broadcast_to(happened.astype(np.int64), len(updates)), table[:, 0])
        lasts = np.flatnonzero(begin < end)
        updates, table, begin, end = updates.take(lasts), table[lasts], begin[lasts], end[lasts]
        moments, index = np.unique(np.column_stack((begin, end, table)), axis=0, return_inverse=True)
        own = Updates(updates.columns, moments[:, 2:].copy(), index.reshape(-1), updates.diffs)
        return _for_a_while(own, moments[:, 0], moments[:, 1], own.time_index)

    both = linear(collection, by_epoch if at is None else by_event, name=name)
    return hold(both, name=f"{name} until its end")


def _for_a_while(updates: Updates, begin: Ints, end: Ints, index: Ints) -> Updates:
    """Return the updates, made at the first of two epochs for each of their times, and taken back at the second."""
    others = updates.times[:, 1:]
    times = np.concatenate([np.column_stack((epochs, others)) for epochs in (begin, end)])
    columns = tuple(np.concatenate((column, column)) for column in updates.columns)
    diffs = updates.each_diff()
    both = np.append(index, index + len(begin)) if len(times) > 1 else NOTHING
    return Updates(columns, times, both, np.append(diffs, -diffs))
