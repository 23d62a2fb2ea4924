"""Bring a collection into an inner scope."""

from __future__ import annotations

from differential.arrangement.core import C
from differential.operators.passages import entering
from timely import Scope, Stream
from timely.lowlevel import check_scope, inline_timed


def enter(collection: C, scope: Scope, *, name: str = "enter") -> C:
    """Return the collection in `scope`, which lies inside its own. It is the same in every round of the loop.

    Operators enter collections from outside by themselves where they are used in a loop. If the collection is arranged,
    its arrangement outside serves inside as well.

    Raises BuildError unless `scope` lies inside the collection's.

    >>> def program(scope):
    ...     with scope.iterative() as inner:
    ...         return Collection.of(scope, 7).enter(inner).inspect(print).leave()
    >>> _ = example(program)
    (7,) (0, 0) 1
    """
    check_scope(name, scope)
    if scope is collection.scope:
        return collection
    summary = scope.summary_of_entering(collection.scope, "import its trace there (Trace.import_into)")
    transform = entering(summary.suffix)

    def stream() -> Stream:
        return inline_timed(collection.stream, transform, name=name, scope=scope, summary=summary)

    return collection.entered(collection, scope, stream)
