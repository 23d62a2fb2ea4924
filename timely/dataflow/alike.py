"""Messages that an operator takes as one batch: those that are next in its queue, at one time and alike.

A message that is spread over the workers becomes one for each of them. If each of these were handled and spread by
itself, every exchange would multiply the number of messages by the number of workers, until each had one record.

>>> queue = deque([((0,), [1]), ((0,), [2, 3]), ((1,), [4]), ((1,), Columns((np.arange(2),)))])
>>> order_by_time(queue), order_by_time(deque(reversed(queue)))
([], [2, 3, 0, 1])
>>> leading_alike(queue, [8, 16, 8, 16], 4), leading_alike(queue, [8, MOST, 8, 16], 4), joined([[1], [2, 3]])
(2, 1, [1, 2, 3])
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from operator import le
from typing import Any, cast

import numpy as np

from timely.data.container import Batch, Columns, concatenate
from timely.order import Time

MOST = 1 << 20
"""The most bytes that are joined: a batch of so many costs more to copy than to handle, and operators that wait where
there is no room take one batch at a time."""


def order_by_time(queue: deque[tuple[Time, Batch]]) -> list[int]:
    """Return the places of messages in the order of their times, each time's as they are; nothing if they are in order.

    In a loop, messages of many rounds arrive at the same time, and only neighbours are joined.
    """
    if _kind_of(queue[0][1]) is None:  # such a batch is joined with no other, so an order would gain nothing
        return []
    times = [time for time, _ in queue]
    if all(map(le, times, islice(times, 1, None))):
        return []
    return sorted(range(len(times)), key=times.__getitem__)  # stable, so each time's messages keep their order


def leading_alike(queue: deque[tuple[Time, Batch]], sizes: Iterable[int], most: int, room: int = MOST) -> int:
    """Return how many messages from the first one on, and of `most`, `joined` takes: at least one.

    `sizes` are the bytes of the messages; no more than `room` are joined.
    """
    time, batch = queue[0]
    room = min(room, MOST)
    kind, total, count = _kind_of(batch), 0, 0
    if kind is None:
        return 1
    for (following, other), size in zip(islice(queue, most), sizes):
        total += size
        # The first is taken whatever its size.
        if count and (following != time or total > room or _kind_of(other) != kind):
            break
        count += 1
    return count


def joined(batches: Sequence[Batch]) -> Batch:
    """Return one batch with the records of all batches, which are alike, in order."""
    if type(batches[0]) is list:
        return list(chain.from_iterable(cast(list[list[Any]], batches)))
    return concatenate(cast(list[Columns], batches))


def _kind_of(batch: Batch) -> Any:
    """Return something that is equal for batches that are alike; None for those that are joined with no other."""
    if type(batch) is list:
        return list
    if type(batch) is not Columns or not all(type(column) is np.ndarray for column in batch.columns):
        return None
    return [column.dtype for column in batch.columns]
