"""Bring a stream out to an outer scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timely.dataflow.inline import inline_timed
from timely.errors import BuildError

if TYPE_CHECKING:
    from timely.dataflow.scope import Scope
    from timely.dataflow.stream import Stream


def leave(stream: Stream, scope: Scope | None = None, *, name: str = "leave") -> Stream:
    """Return the stream in `scope`, which lies around the stream's (the next one when not given): times lose the
    counters of the loops left. The example is that of `enter`.
    """
    target = stream.scope.parent if scope is None else scope
    if target is None or not stream.scope.is_within(target):
        raise BuildError(f"cannot leave {stream.scope} to {target}: it does not lie around it")
    summary = stream.scope.summary_to(target)
    keep = summary.keep
    return inline_timed(stream, lambda time, batch: (time[:keep], batch), name=name, scope=target, summary=summary)
