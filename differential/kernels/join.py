"""The relational join of new batches with a trace: pairs of rows with equal keys.

A new row (key, left, t, d) and a past row (key, right, s, e) make (key, left, right, t v s, d * e), where `t v s` is
the lattice join of the times. The past is a trace, a table of batches called layers; each new batch meets each layer.

*Two passes.* The first gallops through the keys of both sides and notes the ranges of rows with equal keys, until they
make about `limit` pairs or there are very many ranges. The second writes the columns of the result, each of exactly
the right length, one after the other. Columns that would hold only defaults are absent: values of 0, diffs of 1, one
time.

*Times.* What one new batch and one layer have in common is a group, and its times are joined as a whole. If both sides
have one time, or the new time is at or after all times of the layer, the group has one result and no row is looked at.
Otherwise a pair of times is numbered through a dense map or, if that would be larger than the work, by hashing the
joined time. Either way the times of the result are distinct, and each is in use.

*Going on.* A call returns the position at which the next one goes on. Its high bits count the rows of new batches, once
for each layer that they meet. Its low 20 bits count pieces: a new row that matches very many past rows is cut too.

*Cost.* The logarithm of each layer's rows for each of few keys, a scan for many keys, then a few writes for each pair.
Keys without a match allocate nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from differential.kernels.compile import Batches, Ints, Table, bare, inner, kernel
from differential.kernels.memory import COORDINATES, DIFFS, KEYS, ROWS, TIME_INDEX, VALS, at, column, empty, times_of
from differential.kernels.reduce_times import enlarged, is_full, put_distinct
from differential.kernels.seek import after, prefetch, seek
from differential.kernels.times import is_at_or_before
from differential.kernels.wide import Overflow, fits, product_high

DONE = -1
"""The position at the end: nothing is left to join."""

_PIECE_BITS = 20
_LEAST_PIECE = 4096
"""A new row with more matches than this, and than the limit, is cut into pieces."""
_MOST_RANGES = 1 << 18
_LARGEST_MAP = 1 << 18
"""The most pairs of times that are numbered through a dense map."""
_FEW = 64

NEW, NEW_END, PAST, PAST_END = range(4)
"""The columns of a range: its rows of the new batch, each of which pairs with each of its rows of the layer."""

BATCH, LAYER, RANGES_END, GROUP_WIDTH = range(4)
"""The columns of a group: the new batch, the layer, and the end of its ranges, which start where those of the group
before end."""


class Matches(NamedTuple):
    """The rows of one key: where they end in the new batch, and where they start and end in the layer."""

    row_end: int
    place: int
    place_end: int


class Span(NamedTuple):
    """The ranges `low` to `high` of one group, whose pairs are the rows `start` to `end` of the result."""

    ranges: Table
    low: int
    high: int
    start: int
    end: int


class Joined(NamedTuple):
    """The set of the times of the result: its members, their hash table, and how many there are."""

    times: Ints
    slots: Ints
    size: int


class Timed(NamedTuple):
    """The table of times of one side, and the index of each row's time in it."""

    times: Table
    time_index: Ints


@bare
def _most_ranges(new: Table, past: Table, limit: int) -> int:
    """Return after how many ranges a call stops."""
    # A range has a key of the batch and of the layer, so the shorter side bounds the ranges of the two.
    most = 0
    for batch in range(len(new)):
        for layer in range(len(past)):
            most += min(new[batch, ROWS], past[layer, ROWS])
    return min(most + 1, limit, _MOST_RANGES)


@bare
def _cut(
    ranges: Table, found: int, pairs: int, limit: int, row: int, piece: int, key: Matches
) -> tuple[int, int, int, int]:
    """Add the rows of one key to `ranges`, up to the limit; return (found, pairs, row, piece), where the key goes on.

    The new rows are those from `row` on, of whose matches the first `piece` pieces are done. It makes at most three
    ranges: the last piece of a row that was cut, whole rows, and a row that reaches the limit.
    """
    piece_rows = max(limit, _LEAST_PIECE)
    while row < key.row_end and pairs < limit:
        # Only the first row can have pieces done; `piece` returns to 0 with each complete row.
        first = key.place + piece * piece_rows
        matches = key.place_end - first
        row_next = row + min(max((limit - pairs) // matches, 1), key.row_end - row)
        if piece > 0 or matches > piece_rows:
            matches, row_next = min(matches, piece_rows), row + 1
        ranges[found, NEW], ranges[found, NEW_END] = row, row_next
        ranges[found, PAST], ranges[found, PAST_END] = first, first + matches
        found += 1
        pairs += (row_next - row) * matches
        if first + matches < key.place_end:
            piece += 1
        else:
            row, piece = row_next, 0
    return found, pairs, row, piece


@inner
def _match(new: Table, past: Table, position: int, limit: int) -> tuple[Table, Table, int, int, int]:
    """Return ranges, groups, the number of groups, the pairs they make, and the position after them."""
    most = _most_ranges(new, past, limit)
    ranges = np.empty((most + 2, 4), np.int64)
    groups = np.empty((len(new) * len(past), GROUP_WIDTH), np.int64)
    count = found = pairs = passed = 0
    start, piece = position >> _PIECE_BITS, position & ((1 << _PIECE_BITS) - 1)
    for batch in range(len(new)):
        rows = new[batch, ROWS]
        if rows == 0 or start >= passed + rows * len(past):
            passed += rows * len(past)
            continue
        keys = column(new, batch, KEYS)
        prefetch(keys, past)
        for layer in range(len(past)):
            held, place = column(past, layer, KEYS), 0
            # The batch's rows before `start` are done for this layer. If all are, the loop ends at once.
            row, found_before = max(start - passed, 0), found
            while row < rows and place < len(held) and pairs < limit and found < most:
                if held[place] < keys[row]:
                    place = seek(held, place, keys[row])
                elif keys[row] < held[place]:
                    row = seek(keys, row, held[place])
                else:
                    row_end, place_end = after(keys, row), after(held, place)
                    key = Matches(row_end, place, place_end)
                    found, pairs, row, piece = _cut(ranges, found, pairs, limit, row, piece, key)
                    if row == row_end:
                        place = place_end
            if found > found_before:
                groups[count, BATCH], groups[count, LAYER], groups[count, RANGES_END] = batch, layer, found
                count += 1
            # A row counts once for each layer: `passed` is what precedes this batch and layer in the position.
            if pairs >= limit or found >= most:
                return ranges, groups, count, pairs, ((passed + row) << _PIECE_BITS) + piece
            passed += rows
    return ranges, groups, count, pairs, DONE


@bare
def _write_keys(keys: Ints, target: int, ranges: Table, low: int, high: int, new: Ints) -> int:
    """Write the keys of some ranges from `target` on; return where they end."""
    for place in range(low, high):
        # Every column is written in the same order: by range, then by new row, then by past row.
        key = new[ranges[place, NEW]]
        end = target + (ranges[place, NEW_END] - ranges[place, NEW]) * (ranges[place, PAST_END] - ranges[place, PAST])
        while target < end:
            keys[target] = key
            target += 1
    return target


@bare
def _write_new(vals: Ints, target: int, ranges: Table, low: int, high: int, new: Ints) -> None:
    """Write the values of the new rows of some ranges."""
    for place in range(low, high):
        matches = ranges[place, PAST_END] - ranges[place, PAST]
        for row in range(ranges[place, NEW], ranges[place, NEW_END]):
            val = at(new, row, 0)
            for _ in range(matches):
                vals[target] = val
                target += 1


@bare
def _write_past(vals: Ints, target: int, ranges: Table, low: int, high: int, past: Ints) -> None:
    """Write the values of the past rows of some ranges."""
    for place in range(low, high):
        for _ in range(ranges[place, NEW], ranges[place, NEW_END]):
            for row in range(ranges[place, PAST], ranges[place, PAST_END]):
                vals[target] = at(past, row, 0)
                target += 1


@bare
def _write_diffs(diffs: Ints, target: int, ranges: Table, low: int, high: int, new: Ints, past: Ints) -> int:
    """Write the products of the diffs of some ranges; return a range with a product that does not fit, or -1."""
    wide = 0
    for place in range(low, high):
        for row in range(ranges[place, NEW], ranges[place, NEW_END]):
            diff = at(new, row, 1)
            for other in range(ranges[place, PAST], ranges[place, PAST_END]):
                other_diff = at(past, other, 1)
                diffs[target] = diff * other_diff
                wide |= (diff ^ diff >> 63) | (other_diff ^ other_diff >> 63)
                target += 1
    # `wide` has every bit of the diffs that differs from their sign. If all diffs have 32 bits, all products have 64.
    return _too_wide(ranges, low, high, new, past) if wide >> 31 != 0 else -1


@bare
def _too_wide(ranges: Table, low: int, high: int, new: Ints, past: Ints) -> int:
    """Return a range with diffs whose product does not fit into 64 bits, or -1."""
    for place in range(low, high):
        for row in range(ranges[place, NEW], ranges[place, NEW_END]):
            diff = at(new, row, 1)
            for other in range(ranges[place, PAST], ranges[place, PAST_END]):
                if not fits(diff * at(past, other, 1), product_high(diff, at(past, other, 1))):
                    return place
    return -1


@bare
def _number(left: Table, i: int, right: Table, j: int, sought: Ints, times: Ints, slots: Ints, count: int) -> int:
    """Return the number of the join of two times: one of the first `count`, or `count` if it is new.

    `sought` is scratch, for one time. The set of `times` and `slots` must have room.
    """
    for coordinate in range(left.shape[1]):
        sought[coordinate] = max(left[i, coordinate], right[j, coordinate])
    return put_distinct(slots, times, count, sought, 0, left.shape[1])


@bare
def _is_late(new: Table, past: Table, rows: int) -> bool:
    """Whether `new` is one time at or after all of `past`; False without a look if `past` has many more than `rows`."""
    if len(new) > 1 or len(past) > rows + _FEW:
        return False
    row = 0
    while row < len(past) and is_at_or_before(past, row, new, 0):
        row += 1
    return row == len(past)


@inner
def _write_times(index: Ints, span: Span, new: Timed, past: Timed, joined: Joined) -> Joined:
    """Write the numbers of the times of some ranges; return the set of times."""
    times, slots, count = joined.times, joined.slots, joined.size
    ranges, target, width = span.ranges, span.start, len(past.times)
    sought = np.empty(new.times.shape[1], np.int64)
    # The map is filled before its use, so it pays only if it is not much larger than the number of pairs.
    is_mapped = len(new.times) * width <= min(4 * (span.end - span.start) + _FEW, _LARGEST_MAP)
    numbers = np.full(len(new.times) * width if is_mapped else 0, -1, np.int64)
    for place in range(span.low, span.high):
        for row in range(ranges[place, NEW], ranges[place, NEW_END]):
            time = at(new.time_index, row, 0)
            for other in range(ranges[place, PAST], ranges[place, PAST_END]):
                past_time = at(past.time_index, other, 0)
                number = numbers[time * width + past_time] if is_mapped else -1
                if number < 0:
                    # Pairs of times with equal joins get the number of the join: the hash table finds it.
                    if is_full(slots, count):
                        slots, times = enlarged(slots, times, count, len(sought))
                    number = _number(new.times, time, past.times, past_time, sought, times, slots, count)
                    count = max(count, number + 1)
                    if is_mapped:
                        numbers[time * width + past_time] = number
                index[target] = number
                target += 1
    return Joined(times, slots, count)


@kernel
def join(new: Batches, position: int, limit: int, past: Batches) -> tuple[Ints, Ints, Ints, Table, Ints, Ints, int]:
    """Return about `limit` pairs from `position` on, which is 0 at first.

    The result is `(keys, new values, past values, times, time index, diffs, position)`. Columns of nothing but defaults
    are absent. The position is where the next call goes on, with the same `limit`; at the end it is `DONE` (-1).
    Without pairs the table of times is (0, 0). A call returns fewer than `limit + max(limit, 4096)` pairs and, unless
    it is the last one, at least the lesser of `limit` and 2 ** 18.
    """
    ranges, groups, count, pairs, onward = _match(new, past, position, limit)
    has_new = has_past = has_diffs = False
    # Groups may differ in their times, so several groups need an index; so does a group with an index on a side.
    has_times = count > 1
    for group in range(count):
        batch, layer = groups[group, BATCH], groups[group, LAYER]
        has_new |= new[batch, VALS] != 0
        has_past |= past[layer, VALS] != 0
        has_diffs |= new[batch, DIFFS] != 0 or past[layer, DIFFS] != 0
        has_times |= new[batch, TIME_INDEX] != 0 or past[layer, TIME_INDEX] != 0
    keys = empty(pairs)
    new_vals, past_vals = empty(pairs if has_new else 0), empty(pairs if has_past else 0)
    diffs, index = empty(pairs if has_diffs else 0), empty(pairs if has_times else 0)
    depth = new[groups[0, BATCH], COORDINATES] if count > 0 else 0
    times, slots, distinct = np.empty(0, np.int64), np.empty(0, np.int64), 0
    sought = np.empty(depth, np.int64)
    target = low = 0
    for group in range(count):
        batch, layer, high = groups[group, BATCH], groups[group, LAYER], groups[group, RANGES_END]
        end = _write_keys(keys, target, ranges, low, high, column(new, batch, KEYS))
        if has_new:
            _write_new(new_vals, target, ranges, low, high, column(new, batch, VALS))
        if has_past:
            _write_past(past_vals, target, ranges, low, high, column(past, layer, VALS))
        if has_diffs:
            wide = _write_diffs(diffs, target, ranges, low, high, column(new, batch, DIFFS), column(past, layer, DIFFS))
            if wide >= 0:
                raise Overflow(column(new, batch, KEYS)[ranges[wide, NEW]], 0)
        left, right = times_of(new, batch), times_of(past, layer)
        if len(left) * len(right) == 1 or _is_late(left, right, end - target):
            # There is one pair of times, or the new time is at or after all past ones: every join equals the first one.
            if is_full(slots, distinct):
                slots, times = enlarged(slots, times, distinct, depth)
            number = _number(left, 0, right, 0, sought, times, slots, distinct)
            distinct = max(distinct, number + 1)
            if has_times:
                for place in range(target, end):
                    index[place] = number
        else:
            times, slots, distinct = _write_times(
                index,
                Span(ranges, low, high, target, end),
                Timed(left, column(new, batch, TIME_INDEX)),
                Timed(right, column(past, layer, TIME_INDEX)),
                Joined(times, slots, distinct),
            )
        target, low = end, high
    if distinct == 1:
        index = np.empty(0, np.int64)
    return keys, new_vals, past_vals, times[: distinct * depth].reshape((distinct, depth)).copy(), index, diffs, onward
