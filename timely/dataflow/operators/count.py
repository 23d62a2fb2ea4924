"""Count the records of each time."""

from __future__ import annotations

from timely.dataflow.operators.each_time import fold_each_time
from timely.dataflow.pact import Pipeline
from timely.dataflow.streams import S


def count(stream: S, *, name: str = "count") -> S:
    """Return, for each time and worker that has records, how many, when the time is complete.

    >>> example(lambda scope: scope.to_stream(range(5)).count())
    [5]
    """
    return fold_each_time(
        stream, Pipeline(), int, lambda number, batch: number + len(batch), lambda number: [number], name=name
    )
