"""Reduction of keyed collections by a built-in function: count, sum, minimum, distinct and others.

Input and output are collections of updates (key, value, time, diff). When the input of a key changes at a time, the
output of the key may have to change at that time, and at joins of that time with times of the key's history. `reduce`
takes the batches of new input, the trace of the input, the trace of the output so far and the pending times of earlier
calls. It returns the updates that correct the output. One call is one activation of a reduce operator.

*The invariant.* After a call, at every time that is not in advance of `upper`, the accumulated output is the reduction
of the accumulated input. (The accumulation of a collection at t is the sum of its diffs at all times s <= t.)

A group is what the function reduces: all rows of a key or, for `DISTINCT`, all rows of a (key, value).

The modules, in the order in which a call uses them:

1. `reduce_layers`: the three tables of batches become one array of layers. The walk finds the next group that has new
   rows or pending times, and its rows in each layer, by galloping.
2. `reduce_history`: the group's new times are due now or become pending. Usually one is due, and all history is at or
   before it: then the group is reduced from the layers, and steps 3 and 6 are skipped. Otherwise the group's rows are
   gathered and its times ranked.
3. `reduce_times`: the theory. Which times are interesting, why history may be advanced to the meet of the new times,
   and which times stay pending. The closure under join is here.
4. `reduce_rows`: the rows (value, time, diff) of one group, sorted and consolidated in place.
5. `reduce_fold`, and `reduce_float` for sums of floats: what a multiset of values reduces to, for each kind.
6. `reduce_visit`: the visit of a group at its interesting times in lexicographic order. At each time the input is
   accumulated and folded, and the correction is emitted.
7. `reduce_output`: the updates that a call emits, and the pending times that it leaves.
8. `reduce` (this module): the loop over groups, for built-in functions.
9. `reduce_rounds`: the same steps for a function in Python, which is called once a round for all groups. `reduce_plan`
   gathers the groups, and `reduce_replay` carries them from round to round.

*Cost.* A group costs a few steps of galloping in each layer. A group that is reduced from the layers then costs its
rows; for `MIN` to `LAST` only the rows looked at, and for a `SUM` that has been emitted before only the new rows. A
group that is visited costs the sorting of its rows, and what `reduce_visit` states. Where a `COUNT` or a `SUM` is
`LINEAR`, its rows are, either way, those of the output and the new ones, unless the sum is 0.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Batches, Ints, Table, Times, bare, inner, kernel
from differential.kernels.reduce_fold import (
    COUNT,
    DISTINCT,
    FAULT,
    SUM,
    UNKNOWN,
    Fold,
    change_of_record,
    change_of_total,
    fold_at_most,
    fold_at_once,
    fold_of,
    is_linear,
    rows_left,
)
from differential.kernels.reduce_history import (
    ENTRIES,
    VISITS,
    Scratch,
    distinct_at_most,
    gather,
    history_is_at_or_before,
    interesting,
    interesting_chain,
    new_times,
    no_times,
    room_for_times,
)
from differential.kernels.reduce_layers import (
    FROM,
    KEY,
    PENDING_TIME,
    TO,
    VAL,
    Walk,
    next_group,
    seek,
    unseek,
    walk_through,
)
from differential.kernels.reduce_output import (
    POSTPONED,
    ROW_COUNT,
    TIME_COUNT,
    Emitted,
    add_postponed,
    chunk_block,
    emit,
    grown,
    is_sealed,
    must_grow,
    nothing_emitted,
)
from differential.kernels.reduce_rows import consolidate_rows, transposed
from differential.kernels.reduce_times import copy_entries
from differential.kernels.reduce_visit import (
    AT_FAULT,
    CHAIN,
    CHANGES,
    DONE,
    FOLDS,
    GOES_ON,
    HAS_PENDING,
    NEEDS_CLOSURE,
    NEEDS_GROUP,
    NEEDS_ROOM,
    NEW_TIMES,
    OUTPUT_ROWS,
    PENDINGS,
    RANKED,
    ROOM_ROWS,
    ROOM_TIMES,
    STATE_WIDTH,
    STEPS,
    UNEMITTED,
    VISIT,
    WHOLE_GROUP,
    Room,
    no_room,
    room_for_rows,
    visit_times,
)

WHOLE, OF_RECORD, OF_SUM, OF_TOTAL = range(4)
"""The ways to reduce a group at one time: from all its rows; from those of the record, without the output; from the
output, the new rows and as much of the input as shows whether a value is left; and from the output and the new rows."""


@inner
def _fault(by_value: bool, group: Ints, visits: Ints, visit: int, depth: int) -> Ints:
    """Return where the input cannot be reduced: the key, the value if groups are by value, then the time."""
    named = 2 if by_value else 1
    where = np.empty(named + depth, np.int64)
    where[0] = group[KEY]
    if by_value:
        where[1] = group[VAL]
    for d in range(depth):
        where[named + d] = visits[visit * depth + d]
    return where


@bare
def _next_times(fold: Fold, walk: Walk, earlier: Table, upper: Table, scratch: Scratch, state: Ints) -> int:
    """Find the next group and its new times; return GOES_ON, DONE if there is none, or NEEDS_ROOM."""
    layers, deltas, group, by_value = walk.layers, walk.deltas, walk.group, fold.kind == DISTINCT
    if not next_group(walk, earlier, by_value):
        return DONE
    seek(layers, 0, deltas, group, by_value)
    state[ROOM_TIMES] = 1 + group[TO] - group[FROM] + distinct_at_most(layers, 0, deltas)
    if state[ROOM_TIMES] > scratch.marks.shape[1]:
        unseek(layers, group)
        return NEEDS_ROOM
    state[PENDINGS], state[NEW_TIMES] = new_times(walk, earlier, upper, scratch)
    return GOES_ON


@bare
def _at_once(
    fold: Fold, walk: Walk, vectors: Table, room: Room, history: int, way: int, state: Ints, depth: int
) -> int:
    """Reduce a group all of whose rows are at or before its one new time; return GOES_ON, or why that is impossible."""
    # Each row of the correction retracts an output row or comes from an input row. For `DISTINCT`, where the output is
    # not read, it is one row at most, and the input has a new row. So `history` bounds it.
    layers, changes = walk.layers, room.changes
    of_output = way in (OF_SUM, OF_TOTAL)
    state[CHANGES] = rows_left(layers, walk.inputs, len(layers)) + 1 if of_output else history
    if state[CHANGES] > changes.shape[1]:
        unseek(layers, walk.group)
        return NEEDS_ROOM
    if way == OF_RECORD:
        count = change_of_record(walk, changes)
    elif of_output:
        count = change_of_total(fold, layers, walk.deltas, walk.inputs, changes, way == OF_TOTAL)
        if count == UNKNOWN:
            return NEEDS_GROUP
        count = count if count == FAULT else consolidate_rows(changes, 0, count)
    else:
        count = fold_at_once(fold, walk, changes)
    if count == FAULT:
        state[VISIT] = 0
        copy_entries(vectors[ENTRIES], 0, vectors[VISITS], 0, 1, depth)
        return AT_FAULT
    state[UNEMITTED] = count
    return GOES_ON


@bare
def _gathered(
    fold: Fold, walk: Walk, upper: Table, scratch: Scratch, room: Room, history: int, way: int, state: Ints
) -> int:
    """Gather a group of `history` rows for a visit; return GOES_ON, NEEDS_ROOM or NEEDS_CLOSURE."""
    layers, depth = walk.layers, upper.shape[1]
    times = 1 + state[NEW_TIMES]
    if way == OF_TOTAL:
        times += distinct_at_most(layers, 0, walk.deltas) + 2 * distinct_at_most(layers, walk.inputs, len(layers))
    else:
        times += distinct_at_most(layers, walk.deltas, len(layers))
    folds = 2 * fold_at_most(fold, history)
    state[ROOM_TIMES] = max(state[ROOM_TIMES], times + state[PENDINGS])
    state[ROOM_ROWS], state[FOLDS], state[CHANGES] = max(history, times + 2), folds, history + folds
    if (
        state[ROOM_TIMES] > scratch.marks.shape[1]
        or state[ROOM_ROWS] > room.tally.shape[1]
        or folds > room.fold.shape[1]
        or history + folds > room.changes.shape[1]
    ):
        unseek(layers, walk.group)
        return NEEDS_ROOM
    linear, counts = way == OF_TOTAL, fold.kind == COUNT
    n = gather(walk, upper, scratch, state[NEW_TIMES], room.rows, room.bounds, linear, counts)
    state[RANKED], state[CHAIN] = n, 1
    state[STEPS] = interesting_chain(scratch.vectors, scratch.marks, n, depth)
    return NEEDS_CLOSURE if state[STEPS] < 0 else GOES_ON


@bare
def _read(fold: Fold, walk: Walk, upper: Table, scratch: Scratch, room: Room, state: Ints) -> int:
    """Read the rows of a group that has new times; return GOES_ON, or why the loop cannot go on."""
    layers, group, by_value, depth = walk.layers, walk.group, fold.kind == DISTINCT, upper.shape[1]
    if is_linear(fold) and state[WHOLE_GROUP] == 0:
        output = seek(layers, walk.inputs, len(layers), group, by_value)
        if state[NEW_TIMES] == 1 and history_is_at_or_before(walk, walk.inputs, len(layers), scratch.vectors, depth):
            return _at_once(fold, walk, scratch.vectors, room, output, OF_TOTAL, state, depth)
        rows = rows_left(layers, 0, walk.deltas) + 2 * output
        return _gathered(fold, walk, upper, scratch, room, rows, OF_TOTAL, state)
    # Without pending times, the invariant held at the new time before the new rows came: the output has the record
    # exactly if the input before has it, so the layers of output need not be read; and it has the sum of the input
    # before, so those of input need not.
    holds, way = group[FROM] == group[TO], WHOLE
    if by_value and holds:
        way = OF_RECORD
    reach = walk.inputs if way == OF_RECORD else len(layers)
    history = seek(layers, walk.deltas, reach, group, by_value)
    if fold.kind == SUM and holds and rows_left(layers, walk.inputs, len(layers)) > 0:
        way = OF_SUM
    if state[NEW_TIMES] == 1 and history_is_at_or_before(walk, walk.deltas, reach, scratch.vectors, depth):
        return _at_once(fold, walk, scratch.vectors, room, history, way, state, depth)
    history += seek(layers, reach, len(layers), group, by_value)
    return _gathered(fold, walk, upper, scratch, room, history, way, state)


@bare
def _begin_again(walk: Walk, state: Ints) -> None:
    """Make the present group, of a linear kind, the next one again, to be reduced from all its rows."""
    unseek(walk.layers, walk.group)
    state[STEPS], state[WHOLE_GROUP] = -1, 1


@bare
def _reduce_groups(
    fold: Fold, walk: Walk, earlier: Table, upper: Table, scratch: Scratch, room: Room, emitted: Emitted, state: Ints
) -> int:
    """Reduce group after group until only the caller can go on; return why (see DONE in `reduce_visit`).

    Nothing is allocated here. The caller grows arrays, or closes times under join, and calls again with the same
    `state`. A group that lacks room is found again by the next call, unless it has been gathered (STEPS >= 0) or its
    correction waits for room in the output (UNEMITTED > 0): with these the next call continues where this one stopped.
    """
    group = walk.group
    while True:
        if state[STEPS] < 0 and state[UNEMITTED] == 0:
            why = _next_times(fold, walk, earlier, upper, scratch, state)
            if why == GOES_ON and state[NEW_TIMES] != 0:
                why = _read(fold, walk, upper, scratch, room, state)
            if why == NEEDS_GROUP:
                _begin_again(walk, state)
                continue
            if why != GOES_ON:
                return why
        if state[STEPS] >= 0:
            why = visit_times(fold, group, scratch, room, emitted, upper, state)
            if why == NEEDS_GROUP:
                _begin_again(walk, state)
                continue
            if why != DONE:
                return why
            state[STEPS] = -1
        elif state[UNEMITTED] > 0:
            if must_grow(emitted, state[UNEMITTED]):
                return NEEDS_ROOM
            depth, changes = upper.shape[1], room.changes
            emit(emitted, group[KEY], changes, state[UNEMITTED], scratch.vectors[ENTRIES], 0, depth)
            state[UNEMITTED] = 0
        state[WHOLE_GROUP] = 0
        if state[PENDINGS] > 0:
            return HAS_PENDING


@kernel
def reduce(
    kind: int,
    parameter: int,
    delta_table: Batches,
    earlier: Table,
    input_table: Batches,
    output_table: Batches,
    upper: Times,
) -> tuple[Ints, int, int, bool, Table, Ints]:
    """Return the updates to emit, the times that stay pending, and where the input cannot be reduced.

    `delta_table` lists the batches of new input; `input_table` all input batches up to `upper`, the new ones included;
    `output_table` all output so far. `earlier` are the pending times that the call before returned. A time is due if it
    is not in advance of the antichain `upper`. No new row and no pending time may be at a time that was due in the call
    before.

    The result is `(block, rows, times, is_sealed)`: one chunk ordered by key, how many rows and times it has, and
    whether it is known to be sorted and consolidated; `pending` for the next call, a row for each group and time: its
    key, its value or 0, and the time's coordinates; and `fault`. `fault` is empty, or the key (for `DISTINCT` also the
    value) and the time at which a value accumulates to a negative diff, or a sum does not fit into 64 bits. With a
    fault the rest of the result is meaningless.
    """
    depth, by_value = upper.shape[1], kind == DISTINCT
    walk = walk_through(delta_table, input_table, output_table, depth)
    fold = fold_of(kind, parameter)
    scratch, room, emitted = no_times(walk, depth), no_room(), nothing_emitted()
    postponed, fault, counts = np.empty((PENDING_TIME + depth, 0), np.int64), np.empty(0, np.int64), emitted.counts
    state = np.zeros(STATE_WIDTH, np.int64)
    state[CHANGES], state[STEPS] = scratch.marks.shape[1], -1
    while True:
        scratch, room = room_for_times(scratch, state[ROOM_TIMES], depth), room_for_rows(room, state)
        more = max(state[OUTPUT_ROWS], state[UNEMITTED])
        if must_grow(emitted, more):
            emitted = grown(emitted, more, depth)
        state[OUTPUT_ROWS] = 0
        # Assigning an array counts references, which costs more than reducing a small group. So the loop over groups is
        # a function that assigns none, and returns to this loop where one must grow.
        why = _reduce_groups(fold, walk, earlier, upper, scratch, room, emitted, state)
        if why == DONE:
            break
        if why == AT_FAULT:
            fault = _fault(by_value, walk.group, scratch.vectors[VISITS], state[VISIT], depth)
            break
        if why == HAS_PENDING:
            postponed = add_postponed(postponed, counts, walk.group, scratch.pending, state[PENDINGS], depth)
        elif why == NEEDS_CLOSURE:
            scratch, steps, chain, pending_count = interesting(scratch, state[RANKED], upper, True, state[PENDINGS])
            state[STEPS], state[CHAIN], state[PENDINGS] = steps, int(chain), pending_count
            state[ROOM_TIMES] = max(state[ROOM_TIMES], steps + pending_count)
    n = counts[POSTPONED]
    return (
        chunk_block(emitted, depth),
        int(counts[ROW_COUNT]),  # interpreted, kernels return integers of Python, too
        int(counts[TIME_COUNT]),
        is_sealed(emitted),
        transposed(postponed, n),
        fault,
    )
