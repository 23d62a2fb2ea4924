"""A stream without records."""

from __future__ import annotations

from timely.dataflow.operators.to_stream import to_stream
from timely.dataflow.streams import S, ScopeCore


def empty(scope: ScopeCore[S], *, name: str = "empty") -> S:
    """Return a stream that never has a message.

    >>> example(lambda scope: scope.empty().concat(scope.to_stream([1])))
    [1]
    """
    return to_stream(scope, [], name=name)
