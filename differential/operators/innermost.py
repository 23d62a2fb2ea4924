"""Bring collections from outside of a loop into it."""

from __future__ import annotations

from differential.arguments import check_collections
from differential.arrangement.core import C
from differential.operators.enter import enter
from timely import Scope
from timely.errors import BuildError
from timely.lowlevel import user_origin


def apart(one: Scope, other: Scope) -> str:
    """Return, for people, that two scopes of a dataflow do not lie in each other, and what to do."""
    return (
        f"neither {one}, opened at {one.origin}, nor {other}, opened at {other.origin}, lies in the other: "
        "leave() one of them, or start an inner loop from a collection of the loop around it, as innermost() returns it"
    )


def innermost(*collections: C) -> tuple[C, ...]:
    """Return the collections in the innermost of their scopes, which must lie in each other; raise BuildError if not.

    For operators that a program defines, whose arguments may be collections from outside of the loop:

    >>> def program(scope):
    ...     with scope.iterative() as loop:
    ...         outside = Collection.of(scope, 1)
    ...         first, second = innermost(outside, Collection.of(scope, 2).enter(loop))
    ...         print(outside.scope is loop, first.scope is loop, second.scope is loop)
    ...         return first.concat(second).leave()
    >>> example(program)
    False True True
    [((1,), 1), ((2,), 1)]
    """
    for position, collection in enumerate(collections):
        check_collections("innermost", **{f"argument {position}": collection})
    target = max((collection.scope for collection in collections), key=lambda scope: scope.path.count("/"))
    for collection in collections:
        if not target.is_within(collection.scope):
            one, other = collection.scope, target
            if one.dataflow is not other.dataflow:
                raise BuildError(
                    f"at {user_origin()}: a collection of {one.dataflow} cannot be used with one of {other.dataflow}: "
                    "import its trace there (Trace.import_into)"
                )
            raise BuildError(f"at {user_origin()}: {apart(one, other)}")
    return tuple(enter(collection, target) for collection in collections)
