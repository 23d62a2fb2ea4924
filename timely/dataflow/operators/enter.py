"""Bring a stream into an inner scope."""

from __future__ import annotations

from timely.dataflow.inline import inline_timed
from timely.dataflow.streams import S, ScopeCore, check_scope


def enter(stream: S, scope: ScopeCore[S], *, name: str = "enter") -> S:
    """Return the stream in `scope`, which lies inside the stream's: a time gets counters of 0 for the loops entered.

    Raises BuildError unless `scope` lies inside the stream's.

    >>> def program(scope):
    ...     with scope.iterative() as inner:
    ...         return scope.to_stream(range(3)).enter(inner).map(lambda x: x + 1).leave(scope)
    >>> example(program)
    [1, 2, 3]
    """
    check_scope(name, scope)
    summary = scope.summary_of_entering(stream.scope, "what flows there can be captured and replayed here")
    suffix = summary.suffix
    return inline_timed(stream, lambda time, batch: (time + suffix, batch), name=name, scope=scope, summary=summary)
