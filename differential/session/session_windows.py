"""Windows that end when a group has no record for a while: `sessions`.

A record that arrives may join two sessions, and one that leaves may divide one. A change is to cost as much as the
records whose session changes, even if their group has many other sessions. So sessions are found in three steps:

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

from dataclasses import dataclass
from typing import Any

import numpy as np

from differential.collection import Collection
from differential.data.ticks import Duration, count_of, of_ticks, ticks
from differential.operators.groups import Groups
from timely.errors import DataError
from timely.lowlevel import is_null

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
