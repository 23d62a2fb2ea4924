"""Keep the records that satisfy a predicate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from differential.arrangement.core import C
from differential.data.updates import Updates
from differential.operators.linear import linear
from timely.lowlevel import as_row_mask, check_functions, consult


def filter(collection: C, predicate: Callable[..., Any], *, name: str = "filter") -> C:
    """Return the records that satisfy `predicate`, which receives whole columns and returns a boolean column.

    >>> example(lambda scope: Collection.of(scope, np.arange(6)).filter(lambda x: x % 3 == 0))
    [((0,), 1), ((3,), 1)]
    """
    check_functions(name, predicate=predicate)

    def transform(updates: Updates) -> Updates:
        mask = as_row_mask(consult(predicate, updates.columns), len(updates))
        return updates if mask.all() else updates.take(mask)

    return linear(collection, transform, name=name)
