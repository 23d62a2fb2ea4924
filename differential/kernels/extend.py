"""The values that several relations all have for a prefix: one step of a worst-case-optimal join.

A prefix is a row of a partial result. It has a key in each of several relations, and a bound: of a relation it sees the
updates at times, of one coordinate, that are at most the bound. Its extensions are the values that every relation has
for its key. A value occurs as often as the product of its counts in the relations.

*The algorithm.* The relation with the fewest rows for a prefix proposes its values, in order. The others are searched
for each by galloping. Values come in ascending order, so each layer has a position that only moves forward.

*Cost.* A prefix costs the rows of the least relation, times the logarithm of the others: this is what makes the join
worst-case optimal. The cost does not depend on how many rows the other relations have otherwise.

The layers of all relations are in one table of batches: those of relation r are `firsts[r]` to `firsts[r + 1]`.
`ranges` has a row for each layer: the rows of the prefix begin at `BEGIN`, those before `HEAD` have been passed, and
they end before `END`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from differential.kernels.compile import Batches, Ints, Table, bare, kernel
from differential.kernels.memory import DIFFS, KEYS, ROWS, TIME_INDEX, TIMES, VALS, empty, item
from differential.kernels.wide import Overflow, carry, fits, product_high

DONE = -1
"""The position at the end: every prefix is extended."""

BEGIN, HEAD, END = range(3)
"""The columns of `ranges`."""

_FEW = 64
_CLOSE = 8
"""Two layers are scanned together, not galloped, if the longer has less than this many times the rows."""
_LARGEST = 9223372036854775807


class _Relations(NamedTuple):
    """The relations: whether each relation excludes updates at the bound itself, the first of its layers, all layers,
    and the present range in each."""

    is_excluded: Ints
    firsts: Ints
    past: Table
    ranges: Table


@bare
def _item(past: Table, layer: int, which: int, row: int, absent: int) -> int:
    """Return the item of a column of a layer, or `absent` if the column is."""
    address = past[layer, which]
    return item(address + 8 * row) if address != 0 else absent


@bare
def _seek(past: Table, layer: int, which: int, start: int, end: int, least: int) -> int:
    """Return the first row from `start` to `end` whose item is at least `least`; the column is in order there."""
    if start >= end or _item(past, layer, which, start, 0) >= least:
        return start
    low, step = start, 1
    while low + step < end and _item(past, layer, which, low + step, 0) < least:
        low += step
        step *= 4
    high = min(low + step, end)
    while high - low > 1:
        middle = (low + high) >> 1
        if _item(past, layer, which, middle, 0) < least:
            low = middle
        else:
            high = middle
    return high


@bare
def _find(past: Table, first: int, end: int, key: int, ranges: Table) -> int:
    """Set the ranges of a relation's layers to the rows of `key`; return how many rows these are.

    The search starts at the range of the last key, because prefixes are often in order of a key.
    """
    found = 0
    for layer in range(first, end):
        rows, begin, start = past[layer, ROWS], ranges[layer, BEGIN], ranges[layer, END]
        if start == begin or _item(past, layer, KEYS, begin, 0) != key:
            if start > 0 and _item(past, layer, KEYS, start - 1, 0) >= key:
                start = 0  # the key is less than the last one: search from the beginning
            begin = _seek(past, layer, KEYS, start, rows, key)
            ranges[layer, BEGIN] = begin
            # The key after the largest one would wrap around; no row can follow its rows.
            ranges[layer, END] = _seek(past, layer, KEYS, begin, rows, key + 1) if key != _LARGEST else rows
        ranges[layer, HEAD] = begin
        found += ranges[layer, END] - begin
    return found


@bare
def _seen(past: Table, first: int, end: int, ranges: Table, value: int, bound: int) -> tuple[int, bool]:
    """Return a relation's count of `value` as of `bound`, and whether that fits into 64 bits.

    Moves the relation's layers past the value.
    """
    occurs, high = 0, 0
    for layer in range(first, end):
        row, last = ranges[layer, HEAD], ranges[layer, END]
        # Values are sought in ascending order, so the layer never has to move back.
        row = _seek(past, layer, VALS, row, last, value)
        while row < last and _item(past, layer, VALS, row, 0) == value:
            time = _item(past, layer, TIME_INDEX, row, 0)
            # Times have one coordinate here, so a time is one item of the table.
            if item(past[layer, TIMES] + 8 * time) <= bound:
                diff = _item(past, layer, DIFFS, row, 1)
                occurs += diff
                high += carry(occurs, diff)
            row += 1
        ranges[layer, HEAD] = row
    return occurs, fits(occurs, high)


@bare
def _next(past: Table, first: int, end: int, ranges: Table) -> int:
    """Return the layer with the least value to come, -1 if none is left."""
    found, least = -1, 0
    for layer in range(first, end):
        row = ranges[layer, HEAD]
        if row < ranges[layer, END]:
            value = _item(past, layer, VALS, row, 0)
            if found < 0 or value < least:
                found, least = layer, value
    return found


@bare
def _only(first: int, end: int, ranges: Table) -> int:
    """Return the layer that has all of a relation's rows for the prefix, -1 if several layers have some."""
    only = -1
    for layer in range(first, end):
        if ranges[layer, BEGIN] < ranges[layer, END]:
            if only >= 0:
                return -1
            only = layer
    return only


@bare
def _leap(past: Table, one: int, other: int, ranges: Table) -> bool:
    """Move two layers forward to the first value that both have; return whether there is one."""
    row, last, place, end = ranges[one, HEAD], ranges[one, END], ranges[other, HEAD], ranges[other, END]
    # The proposer has fewer rows. If it does not have far fewer, a scan costs less than mispredicted steps of a gallop.
    ours, theirs = past[one, VALS], past[other, VALS]
    is_close = ours != 0 and theirs != 0 and _CLOSE * (last - row) > end - place
    while is_close and row < last and place < end:
        left, right = item(ours + 8 * row), item(theirs + 8 * place)
        if left == right:
            ranges[one, HEAD], ranges[other, HEAD] = row, place
            return True
        row += int(left < right)
        place += int(right < left)
    while row < last and place < end:
        left, right = _item(past, one, VALS, row, 0), _item(past, other, VALS, place, 0)
        if left == right:
            ranges[one, HEAD], ranges[other, HEAD] = row, place
            return True
        if left < right:
            row = _seek(past, one, VALS, row + 1, last, right)
        else:
            place = _seek(past, other, VALS, place + 1, end, left)
    return False


@bare
def _intersect(proposer: int, bound: int, relations: _Relations, out: Table, written: int) -> int:
    """Write the values that all relations have, and their counts; there must be room. Return the new end.

    Returns -1 if a count does not fit into 64 bits.
    """
    is_excluded, firsts, past, ranges = relations
    checker = 1 if proposer == 0 else 0
    one = _only(firsts[proposer], firsts[proposer + 1], ranges)
    other = _only(firsts[checker], firsts[checker + 1], ranges)
    while True:
        # If one layer has all rows of a relation, values that it lacks can be skipped without a look at the others.
        if one >= 0 and other >= 0 and not _leap(past, one, other, ranges):
            return written
        layer = _next(past, firsts[proposer], firsts[proposer + 1], ranges)
        if layer < 0:
            return written
        value, occurs = _item(past, layer, VALS, ranges[layer, HEAD], 0), 1
        for turn in range(len(is_excluded)):
            # The proposer comes first, so that it moves past the value even if the loop ends early. The others may
            # stay behind: they gallop forward to the next value.
            relation = proposer if turn == 0 else turn - 1 if turn <= proposer else turn
            first, end = firsts[relation], firsts[relation + 1]
            seen, is_word = _seen(past, first, end, ranges, value, bound - is_excluded[relation])
            if not is_word or not fits(occurs * seen, product_high(occurs, seen)):
                return -1
            occurs *= seen
            if occurs == 0:
                break
        if occurs != 0:
            out[1, written], out[2, written] = value, occurs
            written += 1


@bare
def _extend(
    keys: Table, bounds: Ints, relations: _Relations, start: int, limit: int, out: Table, written: int, work: int
) -> tuple[int, int, int, int]:
    """Extend prefixes from `start` on until `work` reaches `limit`; return (prefix, written, work, lacking room).

    The prefix is the first that is not extended. If the last number is not 0, it needs room for as many values. If a
    count of it does not fit into 64 bits, `written` is -1.
    """
    _, firsts, past, ranges = relations
    width, prefixes = keys.shape
    for prefix in range(start, prefixes):
        if work >= limit:
            return prefix, written, work, 0
        proposer, fewest = 0, _LARGEST
        for relation in range(width):
            found = _find(past, firsts[relation], firsts[relation + 1], keys[relation, prefix], ranges)
            if found < fewest:
                proposer, fewest = relation, found
            # A relation without rows for its key has no values, so the prefix has no extensions.
            if found == 0:
                break
        # Each extension is a value that the proposer has: its rows bound their number.
        if written + fewest > out.shape[1]:
            return prefix, written, work, fewest
        if fewest > 0:
            before, bound = written, bounds[prefix] if len(bounds) > 1 else bounds[0]
            written = _intersect(proposer, bound, relations, out, written)
            if written < 0:
                return prefix, written, work, 0
            out[0, before:written] = prefix
        work += 1 + fewest
    return prefixes, written, work, 0


@kernel
def extend(
    keys: Table, bounds: Ints, is_excluded: Ints, firsts: Ints, past: Batches, start: int, limit: int
) -> tuple[Ints, Ints, Ints, int]:
    """Return prefix, value and count of each extension, and the position at which the next call goes on, or `DONE`.

    `keys` is int64[relations, prefixes]. `bounds` has one bound for each prefix, or one for all; it is one less for
    relations whose `is_excluded` is 1. Prefixes from `start` on are extended until about `limit` values are looked at.
    Raises Overflow, with the number of the prefix, if a count does not fit into 64 bits.
    """
    relations = _Relations(is_excluded, firsts, past, np.zeros((len(past), 3), np.int64))
    out = empty(3 * _FEW).reshape((3, _FEW))
    position, written, work = start, 0, 0
    # The loop over prefixes allocates nothing. It returns here for more room, and goes on with the same prefix.
    while True:
        position, written, work, lacks = _extend(keys, bounds, relations, position, limit, out, written, work)
        if written < 0:
            raise Overflow(keys[0, position], 0, position)
        if lacks == 0:
            break
        room = 2 * out.shape[1] + lacks
        larger = empty(3 * room).reshape((3, room))
        larger[:, :written] = out[:, :written]
        out = larger
    if position == keys.shape[1]:
        position = DONE
    return out[0, :written].copy(), out[1, :written].copy(), out[2, :written].copy(), position
