"""Multiply how often each record occurs by a function of the record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from differential.arrangement.core import C
from differential.data.overflow import multiplied
from differential.data.updates import Array, Ints, Updates
from differential.operators.linear import linear
from timely.errors import DataError
from timely.lowlevel import as_columns, call, check_functions


def explode(collection: C, function: Callable[..., Any], *, keys: int = 1, name: str = "explode") -> C:
    """Return `record` as often as each record occurs, times `times`, where `function` returns `(record, times)` for it.

    `function` receives whole columns. `record` is a column or a tuple of columns, and `times` a column of integers (or
    one for all), which may be 0 or negative. So a quantity becomes a number of occurrences, and counting adds it up:
    nothing is kept for each value.

    A DataError ends the run where `function` returns something else.

    >>> def sales(scope):
    ...     sold = Collection.of(scope, np.array(["tea", "tea", "rice"]), np.array([2, 3, 4]))
    ...     return sold.explode(lambda what, pieces: (what, pieces)).count()
    >>> example(sales)
    [(('rice', 4), 1), (('tea', 5), 1)]
    """
    check_functions(name, function=function)

    def transform(updates: Updates) -> Updates:
        result = call(function, updates.columns)
        if not isinstance(result, tuple) or len(result) != 2:
            raise DataError(
                "the function of explode must return (record, times); several columns of a record in a tuple"
            )
        diffs = multiplied(updates, occurrences(result[1], len(updates)))
        exploded = Updates(as_columns(result[0], len(updates)), updates.times, updates.time_index, diffs)
        return exploded if diffs.all() else exploded.take(diffs != 0)

    return linear(collection, transform, keys=keys, name=name)


def occurrences(given: Any, length: int, what: str = "how often records occur") -> Ints:
    """Return how often rows occur, as a function has returned it, as one integer for each row."""
    times: Array = np.asarray(given)
    if times.dtype.kind not in "iub" or times.shape not in ((), (length,)):
        raise DataError(f"{what} must be one integer for each of the {length} rows, not {times.dtype}{times.shape}")
    if times.dtype == np.uint64 and times.size and int(times.max()) >= 1 << 63:
        raise DataError(f"records cannot occur {times.max()} times: that is too large for a 64-bit integer")
    return times.astype(np.int64) if times.shape else np.full(length, times, np.int64)
