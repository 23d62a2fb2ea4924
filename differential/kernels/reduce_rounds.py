"""Reduction by a function in Python, in rounds: the function is called once a round, for all groups at once.

The steps are those of `reduce`, with a call of Python in their midst. `plan` finds the groups with new rows or pending
times, their interesting times (see `reduce_times`) and their consolidated histories. In round r every group that has an
r-th interesting time is accumulated at it (`accumulate`), the caller reduces these groups, and `settle` returns the
corrections: the reductions, less the output rows at or before these times, less the corrections of earlier rounds at or
before them. A group's times are in lexicographic order, so those corrections are all known.

Rounds are taken in order, from 0 to `rounds(state)` - 1, and each is accumulated and then settled:

    state = plan(new, *before, input, output, upper)
    for number in range(rounds(state)):
        active, offsets, vals, counts, fault = accumulate(state, number)
        chunk = settle(state, number, *reduced(keys(state)[active], offsets, vals, counts))
    after = pending(state)

*Cost.* In every round each group is accumulated from all its rows: the function receives all its values in any case.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from differential.kernels.compile import NOTHING, Batches, Ints, Table, Times, bare, inner, kernel
from differential.kernels.memory import at
from differential.kernels.reduce_history import (
    TABLE,
    VISITS,
    distinct_at_most,
    gather,
    interesting,
    new_times,
    no_times,
    room_for_times,
)
from differential.kernels.reduce_layers import FROM, KEY, TO, Earlier, next_group, seek, walk_through
from differential.kernels.reduce_output import (
    COUNTS,
    POSTPONED,
    add_postponed,
    chunk,
    emit,
    grown,
    must_grow,
    nothing_emitted,
    postponed_times,
)
from differential.kernels.reduce_rows import (
    ROW_DIFF,
    ROW_TIME,
    ROW_VAL,
    Rows,
    add_row,
    consolidate_rows,
    copied,
    no_rows,
    with_room,
)
from differential.kernels.reduce_times import copy_entries
from differential.kernels.wide import Overflow, carry, fits

Chunk: TypeAlias = tuple[Ints, Ints, Table, Ints, Ints]
"""Keys, values, times, time indices and diffs of rows; a column of nothing but defaults is absent."""

_VISITS, _INPUT, _OUTPUT, _SPAN_WIDTH = range(4)
"""The columns of `spans`: where the visits, the input rows and the output rows of a group start. They end where those
of the next group start."""

_VAL, _TIME, _DIFF, _ROW_WIDTH = range(4)
_LOG_VAL, _LOG_DIFF, _LOG_VISIT, _LOG_BEFORE, _LOG_WIDTH = range(5)
"""The columns of `log`: a row emitted in an earlier round, the visit that emitted it, and the row of the log that was
emitted before it for the same group, or -1."""


class State:
    """A call in progress.

    `keys` are those of the groups. `spans` has where each group's share of the following starts: `visits`, the
    interesting times; `input` and `output`, the rows (value, time, diff) of the history, sorted by value, whose times
    index `times`. `active` are the groups of the present round. `log` has the rows emitted in earlier rounds, and
    `latest` the last one of each group.
    """

    __slots__ = ("active", "input", "keys", "latest", "log", "output", "pending", "spans", "times", "visits")

    def __init__(
        self,
        keys: Ints,
        spans: Table,
        visits: Table,
        times: Table,
        input: Table,
        output: Table,
        pending: tuple[Ints, Ints, Table],
    ) -> None:
        self.keys = keys
        self.spans = spans
        self.visits = visits
        self.times = times
        self.input = input
        self.output = output
        self.pending = pending
        self.active: Ints = np.arange(len(keys))
        self.latest: Ints = np.full(len(keys), -1, np.int64)
        self.log: Table = np.empty((0, _LOG_WIDTH), np.int64)


def plan(
    delta_table: Batches,
    pending_keys: Ints,
    pending_vals: Ints,
    pending_times: Table,
    input_table: Batches,
    output_table: Batches,
    upper: Times,
) -> State:
    """Return the state before the first round; the arguments are those of `differential.kernels.reduce.reduce`."""
    planned = plan_rounds(delta_table, pending_keys, pending_times, input_table, output_table, upper)
    keys, spans, visits, times, input, output, postponed_keys, postponed_times = planned
    return State(keys, spans, visits, times, input, output, (postponed_keys, NOTHING, postponed_times))


def rounds(state: State) -> int:
    """Return how many rounds there are: the greatest number of interesting times of a group."""
    return int(np.diff(state.spans[:, _VISITS]).max(initial=0))


def keys(state: State) -> Ints:
    """Return the keys of the groups, to which `accumulate` refers by position."""
    return state.keys


def pending(state: State) -> tuple[Ints, Ints, Table]:
    """Return the pending times for the next call, as keys, no values, and times."""
    return state.pending


def accumulate(state: State, number: int) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Return the groups of a round, accumulated at their times.

    The result is `(active, offsets, vals, counts, fault)`: group `active[g]` has the rows `offsets[g]:offsets[g + 1]`,
    which may be none. `vals` is absent if all are 0. `fault` is empty, or the key and the time of a group in which a
    value has a negative count.
    """
    active, offsets, vals, counts, fault = accumulate_round(
        state.keys, state.spans, state.visits, state.times, state.input, state.active, number
    )
    state.active = active
    return active, offsets, vals, counts, fault


def time_of(state: State, number: int, place: int) -> tuple[int, ...]:
    """Return the time at which a round visits the group at that place among those that `accumulate` returned."""
    time: list[int] = state.visits[state.spans[state.active[place], _VISITS] + number].tolist()
    return tuple(time)


def settle(state: State, number: int, offsets: Ints, vals: Ints, counts: Ints) -> Chunk:
    """Return the rows to emit in a round, given the reduced groups in the layout that `accumulate` returned.

    A group may have several rows of the same value; `vals` and `counts` may be absent.
    """
    *rows, state.log = settle_round(
        state.keys, state.spans, state.visits, state.times, state.output, state.active, number,
        offsets, vals, counts, state.latest, state.log,
    )  # fmt: skip
    out_keys, out_vals, out_times, time_index, diffs = rows
    return out_keys, out_vals, out_times, time_index, diffs


@bare
def _is_at_or_before(left: Table, i: int, right: Table, j: int) -> bool:
    d = 0
    while d < left.shape[1] and left[i, d] <= right[j, d]:
        d += 1
    return bool(d == left.shape[1])


@inner
def _append(rows: Table, count: int, more: Rows, first: int, last: int, base: int) -> Table:
    """Return `rows`, of which there are `count`, with others appended whose times are shifted by `base`."""
    rows = with_room(rows, count + last - first)
    for row in range(first, last):
        place = count + row - first
        rows[_VAL, place] = more[ROW_VAL, row]
        rows[_TIME, place] = more[ROW_TIME, row] + base
        rows[_DIFF, place] = more[ROW_DIFF, row]
    return rows


@inner
def _append_times(times: Table, count: int, more: Ints, n: int, depth: int) -> Table:
    """Return `times`, one column of `count` entries, with `n` others appended."""
    times = with_room(times, (count + n) * depth)
    copy_entries(more, 0, times[0], count, n, depth)
    return times


@inner
def _transposed(columns: Table, n: int) -> Table:
    """Return the first `n` items of each column as `n` rows."""
    rows = np.empty((n, len(columns)), np.int64)
    for row in range(n):
        for column in range(len(columns)):
            rows[row, column] = columns[column, row]
    return rows


@bare
def _begin(groups: Table, group: int, visits: int, inputs: int, outputs: int) -> None:
    """Note where the visits, the input rows and the output rows of a group start."""
    groups[_VISITS, group], groups[_INPUT, group], groups[_OUTPUT, group] = visits, inputs, outputs


@kernel
def plan_rounds(
    delta_table: Batches,
    pending_keys: Ints,
    pending_times: Table,
    input_table: Batches,
    output_table: Batches,
    upper: Times,
) -> tuple[Ints, Table, Table, Table, Table, Table, Ints, Table]:
    """Return `(keys, spans, visits, times, input, output)` of the state before round 0, and pending keys and times."""
    depth, deltas = upper.shape[1], len(delta_table)
    walk = walk_through(delta_table, input_table, output_table, depth)
    layers, group, scratch = walk.layers, walk.group, no_times(walk, depth)
    bounds, counts = np.empty(3, np.int64), np.zeros(COUNTS, np.int64)
    rows, earlier = no_rows(), Earlier(pending_keys, np.empty(0, np.int64), pending_times)
    groups, postponed = np.empty((1 + _SPAN_WIDTH, 1), np.int64), np.empty((2 + depth, 0), np.int64)
    visits, times = np.empty((1, 0), np.int64), np.empty((1, 0), np.int64)
    input, output = np.empty((_ROW_WIDTH, 0), np.int64), np.empty((_ROW_WIDTH, 0), np.int64)
    count, visit_count, time_count, input_count, output_count = 0, 0, 0, 0, 0
    while next_group(walk, earlier, False):
        seek(layers, 0, deltas, group, False)
        scratch = room_for_times(scratch, 1 + group[TO] - group[FROM] + distinct_at_most(layers, 0, deltas), depth)
        pending_count, new_count = new_times(walk, earlier, upper, scratch)
        if new_count > 0:
            rows = with_room(rows, seek(layers, deltas, len(layers), group, False))
            room = 1 + new_count + distinct_at_most(layers, deltas, len(layers))
            scratch = room_for_times(scratch, room, depth)
            n = gather(walk, upper, scratch, new_count, rows, bounds)
            scratch, steps, _, pending_count = interesting(scratch, n, upper, False, pending_count)
            groups = with_room(groups, count + 2)
            _begin(groups, count, visit_count, input_count, output_count)
            groups[_SPAN_WIDTH, count] = group[KEY]
            visits = _append_times(visits, visit_count, scratch.vectors[VISITS], steps, depth)
            times = _append_times(times, time_count, scratch.vectors[TABLE], n, depth)
            # Ranks become rows of `times`, in which the times of this group start at `time_count`.
            input = _append(input, input_count, rows, 0, bounds[0], time_count)
            output = _append(output, output_count, rows, bounds[1], bounds[2], time_count)
            count += 1
            visit_count += steps
            time_count += n
            input_count += bounds[0]
            output_count += bounds[2] - bounds[1]
        if pending_count > 0:
            postponed = add_postponed(postponed, counts, group, scratch.pending, pending_count, depth)
    _begin(groups, count, visit_count, input_count, output_count)
    return (
        copied(groups[_SPAN_WIDTH], count),
        _transposed(groups, count + 1),
        copied(visits[0], visit_count * depth).reshape((visit_count, depth)),
        copied(times[0], time_count * depth).reshape((time_count, depth)),
        _transposed(input, input_count),
        _transposed(output, output_count),
        copied(postponed[0], counts[POSTPONED]),
        postponed_times(postponed, counts[POSTPONED], depth),
    )


@kernel
def accumulate_round(
    keys: Ints, spans: Table, visits: Table, times: Table, input: Table, candidates: Ints, number: int
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Return the result of `accumulate`, given the groups of the round before as `candidates`.

    A group without an r-th interesting time has none in later rounds, so no other group needs a look.
    """
    count = 0
    room = 0
    for group in candidates:
        if spans[group + 1, _VISITS] - spans[group, _VISITS] > number:
            count += 1
            room += spans[group + 1, _INPUT] - spans[group, _INPUT]
    active, offsets = np.empty(count, np.int64), np.zeros(count + 1, np.int64)
    vals, counts = np.empty(room, np.int64), np.empty(room, np.int64)
    fault = np.empty(0, np.int64)
    count = 0
    filled = 0
    with_vals = 0
    for group in candidates:
        visit = spans[group, _VISITS] + number
        if visit >= spans[group + 1, _VISITS]:
            continue
        start, high = filled, 0
        for row in range(spans[group, _INPUT], spans[group + 1, _INPUT]):
            if _is_at_or_before(times, input[row, _TIME], visits, visit):
                # The rows are sorted by value: a row has the value of the last one, or begins a new value.
                if filled > start and vals[filled - 1] == input[row, _VAL]:
                    counts[filled - 1] += input[row, _DIFF]
                    high += carry(counts[filled - 1], input[row, _DIFF])
                else:
                    if filled > start and not fits(counts[filled - 1], high):
                        raise Overflow(keys[group], vals[filled - 1], visit)
                    # A value whose rows cancel is overwritten by the next one.
                    if filled > start and counts[filled - 1] == 0:
                        filled -= 1
                    vals[filled] = input[row, _VAL]
                    counts[filled], high = input[row, _DIFF], input[row, _DIFF] >> 63
                    filled += 1
        if filled > start and not fits(counts[filled - 1], high):
            raise Overflow(keys[group], vals[filled - 1], visit)
        if filled > start and counts[filled - 1] == 0:
            filled -= 1
        for row in range(start, filled):
            with_vals |= vals[row]
            if counts[row] < 0 and len(fault) == 0:
                fault = np.empty(1 + visits.shape[1], np.int64)
                fault[0] = keys[group]
                for d in range(visits.shape[1]):
                    fault[1 + d] = visits[visit, d]
        active[count] = group
        count += 1
        offsets[count] = filled
    return active, offsets, vals[: filled if with_vals != 0 else 0], counts[:filled], fault


@kernel
def settle_round(
    keys: Ints,
    spans: Table,
    visits: Table,
    times: Table,
    output: Table,
    active: Ints,
    number: int,
    offsets: Ints,
    vals: Ints,
    counts: Ints,
    latest: Ints,
    log: Table,
) -> tuple[Ints, Ints, Table, Ints, Ints, Table]:
    """Return the result of `settle`, and the log with its rows appended; update `latest`."""
    depth = visits.shape[1]
    flat = visits.reshape(visits.size)
    rows, emitted = no_rows(), nothing_emitted()
    logged = len(log)
    for place in range(len(active)):
        group = active[place]
        visit = spans[group, _VISITS] + number
        n = 0
        for row in range(offsets[place], offsets[place + 1]):
            rows = add_row(rows, n, at(vals, row, 0), at(counts, row, 1))
            n += 1
        for row in range(spans[group, _OUTPUT], spans[group + 1, _OUTPUT]):
            if _is_at_or_before(times, output[row, _TIME], visits, visit):
                rows = add_row(rows, n, output[row, _VAL], -output[row, _DIFF])
                n += 1
        # The log is a linked list for each group, from its last row back.
        row = latest[group]
        while row >= 0:
            if _is_at_or_before(visits, log[row, _LOG_VISIT], visits, visit):
                rows = add_row(rows, n, log[row, _LOG_VAL], -log[row, _LOG_DIFF])
                n += 1
            row = log[row, _LOG_BEFORE]
        n = consolidate_rows(rows, 0, n)
        if n > 0:
            if must_grow(emitted, n):
                emitted = grown(emitted, n, depth)
            emit(emitted, keys[group], rows, n, flat, visit, depth)
        # The log of a group is not read after its last visit.
        if visit + 1 < spans[group + 1, _VISITS]:
            if logged + n > len(log):
                larger = np.empty((2 * (logged + n), _LOG_WIDTH), np.int64)
                for row in range(logged):
                    for column in range(_LOG_WIDTH):
                        larger[row, column] = log[row, column]
                log = larger
            for row in range(n):
                log[logged, _LOG_VAL] = rows[ROW_VAL, row]
                log[logged, _LOG_DIFF] = rows[ROW_DIFF, row]
                log[logged, _LOG_VISIT] = visit
                log[logged, _LOG_BEFORE] = latest[group]
                latest[group] = logged
                logged += 1
    out_keys, out_vals, out_times, time_index, diffs = chunk(emitted, depth)
    return out_keys, out_vals, out_times, time_index, diffs, log[:logged]
