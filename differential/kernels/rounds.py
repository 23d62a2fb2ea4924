"""The times of rows that enter a loop, each row at its own round."""

from __future__ import annotations

import numpy as np

from differential.kernels.compile import Ints, Table, kernel
from differential.kernels.memory import at, empty
from differential.kernels.reduce_times import enlarged, is_full, put_distinct


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
    found = np.empty((count, depth), np.int64)
    for place in range(count):
        for coordinate in range(depth):
            found[place, coordinate] = entries[place * depth + coordinate]
    return found, index if count > 1 else nothing
