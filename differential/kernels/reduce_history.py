"""The times and rows of one group: what is new, and its history as the new times see it.

The times of a group are gathered as entries (the due new times, their meet m, then each distinct time of the history,
joined with m) and afterwards ranked: sorted and freed of duplicates, so that a time is a small number and numbers are
in lexicographic order. Which times of a layer have been met is kept in a sparse set: `sparse`, never initialised, has a
place for each time of each layer, and a place means something only if what it points to points back. So a group costs
what its own rows cost, however many times the layers have.
"""

from __future__ import annotations

from differential.kernels.compile import Ints, Table, bare, inner
from differential.kernels.memory import TIME_INDEX, TIME_ROWS, TIMES
from differential.kernels.reduce_layers import BASE, FROM, HIGH, LOW, TO, diff_at, load, time_index_at, value_at
from differential.kernels.reduce_rows import ROW_TIME, Rows, consolidate_rows, put_row, roomy
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
"""The columns of times of a group: as gathered, as ranked, and those to be visited."""

ORDER, SPARE, RANK, KNOWN, SEEN, SEEN_AS, MARKS = range(7)
"""Room to sort; each entry's rank; what is known of each rank (IS_NEW, ...); and the sparse set's members: a place in
`sparse`, and the entry that stands for it."""


_FEW_TIMES = 8
"""So many times that are no chain are closed under join whether they are due or not."""


@bare
def distinct_at_most(layers: Table, first: int, last: int) -> int:
    """Return a bound on the number of times that the group's rows in the layers `first` to `last` are at."""
    bound = 0
    for layer in range(first, last):
        bound += min(layers[layer, HIGH] - layers[layer, LOW], layers[layer, TIME_ROWS])
    return bound


@bare
def _is_another(entries: Ints, news: int, depth: int) -> bool:
    """Whether entry `news` is not the first once more."""
    return news == 0 or not same_entry(entries, 0, entries, news, depth)


@bare
def new_times(
    layers: Table,
    deltas: int,
    group: Ints,
    pending_times: Table,
    upper: Table,
    vectors: Table,
    marks: Table,
    sparse: Ints,
    pending: Ints,
) -> tuple[int, int]:
    """Gather the group's due new times as entries, and their meet after them, and the minimal ones of the others as
    `pending`; return how many are pending, and how many are due.

    There must be room for one time more than the new ones, and in `pending` for as many.
    """
    depth = upper.shape[1]
    entries = vectors[ENTRIES]
    news, pendings, members = 0, 0, 0
    for layer in range(deltas):
        low, high = layers[layer, LOW], layers[layer, HIGH]
        if layers[layer, TIME_INDEX] == 0:
            high = min(high, low + 1)
        for row in range(low, high):
            index = time_index_at(layers, layer, row)
            place = layers[layer, BASE] + index
            member = sparse[place]
            if 0 <= member < members and marks[SEEN, member] == place:
                continue
            sparse[place] = members
            marks[SEEN, members] = place
            members += 1
            for d in range(depth):
                entries[news * depth + d] = load(layers[layer, TIMES], index * depth + d)
            if is_due(upper, entries, news, depth):
                news += int(_is_another(entries, news, depth))
            else:
                pendings = put_minimal(pending, pendings, entries, news, depth)
    for row in range(group[FROM], group[TO]):
        for d in range(depth):
            entries[news * depth + d] = pending_times[row, d]
        if is_due(upper, entries, news, depth):
            news += int(_is_another(entries, news, depth))
        else:
            pendings = put_minimal(pending, pendings, entries, news, depth)
    for d in range(depth):
        meet = entries[d]
        for new in range(1, news):
            meet = min(meet, entries[new * depth + d])
        entries[news * depth + d] = meet
    return pendings, news


@bare
def history_is_at_or_before(layers: Table, first: int, last: int, latest: Table, vectors: Table, depth: int) -> bool:
    """Whether all rows of the group in the layers `first` to `last` are at or before entry 0."""
    for layer in range(first, last):
        low, high = layers[layer, LOW], layers[layer, HIGH]
        if low == high:
            continue
        d = 0
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
def _gather_rows(
    layers: Table,
    first: int,
    last: int,
    vectors: Table,
    marks: Table,
    sparse: Ints,
    rows: Rows,
    counts: Ints,
    depth: int,
) -> None:
    """Append the group's rows in some layers, at entries; `counts` are the entry of the meet, the entries, the rows."""
    meet, entries, count = counts[0], counts[1], counts[2]
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
                marks[SEEN_AS, member] = entries if later else meet
                entries += int(later)
                members += 1
            put_row(rows, count, value_at(layers, layer, row), marks[SEEN_AS, member], diff_at(layers, layer, row))
            count += 1
    counts[1], counts[2] = entries, count


@bare
def _rank(vectors: Table, marks: Table, count: int, news: int, depth: int) -> int:
    """Rank the first `count` entries; return how many different times they are."""
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
        if entry < news:
            marks[KNOWN, n - 1] = IS_NEW
    return n


@bare
def gather(
    layers: Table,
    deltas: int,
    inputs: int,
    upper: Table,
    vectors: Table,
    marks: Table,
    sparse: Ints,
    news: int,
    rows: Rows,
    bounds: Ints,
) -> int:
    """Gather and consolidate the group's history, and rank its times; return how many these are.

    `bounds` is set to the end of the input rows, which start at 0, and to the start and the end of the output rows.
    There must be room for all of the group's rows, and for its times and one more.
    """
    depth = upper.shape[1]
    bounds[0], bounds[1], bounds[2] = news, news + 1, 0
    _gather_rows(layers, deltas, inputs, vectors, marks, sparse, rows, bounds, depth)
    middle = bounds[2]
    _gather_rows(layers, inputs, len(layers), vectors, marks, sparse, rows, bounds, depth)
    last = bounds[2]
    n = _rank(vectors, marks, bounds[1], news, depth)
    for row in range(last):
        rows[ROW_TIME, row] = marks[RANK, rows[ROW_TIME, row]]
    bounds[0] = consolidate_rows(rows, 0, middle)
    bounds[1] = middle
    bounds[2] = consolidate_rows(rows, middle, last)
    for row in range(last):
        if row < bounds[0] or middle <= row < bounds[2]:
            marks[KNOWN, rows[ROW_TIME, row]] |= IS_USED
    for time in range(n):
        if marks[KNOWN, time] != 0 and is_due(upper, vectors[TABLE], time, depth):
            marks[KNOWN, time] |= IS_DUE
    return n


@bare
def _looks_ahead(vectors: Table, marks: Table, n: int, ahead: bool, depth: int) -> bool:
    """Whether all of a gathered group's times are visited, those that are not due, too: not if they are too many."""
    return ahead and (n <= _FEW_TIMES or is_chain(vectors[TABLE], marks[KNOWN], n, IS_NEW | IS_USED, depth))


@bare
def _visit_due(vectors: Table, marks: Table, n: int, depth: int) -> int:
    """Set the times to visit to those known to be IS_DUE; return how many they are."""
    count = 0
    for time in range(n):
        if marks[KNOWN, time] & IS_DUE:
            copy_entries(vectors[TABLE], time, vectors[VISITS], count, 1, depth)
            count += 1
    return count


@bare
def interesting_chain(vectors: Table, marks: Table, n: int, ahead: bool, depth: int) -> int:
    """Do what `interesting` does of a gathered group whose times to visit are a chain and nothing is to be put off;
    return how many they are, -1 of any other group."""
    table, known = vectors[TABLE], marks[KNOWN]
    if _looks_ahead(vectors, marks, n, ahead, depth):
        for time in range(n):
            known[time] |= IS_DUE if known[time] != 0 else 0
    elif must_postpone(known, n):
        return -1
    return _visit_due(vectors, marks, n, depth) if is_chain(table, known, n, IS_DUE, depth) else -1


@inner
def interesting(
    vectors: Table, marks: Table, n: int, upper: Table, ahead: bool, pending: Ints, pendings: int
) -> tuple[Table, int, bool, Ints, int]:
    """Return `vectors` with the interesting times of a gathered group as those to visit, in order, how many, whether
    they are a chain, and what is pending.

    They are the due ones; if one is to look `ahead`, and there are not too many, all of them, which are known to be
    IS_DUE since `interesting_chain` was asked. When they are a chain they are the ranked times known to be so.
    """
    depth = upper.shape[1]
    table, known = vectors[TABLE], marks[KNOWN]
    if _looks_ahead(vectors, marks, n, ahead, depth):
        upper = upper[:0]
    else:
        pending, pendings = postpone(table, known, n, depth, pending, pendings)
    if is_chain(table, known, n, IS_DUE, depth):
        return vectors, _visit_due(vectors, marks, n, depth), True, pending, pendings
    visits, count, pending, pendings = closure(table, known, n, upper, depth, pending, pendings)
    vectors = roomy(vectors, count * depth)
    copy_entries(visits, 0, vectors[VISITS], 0, count, depth)
    return vectors, count, False, pending, pendings
