"""Reduction of keyed collections: when the input of a key changes, say how its output changes, and at which times.

One call is one activation of a reduce operator. For each group touched, by new input or by times put off earlier, the
interesting times are found (see `reduce_times` for which they are, and why these), and at each of them, in lexicographic
order, the input is accumulated and reduced, and the difference to what was said so far is said at exactly that time.
After a call, at every time not in advance of `upper`, the accumulated output is the reduction of the accumulated input.

A group whose history is all at or before its one new time, the usual case, is read where it lies in the layers. A group
visited at several times keeps a tally up to date from one to the next; along a chain of times each row enters the tally once,
so that many times at a key with a long history cost about the sum of both and not the product. On other partial orders
a visit costs the times of the group and the rows that enter or leave the tally.

Built-in reductions only; what each kind says stands in `reduce_fold`. A reduction in Python goes by `reduce_rounds`.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, inner, kernel
from differential.kernels.memory import TIME_ROWS
from differential.kernels.reduce_fold import (
    COUNT,
    DISTINCT,
    FIRST,
    LARGEST,
    MAX,
    MIN,
    NEGATIVE_DIFF,
    SMALLEST,
    SUM,
    SUM_FLOAT,
    TALLY_WIDTH,
    add_row,
    fold_layers,
    fold_tally,
    is_descending,
    no_sum,
    tally_row,
)
from differential.kernels.reduce_history import (
    ENTRIES,
    KNOWN,
    TABLE,
    Times,
    gather,
    history_is_at_or_before,
    interesting,
    new_times,
    no_times,
)
from differential.kernels.reduce_layers import (
    BASE,
    HIGH,
    KEY,
    LOW,
    diff_at,
    latest_times,
    next_group,
    seek,
    stack,
    value_at,
)
from differential.kernels.reduce_output import (
    ROW_COUNT,
    Output,
    chunk,
    no_group,
    no_output,
    no_postponed,
    put_off,
    say,
)
from differential.kernels.reduce_rows import Rows, consolidate_rows, no_rows, roomy
from differential.kernels.reduce_times import IS_DUE, IS_USED, is_at_or_before

__all__ = ["COUNT", "DISTINCT", "LARGEST", "MAX", "MIN", "SMALLEST", "SUM", "SUM_FLOAT", "reduce"]

_NO_ERROR = -1


@inner
def _say_at_once(
    kind: int,
    parameter: int,
    layers: Table,
    deltas: int,
    inputs: int,
    group: Ints,
    exact: Ints,
    entries: Ints,
    depth: int,
    said: Rows,
    output: Output,
) -> tuple[Rows, Output, int]:
    """Reduce a group whose history is all at or before entry 0; return the entry if its input has a negative diff."""
    count = 0
    for layer in range(inputs, len(layers)):
        for row in range(layers[layer, LOW], layers[layer, HIGH]):
            said, count = add_row(said, count, value_at(layers, layer, row), -diff_at(layers, layer, row))
    said, count = fold_layers(kind, parameter, layers, deltas, inputs, group, exact, said, count)
    if count == NEGATIVE_DIFF:
        return said, output, 0
    n = consolidate_rows(said, 0, count)
    return said, say(output, group[KEY], said, n, entries, 0, depth), _NO_ERROR


@inner
def _by_time(rows: Rows, first: int, last: int, n: int) -> tuple[Ints, Ints]:
    """Return the rows in order of time: where each time's rows start, and their numbers."""
    starts = np.zeros(n + 1, np.int64)
    order = np.empty(last - first, np.int64)
    for row in range(first, last):
        starts[rows[1][row] + 1] += 1
    for time in range(n):
        starts[time + 1] += starts[time]
    for row in range(first, last):
        time = rows[1][row]
        order[starts[time]] = row
        starts[time] += 1
    for time in range(n, 0, -1):
        starts[time] = starts[time - 1]
    starts[0] = 0
    return starts, order


@inner
def _distinct_values(rows: Rows, last: int, descending: bool) -> tuple[Ints, Ints, int]:
    """Return the distinct values in the order to look at them, the place among them of each row, and their number."""
    vals, places = np.empty(last, np.int64), np.empty(last, np.int64)
    n = 0
    for step in range(last):
        row = last - 1 - step if descending else step
        if n == 0 or vals[n - 1] != rows[0][row]:
            vals[n] = rows[0][row]
            n += 1
        places[row] = n - 1
    return vals, places, n


@inner
def _take_back(rows: Rows, starts: Ints, order: Ints, time: int, said: Rows, count: int) -> tuple[Rows, int]:
    """Return `said` with the output rows at a time added, negated."""
    for place in range(starts[time], starts[time + 1]):
        row = order[place]
        said, count = add_row(said, count, rows[0][row], -rows[2][row])
    return said, count


@inner
def _visit(
    kind: int,
    parameter: int,
    group: Ints,
    exact: Ints,
    times: Times,
    n: int,
    rows: Rows,
    bounds: Ints,
    visits: Ints,
    steps: int,
    chain: bool,
    depth: int,
    said: Rows,
    output: Output,
) -> tuple[Rows, Output, int]:
    """Reduce a gathered group at its interesting times; return the visit at which its input has a negative diff."""
    table, known = times[TABLE], times[KNOWN]
    starts, order = _by_time(rows, 0, bounds[0], n)
    said_starts, said_order = _by_time(rows, bounds[1], bounds[2], n)
    vals, places, distinct = _distinct_values(rows, bounds[0], is_descending(kind))
    diffs, tally = np.zeros(distinct, np.int64), np.zeros(TALLY_WIDTH, np.int64)
    tally[FIRST] = distinct
    if kind == SUM_FLOAT:
        exact[:] = 0
    counted = np.zeros(n, np.bool_)
    before, now = no_rows(), no_rows()
    befores, count = 0, 0
    first_row = output[-1][ROW_COUNT]
    reached = 0
    for visit in range(steps):
        count = 0
        while chain and not known[reached] & IS_DUE:
            reached += 1
        for time in range(reached if chain else 0, reached + 1 if chain else n):
            if not known[time] & IS_USED:
                continue
            covers = chain or is_at_or_before(table, time, visits, visit, depth)
            if covers:
                said, count = _take_back(rows, said_starts, said_order, time, said, count)
            if covers != counted[time]:
                counted[time] = covers
                for place in range(starts[time], starts[time + 1]):
                    row = order[place]
                    diff = rows[2][row] if covers else -rows[2][row]
                    tally_row(kind, tally, exact, vals, diffs, places[row], diff)
        reached += 1
        now, nows = fold_tally(kind, parameter, group, tally, exact, vals, diffs, distinct, now)
        if nows == NEGATIVE_DIFF:
            return said, output, visit
        if chain:
            for row in range(befores):
                said, count = add_row(said, count, before[0][row], -before[2][row])
        else:
            for row in range(first_row, output[-1][ROW_COUNT]):
                if is_at_or_before(output[4], output[2][row], visits, visit, depth):
                    said, count = add_row(said, count, output[1][row], -output[3][row])
        for row in range(nows):
            said, count = add_row(said, count, now[0][row], now[2][row])
        output = say(output, group[KEY], said, consolidate_rows(said, 0, count), visits, visit, depth)
        before, now, befores = now, before, nows
    return said, output, _NO_ERROR


@inner
def _fault(group: Ints, visits: Ints, visit: int, depth: int) -> Ints:
    """Return where the input has a negative diff: the key, then the time."""
    where = np.empty(1 + depth, np.int64)
    where[0] = group[KEY]
    where[1:] = visits[visit * depth : (visit + 1) * depth]
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
    which times are due: those not in advance of it. No new row and no pending time may be earlier than what the call before
    was given as `upper`.

    The result is `(keys, vals, times, time_index, diffs)`, a chunk ordered by key, then `(pending_keys, pending_vals,
    pending_times)` for the next call, then `fault`: empty, or the key and the time at which a value has a negative diff and
    the reduction no meaning; the rest is then to be thrown away.
    """
    depth = upper.shape[1]
    by_value = kind == DISTINCT
    deltas = len(delta_table)
    inputs = deltas + len(input_table)
    layers = stack(delta_table, input_table, output_table)
    latest = latest_times(layers, depth)
    last = len(layers) - 1
    sparse = np.empty(layers[last, BASE] + layers[last, TIME_ROWS] if last >= 0 else 0, np.int64)
    group, times, rows, said, output = no_group(), no_times(), no_rows(), no_rows(), no_output()
    postponed, postpones = no_postponed(), 0
    pending, exact, fault = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    if kind == SUM_FLOAT:
        exact = no_sum()
    while next_group(layers, deltas, pending_keys, pending_vals, group, by_value):
        seek(layers, 0, deltas, group, by_value)
        times, news, pending, pendings = new_times(layers, deltas, group, pending_times, upper, times, sparse, pending)
        if news > 0:
            seek(layers, deltas, len(layers), group, by_value)
            if news == 1 and history_is_at_or_before(layers, deltas, len(layers), latest, times[ENTRIES], depth):
                visits = times[ENTRIES]
                said, output, visit = _say_at_once(
                    kind, parameter, layers, deltas, inputs, group, exact, visits, depth, said, output
                )
            else:
                times, n, rows, bounds = gather(layers, deltas, inputs, upper, times, sparse, news, rows)
                visits, steps, chain, pending, pendings = interesting(times, n, upper, pending, pendings)
                said, output, visit = _visit(
                    kind, parameter, group, exact, times, n, rows, bounds, visits, steps, chain, depth, said, output
                )
            if visit != _NO_ERROR:
                fault = _fault(group, visits, visit, depth)
                break
        postponed, postpones = put_off(postponed, postpones, group, pending, pendings, depth)
    keys, vals, table, time_index, diffs = chunk(output, depth)
    return (
        keys,
        vals,
        table,
        time_index,
        diffs,
        postponed[0][:postpones],
        postponed[1][: postpones if by_value else 0],
        postponed[2][: postpones * depth].reshape((postpones, depth)),
        fault,
    )
