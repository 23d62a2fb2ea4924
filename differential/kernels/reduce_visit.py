"""Visiting a group of a reduction at its interesting times, one after the other.

At each, the rows at or before it are tallied, and how what they reduce to differs from what was said before is said. At
times that are not due it is only found out whether anything would have to be said.

A tally is kept up to date from one time to the next; along a chain of times each row enters it once, so that many times
at a key with a long history cost about the sum of both and not the product. On other partial orders a visit costs the
times of the group and the rows that enter or leave the tally.
"""

from __future__ import annotations

from differential.kernels.compile import Ints, Table, bare
from differential.kernels.reduce_fold import (
    FAULT,
    FREE,
    TALLY_VALS,
    empty_tally,
    fold_at_most,
    fold_tally,
    is_descending,
    tally_row,
)
from differential.kernels.reduce_history import KNOWN, TABLE, VISITS
from differential.kernels.reduce_layers import KEY
from differential.kernels.reduce_output import ROW_COUNT, SAID_DIFF, SAID_TIME, SAID_VAL, must_grow, say
from differential.kernels.reduce_rows import ROW_DIFF, ROW_TIME, ROW_VAL, Rows, consolidate_rows, put_row
from differential.kernels.reduce_times import IS_DUE, IS_USED, is_at_or_before, is_covered, is_due, put_minimal

_PLACES, _STARTS, _ORDER, _SAID_STARTS, _SAID_ORDER, _COUNTED, ROOM = range(FREE, FREE + 7)
"""Beside the tally, of a group that is visited: the place in it of each input row; where the input rows of each time
start in their order by time, and this order; the same of the output rows; whether a time's rows are in the tally."""

DONE, NO_ROOM, NO_CHAIN, AT_FAULT, PUT_OFF = range(5)
"""Why groups are reduced no further: there are no more; there is no room; the times of one are to be closed under join;
one has a negative diff; one has times to put off."""

ROOM_TIMES, ROOM_ROWS, FOLDS, TO_SAY, ROWS_SAID, UNSAID, PENDINGS, RANKED, CHAIN, STEPS, VISIT, FOUND = range(12)
"""What is known of a group: for how many times there must be room, for how many rows, for what they reduce to, for what
may have to be said at one time, and at all; how many rows wait for room to be said; how many times are pending, and are
ranked; whether those to be visited are a chain, how many these are (-1 before it is gathered), and at which one its
input is at fault."""

MOST_AHEAD = 64
"""At so many times that are not due it is found out whether anything would have to be said there."""


@bare
def _by_time(rows: Rows, first: int, last: int, n: int, room: Table, starts: int, order: int) -> None:
    """Set two columns of `room` to the rows in order of time: where each time's rows start, and their numbers."""
    for time in range(n + 2):
        room[starts, time] = 0
    for row in range(first, last):
        room[starts, rows[ROW_TIME, row] + 2] += 1
    for time in range(n):
        room[starts, time + 2] += room[starts, time + 1]
    for row in range(first, last):
        time = rows[ROW_TIME, row] + 1
        room[order, room[starts, time]] = row
        room[starts, time] += 1


@bare
def _distinct_values(rows: Rows, last: int, descending: bool, room: Table) -> int:
    """Put the distinct values into the tally, and the place there of each row; return how many values they are."""
    n = 0
    for step in range(last):
        row = last - 1 - step if descending else step
        if n == 0 or room[TALLY_VALS, n - 1] != rows[ROW_VAL, row]:
            room[TALLY_VALS, n] = rows[ROW_VAL, row]
            n += 1
        room[_PLACES, row] = n - 1
    return n


@bare
def visit_times(
    kind: int,
    parameter: int,
    group: Ints,
    exact: Ints,
    room: Table,
    fold: Rows,
    vectors: Table,
    marks: Table,
    rows: Rows,
    bounds: Ints,
    said: Rows,
    output: Table,
    table_said: Ints,
    slots: Ints,
    counts: Ints,
    upper: Table,
    pending: Ints,
    found: Ints,
) -> int:
    """Reduce a gathered group at its interesting times; return DONE, AT_FAULT where its input has a negative diff, or
    NO_ROOM, after which it can be visited once more.

    Of the times that are not due, those at which something would have to be said become pending. `room` must have some
    for all rows and times, `fold` for what the group reduces to, twice: now, and before; `said` for both and for what
    was said; `pending` for all visits.
    """
    depth, n, chain = upper.shape[1], found[RANKED], found[CHAIN] != 0
    table, visits = vectors[TABLE], vectors[VISITS]
    _by_time(rows, 0, bounds[0], n, room, _STARTS, _ORDER)
    _by_time(rows, bounds[1], bounds[2], n, room, _SAID_STARTS, _SAID_ORDER)
    distinct = _distinct_values(rows, bounds[0], is_descending(kind), room)
    empty_tally(room, exact, distinct)
    for time in range(n):
        room[_COUNTED, time] = 0
    before, now, befores = 0, fold_at_most(kind, parameter, distinct), 0
    first_row = counts[ROW_COUNT]
    reached = ahead = 0
    for visit in range(found[STEPS]):
        due = is_due(upper, visits, visit, depth)
        if not due:
            ahead += 1
            if is_covered(pending, found[PENDINGS], visits, visit, depth):
                continue
            if ahead > MOST_AHEAD:
                found[PENDINGS] = put_minimal(pending, found[PENDINGS], visits, visit, depth)
                continue
        count = 0
        while chain and not marks[KNOWN, reached] & IS_DUE:
            reached += 1
        for time in range(reached if chain else 0, reached + 1 if chain else n):
            if not marks[KNOWN, time] & IS_USED:
                continue
            covers = int(chain or is_at_or_before(table, time, visits, visit, depth))
            if covers == 1:
                for place in range(room[_SAID_STARTS, time], room[_SAID_STARTS, time + 1]):
                    row = room[_SAID_ORDER, place]
                    put_row(said, count, rows[ROW_VAL, row], 0, -rows[ROW_DIFF, row])
                    count += 1
            if covers != room[_COUNTED, time]:
                sign = covers - room[_COUNTED, time]
                room[_COUNTED, time] = covers
                for place in range(room[_STARTS, time], room[_STARTS, time + 1]):
                    row = room[_ORDER, place]
                    tally_row(kind, room, exact, room[_PLACES, row], sign * rows[ROW_DIFF, row])
        reached += 1
        nows = fold_tally(kind, parameter, group, room, exact, distinct, fold, now)
        if nows == FAULT:
            if due:
                found[VISIT] = visit
                return AT_FAULT
            found[PENDINGS] = put_minimal(pending, found[PENDINGS], visits, visit, depth)
            continue
        if chain:
            for row in range(before, before + befores):
                put_row(said, count, fold[ROW_VAL, row], 0, -fold[ROW_DIFF, row])
                count += 1
        else:
            most = count + nows + counts[ROW_COUNT] - first_row
            if most > said.shape[1]:
                found[TO_SAY] = most
                counts[ROW_COUNT] = first_row
                return NO_ROOM
            for row in range(first_row, counts[ROW_COUNT]):
                if is_at_or_before(table_said, output[SAID_TIME, row], visits, visit, depth):
                    put_row(said, count, output[SAID_VAL, row], 0, -output[SAID_DIFF, row])
                    count += 1
        for row in range(now, now + nows):
            put_row(said, count, fold[ROW_VAL, row], 0, fold[ROW_DIFF, row])
            count += 1
        count = consolidate_rows(said, 0, count)
        if not due and count > 0:
            found[PENDINGS] = put_minimal(pending, found[PENDINGS], visits, visit, depth)
            continue
        if count > 0:
            if must_grow(output, slots, counts, count):
                found[ROWS_SAID] = counts[ROW_COUNT] - first_row + count
                counts[ROW_COUNT] = first_row
                return NO_ROOM
            say(output, table_said, slots, counts, group[KEY], said, count, visits, visit, depth)
        before, now, befores = now, before, nows
    return DONE
