"""Batches of updates as kernels see them: columns laid out as in `differential.kernels.memory`, and kept alive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from timely.order import Time, join, less_equal, meet

Ints = NDArray[np.int64]
Update = tuple[int, int, Time, int]


def consolidated(updates: Iterable[Update]) -> list[Update]:
    """Return the updates with equal (key, value, time) added up, sorted, without zeros."""
    diffs: Counter[tuple[int, int, Time]] = Counter()
    for key, val, time, diff in updates:
        diffs[key, val, time] += diff
    return [(*row, diff) for row, diff in sorted(diffs.items()) if diff != 0]


def advanced(updates: Iterable[Update], since: Sequence[Time]) -> list[Update]:
    """Return the updates with their times moved to their representatives under `since`, consolidated."""

    def representative(time: Time) -> Time:
        result = join(time, since[0])
        for other in since[1:]:
            result = meet(result, join(time, other))
        return result

    return consolidated((key, val, representative(time), diff) for key, val, time, diff in updates)


def in_advance(time: Time, frontier: Iterable[Time]) -> bool:
    """Whether some element of `frontier` is at or before `time`."""
    return any(less_equal(element, time) for element in frontier)


class Layers:
    """A table of batches, and the columns it points to. The values of a key are in the order of what `rank` returns."""

    def __init__(
        self, batches: Sequence[Sequence[Update]], depth: int, rank: Callable[[int], int | str] = lambda val: val
    ) -> None:
        self.alive: list[Ints] = []
        self.table = np.zeros((len(batches), 8), np.int64)
        for row, updates in enumerate(batches):
            self.table[row] = self._address(
                sorted(consolidated(updates), key=lambda update: (update[0], rank(update[1]))), depth
            )

    def _address(self, updates: list[Update], depth: int) -> list[int]:
        times = sorted({update[2] for update in updates})
        index = {time: place for place, time in enumerate(times)}
        keys = [update[0] for update in updates]
        vals = [update[1] for update in updates]
        diffs = [update[3] for update in updates]
        columns = [
            keys,
            vals if any(vals) else [],
            [index[update[2]] for update in updates] if len(times) > 1 else [],
            diffs if any(diff != 1 for diff in diffs) else [],
            [coordinate for time in times for coordinate in time],
        ]
        return [len(updates), *(self._keep(column) for column in columns), len(times), depth]

    def _keep(self, column: list[int]) -> int:
        if not column:
            return 0
        array = np.array(column, np.int64)
        self.alive.append(array)
        return int(array.ctypes.data)


def rows_of(keys: Ints, vals: Ints, times: Ints, time_index: Ints, diffs: Ints) -> list[Update]:
    """Return a chunk, whose columns may be absent, as updates."""
    n = len(keys)
    vals = vals if len(vals) else np.zeros(n, np.int64)
    time_index = time_index if len(time_index) else np.zeros(n, np.int64)
    diffs = diffs if len(diffs) else np.ones(n, np.int64)
    return [
        (int(keys[row]), int(vals[row]), tuple(int(c) for c in times[time_index[row]]), int(diffs[row]))
        for row in range(n)
    ]
