"""Move changes to later times."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from differential.arrangement.core import C
from differential.data.updates import Updates
from differential.operators.linear import linear
from timely.errors import DataError
from timely.lowlevel import LIMIT, Moment, Time, as_time, check_functions, less_equal


def delay(collection: C, function: Callable[[Time], Moment], *, name: str = "delay") -> C:
    """Return the collection with each change at `function` of its time, which must not be before it.

    The function is called once for each time in a batch, and should keep times in their order: then the result at
    `function(t)` equals the collection at `t`. Changes moved to the same time cancel as if they had been made then.

    A DataError ends the run where `function` returns no time, an earlier one, or one beyond 2 ** 62.

    >>> def hourly(scope):
    ...     return Collection.of(scope, 1).delay(lambda time: (60 * (time[0] // 60 + 1),)).inspect(print)
    >>> _ = example(hourly)
    (1,) (60,) 1
    """
    check_functions(name, function=function)

    def transform(updates: Updates) -> Updates:
        return updates.with_times(np.array([later(tuple(time)) for time in updates.times.tolist()], np.int64))

    def later(time: Time) -> Time:
        given = function(time)
        try:
            moved = as_time(given)
        except TypeError:
            raise DataError(f"the function of delay must return a time, not {given!r}", time) from None
        if len(moved) != len(time) or not less_equal(time, moved) or max(moved) > LIMIT:
            problem = f"delay cannot move a change from {time} to {moved}"
            raise DataError(f"{problem}: times may only move forward, and up to 2 ** 62", time)
        return moved

    return linear(collection, transform, name=name)
