"""Bring a stream out to an outer scope."""

from __future__ import annotations

from timely.arguments import refusal
from timely.dataflow.inline import inline_timed
from timely.dataflow.streams import S, ScopeCore


def leave(stream: S, scope: ScopeCore[S] | None = None, *, name: str = "leave") -> S:
    """Return the stream in `scope`, by default the next one around its own: times lose the counters of the loops left.

    Raises BuildError unless `scope` lies around the stream's.

    >>> def program(scope):
    ...     with scope.iterative() as outer, outer.iterative() as inner:
    ...         inside = scope.to_stream([7]).enter(inner).inspect_time(print)
    ...         return inside.leave(outer).inspect_time(print).leave()
    >>> example(program)
    (0, 0, 0) 7
    (0, 0) 7
    [7]
    """
    target = stream.scope.parent if scope is None else scope
    if target is None or not stream.scope.is_within(target):
        problem = "it is the outermost scope of its dataflow" if target is None else f"{target} does not lie around it"
        raise refusal(name, f"cannot leave {stream.scope}: {problem}")
    summary = stream.scope.summary_to(target)
    keep = summary.keep
    return inline_timed(stream, lambda time, batch: (time[:keep], batch), name=name, scope=target, summary=summary)
