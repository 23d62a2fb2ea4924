"""The times and rows of one group: what is new, and its history as the new times see it.

The times of a group are gathered as entries (the due new times, their meet m, then each distinct time of the history,
joined with m) and afterwards ranked: sorted and freed of duplicates, so that a time is a small number and numbers are in
lexicographic order. Which times of a layer have been met is kept in a sparse set: `sparse`, never initialised, has a place
for each time of each layer, and a place means something only if what it points to points back. So a group costs what its
own rows cost, however many times the layers have.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from differential.kernels.compile import Ints, Table, inner
from differential.kernels.memory import TIME_INDEX, TIME_ROWS, TIMES
from differential.kernels.reduce_layers import BASE, FROM, HIGH, LOW, TO, diff_at, load, time_index_at, value_at
from differential.kernels.reduce_rows import Rows, consolidate_rows, roomy
from differential.kernels.reduce_times import (
    IS_DUE,
    IS_NEW,
    IS_USED,
    add_minimal,
    closure,
    is_chain,
    is_due,
    postpone,
    sort_entries,
)

Times: TypeAlias = tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints, Ints]
ENTRIES, TABLE, ORDER, SPARE, RANK, KNOWN, SEEN, SEEN_AS = range(8)
"""The times of a group: as gathered; as ranked; room to sort; each entry's rank; what is known of each rank (IS_NEW, ...);
and the sparse set's members: a place in `sparse`, and the entry that stands for it."""


@inner
def no_times() -> Times:
    """Return room for no times."""
    nothing = np.empty(0, np.int64)
    return nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing


@inner
def _roomy_times(times: Times, count: int, depth: int) -> Times:
    """Return `times` with room for `count`; the entries are kept, and so are the members of the sparse set."""
    held = len(times[ORDER])
    if count <= held:
        return times
    room = max(count, 2 * held, 16)
    entries, seen, seen_as = np.empty(room * depth, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    entries[: held * depth] = times[ENTRIES]
    seen[:held] = times[SEEN]
    seen_as[:held] = times[SEEN_AS]
    table, order = np.empty(room * depth, np.int64), np.empty(room, np.int64)
    spare, rank, known = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    return entries, table, order, spare, rank, known, seen, seen_as


@inner
def _distinct_at_most(layers: Table, first: int, last: int) -> int:
    """Return a bound on the number of times that the group's rows in some layers are at."""
    bound = 0
    for layer in range(first, last):
        bound += min(layers[layer, HIGH] - layers[layer, LOW], layers[layer, TIME_ROWS])
    return bound


@inner
def _take_new(times: Times, news: int, upper: Table, depth: int, pending: Ints, pendings: int) -> tuple[int, Ints, int]:
    """Keep entry `news` if it is due and not the first once more; put it off if it is not due."""
    entries = times[ENTRIES]
    if not is_due(upper, entries, news, depth):
        pending, pendings = add_minimal(pending, pendings, entries, news, depth)
        return news, pending, pendings
    same = news > 0
    for d in range(depth):
        same &= entries[d] == entries[news * depth + d]
    return (news if same else news + 1), pending, pendings


@inner
def new_times(
    layers: Table,
    deltas: int,
    group: Ints,
    pending_times: Table,
    upper: Table,
    times: Times,
    sparse: Ints,
    pending: Ints,
) -> tuple[Times, int, Ints, int]:
    """Gather the group's due new times as entries, and their meet after them; return also what is not due."""
    depth = upper.shape[1]
    bound = group[TO] - group[FROM] + _distinct_at_most(layers, 0, deltas)
    times = _roomy_times(times, bound + 1, depth)
    entries, seen = times[ENTRIES], times[SEEN]
    news, pendings, members = 0, 0, 0
    for layer in range(deltas):
        low, high = layers[layer, LOW], layers[layer, HIGH]
        if layers[layer, TIME_INDEX] == 0:
            high = min(high, low + 1)
        for row in range(low, high):
            index = time_index_at(layers, layer, row)
            place = layers[layer, BASE] + index
            member = sparse[place]
            if 0 <= member < members and seen[member] == place:
                continue
            sparse[place] = members
            seen[members] = place
            members += 1
            for d in range(depth):
                entries[news * depth + d] = load(layers[layer, TIMES], index * depth + d)
            news, pending, pendings = _take_new(times, news, upper, depth, pending, pendings)
    for row in range(group[FROM], group[TO]):
        for d in range(depth):
            entries[news * depth + d] = pending_times[row, d]
        news, pending, pendings = _take_new(times, news, upper, depth, pending, pendings)
    for d in range(depth):
        meet = entries[d]
        for new in range(1, news):
            meet = min(meet, entries[new * depth + d])
        entries[news * depth + d] = meet
    return times, news, pending, pendings


@inner
def history_is_at_or_before(layers: Table, first: int, last: int, latest: Table, entries: Ints, depth: int) -> bool:
    """Whether all rows of the group in the layers `first` to `last` are at or before entry 0."""
    for layer in range(first, last):
        low, high = layers[layer, LOW], layers[layer, HIGH]
        if low == high:
            continue
        d = 0
        while d < depth and latest[layer, d] <= entries[d]:
            d += 1
        if d == depth:
            continue
        for row in range(low, high):
            base = time_index_at(layers, layer, row) * depth
            for d in range(depth):
                if load(layers[layer, TIMES], base + d) > entries[d]:
                    return False
    return True


@inner
def _gather_rows(
    layers: Table, first: int, last: int, times: Times, sparse: Ints, rows: Rows, count: int, entries: Ints, depth: int
) -> int:
    """Append the group's rows in some layers, at entries; `entries` counts: news, entries, members of the sparse set."""
    vectors, seen, seen_as = times[ENTRIES], times[SEEN], times[SEEN_AS]
    meet = entries[0]
    for layer in range(first, last):
        for row in range(layers[layer, LOW], layers[layer, HIGH]):
            index = time_index_at(layers, layer, row)
            place = layers[layer, BASE] + index
            member = sparse[place]
            if not (0 <= member < entries[2] and seen[member] == place):
                member = entries[2]
                entry = entries[1]
                later = False
                for d in range(depth):
                    here = load(layers[layer, TIMES], index * depth + d)
                    least = vectors[meet * depth + d]
                    later |= here > least
                    vectors[entry * depth + d] = max(here, least)
                sparse[place] = member
                seen[member] = place
                seen_as[member] = entry if later else meet
                entries[1] += int(later)
                entries[2] += 1
            rows[0][count] = value_at(layers, layer, row)
            rows[1][count] = seen_as[member]
            rows[2][count] = diff_at(layers, layer, row)
            count += 1
    return count


@inner
def _rank(times: Times, count: int, news: int, upper: Table) -> int:
    """Rank the first `count` entries; return how many different times they are."""
    depth = upper.shape[1]
    entries, table, order, rank, known = times[ENTRIES], times[TABLE], times[ORDER], times[RANK], times[KNOWN]
    sort_entries(entries, count, order, times[SPARE], depth)
    n = 0
    for place in range(count):
        entry = order[place]
        same = n > 0
        for d in range(depth):
            same = same and table[(n - 1) * depth + d] == entries[entry * depth + d]
        if not same:
            table[n * depth : (n + 1) * depth] = entries[entry * depth : (entry + 1) * depth]
            known[n] = 0
            n += 1
        rank[entry] = n - 1
        if entry < news:
            known[n - 1] = IS_NEW
    return n


@inner
def gather(
    layers: Table, deltas: int, inputs: int, upper: Table, times: Times, sparse: Ints, news: int, rows: Rows
) -> tuple[Times, int, Rows, Ints]:
    """Gather and consolidate the group's history, and rank its times.

    Return the times and how many there are, the rows, and the bounds [end of input, start of output, end of output]
    of the rows among them; input rows start at 0.
    """
    depth = upper.shape[1]
    count = 0
    for layer in range(deltas, len(layers)):
        count += layers[layer, HIGH] - layers[layer, LOW]
    rows = roomy(rows, count)
    times = _roomy_times(times, news + 1 + _distinct_at_most(layers, deltas, len(layers)), depth)
    counts = np.empty(3, np.int64)
    counts[0], counts[1], counts[2] = news, news + 1, 0
    middle = _gather_rows(layers, deltas, inputs, times, sparse, rows, 0, counts, depth)
    last = _gather_rows(layers, inputs, len(layers), times, sparse, rows, middle, counts, depth)
    n = _rank(times, counts[1], news, upper)
    rank, known = times[RANK], times[KNOWN]
    for row in range(count):
        rows[1][row] = rank[rows[1][row]]
    bounds = counts
    bounds[0] = consolidate_rows(rows, 0, middle)
    bounds[1] = middle
    bounds[2] = consolidate_rows(rows, middle, last)
    for row in range(bounds[0]):
        known[rows[1][row]] |= IS_USED
    for row in range(bounds[1], bounds[2]):
        known[rows[1][row]] |= IS_USED
    for time in range(n):
        if known[time] != 0 and is_due(upper, times[TABLE], time, depth):
            known[time] |= IS_DUE
    return times, n, rows, bounds


@inner
def interesting(times: Times, n: int, upper: Table, pending: Ints, pendings: int) -> tuple[Ints, int, bool, Ints, int]:
    """Return the due interesting times of a gathered group in order, how many, whether they are a chain, and what is pending.

    When they are a chain they are the ranked times that are due.
    """
    depth = upper.shape[1]
    table, known = times[TABLE], times[KNOWN]
    pending, pendings = postpone(table, known, n, depth, pending, pendings)
    if not is_chain(table, known, n, depth):
        visits, count, pending, pendings = closure(table, known, n, upper, depth, pending, pendings)
        return visits, count, False, pending, pendings
    visits = np.empty(n * depth, np.int64)
    count = 0
    for time in range(n):
        if known[time] & IS_DUE:
            visits[count * depth : (count + 1) * depth] = table[time * depth : (time + 1) * depth]
            count += 1
    return visits, count, True, pending, pendings
