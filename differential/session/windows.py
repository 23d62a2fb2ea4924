"""Windows of event time: which windows a record belongs to.

A window is an interval of event time that includes its start but not its end. `tumbling` windows follow each other,
`sliding` windows overlap, and `sessions` last as long as the records of a group follow each other within a gap.

Windows are a definition like any other: a record has its windows as long as it exists, and leaves them if it is removed
or corrected. Tumbling and sliding windows depend on the record alone.
`session_windows.py` finds sessions.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import numpy as np

from differential.data.ticks import Duration, count_of, of_ticks
from differential.data.updates import Updates
from differential.operators.in_pieces import ROWS_PER_PIECE, in_pieces
from differential.operators.linear import linear
from differential.session.named import R, with_types
from differential.session.session_windows import event_times, in_sessions, refuse_far
from timely.errors import DataError
from timely.lowlevel import attributed, refusal, typed, user_origin

WINDOW = ("window_start", "window_end")
"""The columns of the bounds of a window."""


@dataclass(frozen=True)
class Sliding:
    """Windows of `size` that begin at each multiple of `step`, counted from `offset`."""

    size: Duration
    step: Duration
    offset: Duration | None = None


@dataclass(frozen=True)
class Sessions:
    """Windows that end when a group has no record for `gap`."""

    gap: Duration


Kind = Sliding | Sessions


def tumbling(size: Duration, *, offset: Duration | None = None) -> Sliding:
    """Return windows of this size, one after the other.

    They begin at multiples of `size`, counted from 0 or 1970-01-01, plus `offset`. Sizes are timedeltas, or integers if
    the event times are integers. Raises BuildError if the size is not positive.

    >>> tumbling(60)
    Sliding(size=60, step=60, offset=None)
    """
    return sliding(size, size, offset=offset)


def sliding(size: Duration, step: Duration, *, offset: Duration | None = None) -> Sliding:
    """Return windows of this size, of which one begins at each multiple of `step`, plus `offset`.

    A record is in about size / step windows. Raises BuildError if `size` or `step` is not positive.

    >>> from differential.session import Relation
    >>> def program(scope):
    ...     visits = Relation.of(scope, np.array(["a", "a"]), np.array([3, 12])).named("page", "minute")
    ...     return visits.window(sliding(10, 5), at="minute").count()
    >>> example(program)
    [((-5, 5, 1), 1), ((0, 10, 1), 1), ((5, 15, 1), 1), ((10, 20, 1), 1)]
    """
    _refuse_none("size", size)
    _refuse_none("step", step)
    return Sliding(size, step, offset)


def sessions(gap: Duration) -> Sessions:
    """Return windows that last as long as records of a group follow each other in less than `gap`.

    A session ends `gap` after its last record, and a record at this end begins another session. Raises BuildError if
    the gap is not positive.

    >>> sessions(30)
    Sessions(gap=30)
    """
    _refuse_none("gap", gap)
    return Sessions(gap)


def refuse_other_kinds(kind: object) -> None:
    """Raise BuildError if something is not a kind of window."""
    if not isinstance(kind, Kind):
        raise refusal(
            "window", f"{kind!r:.80} is not a kind of window: use tumbling(size), sliding(size, step) or sessions(gap)"
        )


def refuse_windows(names: tuple[str, ...]) -> None:
    """Raise BuildError if a collection has the columns of another window."""
    if taken := [name for name in WINDOW if name in names]:
        kept = "".join(f"{name!r}, " for name in names if name not in WINDOW)
        raise refusal(
            "window",
            f"the columns {', '.join(taken)} are those of another window: give them other names, as in "
            f"select({kept}start={taken[0]!r}).window(..., at='start')",
        )


def assigned(records: R, kind: Kind, column: str, by: Sequence[str]) -> R:
    """Return each record once for each of its windows, with the window's start and end as further columns.

    The key stays the same. `column` has the event times. Sessions are found for each group of records that are equal in
    the columns `by`. Other windows are made with the columns that the next `select` or `group_by` needs, and for any
    other operator with all.

    >>> from differential.session import Relation
    >>> def program(scope):
    ...     minutes = Relation.of(scope, np.array([3, 9, 40])).named("minute")
    ...     return assigned(minutes, sessions(30), "minute", ())
    >>> example(program)
    [((3, 3, 39), 1), ((9, 3, 39), 1), ((40, 40, 70), 1)]
    """
    names, of = records.names or (), records.types.get(column)
    _refuse_type(kind, column, of)
    types = {**records.types, **dict.fromkeys(WINDOW, of)}
    if isinstance(kind, Sessions):
        places = tuple(names.index(name) for name in by)
        made = cast(R, in_sessions(records, kind.gap, names.index(column), places, column))
        return with_types(made.named(*names, *WINDOW).at(column), types)
    origin = user_origin()

    def build(needed: Sequence[str]) -> R:
        with attributed(origin, always=True):
            return with_types(_slid(records.narrowed([*needed, column]), kind, column, needed), types)

    whole = type(records)._lazy(records.scope, records.keys, cache(lambda: build(names).stream))
    whole.names, whole.event_time, whole._narrow = (*names, *WINDOW), column, build
    return with_types(whole, types)


def _refuse_type(kind: Kind, column: str, of: str | None) -> None:
    """Raise BuildError where a column is known to be of a type that has no such windows, before there are rows."""
    if of is None:
        return
    like = typed([], of)
    try:
        event_times(like, column)
        for duration in (kind.gap,) if isinstance(kind, Sessions) else (kind.size, kind.step, kind.offset):
            if duration is not None:
                count_of(duration, like)
    except DataError as error:
        raise refusal("window", f"column {column!r}: {error}") from None


def _slid(records: R, kind: Sliding, column: str, needed: Sequence[str]) -> R:
    """Return, for each record and window of it, the needed columns of the record, and the window's start and end."""
    names = records.names or ()
    kept = [name for name in names if name in needed]
    at, places = names.index(column), [names.index(name) for name in kept]
    keys = records.keys if len(kept) == len(names) else 1

    def with_window(updates: Updates) -> Updates:
        like = updates.columns[at]
        times, size, step, offset = _counts(like, kind, column)
        # `_counts` has refused times for which this would wrap around.
        starts = times - (times - offset) % step
        return updates.with_columns((*(updates.columns[place] for place in places), *_bounds(starts, size, like)))

    def with_windows(updates: Updates) -> Iterator[Updates]:
        like = updates.columns[at]
        times, size, step, offset = _counts(like, kind, column)
        # The times stand for no columns, which would have no length.
        chosen = updates.with_columns(tuple(updates.columns[place] for place in places) or (times,))
        # A row has at most 1 + size / step windows, so no piece is longer than ROWS_PER_PIECE, except that of one row.
        length = max(1, ROWS_PER_PIECE * step // (size + step))
        for first in range(0, len(times), length):
            rows, starts = _starts(times[first : first + length], size, step, offset)
            piece = chosen.take(first + rows)
            yield piece.with_columns((*piece.columns[: len(places)], *_bounds(starts, size, like)))

    if kind.size == kind.step:
        made = linear(records, with_window, keys=keys, name="window")
    else:
        made = in_pieces(records, with_windows, keys=keys, name="window")
    return made.named(*kept, *WINDOW).at(column if column in kept else None)


def _counts(column: Any, kind: Sliding, name: str) -> tuple[Any, int, int, int]:
    """Return event times and a window's size, step and offset as counts. Raises DataError if bounds may not fit."""
    times, size, step = event_times(column, name), count_of(kind.size, column), count_of(kind.step, column)
    offset = 0 if kind.offset is None else count_of(kind.offset, column)
    refuse_far(times, size + step + abs(offset))
    return times, size, step, offset


def _bounds(starts: Any, size: int, like: Any) -> tuple[Any, Any]:
    """Return the starts and ends of windows as columns like that of the event times."""
    return of_ticks(starts, like), of_ticks(starts + size, like)


def _starts(times: Any, size: int, step: int, offset: int) -> tuple[Any, Any]:
    """Return (row, start of a window) for each window of each row: all last windows, all before them, and so on."""
    since = (times - offset) % step  # from the start of the last window
    full, rest = divmod(size, step)
    # A row is in the last `full` windows that have begun, and in the one before them if `since` is less than the rest.
    more = np.flatnonzero(since < rest)
    rows, starts = np.empty((2, full * len(times) + len(more)), np.int64)
    last, grid = times - since, (full, len(times))
    most = full * len(times)
    rows[:most].reshape(grid)[:] = np.arange(len(times))
    np.subtract(last, step * np.arange(full)[:, None], out=starts[:most].reshape(grid))
    rows[most:], starts[most:] = more, last[more] - full * step
    return rows, starts


def _refuse_none(what: str, duration: Duration) -> None:
    is_duration = isinstance(duration, (int, np.integer, dt.timedelta, np.timedelta64)) and duration is not True
    if not is_duration or not duration > duration * 0:  # type: ignore[operator]
        raise refusal("window", f"the {what} is a positive timedelta or whole number, not {duration!r:.80}")
