"""Reduction of keyed collections by a built-in function: count, sum, minimum, distinct and others.

Input and output are collections of updates (key, value, time, diff). When the input of a key changes at a time, the
output of the key may have to change at that time, and at joins of that time with times of the key's history. `reduce`
takes the batches of new input, the trace of the input, the trace of the output so far and the pending times of earlier
calls. It returns the updates that correct the output. One call is one activation of a reduce operator.

*The invariant.* After a call, at every time that is not in advance of `upper`, the accumulated output is the reduction
of the accumulated input. (The accumulation of a collection at t is the sum of its diffs at all times s <= t.)

A group is what the function reduces: all rows of a key or, for `DISTINCT`, all rows of a (key, value).

The ten modules, in the order in which a call uses them:

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
9. `reduce_rounds`: the same steps for a function in Python, which is called once a round for all groups.

*Cost.* A group costs a few steps of galloping in each layer. A group that is reduced from the layers then costs its
rows; for `MIN` to `LARGEST` only the rows looked at. A group that is visited costs the sorting of its rows, and what
`reduce_visit` states.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Batches, Ints, Table, Times, bare, inner, kernel
from differential.kernels.memory import DIFFS
from differential.kernels.reduce_fold import (
    COUNT,
    DISTINCT,
    FAULT,
    LARGEST,
    MAX,
    MAX_TEXT,
    MIN,
    MIN_TEXT,
    SIGNED,
    SMALLEST,
    SUM,
    SUM_FLOAT,
    TALLY_WIDTH,
    fold_at_most,
    fold_layers,
    no_sum,
)
from differential.kernels.reduce_history import (
    ENTRIES,
    MARKS,
    VECTORS,
    VISITS,
    distinct_at_most,
    gather,
    history_is_at_or_before,
    interesting,
    interesting_chain,
    new_times,
)
from differential.kernels.reduce_layers import (
    FROM,
    HIGH,
    KEY,
    LOW,
    TO,
    VAL,
    diff_at,
    latest_times,
    next_group,
    seek,
    stack,
    times_in_all,
    unseek,
    value_at,
)
from differential.kernels.reduce_output import (
    COUNTS,
    OUT_WIDTH,
    POSTPONED,
    ROW_COUNT,
    TIME_COUNT,
    add_postponed,
    chunk_block,
    emit,
    grown,
    is_sealed,
    must_grow,
    no_group,
    postponed_times,
)
from differential.kernels.reduce_rows import Rows, consolidate_rows, copied, no_rows, put_row, with_room
from differential.kernels.reduce_times import copy_entries
from differential.kernels.reduce_visit import (
    AT_FAULT,
    CHAIN,
    CHANGES,
    DONE,
    FOLDS,
    HAS_PENDING,
    NEEDS_CLOSURE,
    NEEDS_ROOM,
    OUTPUT_ROWS,
    PENDINGS,
    RANKED,
    ROOM_ROWS,
    ROOM_TIMES,
    STATE_WIDTH,
    STEPS,
    TALLY_COLUMNS,
    UNEMITTED,
    VISIT,
    visit_times,
)
from differential.kernels.wide import carry, fits

__all__ = [
    "COUNT",
    "DISTINCT",
    "LARGEST",
    "MAX",
    "MAX_TEXT",
    "MIN",
    "MIN_TEXT",
    "SIGNED",
    "SMALLEST",
    "SUM",
    "SUM_FLOAT",
    "reduce",
]


@bare
def _fold_at_once(
    kind: int,
    parameter: int,
    layers: Table,
    deltas: int,
    inputs: int,
    group: Ints,
    exact: Ints,
    changes: Rows,
) -> int:
    """Put the correction of a group into `changes`, and return its length, or FAULT if the input cannot be reduced.

    All rows of the group must be at or before one time. `changes` must have room for the group's output rows and for
    what the group reduces to.
    """
    count = 0
    for layer in range(inputs, len(layers)):
        for row in range(layers[layer, LOW], layers[layer, HIGH]):
            put_row(changes, count, value_at(layers, layer, row), 0, -diff_at(layers, layer, row))
            count += 1
    count = fold_layers(kind, parameter, layers, deltas, inputs, group, exact, changes, count)
    return count if count == FAULT else consolidate_rows(changes, 0, count)


@bare
def _occurrences(layers: Table, first: int, last: int) -> int:
    """Return the sum of the diffs of the group's rows in the layers `first` to `last`; -1 if it does not fit."""
    # The sum of the new batches fits: it is the difference of two counts, each from 0 to 2**63 - 1. A sum of the input
    # that does not fit is a fault, as any negative one is.
    total, grown = 0, 0
    for layer in range(first, last):
        low, high = layers[layer, LOW], layers[layer, HIGH]
        if layers[layer, DIFFS] == 0:
            total += high - low
            grown += carry(total, high - low)
        else:
            for row in range(low, high):
                diff = diff_at(layers, layer, row)
                total += diff
                grown += carry(total, diff)
    return total if fits(total, grown) else -1


@bare
def _change_of_record(layers: Table, deltas: int, inputs: int, group: Ints, changes: Rows) -> int:
    """Put the change of a record's presence into `changes`; return how many rows that is, 0 or 1, or FAULT.

    All rows of the record must be at or before one time.
    """
    now = _occurrences(layers, deltas, inputs)
    if now < 0:
        return FAULT
    # The input includes the new batches, the layers up to `deltas`: the count before is the difference of the two.
    diff = int(now > 0) - int(now - _occurrences(layers, 0, deltas) > 0)
    put_row(changes, 0, group[VAL], 0, diff)
    return abs(diff)


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
def _reduce_groups(
    kind: int,
    parameter: int,
    layers: Table,
    deltas: int,
    inputs: int,
    latest: Table,
    group: Ints,
    exact: Ints,
    pending_keys: Ints,
    pending_vals: Ints,
    pending_times: Table,
    upper: Table,
    vectors: Table,
    marks: Table,
    sparse: Ints,
    pending: Ints,
    changes: Rows,
    tally: Table,
    rows: Rows,
    fold: Rows,
    bounds: Ints,
    output: Table,
    output_times: Ints,
    slots: Ints,
    counts: Ints,
    state: Ints,
) -> int:
    """Reduce group after group until only the caller can go on; return why (see DONE in `reduce_visit`).

    Nothing is allocated here. The caller grows arrays, or closes times under join, and calls again with the same
    `state`. A group that lacks room is found again by the next call, unless it has been gathered (STEPS >= 0) or its
    correction waits for room in `output` (UNEMITTED > 0): with these the next call continues where this one stopped.
    """
    depth, by_value = upper.shape[1], kind == DISTINCT
    while True:
        if state[STEPS] < 0 and state[UNEMITTED] == 0:
            if not next_group(layers, deltas, pending_keys, pending_vals, group, by_value):
                return DONE
            seek(layers, 0, deltas, group, by_value)
            state[ROOM_TIMES] = 1 + group[TO] - group[FROM] + distinct_at_most(layers, 0, deltas)
            if state[ROOM_TIMES] > marks.shape[1]:
                unseek(layers, group)
                return NEEDS_ROOM
            pending_count, new_count = new_times(
                layers, deltas, group, pending_times, upper, vectors, marks, sparse, pending
            )
            state[PENDINGS] = pending_count
            if new_count == 0:
                if pending_count > 0:
                    return HAS_PENDING
                continue
            # Without pending times, the invariant held at the new time before the new rows came: the output has the
            # record exactly if the input before has it. So the layers of output need not be read.
            input_suffices = by_value and group[FROM] == group[TO]
            reach = inputs if input_suffices else len(layers)
            history = seek(layers, deltas, reach, group, by_value)
            if new_count == 1 and history_is_at_or_before(layers, deltas, reach, latest, vectors, depth):
                # Each row of the correction retracts an output row or comes from an input row. For `DISTINCT`, where
                # the output is not read, it is one row at most, and the input has a new row. So `history` bounds it.
                state[CHANGES] = history
                if history > changes.shape[1]:
                    unseek(layers, group)
                    return NEEDS_ROOM
                if input_suffices:
                    count = _change_of_record(layers, deltas, inputs, group, changes)
                else:
                    count = _fold_at_once(kind, parameter, layers, deltas, inputs, group, exact, changes)
                if count == FAULT:
                    state[VISIT] = 0
                    copy_entries(vectors[ENTRIES], 0, vectors[VISITS], 0, 1, depth)
                    return AT_FAULT
                state[UNEMITTED] = count
            else:
                history += seek(layers, reach, len(layers), group, by_value)
                times = 1 + new_count + distinct_at_most(layers, deltas, len(layers))
                folds = 2 * fold_at_most(kind, parameter, history)
                state[ROOM_TIMES] = max(state[ROOM_TIMES], times + pending_count)
                state[ROOM_ROWS], state[FOLDS], state[CHANGES] = max(history, times + 2), folds, history + folds
                if (
                    state[ROOM_TIMES] > marks.shape[1]
                    or state[ROOM_ROWS] > tally.shape[1]
                    or folds > fold.shape[1]
                    or history + folds > changes.shape[1]
                ):
                    unseek(layers, group)
                    return NEEDS_ROOM
                # `rows` is as wide as `tally` (see `reduce`), so it has room for the history.
                n = gather(layers, deltas, inputs, upper, vectors, marks, sparse, new_count, rows, bounds)
                state[RANKED], state[CHAIN] = n, 1
                state[STEPS] = interesting_chain(vectors, marks, n, True, depth)
                if state[STEPS] < 0:
                    return NEEDS_CLOSURE
        if state[STEPS] >= 0:
            why = visit_times(
                kind, parameter, group, exact, tally, fold, vectors, marks, rows, bounds, changes, output, output_times,
                slots, counts, upper, pending, state,
            )  # fmt: skip
            if why != DONE:
                return why
            state[STEPS] = -1
        elif state[UNEMITTED] > 0:
            if must_grow(output, slots, counts, state[UNEMITTED]):
                return NEEDS_ROOM
            emit(output, output_times, slots, counts, group[KEY], changes, state[UNEMITTED], vectors[ENTRIES], 0, depth)
            state[UNEMITTED] = 0
        if state[PENDINGS] > 0:
            return HAS_PENDING


@kernel
def reduce(
    kind: int,
    parameter: int,
    delta_table: Batches,
    pending_keys: Ints,
    pending_vals: Ints,
    pending_times: Table,
    input_table: Batches,
    output_table: Batches,
    upper: Times,
) -> tuple[Ints, int, int, bool, Ints, Ints, Table, Ints]:
    """Return the updates to emit, the times that stay pending, and where the input cannot be reduced.

    `delta_table` lists the batches of new input; `input_table` all input batches up to `upper`, the new ones included;
    `output_table` all output so far. `pending_*` are the pending times that the call before returned. A time is due
    if it is not in advance of the antichain `upper`. No new row and no pending time may be at a time that was due in
    the call before.

    The result is `(block, rows, times, is_sealed)`: one chunk ordered by key, how many rows and times it has, and
    whether it is known to be sorted and consolidated; `(pending_keys, pending_vals, pending_times)` for the next call;
    and `fault`. `fault` is empty, or the key (for `DISTINCT` also the value) and the time at which a value accumulates
    to a negative diff, or a sum does not fit into 64 bits. With a fault the rest of the result is meaningless.
    """
    depth = upper.shape[1]
    by_value = kind == DISTINCT
    deltas = len(delta_table)
    inputs = deltas + len(input_table)
    layers = stack(delta_table, input_table, output_table)
    latest = latest_times(layers, depth)
    sparse = np.empty(times_in_all(layers), np.int64)
    group, bounds, counts = no_group(), np.empty(3, np.int64), np.zeros(COUNTS, np.int64)
    vectors, marks = np.empty((VECTORS, 8 * depth), np.int64), np.empty((MARKS, 8), np.int64)
    tally, fold = np.empty((TALLY_COLUMNS, TALLY_WIDTH), np.int64), no_rows()
    rows, changes, output, postponed = (
        no_rows(),
        no_rows(),
        np.empty((OUT_WIDTH, 0), np.int64),
        np.empty((2 + depth, 0), np.int64),
    )
    nothing = np.empty(0, np.int64)
    output_times, slots, pending, exact, fault = nothing, nothing, nothing, no_sum(kind), nothing
    state = np.zeros(STATE_WIDTH, np.int64)
    state[ROOM_TIMES], state[CHANGES], state[STEPS] = marks.shape[1], marks.shape[1], -1
    while True:
        marks = with_room(marks, state[ROOM_TIMES])
        # `_reduce_groups` compares the times it needs room for with the width of `marks` alone, so `vectors` and
        # `pending` get room for as many.
        vectors = with_room(vectors, marks.shape[1] * depth)
        if marks.shape[1] * depth > len(pending):
            larger = np.empty(marks.shape[1] * depth, np.int64)
            larger[: len(pending)] = pending
            pending = larger
        tally = with_room(tally, state[ROOM_ROWS])
        rows, fold, changes = (
            with_room(rows, tally.shape[1]),
            with_room(fold, state[FOLDS]),
            with_room(changes, state[CHANGES]),
        )
        more = max(state[OUTPUT_ROWS], state[UNEMITTED])
        if must_grow(output, slots, counts, more):
            output, output_times, slots = grown(output, output_times, slots, counts, more, depth)
        state[OUTPUT_ROWS] = 0
        # Assigning an array counts references, which costs more than reducing a small group. So the loop over groups is
        # a function that assigns none, and returns to this loop where one must grow.
        why = _reduce_groups(
            kind, parameter, layers, deltas, inputs, latest, group, exact, pending_keys, pending_vals, pending_times,
            upper, vectors, marks, sparse, pending, changes, tally, rows, fold, bounds, output, output_times, slots,
            counts, state,
        )  # fmt: skip
        if why == DONE:
            break
        if why == AT_FAULT:
            fault = _fault(by_value, group, vectors[VISITS], state[VISIT], depth)
            break
        if why == HAS_PENDING:
            postponed = add_postponed(postponed, counts, group, pending, state[PENDINGS], depth)
        elif why == NEEDS_CLOSURE:
            vectors, steps, chain, pending, pending_count = interesting(
                vectors, marks, state[RANKED], upper, True, pending, state[PENDINGS]
            )
            state[STEPS], state[CHAIN], state[PENDINGS] = steps, int(chain), pending_count
            state[ROOM_TIMES] = max(state[ROOM_TIMES], steps + pending_count)
    n = counts[POSTPONED]
    return (
        chunk_block(output, output_times, counts, depth),
        counts[ROW_COUNT],
        counts[TIME_COUNT],
        is_sealed(output, counts),
        copied(postponed[0], n),
        copied(postponed[1], n if by_value else 0),
        postponed_times(postponed, n, depth),
        fault,
    )
