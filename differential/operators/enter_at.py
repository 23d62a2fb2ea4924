"""Bring the records of a collection into a loop at rounds of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from differential.arrangement.core import C
from differential.data.updates import Array, Ints, Updates
from differential.kernels.compile import NOTHING
from timely import Scope
from timely.errors import BuildError, DataError
from timely.lowlevel import LIMIT, Batch, Time, consult, inline_timed


def enter_at(collection: C, scope: Scope, rounds: Callable[..., Any], *, name: str = "enter_at") -> C:
    """Return the collection in the loop of `scope`, each record from the round on that `rounds` returns for it.

    `rounds` receives whole columns and returns a column of integers from 0 to 2 ** 61. If the most important records
    enter first, the others find most of their work done when they enter (prioritised iteration).

    Raises BuildError unless `scope` is a loop directly inside the collection's. A DataError ends the run where `rounds`
    returns something else.

    >>> def program(scope):
    ...     with scope.iterative() as inner:
    ...         later = Collection.of(scope, np.array([1, 2])).enter_at(inner, lambda x: 10 * x)
    ...         return later.inspect(print).leave()
    >>> _ = example(program)
    (1,) (0, 10) 1
    (2,) (0, 20) 1
    """
    outside = collection.scope
    if not scope.is_within(outside) or scope.width != outside.width + 1:
        raise BuildError(f"enter_at goes into a loop directly inside {outside}; {scope} is not one")

    def transform(time: Time, batch: Batch) -> tuple[Time, Updates]:
        assert isinstance(batch, Updates)
        given = np.asarray(consult(rounds, batch.columns))
        if given.dtype.kind not in "iub" or given.shape not in ((), (len(batch),)) or _is_outside(given):
            raise DataError("the rounds of enter_at must be one integer, from 0 to 2 ** 61, for each record")
        return (*time, 0), delayed(batch, np.broadcast_to(given.astype(np.int64), len(batch)))

    stream = inline_timed(collection.stream, transform, name=name, scope=scope, summary=outside.summary_to(scope))
    return collection.with_stream(stream)


def _is_outside(rounds: Array) -> bool:
    # As many more rounds may follow before a coordinate reaches its limit.
    return rounds.size > 0 and (rounds.min() < 0 or rounds.max() > LIMIT // 2)


def delayed(updates: Updates, rounds: Ints) -> Updates:
    """Return the updates with one more coordinate in their times, from `rounds`, which has one for each row.

    The table of times is no longer than there are rows, or pairs of times and rounds.
    """
    distinct, which = _distinct(rounds)
    base = updates.time_index if len(updates.time_index) else np.int64(0)
    pairs, index = len(updates.times) * len(distinct), base * len(distinct) + which
    used, index = (np.arange(pairs), index) if pairs <= len(updates) else np.unique(index, return_inverse=True)
    times = np.column_stack((updates.times[used // len(distinct)], distinct[used % len(distinct)]))
    return Updates(updates.columns, times, index.astype(np.int64) if len(times) > 1 else NOTHING, updates.diffs)


def _distinct(rounds: Ints) -> tuple[Ints, Ints]:
    """Return the distinct rounds, in order, and for each row the place of its round among them."""
    most = int(rounds.max()) if len(rounds) else 0
    if most > len(rounds):
        return np.unique(rounds, return_inverse=True)
    # Numbers no larger than the number of rows are counted faster than sorted.
    place = np.bincount(rounds, minlength=1)
    distinct = np.flatnonzero(place)
    place[distinct] = np.arange(len(distinct))
    return distinct, place[rounds]
