"""Bring a stream into an inner scope."""

from __future__ import annotations

from timely.dataflow.inline import inline_timed
from timely.dataflow.streams import S, ScopeCore
from timely.errors import BuildError


def enter(stream: S, scope: ScopeCore[S], *, name: str = "enter") -> S:
    """Return the stream in `scope`, which lies inside the stream's: a time gets counters of 0 for the loops entered.

    Raises BuildError unless `scope` lies inside the stream's.

    >>> def program(scope):
    ...     with scope.iterative() as inner:
    ...         return scope.to_stream(range(3)).enter(inner).map(lambda x: x + 1).leave(scope)
    >>> example(program)
    [1, 2, 3]
    """
    if not scope.is_within(stream.scope):
        where = f"cannot enter {scope} from {stream.scope}"
        if scope.dataflow is not stream.scope.dataflow:
            raise BuildError(f"{where}, of another dataflow: what flows there can be captured, and replayed here")
        raise BuildError(f"{where}: it does not lie inside it")
    summary = stream.scope.summary_to(scope)
    suffix = summary.suffix
    return inline_timed(stream, lambda time, batch: (time + suffix, batch), name=name, scope=scope, summary=summary)
