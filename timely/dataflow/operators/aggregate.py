"""Keyed aggregation: one result for each key and time, when the time is complete.

The first columns are the key. A reduction receives the positions at which groups of equal keys start, and the other
columns, ordered by key: the form of `np.add.reduceat(values, starts)`. So it runs once a time, not once a key; one that
is written for a single group can loop over `np.split(values, starts[1:])`.

Where a reduction of parts, reduced again, is the reduction of the whole (sums, minima; not means), `combine` does it
before records travel, too: local combine, exchange, combine. `combine_everywhere` is the same with a broadcast instead
of the exchange. Keys come in their order, values of equal keys in that in which they arrived.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timely.arguments import check_functions, check_whole
from timely.data.columns import starts_of_runs
from timely.data.container import Array, Columns, as_columns
from timely.data.typed import Typed
from timely.data.user_functions import call
from timely.dataflow.operators.each_time import map_each_time
from timely.dataflow.pact import Broadcast, ExchangeByKey, Pact, Pipeline
from timely.dataflow.streams import S
from timely.errors import DataError

Reduction = Callable[..., Any]
"""`reduction(starts, *values)` returns a column, or a tuple of them, with one value for each group."""


def aggregate(stream: S, reduction: Reduction, *, keys: int = 1, name: str = "aggregate") -> S:
    """Return the keys with `reduction` of each key's values at a time, on the worker that the key hashes to.

    >>> pairs = (np.array(["a", "b", "a"]), np.array([1, 2, 3]))
    >>> example(lambda scope: scope.to_stream(pairs).aggregate(lambda starts, x: np.add.reduceat(x, starts)))
    [('a', 4), ('b', 2)]
    """
    return grouped(stream, ExchangeByKey(keys), reduction, keys, name)


def combine(stream: S, reduction: Reduction, *, keys: int = 1, name: str = "combine") -> S:
    """Return what `aggregate` does, having reduced on each worker first: one record a key, time and worker travels.

    `reduction` must take its own results: as many columns, meaning the same.

    >>> pairs = (np.array([7, 7, 8]), np.array([1, 2, 3]))
    >>> example(lambda scope: scope.to_stream(pairs).combine(lambda starts, x: np.maximum.reduceat(x, starts)))
    [(7, 2), (8, 3)]
    """
    local = grouped(stream, Pipeline(), reduction, keys, f"{name} locally")
    return aggregate(local, reduction, keys=keys, name=name)


def combine_everywhere(stream: S, reduction: Reduction, *, keys: int = 1, name: str = "combine_everywhere") -> S:
    """Return all keys with their reductions on every worker: local combine, broadcast, combine.

    >>> example(lambda scope: scope.to_stream((np.array([1, 1]), np.array([0.5, 0.25]))).combine_everywhere(
    ...     lambda starts, x: np.add.reduceat(x, starts)))
    [(1, 0.75)]
    """
    local = grouped(stream, Pipeline(), reduction, keys, f"{name} locally")
    return grouped(local, Broadcast(), reduction, keys, name)


def grouped(stream: S, pact: Pact, reduction: Reduction, keys: int, name: str) -> S:
    """Return the keys that arrive here after `pact`, with the reduction of their values at each time."""
    check_functions(name, reduction=reduction)
    check_whole(name, 1, keys=keys)

    def reduced(batch: Columns) -> Columns:
        if len(batch.columns) < keys:
            raise DataError(f"{name}: keys={keys}, where records have {len(batch.columns)} column(s)")
        columns, starts = in_groups(batch, keys)
        results = as_columns(call(reduction, (starts, *columns[keys:])), len(starts))
        return Columns((*(column[starts] for column in columns[:keys]), *results))

    return map_each_time(stream, pact, reduced, name=name)


def in_groups(batch: Columns, keys: int) -> tuple[tuple[Array, ...], Array]:
    """Return the columns ordered by their first `keys`, and where each group of equal keys starts."""
    # What typed columns store is ordered as their values are, nulls included, of which NumPy knows nothing.
    stored = [column.storage if isinstance(column, Typed) else column for column in batch.columns[:keys]]
    order = np.arange(len(batch))
    # The last key first: each sort is stable, so it keeps the order by later keys, and of values, among equal ones.
    for column in reversed(stored):
        order = order[np.argsort(column[order], kind="stable")]
    return tuple(column[order] for column in batch.columns), starts_of_runs([column[order] for column in stored])
