"""Tables of times, int64[T, D]: a row is a time, a column a coordinate.

There are two orders. The product order (`is_at_or_before`) has the meaning; the lexicographic order (`compare_times`)
is only for sorting, and extends the product order. A frontier is a table whose rows are the elements of an antichain.
The frontier without rows means that everything is final: no time is in advance of it.

*Compaction* replaces a time by its representative under a frontier `since`,

    rep(t) = meet over f in since of join(t, f),

which no time in advance of `since` can tell from t: for such a time s, t <= s exactly if rep(t) <= s. Under the empty
`since` nobody will ask about any time, so all times may become one: the representative is all zeros. For example, under
{(3, 0)} the representative of (1, 5) is (3, 5), and that of (4, 2) is itself; under {(3, 0), (0, 6)} that of (1, 5) is
the meet of (3, 5) and (1, 6), which is (1, 5).

*Cost.* Sorting T times costs T log T comparisons, or T if they are in order. The frontier functions cost the
product of the sizes of the table and the frontier.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, Times, bare, inner, kernel
from differential.kernels.memory import at, empty
from differential.kernels.reduce_times import enlarged, is_full, put_distinct, sort_entries


@bare
def compare_times(left: Table, i: int, right: Table, j: int) -> int:
    """Return -1, 0 or 1 as row `i` of `left` is lexicographically before, equal to or after row `j` of `right`."""
    for coordinate in range(left.shape[1]):
        if left[i, coordinate] != right[j, coordinate]:
            return -1 if left[i, coordinate] < right[j, coordinate] else 1
    return 0


@bare
def is_at_or_before(left: Table, i: int, right: Table, j: int) -> bool:
    """Return whether row `i` of `left` is at or before row `j` of `right` in the product order."""
    for coordinate in range(left.shape[1]):  # noqa: SIM110 (compiled)
        if left[i, coordinate] > right[j, coordinate]:
            return False
    return True


@bare
def is_in_advance(frontier: Table, times: Table, row: int) -> bool:
    """Return whether some element of `frontier` is at or before the time of a row."""
    for element in range(len(frontier)):  # noqa: SIM110 (compiled)
        if is_at_or_before(frontier, element, times, row):
            return True
    return False


@bare
def copy_advanced(times: Table, since: Table, target: Table, base: int) -> None:
    """Write the representatives of `times` under `since` to the rows of `target` from `base` on."""
    for row in range(len(times)):
        for coordinate in range(times.shape[1]):
            # Joins and meets are taken coordinate by coordinate: the greatest, then the least.
            own = times[row, coordinate]
            least = max(own, since[0, coordinate]) if len(since) != 0 else 0
            for element in range(1, len(since)):
                least = min(least, max(own, since[element, coordinate]))
            target[base + row, coordinate] = least


@inner
def sort_times(times: Table) -> Ints:
    """Return the rows of `times` in lexicographic order."""
    count = len(times)
    order = np.empty(count, np.int64)
    sort_entries(times.reshape(times.size), count, order, np.empty(count, np.int64), times.shape[1])
    return order


@kernel
def intern(times: Table) -> tuple[Table, Ints]:
    """Return the distinct rows of `times` in lexicographic order, and for each row its place among them."""
    count = len(times)
    place = np.arange(count)
    is_sorted = True
    for row in range(1, count):
        if compare_times(times, row - 1, times, row) >= 0:
            is_sorted = False
            break
    # A table that is sorted already, as that of a batch, is returned as it is.
    if is_sorted:
        return times, place
    order = sort_times(times)
    table = np.empty_like(times)
    distinct = 0
    for position in range(count):
        row = order[position]
        if position == 0 or compare_times(table, distinct - 1, times, row) != 0:
            table[distinct] = times[row]
            distinct += 1
        place[row] = distinct - 1
    return table[:distinct].copy(), place


@kernel
def drop_unused(time_index: Ints, times: Table) -> tuple[Ints, Table]:
    """Return the index and the table without unused times; the index is absent if one time is left."""
    count = len(times)
    if len(time_index) == 0:
        return time_index, times[: min(count, 1)]
    # `place` is first 1 for each time in use, then its new index. Times in use keep their order.
    place = np.zeros(count, np.int64)
    for row in range(len(time_index)):
        place[time_index[row]] = 1
    used = 0
    for time in range(count):
        used += place[time]
    if used == count and count > 1:
        return time_index, times
    table = np.empty((used, times.shape[1]), np.int64)
    used = 0
    for time in range(count):
        if place[time] != 0:
            table[used] = times[time]
            place[time] = used
            used += 1
    if used == 1:
        return np.empty(0, np.int64), table
    index = np.empty_like(time_index)
    for row in range(len(time_index)):
        index[row] = place[time_index[row]]
    return index, table


@kernel
def advance(times: Table, since: Times) -> Table:
    """Return the representative of every row under the frontier `since`."""
    advanced = np.empty_like(times)
    copy_advanced(times, since, advanced, 0)
    return advanced


@kernel
def in_advance(times: Table, frontier: Times) -> Ints:
    """Return 1 for every row that is in advance of `frontier`, else 0."""
    answer = np.zeros(len(times), np.int64)
    for row in range(len(times)):
        if is_in_advance(frontier, times, row):
            answer[row] = 1
    return answer


@kernel
def minimal(times: Table) -> Table:
    """Return the minimal rows of `times`, distinct and in lexicographic order."""
    # Whatever is before a time in the product order is before it in the lexicographic order: it is found already.
    order = sort_times(times)
    found = np.empty_like(times)
    count = 0
    for row in order:
        if not is_in_advance(found[:count], times, row):
            found[count] = times[row]
            count += 1
    return found[:count].copy()


@kernel
def table_of_times(times: Times) -> Table:
    """Return times as a table of their own."""
    table: Table = times.copy()
    return table


@kernel
def later_times(times: Table, step: int) -> Table:
    """Return the times with the last coordinate larger by `step`."""
    later = times.copy()
    for row in range(len(times)):
        later[row, times.shape[1] - 1] += step
    return later


@kernel
def times_inside(times: Table, more: int) -> Table:
    """Return the times with more coordinates, which are 0."""
    inside = np.zeros((len(times), times.shape[1] + more), np.int64)
    for row in range(len(times)):
        for coordinate in range(times.shape[1]):
            inside[row, coordinate] = times[row, coordinate]
    return inside


@kernel
def times_outside(times: Table, keep: int) -> Table:
    """Return the times without their coordinates from `keep` on."""
    outside = np.empty((len(times), keep), np.int64)
    for row in range(len(times)):
        for coordinate in range(keep):
            outside[row, coordinate] = times[row, coordinate]
    return outside


@kernel
def times_at_rounds(times: Table, time_index: Ints, rounds: Ints, most: int) -> tuple[Table, Ints]:
    """Return the distinct times of rows with their rounds as last coordinates, and for each row the place of its time.

    The places are empty if there is only one time. If a round is not from 0 to `most`, the times are empty.
    """
    rows, outside = len(rounds), times.shape[1]
    depth = outside + 1
    nothing = np.empty(0, np.int64)
    slots, entries, count = nothing, nothing, 0
    slots, entries = enlarged(slots, entries, count, depth)
    sought, index = np.empty(depth, np.int64), empty(rows)
    time_before = round_before = -1
    for row in range(rows):
        time, number = at(time_index, row, 0), rounds[row]
        if number < 0 or number > most:
            return np.empty((0, depth), np.int64), nothing
        # Most rows have the time of the previous row.
        if time == time_before and number == round_before:
            index[row] = index[row - 1]
            continue
        time_before, round_before = time, number
        for coordinate in range(outside):
            sought[coordinate] = times[time, coordinate]
        sought[outside] = number
        if is_full(slots, count):
            slots, entries = enlarged(slots, entries, count, depth)
        place = put_distinct(slots, entries, count, sought, 0, depth)
        count = max(count, place + 1)
        index[row] = place
    return entries[: count * depth].reshape((count, depth)).copy(), index if count > 1 else nothing
