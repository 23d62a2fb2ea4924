"""Windows of event time: which windows a record belongs to.

A window is an interval of event time that includes its start but not its end. `tumbling` windows follow each other,
`sliding` windows overlap, and `sessions` last as long as the records of a group follow each other within a gap.

Windows are a definition like any other: a record has its windows as long as it exists, and leaves them if it is removed
or corrected. Tumbling and sliding windows depend on the record alone.

Sessions end when a group has no record for a while. A record that arrives may join two sessions, and one that leaves
may divide one. A change is to cost as much as the records whose session changes, even if their group has many other
sessions. So sessions are found in three steps:

1. Time is divided into cells as long as the gap. The records of a group in one cell are in one session, so a cell needs
   nothing but its first and its last time.
2. Cells are divided into blocks. A block joins its cells to runs, each from the time of its first record to that of its
   last:

       cell c and the next cell belong together   iff   first of the next - last of c < gap

3. Only a run with the first or the last cell of a block may continue in another block: it is an outer run. The group
   joins these to sessions by the same rule. All others are sessions already.

A change reads the records of its cell, the cells of its block, and the outer runs of its group. Then only the records
whose session has changed receive the new one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import numpy as np

from differential.collection import Collection
from differential.data.ticks import Duration, count_of, of_ticks, ticks
from differential.data.updates import Updates
from differential.operators.groups import Groups
from differential.operators.in_pieces import ROWS_PER_PIECE, in_pieces
from differential.operators.linear import linear
from differential.session.named import R, with_types
from timely.errors import DataError
from timely.lowlevel import attributed, is_null, refusal, typed, user_origin

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


CELLS_PER_BLOCK = 256


def in_sessions(records: Collection, gap: Duration, at: int, by: tuple[int, ...], column: str) -> Collection:
    """Return each record with the start and the end of its session as further columns.

    `at` is the place of the column of event times, which is called `column`, and `by` those of the columns in which the
    records of a group are equal. Raises DataError if an event time is null, or too far from 0 or 1970.
    """
    return _Sessions(gap, at, by, column).of(records)


@dataclass(frozen=True)
class _Sessions:
    gap: Duration
    at: int
    by: tuple[int, ...]
    column: str

    def of(self, records: Collection) -> Collection:
        group = len(self.by) + 1  # a group of all records needs a key, too

        def with_times(*columns: Any) -> tuple[Any, ...]:
            return (*columns[: group + 1], columns[group + 1 + self.at])

        def in_blocks(*columns: Any) -> tuple[Any, ...]:
            return (*columns[:group], columns[group] // CELLS_PER_BLOCK, *columns[group:])

        def complete(*columns: Any) -> tuple[Any, ...]:
            *in_group, _block, cell, first, last, _outer = columns
            return (*in_group, cell, first, self._end(last))

        def run(*columns: Any) -> tuple[Any, ...]:
            *in_group, _block, _cell, first, last, _outer = columns
            return (*in_group, first, last)

        def cell_of_run(*columns: Any) -> tuple[Any, ...]:
            *in_group, _block, cell, first, _last, _outer = columns
            return (*in_group, first, cell)

        def without_run(*columns: Any) -> tuple[Any, ...]:
            return (*columns[:group], *columns[group + 1 :])

        in_cells = records.map(self._with_cells, keys=group + 1, name="cell")
        spans = in_cells.map(with_times, keys=group + 1, name="event time").reduce(
            _first_and_last, name="first and last"
        )
        runs = spans.map(in_blocks, keys=group + 1, name="block").reduce(self._runs_of_block, name="runs of a block")
        outer = runs.filter(lambda *columns: columns[-1], name="outer runs")
        joined = outer.map(run, keys=group, name="outer run").reduce(self._sessions_of_group, name="sessions")
        by_run = joined.map(lambda *columns: columns, keys=group + 1, name="session of a run")
        sessions = outer.map(cell_of_run, keys=group + 1, name="run").join_map(
            by_run, without_run, keys=group + 1, name="session of a cell"
        )
        inner = runs.filter(lambda *columns: ~columns[-1], name="inner runs")
        sessions = sessions.concat(inner.map(complete, keys=group + 1, name="inner sessions"))
        return in_cells.join_map(sessions, lambda *columns: columns[group + 1 :], keys=records.keys, name="window")

    def _with_cells(self, *columns: Any) -> tuple[Any, ...]:
        times, gap = event_times(columns[self.at], self.column), count_of(self.gap, columns[self.at])
        refuse_far(times, gap)  # here, so that no sum of a time and the gap that follows is too large
        cells = times // gap
        return (np.zeros(len(cells), np.int64), *(columns[place] for place in self.by), cells, *columns)

    def _end(self, last: Any) -> Any:
        return of_ticks(ticks(last) + count_of(self.gap, last), last)

    def _runs_of_block(self, groups: Groups) -> tuple[Any, ...]:
        """Return, for each cell of a block, the first and the last time of its run, and whether the run is outer."""
        cells, firsts, lasts = groups.values
        order = np.lexsort((cells, groups.index))
        cells, block = cells[order], groups.index[order]
        begins, run, first, last = self._joined(block, firsts[order], lasts[order])
        ends = np.append(begins[1:], True)
        # What could continue a run is in the next cell, which is in this block unless the run touches an end of it.
        outer = (cells[begins] % CELLS_PER_BLOCK == 0) | ((cells[ends] + 1) % CELLS_PER_BLOCK == 0)
        return (block, cells, first[run], last[run], outer[run])

    def _sessions_of_group(self, groups: Groups) -> tuple[Any, ...]:
        """Return, for each outer run, its first time, and the start and the end of its session."""
        firsts, lasts = groups.values
        order = np.lexsort((ticks(firsts), groups.index))
        _, session, first, last = self._joined(groups.index[order], firsts[order], lasts[order])
        return (groups.index[order], firsts[order], first[session], self._end(last)[session])

    def _joined(self, group: Any, firsts: Any, lasts: Any) -> tuple[Any, Any, Any, Any]:
        """Join what follows each other within the gap.

        The rows are sorted by group and time. Returns which rows begin a run, the run of each row, and the first and
        the last time of each run.
        """
        ends = ticks(lasts) + count_of(self.gap, lasts)
        # The last time before a row is that of the row before it, because spans of one group do not overlap.
        begins = np.append(True, (group[1:] != group[:-1]) | (ticks(firsts)[1:] >= ends[:-1]))
        return begins, np.cumsum(begins) - 1, firsts[begins], lasts[np.append(begins[1:], True)]


def _first_and_last(groups: Groups) -> tuple[Any, ...]:
    # Each group has a row, on which `reduceat` relies: of no rows it would return the first of the next group.
    times, begins = ticks(groups.values[0]), groups.offsets[:-1]
    bounds = np.minimum.reduceat(times, begins), np.maximum.reduceat(times, begins)
    return (np.arange(len(groups)), *(of_ticks(each, groups.values[0]) for each in bounds))


def event_times(column: Any, name: str) -> Any:
    """Return event times as counts. Raises DataError, which names the column and what leaves out nulls."""
    if is_null(column).any():
        raise DataError(
            f"column {name!r}: an event time is null: filter(lambda r: ~is_null(r.{name})) before window(...) leaves "
            "such records out, with is_null of differential.frames"
        )
    return ticks(column)


def refuse_far(times: Any, margin: int) -> None:
    """Raise DataError if the bounds of a window may not fit into 64 bits."""
    for time in (int(times.min()), int(times.max())) if len(times) else ():
        if not -(1 << 63) <= time - margin <= time + margin < 1 << 63:
            raise DataError(
                f"an event time is {time} units from 0 or 1970, so the bounds of its windows do not fit into 64 "
                "bits: filter such records before the window"
            )
