"""The record of each key for which a function is least or greatest."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from differential.keys import columns_of

if TYPE_CHECKING:
    from differential.collection import Collection


def argmin(collection: Collection, function: Callable[..., Any], *, name: str = "argmin") -> Collection:
    """Return, of each key, the record for which `function`, of whole columns, is least.

    Of several such records it is the one whose value is least, column by column.

    Raises BuildError where all columns are the key.

    >>> def nearest(scope):
    ...     roads = Collection.of(scope, np.array([1, 1, 2]), np.array([5, 6, 7]), np.array([9, 3, 4]))
    ...     return roads.argmin(lambda town, other, miles: miles)
    >>> example(nearest)
    [((1, 6, 3), 1), ((2, 7, 4), 1)]
    """
    return _without_rank(_with_rank(collection, function, name).min(name=name), name)


def argmax(collection: Collection, function: Callable[..., Any], *, name: str = "argmax") -> Collection:
    """Return, of each key, the record for which `function`, of whole columns, is greatest.

    Of several such records it is the one whose value is greatest, column by column.

    Raises BuildError where all columns are the key.

    >>> def longest(scope):
    ...     roads = Collection.of(scope, np.array([1, 1, 2]), np.array([5, 6, 7]), np.array([9, 3, 4]))
    ...     return roads.argmax(lambda town, other, miles: miles)
    >>> example(longest)
    [((1, 5, 9), 1), ((2, 7, 4), 1)]
    """
    return _without_rank(_with_rank(collection, function, name).max(name=name), name)


def _with_rank(collection: Collection, function: Callable[..., Any], name: str) -> Collection:
    keys = columns_of(collection.keys, name)
    return collection.map(lambda *columns: (*columns[:keys], function(*columns), *columns[keys:]), keys=keys, name=name)


def _without_rank(collection: Collection, name: str) -> Collection:
    keys = columns_of(collection.keys, name)
    return collection.map(lambda *columns: (*columns[:keys], *columns[keys + 1 :]), keys=keys, name=name)
