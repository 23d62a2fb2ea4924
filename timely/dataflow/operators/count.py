"""Count the records of each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timely.dataflow.operators.accumulate import fold_batches

if TYPE_CHECKING:
    from timely.dataflow.stream import Stream


def count(stream: Stream, *, name: str = "count") -> Stream:
    """Return, for each time and worker that has records, how many, when the time is complete.

    >>> example(lambda scope: scope.to_stream(range(5)).count())
    [5]
    """
    return fold_batches(stream, 0, lambda number, batch: number + len(batch), name)
