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
    distinct_at_most,
    gather,
    history_is_at_or_before,
    interesting,
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
from differential.kernels.reduce_times import IS_DUE, IS_USED, add_minimal, is_at_or_before, is_covered, is_due

__all__ = ["COUNT", "DISTINCT", "LARGEST", "MAX", "MIN", "SMALLEST", "SUM", "SUM_FLOAT", "reduce"]

_PLACES, _STARTS, _ORDER, _SAID_STARTS, _SAID_ORDER, _COUNTED, _ROOM = range(FREE, FREE + 7)
"""Beside the tally, of a group that is visited: the place in it of each input row; where the input rows of each time
start in their order by time, and this order; the same of the output rows; whether a time's rows are in the tally."""

_NO_ERROR = -1
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


@inner
def _visit(
    kind: int,
    parameter: int,
    group: Ints,
    exact: Ints,
    room: Table,
    fold: Rows,
    vectors: Table,
    marks: Table,
    n: int,
    rows: Rows,
    bounds: Ints,
    visits: Ints,
    steps: int,
    chain: bool,
    depth: int,
    said: Rows,
    output: Table,
    table_said: Ints,
    slots: Ints,
    counts: Ints,
    upper: Table,
    pending: Ints,
    pendings: int,
) -> tuple[Rows, Table, Ints, Ints, int, Ints, int]:
    """Reduce a gathered group at its interesting times; return, in the end, the visit at which its input has a negative
    diff, and what is pending: of the times that are not due, those at which something would have to be said.

    `room` must have some for all rows and times, `fold` for what the group reduces to, twice: now, and before; `said`
    for both and for what was said.
    """
    table = vectors[TABLE]
    _by_time(rows, 0, bounds[0], n, room, _STARTS, _ORDER)
    _by_time(rows, bounds[1], bounds[2], n, room, _SAID_STARTS, _SAID_ORDER)
    distinct = _distinct_values(rows, bounds[0], is_descending(kind), room)
    empty_tally(room, exact, distinct)
    for time in range(n):
        room[_COUNTED, time] = 0
    before, now, befores = 0, fold_at_most(kind, parameter, distinct), 0
    first_row = counts[ROW_COUNT]
    reached = ahead = 0
    for visit in range(steps):
        due = is_due(upper, visits, visit, depth)
        if not due:
            ahead += 1
            if is_covered(pending, pendings, visits, visit, depth):
                continue
            if ahead > _MOST_AHEAD:
                pending, pendings = add_minimal(pending, pendings, visits, visit, depth)
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
                return said, output, table_said, slots, visit, pending, pendings
            pending, pendings = add_minimal(pending, pendings, visits, visit, depth)
            continue
        if chain:
            for row in range(before, before + befores):
                put_row(said, count, fold[ROW_VAL, row], 0, -fold[ROW_DIFF, row])
                count += 1
        else:
            most = count + nows + counts[ROW_COUNT] - first_row
            if most > said.shape[1]:
                said = roomy(said, most)
            for row in range(first_row, counts[ROW_COUNT]):
                if is_at_or_before(table_said, output[SAID_TIME, row], visits, visit, depth):
                    put_row(said, count, output[SAID_VAL, row], 0, -output[SAID_DIFF, row])
                    count += 1
        for row in range(now, now + nows):
            put_row(said, count, fold[ROW_VAL, row], 0, fold[ROW_DIFF, row])
            count += 1
        count = consolidate_rows(said, 0, count)
        if not due and count > 0:
            pending, pendings = add_minimal(pending, pendings, visits, visit, depth)
            continue
        if count > 0:
            if must_grow(output, slots, counts, count):
                output, table_said, slots = grown(output, table_said, slots, counts, count, depth)
            say(output, table_said, slots, counts, group[KEY], said, count, visits, visit, depth)
        before, now, befores = now, before, nows
    return said, output, table_said, slots, _NO_ERROR, pending, pendings


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
    entries = vectors[ENTRIES]
    room, fold = np.empty((_ROOM, TALLY_WIDTH), np.int64), no_rows()
    rows, said, output, postponed = (
        no_rows(),
        no_rows(),
        np.empty((SAID, 0), np.int64),
        np.empty((2 + depth, 0), np.int64),
    )
    nothing = np.empty(0, np.int64)
    table_said, slots, pending, exact, fault = nothing, nothing, nothing, no_sum(kind), nothing
    while next_group(layers, deltas, pending_keys, pending_vals, group, by_value):
        seek(layers, 0, deltas, group, by_value)
        times = 1 + group[TO] - group[FROM] + distinct_at_most(layers, 0, deltas)
        if times > marks.shape[1]:
            vectors, marks = roomy(vectors, times * depth), roomy(marks, times)
            entries = vectors[ENTRIES]
        if times * depth > len(pending):
            pending = np.empty(2 * times * depth, np.int64)
        pendings, news = new_times(layers, deltas, group, pending_times, upper, vectors, marks, sparse, pending)
        if news > 0:
            # Where nothing was put off, what was said of a record is whether the input before has it.
            told = by_value and group[FROM] == group[TO]
            reach = inputs if told else len(layers)
            history = seek(layers, deltas, reach, group, by_value)
            # What is said takes back a row that was said, or comes of an input row.
            if history > said.shape[1]:
                said = roomy(said, history)
            if news == 1 and history_is_at_or_before(layers, deltas, reach, latest, vectors, depth):
                if told:
                    count = _change_of_record(layers, deltas, inputs, group, said)
                else:
                    count = _fold_at_once(kind, parameter, layers, deltas, inputs, group, exact, said)
                if count == NEGATIVE_DIFF:
                    fault = _fault(by_value, group, entries, 0, depth)
                    break
                if count > 0:
                    if must_grow(output, slots, counts, count):
                        output, table_said, slots = grown(output, table_said, slots, counts, count, depth)
                    say(output, table_said, slots, counts, group[KEY], said, count, entries, 0, depth)
            else:
                history += seek(layers, reach, len(layers), group, by_value)
                times = 1 + news + distinct_at_most(layers, deltas, len(layers))
                if times > marks.shape[1]:
                    vectors, marks = roomy(vectors, times * depth), roomy(marks, times)
                    entries = vectors[ENTRIES]
                if max(history, times + 2) > room.shape[1]:
                    room = roomy(room, max(history, times + 2))
                    rows = roomy(rows, room.shape[1])
                folds = 2 * fold_at_most(kind, parameter, history)
                if folds > fold.shape[1]:
                    fold = roomy(fold, folds)
                if history + folds > said.shape[1]:
                    said = roomy(said, history + folds)
                n = gather(layers, deltas, inputs, upper, vectors, marks, sparse, news, rows, bounds)
                visits, steps, chain, pending, pendings = interesting(vectors, marks, n, upper, True, pending, pendings)
                said, output, table_said, slots, visit, pending, pendings = _visit(
                    kind, parameter, group, exact, room, fold, vectors, marks, n, rows, bounds, visits, steps, chain,
                    depth, said, output, table_said, slots, counts, upper, pending, pendings,
                )  # fmt: skip
                if visit != _NO_ERROR:
                    fault = _fault(by_value, group, visits, visit, depth)
                    break
        if pendings > 0:
            postponed = put_off(postponed, counts, group, pending, pendings, depth)
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
