"""Interesting times: the times at which the output of a group may have to change.

A new row changes the output of its group not only at its own time. Let a group have a row at (0, 1), and a new one at
(1, 0). At (1, 1) both are there, for the first time: so the output may have to change there, though nothing is new at
(1, 1). In general it may change at joins (least upper bounds) of new times with others of the group.

Times are vectors of `depth` coordinates, packed one after another in a column; an entry is a vector's number in the
column. `v` is the join (least upper bound), `<=` the partial order.

Write I for the group's input, with the new rows, and O for its output so far. N are the new times: those of the new
rows and the pending ones. The correction c is the function with

    sum over s <= t of c(s) = reduction(I)(t) - O(t),

where I(t) and O(t) are accumulations at t. A call emits c(t) at every t that is due, that is, not in advance of
`upper`.

*Where c may be nonzero.* The right-hand side at t depends only on which times of I and O are at or before t, so c is
zero outside the closure of these times under join. If no new time is at or before t, the right-hand side is zero: the
input at t has not changed, and no correction was missing, because a missing one would be in advance of a pending time.
So c(t) is nonzero only for t = n v h1 v ... v hk, with n in N and the other times from N, I and O. These are the
interesting times; `closure` makes them.

*History may be advanced.* Let m be the meet of the due times of N. Every due interesting time t is at or after m, so
h <= t exactly if h v m <= t, and n v h = n v (h v m). So each time of I and O may be replaced by its join with m. Rows
that then have equal times are added up, and dropped if they cancel. No accumulation at a time at or after m changes,
and these accumulations determine the corrections there. In the usual case all history is at m.

*What stays pending.* An interesting time in advance of `upper` becomes pending. Only the minimal ones are kept. That is
enough: let t be another time at which the output may have to change. It is in advance of a minimal one, p, and
t = p v t, where t is a join of times of I and O. So the closure of p, which is made when p is due, contains t.

*Looking ahead.* A pending time costs a round of a loop when it is due, and mostly its correction turns out to be empty.
So where there are not too many, the interesting times that are not due are visited too, in order, with the input as far
as it is known. Nothing is emitted there; but t becomes pending only if c(t) is not zero. No time is missed: if input
comes later at s <= t, then s is new, and t = s v t is in the closure of s, because the input then has today's new
times. A time in advance of a pending one is not visited, for the reason given above.

*Counts and sums are linear.* Let L(X)(t) be the sum of value times diff over the rows of X at or before t, where each
value of the input of a count stands for 1. If no row of I is in advance of `upper`, then L(O) = L(I) at all times after
a call. For at a due time t, O(t) has the value L(I)(t) once, or is empty where that is 0; all times before t are due,
so O and I contribute the same to L at each due time; and neither has a row at another time. So O and the new rows serve
in place of I: they have the same L, and their times are enough, since L(I) changes at no others. Only if a sum is 0 do
they not show whether there are values; then the group is reduced from all its rows.

*Chains.* If the due times of N, I and O together are a chain, as they always are when times are totally ordered, they
are their own closure.

*Cost.* The closure of n times that are not a chain costs the product of n and the number of joins, each a look-up in a
hash table. `put_minimal` costs the size of the antichain.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, bare, inner

IS_NEW, IS_USED, IS_DUE = 1, 2, 4
"""What is known of a ranked time: it is new; rows of the history are at it; it is due (or visited as if it were)."""

_FEW = 16
_MIX = -7046029254386353131


@bare
def is_at_or_before(left: Ints, i: int, right: Ints, j: int, depth: int) -> bool:
    """Whether entry i of `left` is less than or equal to entry j of `right` in the product order."""
    d = 0
    while d < depth and left[i * depth + d] <= right[j * depth + d]:
        d += 1
    return d == depth


@bare
def is_due(upper: Table, times: Ints, entry: int, depth: int) -> bool:
    """Whether a time is due, that is, not in advance of `upper`."""
    for row in range(len(upper)):
        d = 0
        while d < depth and upper[row, d] <= times[entry * depth + d]:
            d += 1
        if d == depth:
            return False
    return True


@bare
def sorts_before(left: Ints, i: int, right: Ints, j: int, depth: int) -> bool:
    """Whether entry i of `left` comes before entry j of `right` in lexicographic order."""
    for d in range(depth):
        if left[i * depth + d] != right[j * depth + d]:
            return bool(left[i * depth + d] < right[j * depth + d])
    return False


@bare
def copy_entries(source: Ints, first: int, target: Ints, place: int, n: int, depth: int) -> None:
    """Copy `n` entries of `source` from `first` on to the entries of `target` from `place` on."""
    for item in range(n * depth):
        target[place * depth + item] = source[first * depth + item]


@bare
def same_entry(left: Ints, i: int, right: Ints, j: int, depth: int) -> bool:
    """Whether two entries are the same time."""
    d = 0
    while d < depth and left[i * depth + d] == right[j * depth + d]:
        d += 1
    return d == depth


@bare
def join_entries(left: Ints, i: int, right: Ints, j: int, join: Ints, depth: int) -> None:
    """Set entry 0 of `join` to the least upper bound of two entries."""
    for d in range(depth):
        join[d] = max(left[i * depth + d], right[j * depth + d])


@bare
def sort_entries(times: Ints, n: int, order: Ints, spare: Ints, depth: int) -> None:
    """Set order[:n] to the entries 0 to n in lexicographic order."""
    for start in range(0, n, _FEW):
        stop = min(start + _FEW, n)
        for entry in range(start, stop):
            place = entry
            while place > start and sorts_before(times, entry, times, order[place - 1], depth):
                order[place] = order[place - 1]
                place -= 1
            order[place] = entry
    width = _FEW
    while width < n:
        for start in range(0, n - width, 2 * width):
            middle, stop = start + width, min(start + 2 * width, n)
            if not sorts_before(times, order[middle], times, order[middle - 1], depth):
                continue
            # Only the left half moves out: `place` never passes `right`, so no entry of the right half is overwritten.
            copy_entries(order, start, spare, 0, width, 1)
            left, right = 0, middle
            for place in range(start, stop):
                if right == stop or (left < width and not sorts_before(times, order[right], times, spare[left], depth)):
                    order[place] = spare[left]
                    left += 1
                else:
                    order[place] = order[right]
                    right += 1
        width *= 2


@bare
def put_minimal(minimal: Ints, count: int, times: Ints, entry: int, depth: int) -> int:
    """Add a time to the antichain `minimal` of `count` times unless one is at or before it; return the new count.

    There must be room for one more.
    """
    kept = 0
    for other in range(count):
        # In advance of an element: not minimal.
        if is_at_or_before(minimal, other, times, entry, depth):
            return count
    for other in range(count):
        # Elements in advance of the new one are dropped. `kept` never passes `other`.
        if not is_at_or_before(times, entry, minimal, other, depth):
            copy_entries(minimal, other, minimal, kept, 1, depth)
            kept += 1
    copy_entries(times, entry, minimal, kept, 1, depth)
    return kept + 1


@inner
def add_minimal(minimal: Ints, count: int, times: Ints, entry: int, depth: int) -> tuple[Ints, int]:
    """Return the antichain `minimal` of `count` times, and its size, after a time is added as by `put_minimal`."""
    if (count + 1) * depth > len(minimal):
        larger = np.empty((2 * count + 4) * depth, np.int64)
        copy_entries(minimal, 0, larger, 0, count, depth)
        minimal = larger
    return minimal, put_minimal(minimal, count, times, entry, depth)


@bare
def is_covered(minimal: Ints, count: int, times: Ints, entry: int, depth: int) -> bool:
    """Whether a time is in advance of the antichain `minimal` of `count` times."""
    for other in range(count):  # noqa: SIM110 (compiled)
        if is_at_or_before(minimal, other, times, entry, depth):
            return True
    return False


@bare
def _slot_of(slots: Ints, times: Ints, sought: Ints, entry: int, depth: int) -> int:
    """Return the slot that holds the time, or the free one where it belongs."""
    mixed = 0
    for d in range(depth):
        mixed = (mixed ^ sought[entry * depth + d]) * _MIX
        mixed ^= mixed >> 29
    mask = len(slots) - 1
    slot = mixed & mask
    while slots[slot] >= 0 and not same_entry(times, slots[slot], sought, entry, depth):
        slot = (slot + 1) & mask
    return slot


@bare
def is_full(slots: Ints, count: int) -> bool:
    """Whether the set with these slots has no room for more than its `count` times."""
    # At most half of the slots are taken, so that a probe ends after a few steps, and ends at all.
    return 2 * (count + 1) > len(slots)


@inner
def enlarged(slots: Ints, times: Ints, count: int, depth: int) -> tuple[Ints, Ints]:
    """Return the set (slots, times) of `count` times with twice the room.

    `times` holds the members in the order they came, `slots` is a hash table of their numbers.
    """
    larger = np.empty(max(16, 2 * len(slots)), np.int64)
    for slot in range(len(larger)):
        larger[slot] = -1
    more = np.empty(len(larger) * depth, np.int64)
    copy_entries(times, 0, more, 0, count, depth)
    # Members keep their numbers, so indices given out before stay valid.
    for member in range(count):
        larger[_slot_of(larger, more, more, member, depth)] = member
    return larger, more


@bare
def put_distinct(slots: Ints, times: Ints, count: int, sought: Ints, entry: int, depth: int) -> int:
    """Return a time's number in the set, which is `count` if it was not a member; there must be room for it."""
    slot = _slot_of(slots, times, sought, entry, depth)
    if slots[slot] < 0:
        slots[slot] = count
        copy_entries(sought, entry, times, count, 1, depth)
    return int(slots[slot])


@inner
def add_distinct(slots: Ints, times: Ints, count: int, sought: Ints, entry: int, depth: int) -> tuple[Ints, Ints, int]:
    """Return the set (slots, times) with a time added unless it is a member, and how many members it has."""
    if is_full(slots, count):
        slots, times = enlarged(slots, times, count, depth)
    return slots, times, max(count, put_distinct(slots, times, count, sought, entry, depth) + 1)


@bare
def is_chain(table: Ints, known: Ints, n: int, which: int, depth: int) -> bool:
    """Whether the times in `table`, which is sorted, that have a mark of `which` are a chain."""
    # The product order implies the lexicographic order, so it is enough to compare neighbours.
    previous = -1
    for time in range(n):
        if known[time] & which:
            if previous >= 0 and not is_at_or_before(table, previous, table, time, depth):
                return False
            previous = time
    return True


@inner
def closure(
    table: Ints, known: Ints, n: int, upper: Table, depth: int, pending: Ints, pending_count: int
) -> tuple[Ints, int, Ints, int]:
    """Return the interesting times that are due, sorted; their number; and the pending times with those not due added.

    The generators are the times marked as IS_DUE. The first turn takes those that are new, the second the others. Each
    is joined with every member so far, so each join of generators that has a new one is made.
    """
    slots, times, count = np.empty(0, np.int64), np.empty(0, np.int64), 0
    join = np.empty(depth, np.int64)
    for turn in range(2):
        for time in range(n):
            if not known[time] & IS_DUE or bool(known[time] & IS_NEW) != (turn == 0):
                continue
            # The range is fixed before the loop: the joins made in it have this generator already.
            for other in range(count):
                if is_at_or_before(table, time, times, other, depth):
                    continue
                join_entries(table, time, times, other, join, depth)
                if is_due(upper, join, 0, depth):
                    slots, times, count = add_distinct(slots, times, count, join, 0, depth)
                else:
                    # Its joins with others are in advance of it, so they need not be made: it covers them.
                    pending, pending_count = add_minimal(pending, pending_count, join, 0, depth)
            if turn == 0:
                slots, times, count = add_distinct(slots, times, count, table, time, depth)
    order, spare = np.empty(count, np.int64), np.empty(count, np.int64)
    sort_entries(times, count, order, spare, depth)
    ordered = np.empty(count * depth, np.int64)
    for place in range(count):
        copy_entries(times, order[place], ordered, place, 1, depth)
    return ordered, count, pending, pending_count


@bare
def must_postpone(known: Ints, n: int) -> bool:
    """Whether rows of the group's history are at a time that is not due."""
    for time in range(n):  # noqa: SIM110 (compiled)
        if known[time] & (IS_USED | IS_DUE) == IS_USED:
            return True
    return False


@inner
def postpone(table: Ints, known: Ints, n: int, depth: int, pending: Ints, pending_count: int) -> tuple[Ints, int]:
    """Return the pending times, with the joins of new times and those times of the history that are not due added.

    The minimal new times are enough: every join with another new time is in advance of one of these joins.
    """
    if not must_postpone(known, n):
        return pending, pending_count
    earliest, count = np.empty(0, np.int64), 0
    for time in range(n):
        if known[time] & IS_NEW:
            earliest, count = add_minimal(earliest, count, table, time, depth)
    join = np.empty(depth, np.int64)
    for time in range(n):
        if known[time] & (IS_USED | IS_DUE) == IS_USED:
            for new in range(count):
                join_entries(table, time, earliest, new, join, depth)
                pending, pending_count = add_minimal(pending, pending_count, join, 0, depth)
    return pending, pending_count
