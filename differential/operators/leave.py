"""Bring a collection out of a loop."""

from __future__ import annotations

from differential.arrangement.core import C
from differential.operators.passages import leaving
from timely import Scope
from timely.lowlevel import inline_timed, refusal


def leave(collection: C, scope: Scope | None = None, *, name: str = "leave") -> C:
    """Return the collection as it is once its loop has settled, in `scope` (by default the next one out).

    The changes of all rounds are at one time outside; changes that later rounds retracted cancel when the result is
    consolidated.

    Raises BuildError unless `scope` lies around the collection's.

    >>> def program(scope):
    ...     with scope.iterative() as inner:
    ...         later = Collection.of(scope, np.array([1, 2])).enter_at(inner, lambda x: 10 * x)
    ...         return later.leave().inspect(print)
    >>> _ = example(program)
    (1,) (0,) 1
    (2,) (0,) 1
    """
    target = collection.scope.parent if scope is None else scope
    if target is None or not collection.scope.is_within(target):
        where = "it is the outermost scope" if target is None else f"{target} does not lie around it"
        raise refusal(name, f"cannot leave {collection.scope}: {where}")
    if target is collection.scope:
        return collection
    summary = collection.scope.summary_to(target)
    transform = leaving(summary.keep)
    stream = inline_timed(collection.stream, transform, name=name, scope=target, summary=summary)
    return collection.with_stream(stream)
