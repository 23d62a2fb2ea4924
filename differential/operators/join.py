"""Match the records of two collections that have equal keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from differential.arguments import check_collections
from differential.arrangement.core import ArrangementCore, C, Keyed, records_of
from differential.operators.concat import concat
from differential.operators.innermost import apart
from differential.operators.join_arrangements import join_arrangements
from differential.operators.negate import negate
from timely.errors import DataError
from timely.lowlevel import check_functions, refusal


def join_map(
    left: Keyed[C], right: Keyed[C], function: Callable[..., Any], *, keys: int = 1, name: str = "join_map"
) -> C:
    """Return `function(*key, *left value, *right value)` for all pairs of records with equal keys.

    `function` receives whole columns, and the first `keys` columns it returns are the key of the result.

    >>> def grandchildren(scope):
    ...     parents = Collection.of(scope, np.array([1, 2, 2]), np.array([2, 3, 4]))
    ...     children = parents.map(lambda parent, child: (child, parent))
    ...     return children.join_map(parents, lambda middle, parent, child: (parent, child))
    >>> example(grandchildren)
    [((1, 3), 1), ((1, 4), 1)]
    """
    check_functions(name, function=function)
    first, second = _together(left, right, name)
    return first.with_updates(join_arrangements(first, second, function, name=name), keys)


def join(left: Keyed[C], right: Keyed[C], *, name: str = "join") -> C:
    """Return the records (key, left value, right value) for all pairs of records with equal keys.

    >>> def program(scope):
    ...     ages = Collection.of(scope, np.array(["ann", "bob"]), np.array([30, 40]))
    ...     towns = Collection.of(scope, np.array(["ann"]), np.array(["Rome"]))
    ...     return ages.join(towns)
    >>> example(program)
    [(('ann', 30, 'Rome'), 1)]
    """
    return join_map(left, right, lambda *columns: columns, keys=left.keys, name=name)


def semijoin(collection: Keyed[C], keys: Keyed[C], *, name: str = "semijoin") -> C:
    """Return the records whose key is in `keys`, a collection of keys without values: as often as the key occurs there.

    >>> def program(scope):
    ...     edges = Collection.of(scope, np.array([1, 1, 2]), np.array([2, 3, 3]))
    ...     return edges.semijoin(Collection.of(scope, np.array([1])))
    >>> example(program)
    [((1, 2), 1), ((1, 3), 1)]
    """
    check_collections(name, left=collection, right=keys)
    first, second = _together(collection, keys, name)

    def without_values(*columns: Any) -> Any:
        if second.value.kinds:
            raise DataError(
                f"the collection of keys has values, too ({second.value.describe()}): `map` it to its key columns"
            )
        return columns

    return first.with_updates(join_arrangements(first, second, without_values, name=name), collection.keys)


def antijoin(collection: Keyed[C], keys: Keyed[C], *, name: str = "antijoin") -> C:
    """Return the records whose key is not in `keys`, a collection of distinct keys without values.

    >>> def program(scope):
    ...     edges = Collection.of(scope, np.array([1, 1, 2]), np.array([2, 3, 3]))
    ...     return edges.antijoin(Collection.of(scope, np.array([1])))
    >>> example(program)
    [((2, 3), 1)]
    """
    return concat(records_of(collection), negate(semijoin(collection, keys, name=name)))


def _together(left: Keyed[C], right: Keyed[C], name: str) -> tuple[ArrangementCore[C], ArrangementCore[C]]:
    """Return both indexed by key, in the innermost of their scopes."""
    check_collections(name, left=left, right=right)
    if left.scope.dataflow is not right.scope.dataflow:
        raise refusal(
            name,
            f"what is in {left.scope.dataflow} cannot be joined with what is in "
            f"{right.scope.dataflow}: import the trace of the other (Arrangement.trace, Trace.import_into)",
        )
    # Indexed where they are: an inner scope then shares the index outside.
    first, second = left.arrange_by_key(), right.arrange_by_key()
    if first.scope.is_within(second.scope):
        return first, second.enter(first.scope)
    if second.scope.is_within(first.scope):
        return first.enter(second.scope), second
    raise refusal(name, apart(first.scope, second.scope))
