"""Copy records to all workers."""

from __future__ import annotations

from timely.dataflow.operators.exchange import move
from timely.dataflow.pact import Broadcast
from timely.dataflow.streams import S


def broadcast(stream: S, *, name: str = "broadcast") -> S:
    """Return the stream on which every worker has every record.

    >>> example(lambda scope: scope.to_stream(range(3)).broadcast())
    [0, 1, 2]
    """
    return move(stream, Broadcast(), name)
