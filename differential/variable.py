"""Collections that are defined by recursion in a loop."""

from __future__ import annotations

from differential.collection import Collection
from differential.operators.iterate import VariableCore
from timely.dataflow.stream import Scope


class Variable(VariableCore[Collection]):
    """A collection defined by recursion in an iterative scope.

    With a `source` (a collection of that scope, or of one around it) it starts as that; without, empty. `set` says
    what it is in the next round; mutually recursive variables are made first and set later. A round adds `step` to the
    loop's counter. Where there is a `limit`, it is an error that the variable changes when the counter is beyond it.

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
