"""Match the records of two collections that have equal keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from differential.operators.join_arrangements import join_arrangements
from timely.errors import DataError

if TYPE_CHECKING:
    from differential.arrangement import Arrangement
    from differential.collection import Collection


def join_map(
    left: Collection,
    right: Collection | Arrangement,
    function: Callable[..., Any],
    *,
    keys: int = 1,
    name: str = "join_map",
) -> Collection:
    """Return `function(*key, *left value, *right value)` for all pairs of records with equal keys.

    `function` receives whole columns, and the first `keys` columns it returns are the key of the result.

    >>> def grandchildren(scope):
    ...     parents = Collection.of(scope, np.array([1, 2, 2]), np.array([2, 3, 4]))
    ...     children = parents.map(lambda parent, child: (child, parent))
    ...     return children.join_map(parents, lambda middle, parent, child: (parent, child))
    >>> example(grandchildren)
    [((1, 3), 1), ((1, 4), 1)]
    """
    from differential.collection import Collection, arrangements

    first, second = arrangements(left, right)
    return Collection(join_arrangements(first, second, function, name=name), keys)


def join(left: Collection, right: Collection | Arrangement, *, name: str = "join") -> Collection:
    """Return the records (key, left value, right value) for all pairs of records with equal keys.

    >>> def program(scope):
    ...     ages = Collection.of(scope, np.array(["ann", "bob"]), np.array([30, 40]))
    ...     towns = Collection.of(scope, np.array(["ann"]), np.array(["Rome"]))
    ...     return ages.join(towns)
    >>> example(program)
    [(('ann', 30, 'Rome'), 1)]
    """
    return join_map(left, right, lambda *columns: columns, keys=left.keys, name=name)


def semijoin(collection: Collection, keys: Collection, *, name: str = "semijoin") -> Collection:
    """Return the records whose key is in `keys`, a collection of keys without values: as often as the key occurs there.

    >>> def program(scope):
    ...     edges = Collection.of(scope, np.array([1, 1, 2]), np.array([2, 3, 3]))
    ...     return edges.semijoin(Collection.of(scope, np.array([1])))
    >>> example(program)
    [((1, 2), 1), ((1, 3), 1)]
    """
    from differential.collection import Collection, arrangements

    first, second = arrangements(collection, keys)

    def without_values(*columns: Any) -> Any:
        if second.value.kinds:
            raise DataError(
                f"the collection of keys has values, too ({second.value.describe()}): `map` it to its key columns"
            )
        return columns

    return Collection(join_arrangements(first, second, without_values, name=name), collection.keys)


def antijoin(collection: Collection, keys: Collection, *, name: str = "antijoin") -> Collection:
    """Return the records whose key is not in `keys`, a collection of distinct keys without values.

    >>> def program(scope):
    ...     edges = Collection.of(scope, np.array([1, 1, 2]), np.array([2, 3, 3]))
    ...     return edges.antijoin(Collection.of(scope, np.array([1])))
    >>> example(program)
    [((2, 3), 1)]
    """
    return collection.concat(semijoin(collection, keys, name=name).negate())
