"""Replace every record by any number of records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from differential.arrangement.core import C
from differential.data.updates import Updates
from differential.operators.linear import linear
from timely.lowlevel import call, check_functions, rows_and_columns


def flat_map(collection: C, function: Callable[..., Any], *, keys: int = 1, name: str = "flat_map") -> C:
    """Return the collection of all the records that `function` makes of each.

    `function` receives whole columns and returns `(rows, *columns)`: for each new record, the position of the row that
    it is made from, and its fields. It occurs when, and as often as, the record that it is made from.

    A DataError ends the run where `function` returns something else, or positions that do not exist.

    >>> def both_ends(source, target):
    ...     rows = np.arange(len(source))
    ...     return np.concatenate([rows, rows]), np.concatenate([source, target])
    >>> example(lambda scope: Collection.of(scope, np.array([1, 2]), np.array([2, 3])).flat_map(both_ends))
    [((1,), 1), ((2,), 2), ((3,), 1)]
    """
    check_functions(name, function=function)

    def transform(updates: Updates) -> Updates:
        rows, columns = rows_and_columns(call(function, updates.columns), len(updates))
        return updates.take(rows).with_columns(columns)

    return linear(collection, transform, keys=keys, name=name)
