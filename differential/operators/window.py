"""Keep records in a collection for a while: windows that slide or tumble over times.

With `size` and `slide`, the window at a time t that is a multiple of `slide` holds the changes after t - size, up to
and including t; between two such times it stays as it is at the first. A window whose slide is its size tumbles: at t
it is the last complete one. In other words, a change at time e is in the collection from the first multiple of `slide`
at or after e, until the first at or after e + size.

So a change enters at one time and is retracted at another, and both times are known when it arrives. Changes that are
to enter or to leave later are held until then: an epoch costs what enters and leaves in it, however large the window.
No clock ticks, and at the end of the input everything leaves.

A removal must identify the occurrence that it removes, because the end of that occurrence depends on when it happened.
With event times it does: a record has the same event time when it is removed as when it was inserted. Without event
times a window accepts only insertions, and refuses a record of which an epoch removes more than it inserts.

A change that arrives after its window has ended is late. It is left out, and reported: to a function of the program, or
by a `LateWarning` for the first such record and, at the end, by another with their number.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from differential.arrangement.core import C
from differential.data.overflow import shown
from differential.data.updates import Ints, Updates
from differential.kernels.compile import NOTHING
from differential.operators.consolidate import consolidate
from differential.operators.hold import hold
from differential.operators.linear import linear
from timely import Scope
from timely.errors import DataError, LateWarning
from timely.lowlevel import LIMIT, check_functions, check_whole, consult, user_origin


def window(
    collection: C,
    size: int,
    slide: int = 1,
    *,
    at: Callable[..., Any] | None = None,
    late: Callable[[Updates], object] | None = None,
    name: str = "window",
) -> C:
    """Return the collection of recent changes: each lasts for `size`, in steps of `slide`.

    A change happens at its epoch (the first coordinate of its time) or, if `at` is given, at the event time that
    `at(*columns)` returns for each record: a column of integers, in the unit of epochs. A change that arrives after its
    event time enters then, and leaves when it would have left had it arrived in time; if that is over, it does not
    enter. A change that arrives before its event time waits.

    Insertions that arrive after their window has ended are left out, and a `LateWarning` reports them; with `late`,
    that function is called instead with each batch of them, an `Updates`. Removing a record that has left has no
    effect.

    Raises BuildError unless `size` and `slide` are whole numbers of at least 1. A DataError ends the run where `at`
    does not return an integer for each record, a window would end after 2 ** 62, or, without `at`, a record is removed.

    >>> def lately(scope):
    ...     visits = Collection.of(scope, np.array(["ann", "bob"]), np.array([3, 5]))
    ...     return visits.window(10, 5, at=lambda name, second: second).inspect(print)
    >>> _ = example(lately)
    ('ann', 3) (5,) 1
    ('bob', 5) (5,) 1
    ('ann', 3) (15,) -1
    ('bob', 5) (15,) -1
    """
    if at is not None:
        check_functions(name, at=at)
    if late is not None:
        check_functions(name, late=late)
    check_whole(name, 1, size=size, slide=slide)
    size, slide = int(size), int(slide)  # times beside them are larger than a NumPy integer may be
    latest = LIMIT - size - slide  # what happens then leaves at `LIMIT` at most, after rounding up

    def in_bounds(happened: NDArray[Any]) -> None:
        if happened.size and int(happened.max()) > latest:
            raise DataError(f"a time of {name}, {happened.max()}, is too large: its window ends after 2 ** 62")

    def bounds(happened: Ints, now: Ints) -> tuple[Ints, Ints]:
        # -(-a // b) is a / b rounded up: the first multiple at or after.
        first, last = (-(-each // slide) * slide for each in (happened, happened + size))
        return np.maximum(first, now), np.maximum(last, now)

    def by_epoch(updates: Updates) -> Updates:
        _refuse_removals(updates, name)
        now = updates.times[:, 0]
        in_bounds(now)
        return _for_a_while(updates, *bounds(now, now), updates.each_time_index())

    def by_event(updates: Updates) -> Updates:
        happened = np.asarray(consult(cast(Callable[..., Any], at), updates.columns))
        if happened.dtype.kind not in "iu" or happened.shape not in ((), (len(updates),)):
            raise DataError(
                f"the event times of {name} must be one integer for each of {len(updates)} record(s), not "
                f"{happened.dtype} of shape {happened.shape}"
            )
        in_bounds(happened)
        table = updates.times[updates.each_time_index()]
        begin, end = bounds(np.broadcast_to(happened.astype(np.int64), len(updates)), table[:, 0])
        lasts = np.flatnonzero(begin < end)
        if len(lasts) < len(updates):
            stragglers.see(updates.take(np.flatnonzero((end <= table[:, 0]) & (updates.each_diff() > 0))))
        updates, table, begin, end = updates.take(lasts), table[lasts], begin[lasts], end[lasts]
        moments, index = np.unique(np.column_stack((begin, end, table)), axis=0, return_inverse=True)
        own = Updates(updates.columns, moments[:, 2:].copy(), index.reshape(-1), updates.diffs)
        return _for_a_while(own, moments[:, 0], moments[:, 1], own.time_index)

    if at is None:
        # A record inserted and removed in one epoch, even on different workers, cancels and is not a removal.
        both = linear(consolidate(collection), by_epoch, name=name)
    else:
        stragglers = Stragglers(collection.scope, late, name)
        both = linear(collection, by_event, name=name)
    return hold(both, name=f"{name} until its end")


def _refuse_removals(updates: Updates, name: str) -> None:
    """Raise DataError where a record is removed."""
    rows = np.flatnonzero(updates.diffs < 0)[:1]
    if len(rows):
        removed = updates.take(rows)
        (time,) = removed.each_time()
        raise DataError(
            f"{name}: the record {shown(removed.columns)} is removed, but the epoch in which it was inserted, "
            "and so its end, is unknown; pass `at`, a function that returns each record's event time",
            time,
        )


class Stragglers:
    """Counts and reports the records that come after their windows have ended."""

    def __init__(self, scope: Scope, late: Callable[[Updates], object] | None, name: str) -> None:
        self._late = late
        self._name = name
        self._origin = user_origin()
        self._worker = scope.index
        self._count = 0
        if late is None:
            scope.dataflow.when_complete(self._report_number)

    def see(self, updates: Updates) -> None:
        """Report insertions that arrive too late."""
        if not len(updates):
            return
        if self._late is not None:
            self._late(updates.as_read_only())
            return
        self._count += len(updates)
        if self._count == len(updates):
            (time,) = updates.take(np.array([0])).each_time()
            self._warn(
                f"the record {shown(updates.columns)} arrived at {time}, when its window had ended, and is left "
                "out; more are only counted; pass window() a function as `late` to receive them, or a larger size"
            )

    def _report_number(self) -> None:
        if self._count > 1:
            self._warn(f"{self._count} records arrived when their windows had ended, and were left out")

    def _warn(self, message: str) -> None:
        text = f"{self._name} (built at {self._origin}) on worker {self._worker}: {message}"
        warnings.warn_explicit(text, LateWarning, self._origin.file, self._origin.line)


def _for_a_while(updates: Updates, begin: Ints, end: Ints, index: Ints) -> Updates:
    """Return the updates, at the first of two epochs for each of their times, and their retractions at the second."""
    others = updates.times[:, 1:]
    times = np.concatenate([np.column_stack((epochs, others)) for epochs in (begin, end)])
    columns = tuple(np.concatenate((column, column)) for column in updates.columns)
    diffs = updates.each_diff()
    both = np.append(index, index + len(begin)) if len(times) > 1 else NOTHING
    return Updates(columns, times, both, np.append(diffs, -diffs))
