"""Reduction of keyed collections: when the input of a key changes, say how its output changes, and at which times.

One call is one activation of a reduce operator. For each group touched, by new input or by times put off earlier, the
interesting times are found (see `reduce_times` for which they are, and why these), and at each of them, in
lexicographic order, the input is accumulated and reduced, and the difference to what was said so far is said at exactly
that time. After a call, at every time not in advance of `upper`, the accumulated output is the reduction of the
accumulated input.

A group whose history is all at or before its one new time, the usual case, is read where it lies in the layers; for
`distinct`, where nothing was put off, in those of the input alone, since all that was said then is whether the input
before has the record. A group visited at several times keeps a tally up to date from one to the next; along a chain of
times each row enters the tally once, so that many times at a key with a long history cost about the sum of both and not
the product. On other partial orders a visit costs the times of the group and the rows that enter or leave the tally.

Built-in reductions only; what each kind says stands in `reduce_fold`. A reduction in Python goes by `reduce_rounds`.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, bare, inner, kernel
from differential.kernels.memory import DIFFS, TIME_ROWS
from differential.kernels.reduce_fold import (
    COUNT,
    DISTINCT,
    FREE,
    LARGEST,
    MAX,
    MIN,
    NEGATIVE_DIFF,
    SMALLEST,
    SUM,
    SUM_FLOAT,
    TALLY_VALS,
    TALLY_WIDTH,
    empty_tally,
    fold_at_most,
    fold_layers,
    fold_tally,
    is_descending,
    no_sum,
    tally_row,
)
from differential.kernels.reduce_history import (
    ENTRIES,
    KNOWN,
    MARKS,
    TABLE,
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
    ROW_COUNT,
    SAID,
    SAID_DIFF,
    SAID_TIME,
    SAID_VAL,
    chunk,
    grown,
    must_grow,
    no_group,
    put_off,
    put_off_times,
    say,
)
from differential.kernels.reduce_rows import (
    ROW_DIFF,
    ROW_TIME,
    ROW_VAL,
    Rows,
    consolidate_rows,
    copied,
    no_rows,
    put_row,
    roomy,
)
from differential.kernels.reduce_times import (
    IS_DUE,
    IS_USED,
    copy_entries,
    is_at_or_before,
    is_covered,
    is_due,
    put_minimal,
)

__all__ = ["COUNT", "DISTINCT", "LARGEST", "MAX", "MIN", "SMALLEST", "SUM", "SUM_FLOAT", "reduce"]

_PLACES, _STARTS, _ORDER, _SAID_STARTS, _SAID_ORDER, _COUNTED, _ROOM = range(FREE, FREE + 7)
"""Beside the tally, of a group that is visited: the place in it of each input row; where the input rows of each time
start in their order by time, and this order; the same of the output rows; whether a time's rows are in the tally."""

_DONE, _NO_ROOM, _NO_CHAIN, _AT_FAULT, _PUT_OFF = range(5)
"""Why groups are reduced no further: there are no more; there is no room; the times of one are to be closed under join;
one has a negative diff; one has times to put off."""

_TIMES, _ROWS, _FOLDS, _TO_SAY, _ROWS_SAID, _UNSAID, _PENDINGS, _RANKED, _IS_CHAIN, _STEPS, _VISIT, _FOUND = range(12)
"""What is known of a group: for how many times there must be room, for how many rows, for what they reduce to, for what
may have to be said at one time, and at all; how many rows wait for room to be said; how many times are pending, and are
ranked; whether those to be visited are a chain, how many these are (-1 before it is gathered), and at which one its
input is at fault."""

_MOST_AHEAD = 64
"""At so many times that are not due it is found out whether anything would have to be said there."""


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
    return count if count == NEGATIVE_DIFF else consolidate_rows(said, 0, count)


@bare
def _occurrences(layers: Table, first: int, last: int) -> int:
    """Return the sum of the diffs of the group's rows in the layers `first` to `last`."""
    total = 0
    for layer in range(first, last):
        low, high = layers[layer, LOW], layers[layer, HIGH]
        if layers[layer, DIFFS] == 0:
            total += high - low
        else:
            for row in range(low, high):
                total += diff_at(layers, layer, row)
    return total


@bare
def _change_of_record(layers: Table, deltas: int, inputs: int, group: Ints, said: Rows) -> int:
    """Put into `said` whether a record, all of whose rows are at one time, comes or goes; return 1 if so, else 0."""
    now = _occurrences(layers, deltas, inputs)
    if now < 0:
        return NEGATIVE_DIFF
    diff = int(now > 0) - int(now - _occurrences(layers, 0, deltas) > 0)
    put_row(said, 0, group[VAL], 0, diff)
    return abs(diff)


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
def _visit(
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
    """Reduce a gathered group at its interesting times; return _DONE, _AT_FAULT where its input has a negative diff, or
    _NO_ROOM, after which it can be visited once more.

    Of the times that are not due, those at which something would have to be said become pending. `room` must have some
    for all rows and times, `fold` for what the group reduces to, twice: now, and before; `said` for both and for what
    was said; `pending` for all visits.
    """
    depth, n, chain = upper.shape[1], found[_RANKED], found[_IS_CHAIN] != 0
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
    for visit in range(found[_STEPS]):
        due = is_due(upper, visits, visit, depth)
        if not due:
            ahead += 1
            if is_covered(pending, found[_PENDINGS], visits, visit, depth):
                continue
            if ahead > _MOST_AHEAD:
                found[_PENDINGS] = put_minimal(pending, found[_PENDINGS], visits, visit, depth)
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
        if nows == NEGATIVE_DIFF:
            if due:
                found[_VISIT] = visit
                return _AT_FAULT
            found[_PENDINGS] = put_minimal(pending, found[_PENDINGS], visits, visit, depth)
            continue
        if chain:
            for row in range(before, before + befores):
                put_row(said, count, fold[ROW_VAL, row], 0, -fold[ROW_DIFF, row])
                count += 1
        else:
            most = count + nows + counts[ROW_COUNT] - first_row
            if most > said.shape[1]:
                found[_TO_SAY] = most
                counts[ROW_COUNT] = first_row
                return _NO_ROOM
            for row in range(first_row, counts[ROW_COUNT]):
                if is_at_or_before(table_said, output[SAID_TIME, row], visits, visit, depth):
                    put_row(said, count, output[SAID_VAL, row], 0, -output[SAID_DIFF, row])
                    count += 1
        for row in range(now, now + nows):
            put_row(said, count, fold[ROW_VAL, row], 0, fold[ROW_DIFF, row])
            count += 1
        count = consolidate_rows(said, 0, count)
        if not due and count > 0:
            found[_PENDINGS] = put_minimal(pending, found[_PENDINGS], visits, visit, depth)
            continue
        if count > 0:
            if must_grow(output, slots, counts, count):
                found[_ROWS_SAID] = counts[ROW_COUNT] - first_row + count
                counts[ROW_COUNT] = first_row
                return _NO_ROOM
            say(output, table_said, slots, counts, group[KEY], said, count, visits, visit, depth)
        before, now, befores = now, before, nows
    return _DONE


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
        if found[_STEPS] < 0 and found[_UNSAID] == 0:
            if not next_group(layers, deltas, pending_keys, pending_vals, group, by_value):
                return _DONE
            seek(layers, 0, deltas, group, by_value)
            found[_TIMES] = 1 + group[TO] - group[FROM] + distinct_at_most(layers, 0, deltas)
            if found[_TIMES] > marks.shape[1] or found[_TIMES] * depth > len(pending):
                unseek(layers, group)
                return _NO_ROOM
            pendings, news = new_times(layers, deltas, group, pending_times, upper, vectors, marks, sparse, pending)
            found[_PENDINGS] = pendings
            if news == 0:
                if pendings > 0:
                    return _PUT_OFF
                continue
            # Where nothing was put off, what was said of a record is whether the input before has it.
            told = by_value and group[FROM] == group[TO]
            reach = inputs if told else len(layers)
            history = seek(layers, deltas, reach, group, by_value)
            if news == 1 and history_is_at_or_before(layers, deltas, reach, latest, vectors, depth):
                # What is said takes back a row that was said, or comes of an input row.
                found[_TO_SAY] = history
                if history > said.shape[1]:
                    unseek(layers, group)
                    return _NO_ROOM
                if told:
                    count = _change_of_record(layers, deltas, inputs, group, said)
                else:
                    count = _fold_at_once(kind, parameter, layers, deltas, inputs, group, exact, said)
                if count == NEGATIVE_DIFF:
                    found[_VISIT] = 0
                    copy_entries(vectors[ENTRIES], 0, vectors[VISITS], 0, 1, depth)
                    return _AT_FAULT
                found[_UNSAID] = count
            else:
                history += seek(layers, reach, len(layers), group, by_value)
                times = 1 + news + distinct_at_most(layers, deltas, len(layers))
                folds = 2 * fold_at_most(kind, parameter, history)
                found[_TIMES] = max(found[_TIMES], times + pendings)
                found[_ROWS], found[_FOLDS], found[_TO_SAY] = max(history, times + 2), folds, history + folds
                if (
                    found[_TIMES] > marks.shape[1]
                    or found[_TIMES] * depth > len(pending)
                    or found[_ROWS] > room.shape[1]
                    or folds > fold.shape[1]
                    or history + folds > said.shape[1]
                ):
                    unseek(layers, group)
                    return _NO_ROOM
                n = gather(layers, deltas, inputs, upper, vectors, marks, sparse, news, rows, bounds)
                found[_RANKED], found[_IS_CHAIN] = n, 1
                found[_STEPS] = interesting_chain(vectors, marks, n, True, depth)
                if found[_STEPS] < 0:
                    return _NO_CHAIN
        if found[_STEPS] >= 0:
            why = _visit(
                kind, parameter, group, exact, room, fold, vectors, marks, rows, bounds, said, output, table_said,
                slots, counts, upper, pending, found,
            )  # fmt: skip
            if why != _DONE:
                return why
            found[_STEPS] = -1
        elif found[_UNSAID] > 0:
            if must_grow(output, slots, counts, found[_UNSAID]):
                return _NO_ROOM
            say(output, table_said, slots, counts, group[KEY], said, found[_UNSAID], vectors[ENTRIES], 0, depth)
            found[_UNSAID] = 0
        if found[_PENDINGS] > 0:
            return _PUT_OFF


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
    room, fold = np.empty((_ROOM, TALLY_WIDTH), np.int64), no_rows()
    rows, said, output, postponed = (
        no_rows(),
        no_rows(),
        np.empty((SAID, 0), np.int64),
        np.empty((2 + depth, 0), np.int64),
    )
    nothing = np.empty(0, np.int64)
    table_said, slots, pending, exact, fault = nothing, nothing, nothing, no_sum(kind), nothing
    found = np.zeros(_FOUND, np.int64)
    found[_TIMES], found[_TO_SAY], found[_STEPS] = marks.shape[1], marks.shape[1], -1
    while True:
        marks = roomy(marks, found[_TIMES])
        # Whether there is room for more times is seen by the marks: they never have more than the vectors.
        vectors = roomy(vectors, marks.shape[1] * depth)
        if found[_TIMES] * depth > len(pending):
            larger = np.empty(2 * found[_TIMES] * depth, np.int64)
            larger[: len(pending)] = pending
            pending = larger
        room = roomy(room, found[_ROWS])
        rows, fold, said = roomy(rows, room.shape[1]), roomy(fold, found[_FOLDS]), roomy(said, found[_TO_SAY])
        more = max(found[_ROWS_SAID], found[_UNSAID])
        if must_grow(output, slots, counts, more):
            output, table_said, slots = grown(output, table_said, slots, counts, more, depth)
        found[_ROWS_SAID] = 0
        # Groups are reduced where no array is assigned: that counts references, which costs more than reducing one.
        why = _reduce_groups(
            kind, parameter, layers, deltas, inputs, latest, group, exact, pending_keys, pending_vals, pending_times,
            upper, vectors, marks, sparse, pending, said, room, rows, fold, bounds, output, table_said, slots, counts,
            found,
        )  # fmt: skip
        if why == _DONE:
            break
        if why == _AT_FAULT:
            fault = _fault(by_value, group, vectors[VISITS], found[_VISIT], depth)
            break
        if why == _PUT_OFF:
            postponed = put_off(postponed, counts, group, pending, found[_PENDINGS], depth)
        elif why == _NO_CHAIN:
            vectors, steps, chain, pending, pendings = interesting(
                vectors, marks, found[_RANKED], upper, True, pending, found[_PENDINGS]
            )
            found[_STEPS], found[_IS_CHAIN], found[_PENDINGS] = steps, int(chain), pendings
            found[_TIMES] = max(found[_TIMES], steps + pendings)
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
