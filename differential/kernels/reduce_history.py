"""The times and rows of one group of a reduction: what is new, and its history as the new times see it.

The times of a group are gathered as entries: first its new times that are due, then their meet m, then each distinct
time of the history, joined with m (see `reduce_times` for why the join changes nothing). Then they are ranked, that is,
sorted without duplicates: from there on a time is a small number, its rank, and ranks are in lexicographic order. The
rows of the history are consolidated by (value, rank). In the usual case all history is at m, and only the present
accumulation is left of it.

The times of a layer that have been met are kept in a sparse set. `sparse` has a place for each time of each layer, and
is never initialised. A place holds a member number; it counts only if it is less than the number of members, and the
member refers back to the place. So a group costs what its own rows cost, however many times the layers have.
"""

from __future__ import annotations

from typing import NamedTuple

from differential.kernels.compile import Ints, Table, bare, inner
from differential.kernels.memory import TIME_INDEX, TIME_ROWS, TIMES, empty
from differential.kernels.reduce_layers import (
    BASE,
    FROM,
    HIGH,
    LOW,
    PENDING_TIME,
    TO,
    Walk,
    diff_at,
    load,
    time_index_at,
    times_in_all,
    value_at,
)
from differential.kernels.reduce_rows import ROW_TIME, ROW_VAL, Rows, consolidate_rows, put_row, with_room
from differential.kernels.reduce_times import (
    IS_DUE,
    IS_NEW,
    IS_USED,
    closure,
    copy_entries,
    is_chain,
    is_due,
    must_postpone,
    postpone,
    put_minimal,
    same_entry,
    sort_entries,
)

ENTRIES, TABLE, VISITS, VECTORS = range(4)
"""The columns of a group's times: the entries as gathered, the table of ranked times, and the times to visit."""

ORDER, SPARE, RANK, KNOWN, SEEN, SEEN_AS, MARKS = range(7)
"""The columns of marks: two to sort in; the rank of each entry; what is known of each rank (IS_NEW, ...); and of each
member of the sparse set its place in `sparse` and the entry that stands for it."""


class Scratch(NamedTuple):
    """Room for the times of one group.

    `vectors` are columns of times and `marks` columns of numbers. `sparse` is the sparse set. `pending` takes the times
    of the group that stay pending.
    """

    vectors: Table
    marks: Table
    sparse: Ints
    pending: Ints


@inner
def no_times(walk: Walk, depth: int) -> Scratch:
    """Return room for few times."""
    vectors, marks = empty(VECTORS * 8 * depth).reshape((VECTORS, 8 * depth)), empty(MARKS * 8).reshape((MARKS, 8))
    return Scratch(vectors, marks, empty(times_in_all(walk.layers)), empty(8 * depth))


@inner
def room_for_times(scratch: Scratch, count: int, depth: int) -> Scratch:
    """Return room for this many times, with the present contents."""
    # Callers compare only with the width of `marks`, so the other arrays get room for as many.
    marks = with_room(scratch.marks, count)
    room, pending = marks.shape[1] * depth, scratch.pending
    if room > len(pending):
        larger = empty(room)
        copy_entries(pending, 0, larger, 0, len(pending), 1)
        pending = larger
    return Scratch(with_room(scratch.vectors, room), marks, scratch.sparse, pending)


_FEW_TIMES = 8
"""Up to this many times are closed under join even if they are not a chain and some are not due."""


@bare
def distinct_at_most(layers: Table, first: int, last: int) -> int:
    """Return a bound on the number of distinct times of the group's rows in the layers `first` to `last`."""
    bound = 0
    for layer in range(first, last):
        bound += min(layers[layer, HIGH] - layers[layer, LOW], layers[layer, TIME_ROWS])
    return bound


@bare
def _is_another(entries: Ints, new_count: int, depth: int) -> bool:
    """Whether entry `new_count` differs from the first one."""
    # A cheap check that keeps the usual group, all of whose new rows are at one time, at one entry. Other duplicates
    # are left to the ranking.
    return new_count == 0 or not same_entry(entries, 0, entries, new_count, depth)


@bare
def new_times(walk: Walk, earlier: Table, upper: Table, scratch: Scratch) -> tuple[int, int]:
    """Gather the group's new times: as entries those that are due, and their meet after them; as `pending` the minimal
    ones of the others. Return how many are pending and how many are due.

    There must be room for one entry more than there are new times, and in `pending` for all of them.
    """
    depth, layers, group = upper.shape[1], walk.layers, walk.group
    entries, marks, sparse, pending = scratch.vectors[ENTRIES], scratch.marks, scratch.sparse, scratch.pending
    new_count, pending_count, members = 0, 0, 0
    for layer in range(walk.deltas):
        low, high = layers[layer, LOW], layers[layer, HIGH]
        if layers[layer, TIME_INDEX] == 0:
            high = min(high, low + 1)  # all rows are at the one time of the layer
        for row in range(low, high):
            index = time_index_at(layers, layer, row)
            place = layers[layer, BASE] + index
            member = sparse[place]
            # `member` may be garbage; it counts only if that member refers back to this place.
            if 0 <= member < members and marks[SEEN, member] == place:
                continue
            sparse[place] = members
            marks[SEEN, members] = place
            members += 1
            for d in range(depth):
                entries[new_count * depth + d] = load(layers[layer, TIMES], index * depth + d)
            if is_due(upper, entries, new_count, depth):
                new_count += int(_is_another(entries, new_count, depth))
            else:
                pending_count = put_minimal(pending, pending_count, entries, new_count, depth)
    for row in range(group[FROM], group[TO]):
        for d in range(depth):
            entries[new_count * depth + d] = earlier[row, PENDING_TIME + d]
        if is_due(upper, entries, new_count, depth):
            new_count += int(_is_another(entries, new_count, depth))
        else:
            pending_count = put_minimal(pending, pending_count, entries, new_count, depth)
    # If no time is due the meet is meaningless, and nobody reads it.
    for d in range(depth):
        meet = entries[d]
        for new in range(1, new_count):
            meet = min(meet, entries[new * depth + d])
        entries[new_count * depth + d] = meet
    return pending_count, new_count


@bare
def history_is_at_or_before(walk: Walk, first: int, last: int, vectors: Table, depth: int) -> bool:
    """Whether all rows of the group in the layers `first` to `last` are at or before entry 0."""
    layers, latest = walk.layers, walk.latest
    for layer in range(first, last):
        low, high = layers[layer, LOW], layers[layer, HIGH]
        if low == high:
            continue
        d = 0
        # `latest` bounds all times of the layer: usually no row has to be looked at.
        while d < depth and latest[layer, d] <= vectors[ENTRIES, d]:
            d += 1
        if d == depth:
            continue
        for row in range(low, high):
            base = time_index_at(layers, layer, row) * depth
            for d in range(depth):
                if load(layers[layer, TIMES], base + d) > vectors[ENTRIES, d]:
                    return False
    return True


@bare
def _gather_rows(layers: Table, first: int, last: int, scratch: Scratch, rows: Rows, counts: Ints, depth: int) -> None:
    """Append the group's rows in some layers, their times joined with the meet and gathered as entries.

    `counts` has the entry of the meet, the number of entries and the number of rows; the last two are advanced.
    """
    vectors, marks, sparse = scratch.vectors, scratch.marks, scratch.sparse
    meet, entries, count = counts[0], counts[1], counts[2]
    # A count of 0 empties the sparse set, whatever its places hold.
    members = 0
    for layer in range(first, last):
        for row in range(layers[layer, LOW], layers[layer, HIGH]):
            index = time_index_at(layers, layer, row)
            place = layers[layer, BASE] + index
            member = sparse[place]
            if not (0 <= member < members and marks[SEEN, member] == place):
                member = members
                later = False
                for d in range(depth):
                    here = load(layers[layer, TIMES], index * depth + d)
                    least = vectors[ENTRIES, meet * depth + d]
                    later |= here > least
                    vectors[ENTRIES, entries * depth + d] = max(here, least)
                sparse[place] = member
                marks[SEEN, member] = place
                # A time at or before the meet becomes the meet itself, which is an entry already.
                marks[SEEN_AS, member] = entries if later else meet
                entries += int(later)
                members += 1
            put_row(rows, count, value_at(layers, layer, row), marks[SEEN_AS, member], diff_at(layers, layer, row))
            count += 1
    counts[1], counts[2] = entries, count


@bare
def _rank(vectors: Table, marks: Table, count: int, new_count: int, depth: int) -> int:
    """Rank the first `count` entries, of which the first `new_count` are new; return how many times are distinct."""
    entries, table, order = vectors[ENTRIES], vectors[TABLE], marks[ORDER]
    sort_entries(entries, count, order, marks[SPARE], depth)
    n = 0
    for place in range(count):
        entry = order[place]
        if n == 0 or not same_entry(table, n - 1, entries, entry, depth):
            copy_entries(entries, entry, table, n, 1, depth)
            marks[KNOWN, n] = 0
            n += 1
        marks[RANK, entry] = n - 1
        # A time of the history that equals a new time has the new time's rank: what is known holds for both.
        if entry < new_count:
            marks[KNOWN, n - 1] = IS_NEW
    return n


@bare
def gather(
    walk: Walk, upper: Table, scratch: Scratch, new_count: int, rows: Rows, bounds: Ints, linear: bool, counts: bool
) -> int:
    """Gather and consolidate the group's history, and rank its times; return how many distinct times there are.

    If it is `linear`, the new rows and the output rows are in place of the input (see `reduce_times`). If the reduction
    `counts`, each row of the input, or each new row, has the value 1. `bounds` receives the end of the input rows,
    which start at 0, and the start and the end of the output rows. There must be room for all rows of the group, and
    for its times and one more.
    """
    depth, layers, vectors, marks = upper.shape[1], walk.layers, scratch.vectors, scratch.marks
    bounds[0], bounds[1], bounds[2] = new_count, new_count + 1, 0
    first, end = (0, walk.deltas) if linear else (walk.deltas, walk.inputs)
    _gather_rows(layers, first, end, scratch, rows, bounds, depth)
    for row in range(bounds[2] if counts else 0):
        rows[ROW_VAL, row] = 1
    if linear:
        _gather_rows(layers, walk.inputs, len(layers), scratch, rows, bounds, depth)
    # Input and output are consolidated separately: a value may be in both.
    middle = bounds[2]
    _gather_rows(layers, walk.inputs, len(layers), scratch, rows, bounds, depth)
    last = bounds[2]
    n = _rank(vectors, marks, bounds[1], new_count, depth)
    for row in range(last):
        rows[ROW_TIME, row] = marks[RANK, rows[ROW_TIME, row]]
    bounds[0] = consolidate_rows(rows, 0, middle)
    bounds[1] = middle
    bounds[2] = consolidate_rows(rows, middle, last)
    # Of the history, only times at which rows are left after consolidation contribute to joins.
    for row in range(last):
        if row < bounds[0] or middle <= row < bounds[2]:
            marks[KNOWN, rows[ROW_TIME, row]] |= IS_USED
    for time in range(n):
        if marks[KNOWN, time] != 0 and is_due(upper, vectors[TABLE], time, depth):
            marks[KNOWN, time] |= IS_DUE
    return n


@bare
def _looks_ahead(vectors: Table, marks: Table, n: int, depth: int) -> bool:
    """Whether the visit includes times that are not due: for few times or a chain."""
    return n <= _FEW_TIMES or is_chain(vectors[TABLE], marks[KNOWN], n, IS_NEW | IS_USED, depth)


@bare
def _visit_due(vectors: Table, marks: Table, n: int, depth: int) -> int:
    """Set the times to visit to the ranked times that are IS_DUE; return how many they are."""
    count = 0
    for time in range(n):
        if marks[KNOWN, time] & IS_DUE:
            copy_entries(vectors[TABLE], time, vectors[VISITS], count, 1, depth)
            count += 1
    return count


@bare
def interesting_chain(vectors: Table, marks: Table, n: int, depth: int) -> int:
    """Find the interesting times of a gathered group if they are a chain and none becomes pending.

    Returns how many there are to visit, or -1 for any other group, for which `interesting` finds them. A group that is
    visited at times that are not due, too (see *Looking ahead* in `reduce_times`), has all its times marked as IS_DUE.
    """
    if _looks_ahead(vectors, marks, n, depth):
        # All times in use are visited, so all count as due from here on.
        for time in range(n):
            marks[KNOWN, time] |= IS_DUE if marks[KNOWN, time] != 0 else 0
    return due_chain(vectors, marks, n, depth)


@bare
def due_chain(vectors: Table, marks: Table, n: int, depth: int) -> int:
    """Find the interesting times of a gathered group that are due, if they are a chain and none becomes pending.

    Returns how many there are to visit, or -1 for any other group, for which `interesting` finds them.
    """
    table, known = vectors[TABLE], marks[KNOWN]
    if must_postpone(known, n) or not is_chain(table, known, n, IS_DUE, depth):
        return -1
    return _visit_due(vectors, marks, n, depth)


@inner
def interesting(
    scratch: Scratch, n: int, upper: Table, ahead: bool, pending_count: int
) -> tuple[Scratch, int, bool, int]:
    """Find the interesting times of a gathered group; return `scratch`, in which they are the times to visit, in order,
    how many they are, whether they are a chain, and how many times are pending with those of the group.

    The times to visit are the interesting times that are due. If `ahead` is set they are, for a chain or few times, all
    interesting times; `interesting_chain`, which always looks ahead, must have been called before to mark these as
    IS_DUE. `reduce` sets it, and `reduce_plan` does not.
    """
    vectors, marks, sparse, pending = scratch
    depth, table, known = upper.shape[1], vectors[TABLE], marks[KNOWN]
    if ahead and _looks_ahead(vectors, marks, n, depth):
        upper = upper[:0]  # no time is in advance of the empty antichain: the closure keeps every join
    else:
        pending, pending_count = postpone(table, known, n, depth, pending, pending_count)
    if is_chain(table, known, n, IS_DUE, depth):
        steps = _visit_due(vectors, marks, n, depth)
        return Scratch(vectors, marks, sparse, pending), steps, True, pending_count
    visits, count, pending, pending_count = closure(table, known, n, upper, depth, pending, pending_count)
    vectors = with_room(vectors, count * depth)
    copy_entries(visits, 0, vectors[VISITS], 0, count, depth)
    return Scratch(vectors, marks, sparse, pending), count, False, pending_count
