"""The record of each key for which a function is least or greatest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from differential.arrangement.core import ArrangementCore, C, Keyed, records_of
from differential.keys import columns_of
from differential.operators.aggregates import max, min
from differential.operators.map import map
from timely.lowlevel import check_functions


def argmin(collection: Keyed[C], function: Callable[..., Any], *, name: str = "argmin") -> C:
    """Return, for each key, the record for which `function`, called with whole columns, is least.

    Of several such records it is the one whose value is least, column by column.

    Raises BuildError where all columns are the key.

    >>> def nearest(scope):
    ...     roads = Collection.of(scope, np.array([1, 1, 2]), np.array([5, 6, 7]), np.array([9, 3, 4]))
    ...     return roads.argmin(lambda town, other, miles: miles)
    >>> example(nearest)
    [((1, 6, 3), 1), ((2, 7, 4), 1)]
    """
    return _without_rank(min(_with_rank(collection, function, name), name=name), name)


def argmax(collection: Keyed[C], function: Callable[..., Any], *, name: str = "argmax") -> C:
    """Return, for each key, the record for which `function`, called with whole columns, is greatest.

    Of several such records it is the one whose value is greatest, column by column.

    Raises BuildError where all columns are the key.

    >>> def longest(scope):
    ...     roads = Collection.of(scope, np.array([1, 1, 2]), np.array([5, 6, 7]), np.array([9, 3, 4]))
    ...     return roads.argmax(lambda town, other, miles: miles)
    >>> example(longest)
    [((1, 5, 9), 1), ((2, 7, 4), 1)]
    """
    return _without_rank(max(_with_rank(collection, function, name), name=name), name)


def _with_rank(collection: Keyed[C], function: Callable[..., Any], name: str) -> ArrangementCore[C]:
    check_functions(name, function=function)
    keys = columns_of(collection.keys, name)

    def ranked(*columns: Any) -> Any:
        return (*columns[:keys], function(*columns), *columns[keys:])

    return map(records_of(collection), ranked, keys=keys, name=name).arrange_by_key()


def _without_rank(collection: C, name: str) -> C:
    keys = columns_of(collection.keys, name)
    return map(collection, lambda *columns: (*columns[:keys], *columns[keys + 1 :]), keys=keys, name=name)
