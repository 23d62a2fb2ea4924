"""Collections that are defined by recursion in a loop."""

from __future__ import annotations

from differential.collection import Collection
from differential.operators.iterate import VariableCore
from timely import Scope


class Variable(VariableCore[Collection]):
    """A collection defined by recursion in an iterative scope.

    It starts as its `source`, a collection of that scope or of one around it, or empty without one. `set` defines its
    value in the next round. Make mutually recursive variables first, and set them later. A round adds `step` to the
    loop's counter. With a `limit`, it is an error if the variable changes when the counter is beyond the limit.

    >>> def powers(scope):
    ...     ones = Collection.of(scope, 1)
    ...     with scope.iterative() as inner:
    ...         value = Variable(inner, ones)
    ...         result = value.collection.map(lambda x: 2 * x).filter(lambda x: x < 40).concat(ones).distinct()
    ...         value.set(result)
    ...         return result.leave()
    >>> example(powers)
    [((1,), 1), ((2,), 1), ((4,), 1), ((8,), 1), ((16,), 1), ((32,), 1)]
    """

    def __init__(
        self,
        scope: Scope,
        source: Collection | None = None,
        *,
        keys: int = 1,
        step: int = 1,
        limit: int | None = None,
        name: str = "variable",
    ) -> None:
        super().__init__(Collection, scope, source, keys=keys, step=step, limit=limit, name=name)
