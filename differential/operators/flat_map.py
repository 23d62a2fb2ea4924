"""Replace every record by any number of records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from differential.operators.linear import linear
from differential.updates import Updates
from timely.container import as_columns
from timely.errors import DataError
from timely.user_functions import call

if TYPE_CHECKING:
    from differential.collection import Collection


def flat_map(
    collection: Collection, function: Callable[..., Any], *, keys: int = 1, name: str = "flat_map"
) -> Collection:
    """Return the collection of all the records that `function` makes of each.

    `function` receives whole columns and returns `(rows, *columns)`: for each record it makes, the position of the
    row it comes from, and its fields. (A record occurs as often, and when, the one it comes from does.)

    A DataError ends the run where `function` returns something else, or positions that are none.

    >>> def both_ends(source, target):
    ...     rows = np.arange(len(source))
    ...     return np.concatenate([rows, rows]), np.concatenate([source, target])
    >>> example(lambda scope: Collection.of(scope, np.array([1, 2]), np.array([2, 3])).flat_map(both_ends))
    [((1,), 1), ((2,), 2), ((3,), 1)]
    """

    def transform(updates: Updates) -> Updates:
        result = call(function, updates.columns)
        if not isinstance(result, tuple) or len(result) < 2:
            raise DataError("the function of flat_map must return (rows, column, ...)")
        rows = np.asarray(result[0])
        if rows.ndim != 1 or (len(rows) and rows.dtype.kind not in "iu"):
            raise DataError(f"flat_map: rows must be a column of positions, integers, not {rows.dtype}{rows.shape}")
        if len(rows) and not (0 <= int(rows.min()) and int(rows.max()) < len(updates)):
            raise DataError(f"flat_map: a row position is outside of the {len(updates)} rows given")
        return updates.take(rows.astype(np.int64)).with_columns(as_columns(result[1:], len(rows)))

    return linear(collection, transform, keys=keys, name=name)
