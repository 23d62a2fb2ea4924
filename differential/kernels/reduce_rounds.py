"""Reduction by a function in Python, in rounds: the function is called once a round, for all groups at once.

The steps are those of `reduce`, with a call of Python in their midst. `plan` finds the groups with new rows or pending
times, their interesting times and their consolidated histories (see `reduce_plan`). In round r every group that has an
r-th interesting time is accumulated at it (`accumulate`), the caller reduces these groups, and `settle` returns the
corrections: the reductions, less the output rows at or before these times, less the corrections of earlier rounds at or
before them. A group's times are in lexicographic order, so those corrections are all known. Most groups have one
visit; those that have more are carried from round to round (see `reduce_replay`).

Rounds are taken in order, and each is accumulated and then settled:

    state = plan(new, before, input, output, upper)
    for number in range(state.rounds):
        active, offsets, vals, counts, fault = state.accumulate(number)
        block, rows, times = state.settle(*reduced(state.keys[active], offsets, vals, counts))
    after = state.pending

*Cost.* A round costs the groups that the function receives and, along chains of times, the rows that are new in it.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Batches, Ints, Table, Times, bare, inner, kernel
from differential.kernels.memory import at
from differential.kernels.reduce_output import (
    ROW_COUNT,
    TIME_COUNT,
    chunk_block,
    emit,
    grown,
    must_grow,
    nothing_emitted,
)
from differential.kernels.reduce_plan import is_first, plan_first, plan_rounds
from differential.kernels.reduce_replay import (
    DIFF,
    ENTERS_TO,
    GROUP_KEY,
    GROUP_WIDTH,
    INPUT,
    OUTPUT,
    PLANNED,
    ROW_WIDTH,
    ROWS_FROM,
    SIDES,
    TIME,
    VAL,
    VISIT,
    VISITS_FROM,
    counts_at,
    is_revisited,
    keep_correction,
    replayed,
    span,
)
from differential.kernels.reduce_rows import Rows, consolidate_rows, no_rows, put_row, with_room
from differential.kernels.wide import Overflow, carry, fits


class ReduceState:
    """A call in progress.

    `groups` has a row for each group, and one more, with where its share of the following starts. `times` has the times
    of the history, a meet for each visit (see `reduce_replay`), and then the visits: the interesting times of each
    group. `input` and `output` are the rows (value, time, diff) of the history, and refer to `times`. Those of a group
    with one visit are sorted by value, those of others by time. `active` are the groups of the present round.
    `carried` are the rows of the input and of the output that are carried to the next round. `pending` are the pending
    times for the next call, and `rounds` is the greatest number of interesting times of a group.
    """

    __slots__ = ("active", "carried", "groups", "input", "output", "pending", "rounds", "times")

    def __init__(self, groups: Table, times: Table, input: Table, output: Table, pending: Table) -> None:
        self.groups = groups
        self.times = times
        self.input = input
        self.output = output
        self.pending = pending
        self.active: Ints = np.arange(len(groups) - 1)
        self.carried: list[Table] = [np.empty((0, ROW_WIDTH), np.int64)] * SIDES
        self.rounds = int(np.diff(groups[:, VISITS_FROM]).max(initial=0))
        if self.rounds > 1:
            self.groups = np.zeros((len(groups), GROUP_WIDTH), np.int64)
            self.groups[:, :PLANNED] = groups
            self.groups[:, ENTERS_TO : ENTERS_TO + SIDES] = groups[:, ROWS_FROM : ROWS_FROM + SIDES]

    @property
    def keys(self) -> Ints:
        """The keys of the groups, to which `accumulate` refers by position."""
        return self.groups[:-1, GROUP_KEY]

    def accumulate(self, number: int) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """Return the groups of a round, accumulated at their times.

        The result is `(active, offsets, vals, counts, fault)`: group `active[g]` has the rows
        `offsets[g]:offsets[g + 1]`, which may be none. `vals` is absent if all are 0. `fault` is empty, or the key and
        the time of a group in which a value has a negative count.
        """
        self.active, offsets, vals, counts, fault, self.carried[INPUT] = accumulate_round(
            self.groups, self.times, self.input, self.carried[INPUT], self.active, number
        )
        return self.active, offsets, vals, counts, fault

    def time_of(self, number: int, place: int) -> tuple[int, ...]:
        """Return the time at which a round visits the group at that place among those that `accumulate` returned."""
        time: list[int] = self.times[self.groups[self.active[place], VISITS_FROM] + number].tolist()
        return tuple(time)

    def settle(self, offsets: Ints, vals: Ints, counts: Ints) -> tuple[Ints, int, int]:
        """Return the rows to emit in the present round, given the reduced groups in the layout of `accumulate`.

        The result is a block, and its numbers of rows and of times. A group may have several rows of the same value;
        `vals` and `counts` may be absent.
        """
        block, rows, times, self.carried[OUTPUT] = settle_round(
            self.groups, self.times, self.output, self.carried[OUTPUT], self.active, offsets, vals, counts
        )
        return block, rows, times


def plan(
    delta_table: Batches, earlier: Table, input_table: Batches, output_table: Batches, upper: Times
) -> ReduceState:
    """Return the state before the first round; the arguments are those of `differential.kernels.reduce.reduce`."""
    if is_first(delta_table, earlier, input_table, output_table):
        groups, times, input = plan_first(delta_table, upper)
        if len(groups) > 1:
            return ReduceState(groups, times, input, np.empty((0, ROW_WIDTH), np.int64), earlier)
    return ReduceState(*plan_rounds(delta_table, earlier, input_table, output_table, upper))


@inner
def _begun(groups: Table, candidates: Ints, number: int) -> tuple[Ints, int]:
    """Return the groups that have an r-th visit, which is set, and how many input rows those with one visit have."""
    active = np.empty(len(candidates), np.int64)
    count, room = 0, 0
    for group in candidates:
        visit = groups[group, VISITS_FROM] + number
        if visit < groups[group + 1, VISITS_FROM]:
            groups[group, VISIT] = visit
            active[count] = group
            count += 1
            if not is_revisited(groups, group):
                room += groups[group + 1, ROWS_FROM + INPUT] - groups[group, ROWS_FROM + INPUT]
    return active[:count], room


@bare
def _put_counted(
    times: Ints, visit: int, depth: int, rows: Table, first: int, last: int, target: tuple[Ints, Ints], filled: int
) -> int:
    """Append the values and diffs of the rows at or before a visit to `filled` ones; return how many there are then."""
    vals, counts = target
    for row in range(first, last):
        if counts_at(times, rows[row, TIME], visit, depth):
            vals[filled], counts[filled] = rows[row, VAL], rows[row, DIFF]
            filled += 1
    return filled


@bare
def _add_up(vals: Ints, counts: Ints, first: int, last: int) -> int:
    """Add up rows that are sorted by value and drop zeros; return the new end, or, negated, the row after one whose
    count does not fit into 64 bits."""
    kept, row = first, first
    while row < last:
        val, count = vals[row], counts[row]
        high = count >> 63
        row += 1
        while row < last and vals[row] == val:
            count += counts[row]
            high += carry(count, counts[row])
            row += 1
        if not fits(count, high):
            return -row
        if count != 0:
            vals[kept], counts[kept] = val, count
            kept += 1
    return kept


@kernel
def accumulate_round(
    groups: Table, times: Table, input: Table, carried: Table, candidates: Ints, number: int
) -> tuple[Ints, Ints, Ints, Ints, Ints, Table]:
    """Return what `ReduceState.accumulate` does, given the last round's groups as `candidates`, and the rows to carry.

    A group without an r-th interesting time has none in later rounds, so no other group needs a look.
    """
    depth, flat = times.shape[1], times.reshape(times.size)
    active, room = _begun(groups, candidates, number)
    if groups.shape[1] > PLANNED:
        carried = replayed(groups, times, input, carried, active, INPUT)
    room += len(carried)
    offsets, vals, counts = np.zeros(len(active) + 1, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    fault = np.empty(0, np.int64)
    filled, with_vals = 0, 0
    for place in range(len(active)):
        group, start = active[place], filled
        visit, (first, last) = groups[group, VISIT], span(groups, group, INPUT)
        if is_revisited(groups, group):
            filled = _put_counted(flat, visit, depth, carried, first, last, (vals, counts), filled)
        else:
            filled = _put_counted(flat, visit, depth, input, first, last, (vals, counts), filled)
        filled = _add_up(vals, counts, start, filled)
        if filled < 0:
            raise Overflow(groups[group, GROUP_KEY], vals[-filled - 1], visit)
        for row in range(start, filled):
            with_vals |= vals[row]
            if counts[row] < 0 and len(fault) == 0:
                fault = np.empty(1 + depth, np.int64)
                fault[0] = groups[group, GROUP_KEY]
                for d in range(depth):
                    fault[1 + d] = times[visit, d]
        offsets[place + 1] = filled
    return active, offsets, vals[: filled if with_vals != 0 else 0], counts[:filled], fault, carried


@bare
def _retract(times: Ints, visit: int, depth: int, held: Table, bounds: tuple[int, int], rows: Rows, n: int) -> int:
    """Append the output at or before a visit to `n` rows, negated; return how many there are then."""
    for row in range(bounds[0], bounds[1]):
        if counts_at(times, held[row, TIME], visit, depth):
            put_row(rows, n, held[row, VAL], 0, -held[row, DIFF])
            n += 1
    return n


@kernel
def settle_round(
    groups: Table, times: Table, output: Table, carried: Table, active: Ints, offsets: Ints, vals: Ints, counts: Ints
) -> tuple[Ints, int, int, Table]:
    """Return the result of `ReduceState.settle`, and the output rows and corrections to carry to the next round."""
    depth, flat = times.shape[1], times.reshape(times.size)
    room = 0
    if groups.shape[1] > PLANNED:
        carried = replayed(groups, times, output, carried, active, OUTPUT)
        # A correction has at most a row for each row of the output and of what the group is reduced to.
        room = 2 * len(carried) + offsets[len(active)]
    kept, rows, emitted, kept_count = np.empty((room, ROW_WIDTH), np.int64), no_rows(), nothing_emitted(), 0
    for place in range(len(active)):
        group, first = active[place], offsets[place]
        n, visit, bounds = offsets[place + 1] - first, groups[group, VISIT], span(groups, group, OUTPUT)
        if n + bounds[1] - bounds[0] > rows.shape[1]:
            rows = with_room(rows, n + bounds[1] - bounds[0])
        for row in range(n):
            put_row(rows, row, at(vals, first + row, 0), 0, at(counts, first + row, 1))
        if is_revisited(groups, group):
            n = _retract(flat, visit, depth, carried, bounds, rows, n)
        else:
            n = _retract(flat, visit, depth, output, bounds, rows, n)
        n = consolidate_rows(rows, 0, n)
        if n > 0:
            if must_grow(emitted, n):
                emitted = grown(emitted, n, depth)
            emit(emitted, groups[group, GROUP_KEY], rows, n, flat, visit, depth)
        if is_revisited(groups, group):
            kept_count = keep_correction(groups, group, carried, rows, n, kept, kept_count)
    row_count, time_count = int(emitted.counts[ROW_COUNT]), int(emitted.counts[TIME_COUNT])
    return chunk_block(emitted, depth), row_count, time_count, kept[:kept_count]
