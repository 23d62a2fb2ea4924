"""The messages of a captured collection (see `differential.capture`): updates, and statements of how many there are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from differential.data.updates import Updates
from timely.capture import EventSource
from timely.errors import CaptureError
from timely.lowlevel import Antichain, Batch, Time, as_integer, checked_time, register_event as register

Counts = tuple[tuple[Time, int], ...]


@register
class CapturedUpdates:
    """Some of the updates of a collection.

    >>> CapturedUpdates(Updates.at((3,), (np.array([5, 6]),)))
    CapturedUpdates(Updates([((5,), (3,), 1), ((6,), (3,), 1)]))
    """

    kind: ClassVar[str] = "changes"
    __slots__ = ("updates",)

    def __init__(self, updates: Updates) -> None:
        self.updates = updates

    def __repr__(self) -> str:
        return f"CapturedUpdates({self.updates})"

    def parts(self) -> tuple[Any, Batch]:
        return None, self.updates

    @classmethod
    def from_parts(cls, plain: Any, batch: Batch | None) -> CapturedUpdates:
        if not isinstance(batch, Updates):
            raise ValueError("changes without updates")
        return cls(batch)


@register
class Statement:
    """The number of updates at each time in advance of `lower` and not of `upper`; 0 for times that `counts` omits.

    >>> Statement(Antichain([(0,)]), Antichain([(4,)]), (((3,), 2),))  # two at 3, none at 0, 1 and 2
    Statement(Antichain([(0,)]), Antichain([(4,)]), (((3,), 2),))
    """

    kind: ClassVar[str] = "statement"
    __slots__ = ("counts", "lower", "upper")

    def __init__(self, lower: Antichain, upper: Antichain, counts: Counts) -> None:
        self.lower = lower
        self.upper = upper
        self.counts = counts

    def __repr__(self) -> str:
        return f"Statement({self.lower}, {self.upper}, {self.counts})"

    def parts(self) -> tuple[Any, None]:
        return (self.lower.elements, self.upper.elements, self.counts), None

    @classmethod
    def from_parts(cls, plain: Any, batch: Batch | None) -> Statement:
        lower, upper, counts = plain
        return cls(
            Antichain(map(checked_time, lower)),
            Antichain(map(checked_time, upper)),
            tuple((checked_time(time), as_integer(count)) for time, count in counts),
        )


def stated(sources: Iterable[EventSource], width: int = 1) -> Antichain:
    """Read all messages of `sources`, and return the frontier that their statements reach.

    `width` is the number of coordinates of the collection's times.

    Raises CaptureError where a message is none of a captured collection.

    >>> from timely.capture import EventQueue
    >>> first, end = Antichain([(0,)]), Antichain([(7,)])
    >>> stated([EventQueue([Statement(first, end, ())])])
    Antichain([(7,)])
    """
    chain: dict[Antichain, Antichain] = {}
    for source in sources:
        while (event := source.next_nowait()) is not None:
            if isinstance(event, Statement):
                chain[event.lower] = event.upper
            elif not isinstance(event, CapturedUpdates):
                raise CaptureError(f"{source} holds {event.kind!r}, not a message of a captured collection")
        source.close()
    reached = Antichain([(0,) * width])
    # Each statement is taken once, so that this ends even if some of them form a circle.
    while reached in chain:
        reached = chain.pop(reached)
    return reached


def counts_of(updates: Updates) -> list[tuple[Time, int]]:
    """Return how many updates there are at each time."""
    if not len(updates.time_index):
        return [(tuple(updates.times[0].tolist()), len(updates))]
    numbers = np.bincount(updates.time_index, minlength=len(updates.times)).tolist()
    counts: dict[Time, int] = {}
    for time, number in zip(map(tuple, updates.times.tolist()), numbers):
        if number:
            counts[time] = counts.get(time, 0) + number
    return list(counts.items())
