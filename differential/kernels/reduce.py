"""Reduction of keyed collections: when the input of a key changes, say how its output changes, and at which times.

One call is one activation of a reduce operator. For each group touched, by new input or by times put off earlier, the
interesting times are found (see `reduce_times` for which they are, and why these), and at each of them, in
lexicographic order, the input is accumulated and reduced, and the difference to what was said so far is said at exactly
that time. After a call, at every time not in advance of `upper`, the accumulated output is the reduction of the
accumulated input.

A group whose history is all at or before its one new time, the usual case, is read where it lies in the layers; for
`distinct`, where nothing was put off, in those of the input alone, since all that was said then is whether the input
before has the record. Any other group is gathered, and visited at one time after the other (`reduce_visit`).

Built-in reductions only; what each kind says stands in `reduce_fold`. A reduction in Python goes by `reduce_rounds`.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, bare, inner, kernel
from differential.kernels.memory import DIFFS, TIME_ROWS
from differential.kernels.reduce_fold import (
    COUNT,
    DISTINCT,
    FAULT,
    LARGEST,
    MAX,
    MIN,
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
    BASE,
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
    unseek,
    value_at,
)
from differential.kernels.reduce_output import (
    COUNTS,
    POSTPONED,
    SAID,
    chunk,
    grown,
    must_grow,
    no_group,
    put_off,
    put_off_times,
    say,
)
from differential.kernels.reduce_rows import Rows, consolidate_rows, copied, no_rows, put_row, roomy
from differential.kernels.reduce_times import copy_entries
from differential.kernels.reduce_visit import (
    AT_FAULT,
    CHAIN,
    DONE,
    FOLDS,
    FOUND,
    NO_CHAIN,
    NO_ROOM,
    PENDINGS,
    PUT_OFF,
    RANKED,
    ROOM,
    ROOM_ROWS,
    ROOM_TIMES,
    ROWS_SAID,
    STEPS,
    TO_SAY,
    UNSAID,
    VISIT,
    visit_times,
)
from differential.kernels.wide import carry, fits

__all__ = ["COUNT", "DISTINCT", "LARGEST", "MAX", "MIN", "SIGNED", "SMALLEST", "SUM", "SUM_FLOAT", "reduce"]


@bare
def _fold_at_once(
    kind: int,
    parameter: int,
    layers: Table,
    deltas: int,
    inputs: int,
    group: Ints,
    exact: Ints,
    said: Rows,
) -> int:
    """Put into `said` what to say of a group all of whose rows are at one time, and return how many rows that is.

    There must be room for the group's output rows, and for what it reduces to.
    """
    count = 0
    for layer in range(inputs, len(layers)):
        for row in range(layers[layer, LOW], layers[layer, HIGH]):
            put_row(said, count, value_at(layers, layer, row), 0, -diff_at(layers, layer, row))
            count += 1
    count = fold_layers(kind, parameter, layers, deltas, inputs, group, exact, said, count)
    return count if count == FAULT else consolidate_rows(said, 0, count)


@bare
def _occurrences(layers: Table, first: int, last: int) -> int:
    """Return the sum of the diffs of the group's rows in the layers `first` to `last`; -1 if it does not fit."""
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
def _change_of_record(layers: Table, deltas: int, inputs: int, group: Ints, said: Rows) -> int:
    """Put into `said` whether a record, all of whose rows are at one time, comes or goes; return 1 if so, else 0."""
    now = _occurrences(layers, deltas, inputs)
    if now < 0:
        return FAULT
    diff = int(now > 0) - int(now - _occurrences(layers, 0, deltas) > 0)
    put_row(said, 0, group[VAL], 0, diff)
    return abs(diff)


@inner
def _fault(by_value: bool, group: Ints, visits: Ints, visit: int, depth: int) -> Ints:
    """Return where the input has a negative diff: the key, the value of a group by value, then the time."""
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
    said: Rows,
    room: Table,
    rows: Rows,
    fold: Rows,
    bounds: Ints,
    output: Table,
    table_said: Ints,
    slots: Ints,
    counts: Ints,
    found: Ints,
) -> int:
    """Reduce group after group; return why it stopped.

    `found` says what is known of the group it stopped at, and what room it needs. That group comes again, unless
    `found` has rows to say of it already, or steps, since it was gathered.
    """
    depth, by_value = upper.shape[1], kind == DISTINCT
    while True:
        if found[STEPS] < 0 and found[UNSAID] == 0:
            if not next_group(layers, deltas, pending_keys, pending_vals, group, by_value):
                return DONE
            seek(layers, 0, deltas, group, by_value)
            found[ROOM_TIMES] = 1 + group[TO] - group[FROM] + distinct_at_most(layers, 0, deltas)
            if found[ROOM_TIMES] > marks.shape[1]:
                unseek(layers, group)
                return NO_ROOM
            pendings, news = new_times(layers, deltas, group, pending_times, upper, vectors, marks, sparse, pending)
            found[PENDINGS] = pendings
            if news == 0:
                if pendings > 0:
                    return PUT_OFF
                continue
            # Where nothing was put off, what was said of a record is whether the input before has it.
            told = by_value and group[FROM] == group[TO]
            reach = inputs if told else len(layers)
            history = seek(layers, deltas, reach, group, by_value)
            if news == 1 and history_is_at_or_before(layers, deltas, reach, latest, vectors, depth):
                # What is said takes back a row that was said, or comes of an input row.
                found[TO_SAY] = history
                if history > said.shape[1]:
                    unseek(layers, group)
                    return NO_ROOM
                if told:
                    count = _change_of_record(layers, deltas, inputs, group, said)
                else:
                    count = _fold_at_once(kind, parameter, layers, deltas, inputs, group, exact, said)
                if count == FAULT:
                    found[VISIT] = 0
                    copy_entries(vectors[ENTRIES], 0, vectors[VISITS], 0, 1, depth)
                    return AT_FAULT
                found[UNSAID] = count
            else:
                history += seek(layers, reach, len(layers), group, by_value)
                times = 1 + news + distinct_at_most(layers, deltas, len(layers))
                folds = 2 * fold_at_most(kind, parameter, history)
                found[ROOM_TIMES] = max(found[ROOM_TIMES], times + pendings)
                found[ROOM_ROWS], found[FOLDS], found[TO_SAY] = max(history, times + 2), folds, history + folds
                if (
                    found[ROOM_TIMES] > marks.shape[1]
                    or found[ROOM_ROWS] > room.shape[1]
                    or folds > fold.shape[1]
                    or history + folds > said.shape[1]
                ):
                    unseek(layers, group)
                    return NO_ROOM
                n = gather(layers, deltas, inputs, upper, vectors, marks, sparse, news, rows, bounds)
                found[RANKED], found[CHAIN] = n, 1
                found[STEPS] = interesting_chain(vectors, marks, n, True, depth)
                if found[STEPS] < 0:
                    return NO_CHAIN
        if found[STEPS] >= 0:
            why = visit_times(
                kind, parameter, group, exact, room, fold, vectors, marks, rows, bounds, said, output, table_said,
                slots, counts, upper, pending, found,
            )  # fmt: skip
            if why != DONE:
                return why
            found[STEPS] = -1
        elif found[UNSAID] > 0:
            if must_grow(output, slots, counts, found[UNSAID]):
                return NO_ROOM
            say(output, table_said, slots, counts, group[KEY], said, found[UNSAID], vectors[ENTRIES], 0, depth)
            found[UNSAID] = 0
        if found[PENDINGS] > 0:
            return PUT_OFF


@kernel
def reduce(
    kind: int,
    parameter: int,
    delta_table: Table,
    pending_keys: Ints,
    pending_vals: Ints,
    pending_times: Table,
    input_table: Table,
    output_table: Table,
    upper: Table,
) -> tuple[Ints, Ints, Table, Ints, Ints, Ints, Ints, Table, Ints]:
    """Return what to say now, what to come back to, and where the input is at fault.

    `delta_table` has the new input batches, `input_table` all input batches up to `upper`, the new ones included,
    `output_table` all that was said so far; `pending_*` is what the call before put off; `upper`, an antichain, says
    which times are due: those not in advance of it. No new row and no pending time may be earlier than what the call
    before was given as `upper`.

    The result is `(keys, vals, times, time_index, diffs)`, a chunk ordered by key, then `(pending_keys, pending_vals,
    pending_times)` for the next call, then `fault`: empty, or the key (for `DISTINCT` the value, too) and the time at
    which a value has a negative diff and the reduction no meaning; the rest is then to be thrown away.
    """
    depth = upper.shape[1]
    by_value = kind == DISTINCT
    deltas = len(delta_table)
    inputs = deltas + len(input_table)
    layers = stack(delta_table, input_table, output_table)
    latest = latest_times(layers, depth)
    last = len(layers) - 1
    sparse = np.empty(layers[last, BASE] + layers[last, TIME_ROWS] if last >= 0 else 0, np.int64)
    group, bounds, counts = no_group(), np.empty(3, np.int64), np.zeros(COUNTS, np.int64)
    vectors, marks = np.empty((VECTORS, 8 * depth), np.int64), np.empty((MARKS, 8), np.int64)
    room, fold = np.empty((ROOM, TALLY_WIDTH), np.int64), no_rows()
    rows, said, output, postponed = (
        no_rows(),
        no_rows(),
        np.empty((SAID, 0), np.int64),
        np.empty((2 + depth, 0), np.int64),
    )
    nothing = np.empty(0, np.int64)
    table_said, slots, pending, exact, fault = nothing, nothing, nothing, no_sum(kind), nothing
    found = np.zeros(FOUND, np.int64)
    found[ROOM_TIMES], found[TO_SAY], found[STEPS] = marks.shape[1], marks.shape[1], -1
    while True:
        marks = roomy(marks, found[ROOM_TIMES])
        # Whether there is room for more times is seen by the marks: there never is more than for vectors of them, and
        # for pending ones.
        vectors = roomy(vectors, marks.shape[1] * depth)
        if marks.shape[1] * depth > len(pending):
            larger = np.empty(marks.shape[1] * depth, np.int64)
            larger[: len(pending)] = pending
            pending = larger
        room = roomy(room, found[ROOM_ROWS])
        rows, fold, said = roomy(rows, room.shape[1]), roomy(fold, found[FOLDS]), roomy(said, found[TO_SAY])
        more = max(found[ROWS_SAID], found[UNSAID])
        if must_grow(output, slots, counts, more):
            output, table_said, slots = grown(output, table_said, slots, counts, more, depth)
        found[ROWS_SAID] = 0
        # Groups are reduced where no array is assigned: that counts references, which costs more than reducing one.
        why = _reduce_groups(
            kind, parameter, layers, deltas, inputs, latest, group, exact, pending_keys, pending_vals, pending_times,
            upper, vectors, marks, sparse, pending, said, room, rows, fold, bounds, output, table_said, slots, counts,
            found,
        )  # fmt: skip
        if why == DONE:
            break
        if why == AT_FAULT:
            fault = _fault(by_value, group, vectors[VISITS], found[VISIT], depth)
            break
        if why == PUT_OFF:
            postponed = put_off(postponed, counts, group, pending, found[PENDINGS], depth)
        elif why == NO_CHAIN:
            vectors, steps, chain, pending, pendings = interesting(
                vectors, marks, found[RANKED], upper, True, pending, found[PENDINGS]
            )
            found[STEPS], found[CHAIN], found[PENDINGS] = steps, int(chain), pendings
            found[ROOM_TIMES] = max(found[ROOM_TIMES], steps + pendings)
    keys, vals, times, time_index, diffs = chunk(output, table_said, counts, depth)
    n = counts[POSTPONED]
    return (
        keys,
        vals,
        times,
        time_index,
        diffs,
        copied(postponed[0], n),
        copied(postponed[1], n if by_value else 0),
        put_off_times(postponed, n, depth),
        fault,
    )
