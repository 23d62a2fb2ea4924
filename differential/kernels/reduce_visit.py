"""The visit of a group of a reduction at its interesting times, in lexicographic order.

At each time t the input rows at or before t are accumulated in a tally, the tally is folded, and the correction is
emitted at t: the fold, less the output rows at or before t, less the corrections emitted at earlier times at or before
t. Lexicographic order extends the partial order, so those corrections are all known. At a time that is not due nothing
is emitted: t becomes pending if its correction is not empty.

*The tally's invariant.* Before the fold at t, the tally holds exactly the input rows at or before t. It is updated from
one visit to the next by the rows that enter or leave.

*Cost.* Along a chain of times each row enters the tally once and none leaves, so a visit of many times to a key with a
long history costs about the sum of both, not the product. On other partial orders a visit of one time costs the
number of the group's times, its output rows, the corrections emitted so far, and the rows that enter or leave.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from differential.kernels.compile import Ints, Table, bare, inner
from differential.kernels.reduce_fold import (
    FAULT,
    FREE,
    SUM,
    TALLY,
    TALLY_VALS,
    TALLY_WIDTH,
    TOTAL,
    UNKNOWN,
    Fold,
    empty_tally,
    fold_at_most,
    fold_tally,
    is_descending,
    is_linear,
    tally_row,
)
from differential.kernels.reduce_history import KNOWN, TABLE, VISITS, Scratch
from differential.kernels.reduce_layers import KEY
from differential.kernels.reduce_output import OUT_DIFF, OUT_TIME, OUT_VAL, ROW_COUNT, Emitted, emit, must_grow
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
from differential.kernels.reduce_times import IS_DUE, IS_USED, is_at_or_before, is_covered, is_due, put_minimal
from differential.kernels.value_order import CODE, PLACE, sort_values

_PLACES, _STARTS, _ORDER, _OUT_STARTS, _OUT_ORDER, _COUNTED, TALLY_COLUMNS = range(FREE, FREE + 7)
"""The columns of a group's visit, after those of the tally: for each input row the place of its value in the tally;
where each time's input rows start in the order by time, and that order; the same two of the output rows; for each time
whether its input rows are in the tally."""

DONE, NEEDS_ROOM, NEEDS_CLOSURE, AT_FAULT, HAS_PENDING, GOES_ON, NEEDS_GROUP = range(7)
"""Why the loop over groups returns to its caller, which allocates and calls again.

- DONE: every group is reduced.
- NEEDS_ROOM: an array is too small for the group; `state` holds the sizes.
- NEEDS_CLOSURE: the group is gathered, and its interesting times are not a chain, or some join is pending.
- AT_FAULT: at time VISIT the input cannot be reduced: a value has a negative diff, or a sum does not fit.
- HAS_PENDING: the group is reduced, and has pending times for the next call.

GOES_ON and NEEDS_GROUP are for the inner functions: the loop itself goes on, or reduces the group from all its rows."""

(
    ROOM_TIMES,
    ROOM_ROWS,
    FOLDS,
    CHANGES,
    OUTPUT_ROWS,
    UNEMITTED,
    NEW_TIMES,
    PENDINGS,
    RANKED,
    CHAIN,
    STEPS,
    VISIT,
    WHOLE_GROUP,
    STATE_WIDTH,
) = range(14)
"""The state of the loop over groups, which survives a return to the caller.

- ROOM_TIMES, ROOM_ROWS, FOLDS, CHANGES: the room that the group needs: for times, for rows, for its folds, and for
  the rows of one correction before it is consolidated.
- OUTPUT_ROWS: how many rows the group adds to the output, as far as that is known when the output lacks room.
- UNEMITTED: how many rows of `changes` wait for room in the output.
- NEW_TIMES, PENDINGS: how many new times of the group are due, and how many times are pending.
- RANKED: how many distinct times the gathered group has.
- CHAIN, STEPS: whether the times to visit are a chain, and how many they are; STEPS is -1 until the group is gathered.
- VISIT: the number of the visit at which the input cannot be reduced.
- WHOLE_GROUP: whether the group is reduced from all its rows, though its kind is linear."""


class Room(NamedTuple):
    """Room for the rows of one group.

    `rows` are those of a gathered group, of which `bounds` has the end of the input, and the start and the end of the
    output. `tally` has the tally and what else a visit needs, `fold` two folds, and `changes` a correction.
    """

    tally: Table
    fold: Rows
    rows: Rows
    changes: Rows
    bounds: Ints


@inner
def no_room() -> Room:
    """Return room for no rows."""
    tally = np.empty((TALLY_COLUMNS, TALLY_WIDTH), np.int64)
    return Room(tally, no_rows(), no_rows(), no_rows(), np.empty(3, np.int64))


@inner
def room_for_rows(room: Room, state: Ints) -> Room:
    """Return the room that `state` asks for, with the present contents."""
    tally = with_room(room.tally, state[ROOM_ROWS])
    # `rows` is as wide as `tally`, so callers that need room for rows compare only with `tally`.
    rows = with_room(room.rows, tally.shape[1])
    return Room(tally, with_room(room.fold, state[FOLDS]), rows, with_room(room.changes, state[CHANGES]), room.bounds)


@bare
def _by_time(rows: Rows, first: int, last: int, n: int, tally: Table, starts: int, order: int) -> None:
    """Set two columns of `tally` to the order of the rows by time: where each time's rows start, and their numbers."""
    # A counting sort whose counts stand two places too high: the sums turn entry t + 1 into the start of time t, and
    # the last loop moves it on to the end of time t, which is the start of time t + 1.
    for time in range(n + 2):
        tally[starts, time] = 0
    for row in range(first, last):
        tally[starts, rows[ROW_TIME, row] + 2] += 1
    for time in range(n):
        tally[starts, time + 2] += tally[starts, time + 1]
    for row in range(first, last):
        time = rows[ROW_TIME, row] + 1
        tally[order, tally[starts, time]] = row
        tally[starts, time] += 1


@bare
def _distinct_values(rows: Rows, last: int, descending: bool, tally: Table) -> int:
    """Put the distinct values into the tally, and the place there of each row; return how many values there are."""
    # Consolidated rows are sorted by value, so equal values are neighbours.
    n = 0
    for step in range(last):
        row = last - 1 - step if descending else step
        if n == 0 or tally[TALLY_VALS, n - 1] != rows[ROW_VAL, row]:
            tally[TALLY_VALS, n] = rows[ROW_VAL, row]
            n += 1
        tally[_PLACES, row] = n - 1
    return n


@bare
def _put_in_order(fold: Fold, room: Room, n: int) -> None:
    """Put the `n` distinct values of the tally into the order in which the kind looks at them."""
    tally, values = room.tally, room.changes
    for place in range(n):
        put_row(values, place, tally[TALLY_VALS, place], place, 0)
    sort_values(fold.order, values, n)
    for place in range(n):
        row = n - 1 - place if is_descending(fold.kind) else place
        tally[TALLY_VALS, place] = values[CODE, row]
        tally[_COUNTED, values[PLACE, row]] = place  # not yet in use
    for row in range(room.bounds[0]):
        tally[_PLACES, row] = tally[_COUNTED, tally[_PLACES, row]]


@bare
def _start_tally(fold: Fold, room: Room, n: int) -> int:
    """Prepare the visit of a group with `n` ranked times; return how many distinct values its input has."""
    tally, rows, bounds = room.tally, room.rows, room.bounds
    _by_time(rows, 0, bounds[0], n, tally, _STARTS, _ORDER)
    _by_time(rows, bounds[1], bounds[2], n, tally, _OUT_STARTS, _OUT_ORDER)
    distinct = _distinct_values(rows, bounds[0], is_descending(fold.kind), tally)
    if fold.order != 0:
        _put_in_order(fold, room, distinct)
    empty_tally(tally, fold.exact, distinct)
    for time in range(n):
        tally[_COUNTED, time] = 0
    return distinct


@bare
def _accumulate(
    fold: Fold, scratch: Scratch, room: Room, visit: int, first: int, last: int, chain: bool, depth: int
) -> int:
    """Bring the tally to a visit's time, by the rows at the times `first` to `last`; put the output rows at or before
    that time into `changes`, negated, and return how many these are."""
    tally, rows, table, visits = room.tally, room.rows, scratch.vectors[TABLE], scratch.vectors[VISITS]
    count = 0
    for time in range(first, last):
        if not scratch.marks[KNOWN, time] & IS_USED:
            continue
        # In a chain the loop has only this visit's own time; rows at the times before it are in the tally already.
        covers = int(chain or is_at_or_before(table, time, visits, visit, depth))
        if covers == 1:
            for place in range(tally[_OUT_STARTS, time], tally[_OUT_STARTS, time + 1]):
                row = tally[_OUT_ORDER, place]
                put_row(room.changes, count, rows[ROW_VAL, row], 0, -rows[ROW_DIFF, row])
                count += 1
        if covers != tally[_COUNTED, time]:
            sign = covers - tally[_COUNTED, time]
            tally[_COUNTED, time] = covers
            for place in range(tally[_STARTS, time], tally[_STARTS, time + 1]):
                row = tally[_ORDER, place]
                tally_row(fold, tally, tally[_PLACES, row], sign * rows[ROW_DIFF, row])
    return count


@bare
def _add_fold(room: Room, count: int, first: int, n: int, sign: int) -> int:
    """Add a fold's rows to the `count` rows of `changes`, with that sign; return how many there are then."""
    for row in range(first, first + n):
        put_row(room.changes, count, room.fold[ROW_VAL, row], 0, sign * room.fold[ROW_DIFF, row])
        count += 1
    return count


@bare
def _retract(emitted: Emitted, first: int, visits: Ints, visit: int, changes: Rows, count: int, depth: int) -> int:
    """Add the rows emitted from `first` on, at or before a visit's time, to `changes`, negated; return the count."""
    output = emitted.rows
    for row in range(first, emitted.counts[ROW_COUNT]):
        if is_at_or_before(emitted.times, output[OUT_TIME, row], visits, visit, depth):
            put_row(changes, count, output[OUT_VAL, row], 0, -output[OUT_DIFF, row])
            count += 1
    return count


@bare
def _folded(fold: Fold, group: Ints, room: Room, distinct: int, first: int, state: Ints) -> int:
    """Put what the tally reduces to into `fold`, from row `first` on; return how many rows, FAULT or UNKNOWN."""
    count = fold_tally(fold, group, room.tally, distinct, room.fold, first)
    # The output and the new rows in place of the input show only its sum: if that is 0, there may be values or none.
    only_sum = fold.kind == SUM and is_linear(fold) and state[WHOLE_GROUP] == 0
    return UNKNOWN if only_sum and count != FAULT and room.tally[TALLY, TOTAL] == 0 else count


@bare
def _dropping(emitted: Emitted, first: int, why: int) -> int:
    """Drop the rows emitted from `first` on, and return `why`."""
    emitted.counts[ROW_COUNT] = first
    return why


@bare
def visit_times(
    fold: Fold, group: Ints, scratch: Scratch, room: Room, emitted: Emitted, upper: Table, state: Ints
) -> int:
    """Reduce a gathered group at its interesting times; return DONE, AT_FAULT, NEEDS_GROUP or NEEDS_ROOM.

    NEEDS_GROUP means that the rows gathered are not enough. After NEEDS_ROOM the group can be visited again from its
    first time. Of the times that are not due, those with a correction that is not empty become pending. There must be
    room: in `tally` for all rows and times; in `fold` for two folds, the present one and the one before; in `changes`
    for both folds and the output rows; in `pending` for all visits.
    """
    depth, n, chain = upper.shape[1], state[RANKED], state[CHAIN] != 0
    visits, pending, counts, changes = scratch.vectors[VISITS], scratch.pending, emitted.counts, room.changes
    distinct = _start_tally(fold, room, n)
    before, now, before_count = 0, fold_at_most(fold, distinct), 0
    first_row = counts[ROW_COUNT]
    reached = 0
    for visit in range(state[STEPS]):
        due = is_due(upper, visits, visit, depth)
        # In advance of a pending time: its own closure will contain this time (see `reduce_times`).
        if not due and is_covered(pending, state[PENDINGS], visits, visit, depth):
            continue
        # In a chain a skipped time is never followed by one that is not: all later ones are in advance of the same
        # pending time. So `reached`, the rank of the present visit, need not move past skipped times.
        while chain and not scratch.marks[KNOWN, reached] & IS_DUE:
            reached += 1
        first, last = reached if chain else 0, reached + 1 if chain else n
        count = _accumulate(fold, scratch, room, visit, first, last, chain, depth)
        reached += 1
        now_count = _folded(fold, group, room, distinct, now, state)
        if now_count == UNKNOWN:
            return _dropping(emitted, first_row, NEEDS_GROUP)
        if now_count == FAULT:
            if due:
                state[VISIT] = visit
                return AT_FAULT
            # Input that is still to come, at a time at or before this one, may mend it: look again when it is due.
            state[PENDINGS] = put_minimal(pending, state[PENDINGS], visits, visit, depth)
            continue
        if chain:
            # The corrections so far add up to the last fold less the output rows before this time. So the correction
            # here is the present fold, less the last one, less the output rows at this time.
            count = _add_fold(room, count, before, before_count, -1)
        else:
            most = count + now_count + counts[ROW_COUNT] - first_row
            if most > changes.shape[1]:
                # The next visit starts over: what this one emitted is dropped. The times that it made pending stay;
                # the next visit finds them covered.
                state[CHANGES] = most
                return _dropping(emitted, first_row, NEEDS_ROOM)
            count = _retract(emitted, first_row, visits, visit, changes, count, depth)
        count = consolidate_rows(changes, 0, _add_fold(room, count, now, now_count, 1))
        if not due and count > 0:
            state[PENDINGS] = put_minimal(pending, state[PENDINGS], visits, visit, depth)
            continue
        if count > 0:
            if must_grow(emitted, count):
                state[OUTPUT_ROWS] = counts[ROW_COUNT] - first_row + count
                return _dropping(emitted, first_row, NEEDS_ROOM)
            emit(emitted, group[KEY], changes, count, visits, visit, depth)
        # The two halves of `fold` change roles: the present fold is the last one of the next visit.
        before, now, before_count = now, before, now_count
    return DONE
