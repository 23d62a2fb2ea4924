"""The least of many times of one coordinate that come and go.

Where times have one coordinate, a frontier is the least of those with a positive count. Once it has gone, a search of
all others would cost a pass over them; a heap costs the logarithm of their number. A heap is a list that is empty as
long as there are few times. Invariant:

    a heap that is not empty contains every time with a positive count

A time that has gone stays in the heap until it is the least one there. So that the heap does not grow, it is filled
anew once most of its times have gone.

>>> heap, counts = [], {(time,): 1 for time in range(100)}
>>> earliest(heap, counts), len(heap)
(((0,),), 100)
>>> del counts[0,], counts[1,]
>>> earliest(heap, counts), len(heap)
(((2,),), 98)
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from timely.order import Time

FEW: Final = 8
"""Up to this many times are searched one by one."""


def appear(heap: list[Time], time: Time, counts: dict[Time, int]) -> None:
    """Note that the count of a time has become positive. The heap must not be empty."""
    # A time that comes back is pushed again, although the entry of its first visit may still be in the heap.
    heappush(heap, time)
    if len(heap) > 2 * len(counts) + FEW:
        _fill(heap, counts)


def earliest(heap: list[Time], counts: dict[Time, int]) -> tuple[Time, ...]:
    """Return the least of the times with a positive count, if there is one.

    >>> earliest([], {(5,): 1, (3,): 2, (2,): -1}), earliest([], {(2,): -1})
    (((3,),), ())
    """
    if not heap:
        _fill(heap, counts)
    while heap:
        least = heap[0]
        if counts.get(least, 0) > 0:
            return (least,)
        heappop(heap)
    return ()


def _fill(heap: list[Time], counts: dict[Time, int]) -> None:
    """Make a heap of exactly the times with a positive count."""
    heap[:] = [time for time, count in counts.items() if count > 0]
    heapify(heap)
