"""Let changes happen later."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from differential.operators.linear import linear
from differential.updates import Updates
from timely.errors import DataError
from timely.order import Time, less_equal

if TYPE_CHECKING:
    from differential.collection import Collection


def delay(collection: Collection, function: Callable[[Time], Time | int], *, name: str = "delay") -> Collection:
    """Return the collection with each change at `function` of its time, which must not be before it.

    The function is called once for each time in a batch and should keep times in their order: then the result at
    `function(t)` is what the collection is at `t`. Changes that fall on one time cancel as if they had been made then.

    A DataError ends the run where `function` moves a time back.

    >>> def hourly(scope):
    ...     return Collection.of(scope, 1).delay(lambda time: (60 * (time[0] // 60 + 1),)).inspect(print)
    >>> _ = example(hourly)
    (1,) (60,) 1
    """

    def transform(updates: Updates) -> Updates:
        return updates.with_times(np.array([later(tuple(time)) for time in updates.times.tolist()], np.int64))

    def later(time: Time) -> Time:
        given = function(time)
        moved = (given,) if isinstance(given, int) else tuple(given)
        if len(moved) != len(time) or not less_equal(time, moved):
            raise DataError(f"delay cannot move a change from {time} to {moved}: times may only move forward", time)
        return moved

    return linear(collection, transform, name=name)
