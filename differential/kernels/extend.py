"""The values that several traces all have for a prefix: one step of a worst-case-optimal join.

A prefix has a key in each of several relations, and a bound: it sees the updates of a relation at times up to it, of
one coordinate. For each prefix the relation with fewest rows for it proposes values, in order, and the others are
sought for them by galloping, so that the work is that of the least, times the logarithm of the others. A value that is
in all of them occurs as often as the product of how often it is in each.

The layers of all relations are in one table of batches, those of relation r from `firsts[r]` to `firsts[r + 1]`. Where
each layer has the rows of a prefix is in another, `ranges`: they begin at `BEGIN`, those before `HEAD` have been seen,
and they end before `END`.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, bare, kernel
from differential.kernels.memory import DIFFS, KEYS, ROWS, TIME_INDEX, TIMES, VALS, empty, item
from differential.kernels.wide import Overflow, carry, fits, product_high

DONE = -1
"""The position after all prefixes."""

BEGIN, HEAD, END = range(3)

_FEW = 64
_CLOSE = 8
_LARGEST = 9223372036854775807


@bare
def _item(past: Table, layer: int, which: int, row: int, absent: int) -> int:
    """Return the item of a column of a layer, or `absent` when the column is."""
    address = past[layer, which]
    return item(address + 8 * row) if address != 0 else absent


@bare
def _seek(past: Table, layer: int, which: int, start: int, end: int, least: int) -> int:
    """Return the first of the rows from `start` to `end`, which are in order of a column, that has at least `least`."""
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
    """Note where the layers of a relation have the rows of `key`; return how many these are.

    They are sought from where those of the last key were found, for prefixes are often in order of a key.
    """
    found = 0
    for layer in range(first, end):
        rows, begin, start = past[layer, ROWS], ranges[layer, BEGIN], ranges[layer, END]
        if start == begin or _item(past, layer, KEYS, begin, 0) != key:
            if start > 0 and _item(past, layer, KEYS, start - 1, 0) >= key:
                start = 0
            begin = _seek(past, layer, KEYS, start, rows, key)
            ranges[layer, BEGIN] = begin
            ranges[layer, END] = _seek(past, layer, KEYS, begin, rows, key + 1) if key != _LARGEST else rows
        ranges[layer, HEAD] = begin
        found += ranges[layer, END] - begin
    return found


@bare
def _seen(past: Table, first: int, end: int, ranges: Table, value: int, bound: int) -> tuple[int, bool]:
    """Return how often a relation has `value` as of `bound`, and whether that fits into 64 bits.

    Go on in its layers to what comes after it.
    """
    occurs, high = 0, 0
    for layer in range(first, end):
        row, last = ranges[layer, HEAD], ranges[layer, END]
        row = _seek(past, layer, VALS, row, last, value)
        while row < last and _item(past, layer, VALS, row, 0) == value:
            time = _item(past, layer, TIME_INDEX, row, 0)
            if item(past[layer, TIMES] + 8 * time) <= bound:
                diff = _item(past, layer, DIFFS, row, 1)
                occurs += diff
                high += carry(occurs, diff)
            row += 1
        ranges[layer, HEAD] = row
    return occurs, fits(occurs, high)


@bare
def _next(past: Table, first: int, end: int, ranges: Table) -> int:
    """Return the layer that has the least value still to come, -1 if there is none."""
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
    """Return the layer that has all rows of a relation for the prefix, -1 if several have some."""
    only = -1
    for layer in range(first, end):
        if ranges[layer, BEGIN] < ranges[layer, END]:
            if only >= 0:
                return -1
            only = layer
    return only


@bare
def _leap(past: Table, one: int, other: int, ranges: Table) -> bool:
    """Go on in two layers to the first value that both have; return whether there is one."""
    row, last, place, end = ranges[one, HEAD], ranges[one, END], ranges[other, HEAD], ranges[other, END]
    # The proposer's rows are the fewer. Where it is not by far, looking at all costs less than guessing wrong.
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
def _intersect(
    proposer: int, bound: int, is_excluded: Ints, firsts: Ints, past: Table, ranges: Table, out: Table, written: int
) -> int:
    """Write the values that all relations have, and how often they occur, for which there is room.

    Return the end, or -1 where a value occurs too often for 64 bits.
    """
    checker = 1 if proposer == 0 else 0
    one = _only(firsts[proposer], firsts[proposer + 1], ranges)
    other = _only(firsts[checker], firsts[checker + 1], ranges)
    while True:
        if one >= 0 and other >= 0 and not _leap(past, one, other, ranges):
            return written
        layer = _next(past, firsts[proposer], firsts[proposer + 1], ranges)
        if layer < 0:
            return written
        value, occurs = _item(past, layer, VALS, ranges[layer, HEAD], 0), 1
        for turn in range(len(is_excluded)):
            # The proposer comes first, and so goes on in any case.
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
    keys: Table,
    bounds: Ints,
    is_excluded: Ints,
    firsts: Ints,
    past: Table,
    ranges: Table,
    start: int,
    limit: int,
    out: Table,
    written: int,
    work: int,
) -> tuple[int, int, int, int]:
    """Extend prefixes until it is enough; return (prefixes done, written, work, how much room there lacks).

    Where a value occurs too often for 64 bits, -1 is written, and that prefix is not done.
    """
    relations, prefixes = keys.shape
    for prefix in range(start, prefixes):
        if work >= limit:
            return prefix, written, work, 0
        proposer, fewest = 0, _LARGEST
        for relation in range(relations):
            found = _find(past, firsts[relation], firsts[relation + 1], keys[relation, prefix], ranges)
            if found < fewest:
                proposer, fewest = relation, found
            if found == 0:
                break
        if written + fewest > out.shape[1]:
            return prefix, written, work, fewest
        if fewest > 0:
            before, bound = written, bounds[prefix] if len(bounds) > 1 else bounds[0]
            written = _intersect(proposer, bound, is_excluded, firsts, past, ranges, out, written)
            if written < 0:
                return prefix, written, work, 0
            out[0, before:written] = prefix
        work += 1 + fewest
    return prefixes, written, work, 0


@kernel
def extend(
    keys: Table, bounds: Ints, is_excluded: Ints, firsts: Ints, past: Table, start: int, limit: int
) -> tuple[Ints, Ints, Ints, int]:
    """Return prefix, value and number of occurrences of each extension, and the position to go on at, or `DONE`.

    `keys` is int64[relations, prefixes]; `bounds` has one for each prefix, or one for all, and is taken as one less for
    relations that `is_excluded` says 1 of. Prefixes from `start` on are extended until about `limit` values were looked
    at.
    """
    ranges = np.zeros((len(past), 3), np.int64)
    out = empty(3 * _FEW).reshape((3, _FEW))
    position, written, work = start, 0, 0
    while True:
        position, written, work, lacks = _extend(
            keys, bounds, is_excluded, firsts, past, ranges, position, limit, out, written, work
        )
        if written < 0:
            raise Overflow(keys[0, position], 0)
        if lacks == 0:
            break
        room = 2 * out.shape[1] + lacks
        larger = empty(3 * room).reshape((3, room))
        larger[:, :written] = out[:, :written]
        out = larger
    if position == keys.shape[1]:
        position = DONE
    return out[0, :written].copy(), out[1, :written].copy(), out[2, :written].copy(), position
