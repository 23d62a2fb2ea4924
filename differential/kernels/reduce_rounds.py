"""Reduction by a function in Python, in rounds: the function is called once a round, for all groups at once.

The steps are those of `reduce`, with a call of Python in their midst. `plan` finds the groups with new rows or pending
times, their interesting times (see `reduce_times`) and their consolidated histories. In round r every group that has an
r-th interesting time is accumulated at it (`accumulate`), the caller reduces these groups, and `settle` returns the
corrections: the reductions, less the output rows at or before these times, less the corrections of earlier rounds at or
before them. A group's times are in lexicographic order, so those corrections are all known.

Rounds are taken in order, from 0 to `rounds(state)` - 1, and each is accumulated and then settled:

    state = plan(new, before, input, output, upper)
    for number in range(rounds(state)):
        active, offsets, vals, counts, fault = accumulate(state, number)
        chunk = settle(state, number, *reduced(keys(state)[active], offsets, vals, counts))
    after = pending(state)

*Cost.* In every round each group is accumulated from all its rows: the function receives all its values in any case.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from differential.kernels.compile import Batches, Ints, Table, Times, bare, inner, kernel
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
from differential.kernels.reduce_layers import FROM, KEY, PENDING_TIME, TO, next_group, seek, walk_through
from differential.kernels.reduce_output import (
    COUNTS,
    POSTPONED,
    add_postponed,
    chunk,
    emit,
    grown,
    must_grow,
    nothing_emitted,
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
    transposed,
    with_room,
)
from differential.kernels.reduce_times import copy_entries
from differential.kernels.wide import Overflow, carry, fits

Chunk: TypeAlias = tuple[Ints, Ints, Table, Ints, Ints]
"""Keys, values, times, time indices and diffs of rows; a column of nothing but defaults is absent."""

_VISITS, _INPUT, _OUTPUT, _KEY, _VISIT, _LATEST, _GROUP_WIDTH = range(7)
"""The columns of `groups`: where the visits, the input rows and the output rows of a group start, which end where those
of the next group start; its key; its visit in the present round; the row of the log emitted for it last, or -1."""

_VAL, _TIME, _DIFF, _ROW_WIDTH = range(4)
_LOG_VAL, _LOG_DIFF, _LOG_VISIT, _LOG_BEFORE, _LOG_WIDTH = range(5)
"""The columns of `log`: a row emitted in an earlier round, the visit that emitted it, and the row of the log that was
emitted before it for the same group, or -1."""


class State:
    """A call in progress.

    `groups` has a row for each group, and one more, with where its share of the following starts. `times` has the times
    of the history, and then the visits: the interesting times of each group. `input` and `output` are the rows (value,
    time, diff) of the history, sorted by value, and refer to `times`. `active` are the groups of the present round.
    `log` has the rows emitted in earlier rounds.
    """

    __slots__ = ("active", "groups", "input", "log", "output", "pending", "times")

    def __init__(self, groups: Table, times: Table, input: Table, output: Table, pending: Table) -> None:
        self.groups = groups
        self.times = times
        self.input = input
        self.output = output
        self.pending = pending
        self.active: Ints = np.arange(len(groups) - 1)
        self.log: Table = np.empty((0, _LOG_WIDTH), np.int64)


def plan(delta_table: Batches, earlier: Table, input_table: Batches, output_table: Batches, upper: Times) -> State:
    """Return the state before the first round; the arguments are those of `differential.kernels.reduce.reduce`."""
    return State(*plan_rounds(delta_table, earlier, input_table, output_table, upper))


def rounds(state: State) -> int:
    """Return how many rounds there are: the greatest number of interesting times of a group."""
    return int(np.diff(state.groups[:, _VISITS]).max(initial=0))


def keys(state: State) -> Ints:
    """Return the keys of the groups, to which `accumulate` refers by position."""
    return state.groups[:-1, _KEY]


def pending(state: State) -> Table:
    """Return the pending times for the next call."""
    return state.pending


def accumulate(state: State, number: int) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Return the groups of a round, accumulated at their times.

    The result is `(active, offsets, vals, counts, fault)`: group `active[g]` has the rows `offsets[g]:offsets[g + 1]`,
    which may be none. `vals` is absent if all are 0. `fault` is empty, or the key and the time of a group in which a
    value has a negative count.
    """
    found = accumulate_round(state.groups, state.times, state.input, state.active, number)
    state.active = found[0]
    return found


def time_of(state: State, number: int, place: int) -> tuple[int, ...]:
    """Return the time at which a round visits the group at that place among those that `accumulate` returned."""
    time: list[int] = state.times[state.groups[state.active[place], _VISITS] + number].tolist()
    return tuple(time)


def settle(state: State, offsets: Ints, vals: Ints, counts: Ints) -> Chunk:
    """Return the rows to emit in the present round, given the reduced groups in the layout that `accumulate` returned.

    A group may have several rows of the same value; `vals` and `counts` may be absent.
    """
    *rows, state.log = settle_round(
        state.groups, state.times, state.output, state.log, state.active, offsets, vals, counts
    )
    out_keys, out_vals, out_times, time_index, diffs = rows
    return out_keys, out_vals, out_times, time_index, diffs


@bare
def _is_at_or_before(times: Table, one: int, other: int) -> bool:
    d = 0
    while d < times.shape[1] and times[one, d] <= times[other, d]:
        d += 1
    return bool(d == times.shape[1])


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


@bare
def _begin(groups: Table, group: int, key: int, visits: int, inputs: int, outputs: int) -> None:
    """Note the key of a group, and where its visits, its input rows and its output rows start."""
    groups[_VISITS, group], groups[_INPUT, group], groups[_OUTPUT, group] = visits, inputs, outputs
    groups[_KEY, group], groups[_VISIT, group], groups[_LATEST, group] = key, visits, -1


@kernel
def plan_rounds(
    delta_table: Batches, earlier: Table, input_table: Batches, output_table: Batches, upper: Times
) -> tuple[Table, Table, Table, Table, Table]:
    """Return `(groups, times, input, output, pending)` of the state before round 0."""
    depth, deltas = upper.shape[1], len(delta_table)
    walk = walk_through(delta_table, input_table, output_table, depth)
    layers, group, scratch = walk.layers, walk.group, no_times(walk, depth)
    bounds, counts = np.empty(3, np.int64), np.zeros(COUNTS, np.int64)
    rows = no_rows()
    groups, postponed = np.empty((_GROUP_WIDTH, 1), np.int64), np.empty((PENDING_TIME + depth, 0), np.int64)
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
            _begin(groups, count, group[KEY], visit_count, input_count, output_count)
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
    _begin(groups, count, 0, visit_count, input_count, output_count)
    for group_number in range(count + 1):
        groups[_VISITS, group_number] += time_count  # where the visits start when they follow the times of the history
    times = _append_times(times, time_count, visits[0], visit_count, depth)
    time_count += visit_count
    return (
        transposed(groups, count + 1),
        copied(times[0], time_count * depth).reshape((time_count, depth)),
        transposed(input, input_count),
        transposed(output, output_count),
        transposed(postponed, counts[POSTPONED]),
    )


@kernel
def accumulate_round(
    groups: Table, times: Table, input: Table, candidates: Ints, number: int
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Return the result of `accumulate`, given the groups of the round before as `candidates`; set their visit.

    A group without an r-th interesting time has none in later rounds, so no other group needs a look.
    """
    count = 0
    room = 0
    for group in candidates:
        if groups[group + 1, _VISITS] - groups[group, _VISITS] > number:
            count += 1
            room += groups[group + 1, _INPUT] - groups[group, _INPUT]
    active, offsets = np.empty(count, np.int64), np.zeros(count + 1, np.int64)
    vals, counts = np.empty(room, np.int64), np.empty(room, np.int64)
    fault = np.empty(0, np.int64)
    count = 0
    filled = 0
    with_vals = 0
    for group in candidates:
        visit = groups[group, _VISITS] + number
        if visit >= groups[group + 1, _VISITS]:
            continue
        groups[group, _VISIT] = visit
        start, high = filled, 0
        for row in range(groups[group, _INPUT], groups[group + 1, _INPUT]):
            if _is_at_or_before(times, input[row, _TIME], visit):
                # The rows are sorted by value: a row has the value of the last one, or begins a new value.
                if filled > start and vals[filled - 1] == input[row, _VAL]:
                    counts[filled - 1] += input[row, _DIFF]
                    high += carry(counts[filled - 1], input[row, _DIFF])
                else:
                    if filled > start and not fits(counts[filled - 1], high):
                        raise Overflow(groups[group, _KEY], vals[filled - 1], visit)
                    # A value whose rows cancel is overwritten by the next one.
                    if filled > start and counts[filled - 1] == 0:
                        filled -= 1
                    vals[filled] = input[row, _VAL]
                    counts[filled], high = input[row, _DIFF], input[row, _DIFF] >> 63
                    filled += 1
        if filled > start and not fits(counts[filled - 1], high):
            raise Overflow(groups[group, _KEY], vals[filled - 1], visit)
        if filled > start and counts[filled - 1] == 0:
            filled -= 1
        for row in range(start, filled):
            with_vals |= vals[row]
            if counts[row] < 0 and len(fault) == 0:
                fault = np.empty(1 + times.shape[1], np.int64)
                fault[0] = groups[group, _KEY]
                for d in range(times.shape[1]):
                    fault[1 + d] = times[visit, d]
        active[count] = group
        count += 1
        offsets[count] = filled
    return active, offsets, vals[: filled if with_vals != 0 else 0], counts[:filled], fault


@kernel
def settle_round(
    groups: Table, times: Table, output: Table, log: Table, active: Ints, offsets: Ints, vals: Ints, counts: Ints
) -> tuple[Ints, Ints, Table, Ints, Ints, Table]:
    """Return the result of `settle`, and the log with its rows appended; update the last row of each group there."""
    depth = times.shape[1]
    flat = times.reshape(times.size)
    rows, emitted = no_rows(), nothing_emitted()
    logged = len(log)
    for place in range(len(active)):
        group = active[place]
        visit = groups[group, _VISIT]
        n = 0
        for row in range(offsets[place], offsets[place + 1]):
            rows = add_row(rows, n, at(vals, row, 0), at(counts, row, 1))
            n += 1
        for row in range(groups[group, _OUTPUT], groups[group + 1, _OUTPUT]):
            if _is_at_or_before(times, output[row, _TIME], visit):
                rows = add_row(rows, n, output[row, _VAL], -output[row, _DIFF])
                n += 1
        # The log is a linked list for each group, from its last row back.
        row = groups[group, _LATEST]
        while row >= 0:
            if _is_at_or_before(times, log[row, _LOG_VISIT], visit):
                rows = add_row(rows, n, log[row, _LOG_VAL], -log[row, _LOG_DIFF])
                n += 1
            row = log[row, _LOG_BEFORE]
        n = consolidate_rows(rows, 0, n)
        if n > 0:
            if must_grow(emitted, n):
                emitted = grown(emitted, n, depth)
            emit(emitted, groups[group, _KEY], rows, n, flat, visit, depth)
        # The log of a group is not read after its last visit.
        if visit + 1 < groups[group + 1, _VISITS]:
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
                log[logged, _LOG_BEFORE] = groups[group, _LATEST]
                groups[group, _LATEST] = logged
                logged += 1
    out_keys, out_vals, out_times, time_index, diffs = chunk(emitted, depth)
    return out_keys, out_vals, out_times, time_index, diffs, log[:logged]
