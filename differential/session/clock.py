"""Event time in the commits of a session: watermarks, and the rows that come after them.

A `Clock` belongs to a table with event times. Its watermark is a promise: from then on, no row before it is inserted,
removed or replaced. So what a view contains about earlier times is final. The commit enforces the promise:

    late   iff   event time < watermark as of the previous commit

A late change goes to a table of late changes instead. After that the watermark moves to the highest event time seen,
minus the lateness. If sources fill the table, the least of their highest times counts. The program can also move it.
It never moves back. Late changes and watermarks are tables, so they belong to the commit, are as durable as the commit,
and can be read by views.

Nothing here runs a dataflow. `Clocks.reckon` receives the statements of a commit, and `Reckoning.finish` its changes.
Only `Clocks.settle`, which is called once the commit has begun, changes the clocks.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from differential.data.ticks import of_ticks, ticks
from differential.session.feeds import Feeds
from differential.session.item import Item
from differential.session.table_data import Column
from differential.session.transaction import Kind, Net, RowStatement, TransactionPlan, in_total, keys_of, stacked
from timely.errors import DataError, SessionError
from timely.lowlevel import Origin

CHANGES = (Kind.INSERT, Kind.UPSERT, Kind.DELETE)
"""The kinds of statements that have whole rows: the table of late changes names them by their values."""

LEAST = 1 - (1 << 63)
"""No watermark is less, so that 64 bits hold it."""
MOST = (1 << 63) - 1


@dataclass(eq=False)
class Clock:
    """The event times of a table. Times are counted in the unit of the column."""

    item: Item
    place: int
    """The position of the column of event times."""
    like: Column
    """An empty column of the type of the event times."""
    lateness: int | None
    """How far the watermark stays behind the highest event time; None if only the program moves it."""
    idle: float | None
    """After this many seconds without rows, a source or the table no longer holds a watermark back."""
    late: Item
    """The table of late changes."""
    watermark: Item
    """The table of the watermark."""
    origin: Origin
    """Where the program stated it."""
    mark: int | None = None
    """The watermark as of the last commit."""
    index: Item | None = None
    """The rows of the table by event time, once rows have expired."""
    highest: dict[str | None, int] = field(default_factory=dict)
    """The highest event time that each source has delivered; the key None is that of the program."""
    moved: dict[str | None, float] = field(default_factory=dict)
    """When each source last delivered, or was first seen; the key None is that of the whole table."""

    def value(self, mark: int | None) -> Any:
        """Return a watermark as a value of the column."""
        return None if mark is None else of_ticks(np.array([mark], np.int64), self.like).tolist()[0]

    def times(self, columns: tuple[Column, ...]) -> Column:
        """Return the event times of rows as counts. Raises DataError if one is null."""
        try:
            return ticks(columns[self.place])
        except DataError as error:
            names = self.item.names or ()
            raise DataError(f"column {names[self.place]!r} of {self.item}: {error}") from None

    def is_early(self, times: Column) -> Column:
        """Return a mask of the event times that are before the watermark."""
        return np.zeros(len(times), np.bool_) if self.mark is None else times < self.mark


class Clocks:
    """The clocks of a session. Use under the lock of its catalog."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.all: dict[Item, Clock] = {}
        self.now = now
        self._reckoning: Reckoning | None = None

    def add(self, clock: Clock) -> None:
        clock.moved[None] = self.now()
        self.all[clock.item] = clock

    def beside(self, item: Item) -> tuple[Item, ...]:
        """Return the tables that exist because of a table."""
        clock = self.all.get(item)
        return () if clock is None else (clock.late, clock.watermark)

    def index_bytes(self, item: Item) -> int:
        """Return the bytes of the index by event time of a table, as of the last look; 0 if there is none."""
        index = self.all[item].index if item in self.all else None
        return 0 if index is None else sum(index.nbytes)

    def refuse_to_drop(self, item: Item) -> None:
        """Raise SessionError if another table needs this one."""
        for clock in self.all.values():
            if item in (clock.late, clock.watermark):
                raise SessionError(f"{item} belongs to {clock.item}, and is dropped with it")

    def check(self, item: Item, statement: RowStatement) -> None:
        """Raise DataError if an event time of a statement is null, or a watermark."""
        if item in self.all and statement.kind in CHANGES:
            self.all[item].times(statement.columns)
        for clock in self.all.values():
            if item is clock.watermark:
                _marks(clock, statement)

    def least(self, item: Item) -> Any:
        """Return the least watermark of the tables with event times that an item is or reads; None if one has none.

        Raises SessionError if the watermarks cannot be compared, because only some tables have integers as event times.
        """
        clocks = [self.all[each] for each in sources(item) if each in self.all]
        if len({np.asarray(clock.like).dtype.kind for clock in clocks}) > 1:
            tables = " and ".join(sorted(str(clock.item) for clock in clocks))
            raise SessionError(f"{item} has no watermark: the event times of {tables} cannot be compared")
        marks = [(_instant(clock), clock) for clock in clocks if clock.mark is not None]
        if not marks or len(marks) < len(clocks):
            return None
        _, least = min(marks, key=lambda each: each[0])
        return least.value(least.mark)

    def reckon(self, pending: Iterable[tuple[Item, RowStatement]], feeds: Feeds) -> Reckoning:
        """Divide the statements of a commit into late and punctual ones, and move the watermarks, until `settle`."""
        self._reckoning = Reckoning(self.all, self.now())
        self._reckoning.read(pending, feeds)
        return self._reckoning

    def settle(self) -> None:
        """Take over the last reckoning into the clocks: its commit has begun."""
        if self._reckoning is not None:
            for clock in self.all.values():  # one that was added since then is not in the reckoning
                clock.mark = self._reckoning.marks.get(clock, clock.mark)
                clock.highest = self._reckoning.highest.get(clock, clock.highest)
                clock.moved = self._reckoning.moved.get(clock, clock.moved)
        self._reckoning = None


class Reckoning:
    """The event times of one commit: what is late, and where watermarks move.

    1. `read` copies `highest` and `moved` of the clocks, and divides each statement by the watermark of the previous
       commit (`Clock.mark`): late rows are set aside, and the others are `punctual`. Rows that expire come first there.
    2. `read` then makes `marks`: from the highest event times (`_move`), of idle tables also from others (`_follow`).
    3. The caller computes the changes of tables from `punctual`.
    4. `finish` withdraws the changes of keys whose rows before the watermark would be replaced, unless these rows
       expire, and adds the late rows and the watermarks.
    5. `Clocks.settle` copies `marks`, `highest` and `moved` into the clocks, which nothing has changed up to then. So a
       reckoning can be discarded: after an error, the commit makes another one without the statements at fault.
    """

    def __init__(self, clocks: Mapping[Item, Clock], now: float) -> None:
        self.punctual: list[tuple[Item, RowStatement]] = []
        """The statements without the late rows."""
        self.marks: dict[Clock, int | None] = {}
        """The watermarks as of this commit."""
        self.highest: dict[Clock, dict[str | None, int]] = {}
        self.moved: dict[Clock, dict[str | None, float]] = {}
        self._clocks = clocks
        self._now = now
        self._late: dict[Clock, list[tuple[Column, ...]]] = {}
        """Late rows, and as a further column what each was to do, one of `CHANGES`."""
        self._stated: dict[Clock, list[int]] = {}
        """Where the program moves watermarks."""
        self._expired: dict[Clock, int] = {}
        """The time up to which rows expire: they are before the watermark, but their removal is not late."""

    def read(self, pending: Iterable[tuple[Item, RowStatement]], feeds: Feeds) -> None:
        """Set the late rows aside, and move the watermarks."""
        if not self._clocks:
            self.punctual.extend(pending)
            return
        marks = {clock.watermark: clock for clock in self._clocks.values()}
        for clock in self._clocks.values():
            self.highest[clock], self.moved[clock] = dict(clock.highest), dict(clock.moved)
        try:
            for item, statement in pending:
                if item in marks:
                    self._state(marks[item], statement)
                elif statement.kind is Kind.EXPIRE:
                    self._expire(self._clocks[item], statement)
                elif item in self._clocks and statement.kind in CHANGES:
                    self._divide(self._clocks[item], statement)
                else:
                    self.punctual.append((item, statement))
        except DataError as error:
            raise SessionError(str(error)) from None  # by which `changes_of` finds the source at fault
        for clock in self._clocks.values():
            own = [feed for feed in feeds.all if feed.item is clock.item]
            self._move(clock, {feed.name for feed in own if feed.may_deliver})
        self._follow()

    def finish(
        self, plans: Mapping[Item, TransactionPlan], changes: dict[str, tuple[Item, Net]]
    ) -> dict[str, tuple[Item, Net]]:
        """Remove late replacements from the changes of tables, add late rows and watermarks, and return the changes."""
        for item, made in plans.items():
            # Only such changes remove rows that their statements do not have, and that `_divide` could not see.
            if item in self._clocks and item.name in changes and (made.replaced is not None or made.is_cleared):
                net = self._withdrawn(self._clocks[item], made, changes.pop(item.name)[1])
                if net is not None:
                    changes[item.name] = item, net
        for clock, parts in self._late.items():
            name = clock.late.name
            net = _late_rows(clock, parts)
            if name in changes:
                given = changes[name][1]
                net = Net(stacked([given.columns, net.columns]), np.concatenate([given.diffs, net.diffs]))
            changes[name] = clock.late, net
        for clock, mark in self.marks.items():
            if mark is not None and mark != clock.mark:  # the row of the former mark goes, if there was one
                values = [mark] if clock.mark is None else [clock.mark, mark]
                column = of_ticks(np.array(values, np.int64), clock.like)
                net = Net((column,), np.array([-1, 1][-len(values) :], np.int64))
                changes[clock.watermark.name] = clock.watermark, net
        return changes

    def _state(self, clock: Clock, statement: RowStatement) -> None:
        """Record where the program moves a watermark."""
        if statement.kind is not Kind.INSERT:
            raise SessionError(
                f"a watermark cannot be taken back (at {statement.origin}): it only moves forward, with "
                f"db[{clock.item.name!r}].advance_watermark(...)"
            )
        self._stated.setdefault(clock, []).extend(_marks(clock, statement))

    def _expire(self, clock: Clock, statement: RowStatement) -> None:
        """Remove the rows that expire before other statements take effect: they are rows of the last commit."""
        self.punctual.insert(0, (clock.item, statement._replace(kind=Kind.DELETE)))
        last = int(ticks(statement.columns[clock.place]).max())
        self._expired[clock] = max(last, self._expired.get(clock, last))

    def _divide(self, clock: Clock, statement: RowStatement) -> None:
        """Divide a statement into its late rows and the others."""
        times = clock.times(statement.columns)
        early = clock.is_early(times)
        if early.any():
            change = np.full(np.count_nonzero(early), statement.kind.value, np.dtypes.StringDType())
            self._late.setdefault(clock, []).append((*(column[early] for column in statement.columns), change))
            statement = statement._replace(columns=tuple(column[~early] for column in statement.columns))
        if len(times):  # late rows count here, too: their source is not idle
            source = statement.source
            self.moved[clock][source] = self.moved[clock][None] = self._now
            if statement.kind is not Kind.DELETE:  # a deletion does not show that rows up to there have come
                self.highest[clock][source] = max(self.highest[clock].get(source, int(times.max())), int(times.max()))
        if len(statement.columns[0]):
            self.punctual.append((clock.item, statement))

    def _move(self, clock: Clock, live: set[str]) -> None:
        """Move a watermark to the time that its sources have reached, or to which the program has moved it."""
        moved, highest = self.moved[clock], self.highest[clock]
        for source in live:
            moved.setdefault(source, self._now)  # a source that is new has its time to deliver
        awaited = [source for source in live if not self._is_idle(clock, source)]
        marks = [*self._stated.get(clock, ())] + ([] if clock.mark is None else [clock.mark])
        if clock.lateness is not None and highest:
            if not awaited:  # no source holds the watermark back
                marks.append(max(highest.values()) - clock.lateness)
            elif all(source in highest for source in awaited):  # the first rows of a source may be of any time
                marks.append(min(highest[source] for source in awaited) - clock.lateness)
        self.marks[clock] = max(LEAST, *marks) if marks else None

    def _follow(self) -> None:
        """Make the watermark of a table that is idle follow those of the others."""
        idle = [clock for clock in self._clocks.values() if self._is_idle(clock, None)]
        # Only the marks of idle tables change here, and only those of others are followed: the order does not matter.
        others = [clock for clock in self._clocks.values() if clock not in idle]
        for clock in idle:
            found = [_converted(each, self.marks[each], clock) for each in others]
            known = [mark for mark in found if mark is not None]
            if known and len(known) == len(found):
                own = self.marks[clock]
                self.marks[clock] = min(known) if own is None else max(own, min(known))

    def _is_idle(self, clock: Clock, source: str | None) -> bool:
        return clock.idle is not None and self._now - self.moved[clock][source] >= clock.idle

    def _withdrawn(self, clock: Clock, made: TransactionPlan, net: Net) -> Net | None:
        """Return changes without those of the keys for which a row before the watermark would be replaced."""
        times = clock.times(net.columns)
        stays = times > self._expired[clock] if clock in self._expired else np.ones(len(times), np.bool_)
        early = clock.is_early(times) & stays
        if not early.any():
            return net
        keys = clock.item.keys
        touched = set(keys_of(tuple(column[early] for column in net.columns[:keys])))
        late = np.array([key in touched for key in keys_of(net.columns[:keys])], np.bool_) & stays
        columns, diffs = in_total(tuple(column[late] for column in net.columns), net.diffs[late])
        times = np.abs(diffs)
        kinds = np.where(diffs < 0, "delete", "insert").astype(np.dtypes.StringDType())
        self._late.setdefault(clock, []).append(tuple(each.repeat(times) for each in (*columns, kinds)))
        if late.all():
            return None
        return Net(tuple(column[~late] for column in net.columns), net.diffs[~late])


def sources(item: Item) -> Iterator[Item]:
    """Yield the tables that an item reads, directly or through views; a table yields itself."""
    waiting, seen = [item], set()
    while waiting:
        each = waiting.pop()
        if each not in seen:
            seen.add(each)
            waiting += each.reads.values()
            if each.kind == "table":
                yield each


def _marks(clock: Clock, statement: RowStatement) -> list[int]:
    """Return the watermarks that a statement has. Raises DataError if one is null."""
    try:
        found: list[int] = ticks(statement.columns[0]).tolist()
    except DataError:
        raise DataError(f"the watermark of {clock.item} cannot be null") from None
    return found


def _late_rows(clock: Clock, parts: list[tuple[Column, ...]]) -> Net:
    """Return rows and changes as rows of the table of late changes, which may have its columns in another order."""
    names, columns = (*(clock.item.names or ()), "change"), stacked(parts)
    ordered = tuple(columns[names.index(name)] for name in clock.late.names or ())
    return Net(ordered, np.ones(len(columns[0]), np.int64))


def _converted(clock: Clock, mark: int | None, to: Clock) -> int | None:
    """Return the watermark of a clock in the unit of another clock; None if there is none, or it does not compare."""
    ours, theirs = np.asarray(clock.like), np.asarray(to.like)
    if mark is None or ours.dtype.kind != theirs.dtype.kind:
        return None
    if ours.dtype.kind != "M":
        return mark
    # A coarser unit rounds down, so the watermark promises no more than the one that it follows. Nor do the bounds:
    # one that is below the least time of a finer unit promises nothing about the times of that unit.
    return min(max(LEAST, mark * _nanoseconds(ours.dtype) // _nanoseconds(theirs.dtype)), MOST)


_NANOSECONDS = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def _instant(clock: Clock) -> int:
    """Return the watermark of a clock; a time is counted in nanoseconds, which may need more than 64 bits."""
    dtype, mark = np.asarray(clock.like).dtype, clock.mark or 0
    return mark * _nanoseconds(dtype) if dtype.kind == "M" else mark


def _nanoseconds(dtype: np.dtype[Any]) -> int:
    return _NANOSECONDS[np.datetime_data(dtype)[0]]


def seconds(duration: dt.timedelta | None) -> float | None:
    """Return a duration of real time in seconds, or None for None. Raises SessionError if it is not positive.

    >>> seconds(dt.timedelta(minutes=1))
    60.0
    """
    if duration is None:
        return None
    if not isinstance(duration, dt.timedelta) or duration <= dt.timedelta(0):
        raise SessionError(f"idle is a positive timedelta, not {duration!r:.80}")
    return duration.total_seconds()
