"""A stream without records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timely.dataflow.operators.to_stream import to_stream

if TYPE_CHECKING:
    from timely.dataflow.scope import Scope
    from timely.dataflow.stream import Stream


def empty(scope: Scope, *, name: str = "empty") -> Stream:
    """Return a stream on which nothing ever comes.

    >>> example(lambda scope: scope.empty().concat(scope.to_stream([1])))
    [1]
    """
    return to_stream(scope, [], name=name)
