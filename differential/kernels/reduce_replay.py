"""The history of groups that a reduction in Python visits more than once, replayed in the order of times.

The source rows of such a group, its input or its output before the call, are in lexicographic order of their times. At
a visit those enter whose time is not later in this order, because no other row can be at or before the visit's time.
The rows that have entered are carried from visit to visit, together with the corrections emitted so far.

Let m be the meet of the times of the present visit and the later ones. Each of these times t is at or after m, so for
every time h: h <= t exactly if h v m <= t. Therefore a row at or before m counts at all these visits, and needs no time
any more (`ALWAYS`). Another row moves to h v m, if that is the time of one of these visits. Rows that then agree in
value and time are added up, and dropped if they cancel.

*Cost.* Along a chain of times m is the time of the visit itself. So what is carried is the group as it accumulates
there, and all visits together cost the source rows and the groups that the function receives. On other partial orders a
visit costs the rows carried: of each value at most one at each of these times, and those whose h v m is not visited.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from differential.kernels.compile import Ints, Table, bare, kernel
from differential.kernels.reduce_rows import (
    ROW_DIFF,
    ROW_TIME,
    ROW_VAL,
    Rows,
    consolidate_rows,
    no_rows,
    put_row,
    with_room,
)
from differential.kernels.reduce_times import is_at_or_before, same_entry, sorts_before

VISITS_FROM, GROUP_KEY, VISIT, ROWS_FROM, PLANNED = 0, 1, 2, 3, 5
"""The columns of `groups`: where the visits of a group start, which end where those of the next group start; its key;
its visit in the present round; and where its source rows of each side start, which end in the same way."""

INPUT, OUTPUT, SIDES = range(3)
"""The two sides of a group. Those columns of `groups` that exist for each of them are neighbours."""

ENTERS_FROM, ENTERS_TO, CARRIED_FROM, CARRIED_TO, GROUP_WIDTH = range(PLANNED, PLANNED + 5 * SIDES, SIDES)
"""More columns, if there are groups with several visits: the source rows of a side that enter in the present round are
ENTERS_FROM to ENTERS_TO (excluded), and its rows among those carried or replayed are CARRIED_FROM to CARRIED_TO."""

VAL, TIME, DIFF, ROW_WIDTH = range(4)
"""The columns of source rows and of rows carried. A time is an entry of `times`, or `ALWAYS` in rows carried."""

ALWAYS = -1


class History(NamedTuple):
    """One side of the groups: its source rows, and the rows carried from the round before.

    `times` are flat. The times of the visits end them, and before these are as many meets, one for each visit.
    """

    groups: Table
    side: int
    times: Ints
    depth: int
    source: Table
    carried: Table


@bare
def is_revisited(groups: Table, group: int) -> bool:
    """Whether a group has more than one visit."""
    return bool(groups[group + 1, VISITS_FROM] - groups[group, VISITS_FROM] > 1)


@bare
def to_meets(times: Ints, first: int, last: int, depth: int) -> None:
    """Replace each of the entries `first` to `last` by the meet of it and those after it."""
    for item in range((last - 1) * depth - 1, first * depth - 1, -1):
        times[item] = min(times[item], times[item + depth])


@bare
def _against_join(times: Ints, other: int, time: int, meet: int, depth: int) -> int:
    """Return -1, 0 or 1 if a time comes before, is, or comes after the join of `time` and `meet`, in this order."""
    for d in range(depth):
        here, join = times[other * depth + d], max(times[time * depth + d], times[meet * depth + d])
        if here != join:
            return -1 if here < join else 1
    return 0


@bare
def _advanced(history: History, time: int, meet: int, visit: int, last: int) -> int:
    """Return the time of a row as the visits from `visit` to `last`, whose meet is given, see it."""
    times, depth = history.times, history.depth
    if time == ALWAYS or is_at_or_before(times, time, times, meet, depth):
        return ALWAYS
    while visit < last:
        middle = (visit + last) >> 1
        order = _against_join(times, middle, time, meet, depth)
        if order == 0:
            return middle
        if order < 0:
            visit = middle + 1
        else:
            last = middle
    return time


@bare
def _replay(history: History, group: int, rows: Rows) -> int:
    """Put the rows carried and those that enter into `rows`, as the present visit and the later ones see them; return
    how many there are, sorted by value and consolidated.
    """
    groups, side, times, depth, source, carried = history
    visit, last = groups[group, VISIT], groups[group + 1, VISITS_FROM]
    meet = visit - (groups[len(groups) - 1, VISITS_FROM] - groups[0, VISITS_FROM])
    moves = not same_entry(times, meet - 1, times, meet, depth)
    count = 0
    for row in range(groups[group, CARRIED_FROM + side], groups[group, CARRIED_TO + side]):
        time = carried[row, TIME]
        if moves:
            time = _advanced(history, time, meet, visit, last)
        put_row(rows, count, carried[row, VAL], time, carried[row, DIFF])
        count += 1
    for row in range(groups[group, ENTERS_FROM + side], groups[group, ENTERS_TO + side]):
        time = _advanced(history, source[row, TIME], meet, visit, last)
        put_row(rows, count, source[row, VAL], time, source[row, DIFF])
        count += 1
    return consolidate_rows(rows, 0, count)


@bare
def _enter(history: History, active: Ints) -> tuple[int, int]:
    """Let the rows enter for which it is time; return how many rows there are to replay, and the most of one group."""
    groups, side, times, depth, source, _ = history
    room, most = 0, 0
    for group in active:
        if is_revisited(groups, group):
            first, end = groups[group, ENTERS_TO + side], groups[group + 1, ROWS_FROM + side]
            row = first
            while row < end and not sorts_before(times, groups[group, VISIT], times, source[row, TIME], depth):
                row += 1
            groups[group, ENTERS_FROM + side], groups[group, ENTERS_TO + side] = first, row
            replayed = row - first + groups[group, CARRIED_TO + side] - groups[group, CARRIED_FROM + side]
            room += replayed
            most = max(most, replayed)
    return room, most


@kernel
def replayed(groups: Table, times: Table, source: Table, carried: Table, active: Ints, side: int) -> Table:
    """Return the rows of all groups with several visits, as their present visits see them; note where they are.

    The rows of a group are sorted by value and consolidated.
    """
    history = History(groups, side, times.reshape(times.size), times.shape[1], source, carried)
    room, most = _enter(history, active)
    rows, kept = with_room(no_rows(), most), np.empty((room, ROW_WIDTH), np.int64)
    count = 0
    for group in active:
        if is_revisited(groups, group):
            n = _replay(history, group, rows)
            groups[group, CARRIED_FROM + side] = count
            for row in range(n):
                kept[count, VAL], kept[count, TIME] = rows[ROW_VAL, row], rows[ROW_TIME, row]
                kept[count, DIFF] = rows[ROW_DIFF, row]
                count += 1
            groups[group, CARRIED_TO + side] = count
    return kept[:count].copy()


@bare
def counts_at(times: Ints, time: int, visit: int, depth: int) -> bool:
    """Whether a row at this time is at or before a visit's time."""
    return time == ALWAYS or is_at_or_before(times, time, times, visit, depth)


@bare
def span(groups: Table, group: int, side: int) -> tuple[int, int]:
    """Return where the rows of a group are at its visit: among the replayed ones, or its only visit, the source's."""
    if is_revisited(groups, group):
        return groups[group, CARRIED_FROM + side], groups[group, CARRIED_TO + side]
    return groups[group, ROWS_FROM + side], groups[group + 1, ROWS_FROM + side]


@bare
def keep_correction(groups: Table, group: int, held: Table, rows: Rows, n: int, kept: Table, count: int) -> int:
    """Append to the `count` rows to carry the replayed output of a group, and a correction of `n` rows at its visit;
    return how many there are then."""
    first, last = span(groups, group, OUTPUT)
    groups[group, CARRIED_FROM + OUTPUT] = count
    # After its last visit nothing of a group is read.
    if groups[group, VISIT] + 1 < groups[group + 1, VISITS_FROM]:
        for row in range(first, last):
            for column in range(ROW_WIDTH):
                kept[count, column] = held[row, column]
            count += 1
        for row in range(n):
            kept[count, VAL], kept[count, TIME] = rows[ROW_VAL, row], groups[group, VISIT]
            kept[count, DIFF] = rows[ROW_DIFF, row]
            count += 1
    groups[group, CARRIED_TO + OUTPUT] = count
    return count
