"""Windows of event time: which windows a record belongs to.

A window is an interval of event time that includes its start but not its end. `tumbling` windows follow each other,
`sliding` windows overlap, and `sessions` last as long as the records of a group follow each other within a gap.

Windows are a definition like any other: a record has its windows as long as it exists, and leaves them if it is removed
or corrected. Tumbling and sliding windows depend on the record alone.

Sessions are found in two steps, so that a change is cheap. Time is divided into cells as long as the gap. The records
of a group in one cell are in one session, so the first step reads only the cell of the change. The second step joins
the cells of the group to runs:

    cell c and the next cell belong together   iff   first of the next - last of c < gap

It reads the first and the last time of each cell of the group, and no records. Then only the records whose session has
changed receive the new one.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import numpy as np

from differential.collection import Collection
from differential.data.ticks import count_of, of_ticks, ticks
from differential.operators.groups import Groups
from timely.errors import BuildError, DataError
from timely.lowlevel import is_null, user_origin

WINDOW = ("window_start", "window_end")
"""The columns of the bounds of a window."""
Duration = int | dt.timedelta | np.timedelta64


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


def refuse_windows(names: tuple[str, ...]) -> None:
    """Raise BuildError if a collection has the columns of another window."""
    if taken := [name for name in WINDOW if name in names]:
        kept = "".join(f"{name!r}, " for name in names if name not in WINDOW)
        raise BuildError(
            f"window (at {user_origin()}): the columns {', '.join(taken)} are those of another window: give them other "
            f"names, as in select({kept}start={taken[0]!r}).window(..., at='start')"
        )


def assigned(
    collection: Collection, kind: Kind, at: int, by: tuple[int, ...], column: str = "event time"
) -> Collection:
    """Return each record once for each of its windows, with the window's start and end as further columns.

    The key stays the same. `at` is the position of the column of event times, which is named `column`. Sessions are
    found for each group of records that are equal in the columns at the positions `by`.

    >>> def program(scope):
    ...     minutes = Collection.of(scope, np.array([3, 9, 40]))
    ...     return assigned(minutes, sessions(30), 0, ())
    >>> example(program)
    [((3, 3, 39), 1), ((9, 3, 39), 1), ((40, 40, 70), 1)]
    """
    if isinstance(kind, Sliding):
        return _slid(collection, kind, at, column)
    return _joined(collection, kind.gap, at, by, column)


def _times(column: Any, name: str) -> Any:
    """Return event times as counts. Raises DataError, which names the column and what leaves out nulls."""
    if is_null(column).any():
        raise DataError(
            f"column {name!r}: an event time is null: filter(lambda r: ~is_null(r.{name})) before window(...) leaves "
            "such records out, with is_null of differential.frames"
        )
    return ticks(column)


def _slid(collection: Collection, kind: Sliding, at: int, column: str) -> Collection:
    def windows(*columns: Any) -> tuple[Any, ...]:
        times = _times(columns[at], column)
        size, step = count_of(kind.size, columns[at]), count_of(kind.step, columns[at])
        offset = 0 if kind.offset is None else count_of(kind.offset, columns[at])
        _refuse_far(times, size + step + abs(offset))
        last = (times - offset) // step * step + offset
        each = -(-size // step)
        rows = np.tile(np.arange(len(times)), each)
        starts = (last[None, :] - step * np.arange(each)[:, None]).reshape(-1)
        inside = starts + size > times[rows]
        rows, starts = rows[inside], starts[inside]
        bounds = (of_ticks(each, columns[at]) for each in (starts, starts + size))
        return (rows, *(column[rows] for column in columns), *bounds)

    return collection.flat_map(windows, keys=collection.keys, name="window")


def _joined(collection: Collection, gap: Duration, at: int, by: tuple[int, ...], column: str) -> Collection:
    group = len(by) + 1  # a group of all records needs a key, too

    def in_cells(*columns: Any) -> tuple[Any, ...]:
        cells = _times(columns[at], column) // count_of(gap, columns[at])
        return (np.zeros(len(cells), np.int64), *(columns[place] for place in by), cells, *columns)

    def span(groups: Groups) -> tuple[Any, ...]:
        times, begins = ticks(groups.values[0]), groups.offsets[:-1]
        bounds = np.minimum.reduceat(times, begins), np.maximum.reduceat(times, begins)
        return (np.arange(len(groups)), *(of_ticks(each, groups.values[0]) for each in bounds))

    def runs(groups: Groups) -> tuple[Any, ...]:
        cells, firsts, lasts = groups.values
        length = count_of(gap, firsts)
        _refuse_far(ticks(lasts), length)
        order = np.lexsort((cells, groups.index))
        index, first, last = groups.index[order], ticks(firsts)[order], ticks(lasts)[order]
        begins = np.append(True, (index[1:] != index[:-1]) | (first[1:] >= last[:-1] + length))
        run = np.cumsum(begins) - 1
        starts, ends = first[begins], last[np.append(begins[1:], True)] + length
        return (index, cells[order], *(of_ticks(each[run], firsts) for each in (starts, ends)))

    def with_times(*columns: Any) -> tuple[Any, ...]:
        return (*columns[: group + 1], columns[group + 1 + at])

    def rejoined(*columns: Any) -> tuple[Any, ...]:
        return columns[group + 1 :]

    records = collection.map(in_cells, keys=group + 1, name="cell")
    spans = records.map(with_times, keys=group + 1, name="event time").reduce(span, name="first and last")
    by_group = spans.map(lambda *columns: columns, keys=group, name="cells of a group")
    found = by_group.reduce(runs, name="sessions").map(lambda *columns: columns, keys=group + 1, name="cell")
    return records.join_map(found, rejoined, keys=collection.keys, name="window")


def _refuse_far(times: Any, margin: int) -> None:
    """Raise DataError if the bounds of a window may not fit into 64 bits."""
    for time in (int(times.min()), int(times.max())) if len(times) else ():
        if not -(1 << 63) <= time - margin <= time + margin < 1 << 63:
            raise DataError(
                f"an event time is {time} units from 0 or 1970, so that the bounds of its windows do not fit into 64 "
                "bits: filter such records before the window"
            )


def _refuse_none(what: str, duration: Duration) -> None:
    is_duration = isinstance(duration, (int, np.integer, dt.timedelta, np.timedelta64)) and duration is not True
    if not is_duration or not duration > type(duration)(0):  # type: ignore[operator]
        raise BuildError(
            f"window (at {user_origin()}): the {what} is a positive timedelta or whole number, and not {duration!r:.80}"
        )
