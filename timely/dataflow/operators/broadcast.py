"""Copy records to all workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timely.dataflow.operators.exchange import move
from timely.dataflow.pact import Broadcast

if TYPE_CHECKING:
    from timely.dataflow.stream import Stream


def broadcast(stream: Stream, *, name: str = "broadcast") -> Stream:
    """Return the stream on which every worker has every record.

    >>> example(lambda scope: scope.to_stream(range(3)).broadcast())
    [0, 1, 2]
    """
    return move(stream, Broadcast(), name)
