"""Slow twins of batches and traces: updates as a list of (key, value, time, diff), and their meaning."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from timely import order
from timely.order import Time
from timely.progress.antichain import Antichain

Row = tuple[int, int, Time, int]


def consolidated(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with equal (key, value, time) summed, without those that sum to zero, sorted."""
    counts: dict[tuple[int, int, Time], int] = defaultdict(int)
    for key, value, time, diff in rows:
        counts[key, value, time] += diff
    return sorted((*data, diff) for data, diff in counts.items() if diff)


def as_of(rows: Iterable[Row], time: Time) -> list[tuple[int, int, int]]:
    """Return the contents (key, value, count) at `time`, sorted."""
    counts: dict[tuple[int, int], int] = defaultdict(int)
    for key, value, then, diff in rows:
        if order.less_equal(then, time):
            counts[key, value] += diff
    return sorted((*data, count) for data, count in counts.items() if count)


def representative(time: Time, since: Antichain) -> Time:
    """Return the representative of `time` for readers at times in advance of `since`."""
    if not since:
        return (0,) * len(time)
    joined = [order.join(time, element) for element in since]
    result = joined[0]
    for one in joined[1:]:
        result = order.meet(result, one)
    return result


def compacted(rows: Iterable[Row], since: Antichain) -> list[Row]:
    """Return the rows with times advanced to `since`, consolidated."""
    return consolidated((key, value, representative(time, since), diff) for key, value, time, diff in rows)
