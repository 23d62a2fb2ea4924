"""Several sums over the records of each key, in one pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from differential.arrangement.core import C, Keyed, records_of
from differential.data.overflow import multiplied
from differential.data.updates import Ints, Updates
from differential.keys import columns_of
from differential.operators.explode import occurrences
from differential.operators.linear import linear
from differential.operators.vectors import reduce_parts
from timely.lowlevel import check_functions, consult, refusal


def totals(collection: Keyed[C], *functions: Callable[..., Any], name: str = "totals") -> C:
    """Return (key, total, ...) with the sum of each function over the key's records, while any of them is not 0.

    A function receives whole columns and returns a column of integers, or one integer for all records. One row is kept
    for each key and function, and none for values, so a change costs the same however many records a key has.

    Raises BuildError where no function is given, and where all columns are the key. A DataError ends the run where one
    returns something else than integers.

    >>> def moments(scope):
    ...     numbers = Collection.of(scope, np.array([1, 1, 2]), np.array([10, 20, 5]))
    ...     return numbers.totals(lambda key, x: 1, lambda key, x: x, lambda key, x: x * x)
    >>> example(moments)
    [((1, 2, 30, 500), 1), ((2, 1, 5, 25), 1)]
    """
    if not functions:
        raise refusal(name, "there is nothing to add up: pass one function, or several")
    for function in functions:
        check_functions(name, function=function)
    keys, parts = columns_of(collection.keys, name), len(functions)

    def transform(updates: Updates) -> Updates:
        length = len(updates)
        given = [occurrences(consult(each, updates.columns), length, "what is added up") for each in functions]
        rows = np.tile(np.arange(length), parts)
        diffs = multiplied(updates, np.concatenate(given), keys=keys)
        number = np.repeat(np.arange(parts), length)
        kept = diffs != 0
        chosen = updates.take(rows[kept])
        columns = (*chosen.columns[:keys], number[kept])
        return Updates(columns, chosen.times, chosen.time_index, diffs[kept])

    return summed(linear(records_of(collection), transform, name=name), parts, name=name)


def summed(collection: C, parts: int, *, name: str) -> C:
    """Return (key, total of each part) for records of a key and the number of a part."""

    def columns(table: Ints) -> tuple[tuple[Ints, ...], Ints]:
        return tuple(np.ascontiguousarray(column) for column in table.T), np.ones(len(table), np.int64)

    return reduce_parts(collection.arrange_by_key(), parts, columns, signed=True, name=name).as_collection()
