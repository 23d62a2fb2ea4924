"""Keep the records that satisfy a predicate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from differential.operators.linear import linear
from differential.updates import Updates
from timely.data.container import as_mask
from timely.data.user_functions import consult

if TYPE_CHECKING:
    from differential.collection import Collection


def filter(collection: Collection, predicate: Callable[..., Any], *, name: str = "filter") -> Collection:
    """Return the records that satisfy `predicate`, which receives whole columns and returns a boolean column.

    >>> example(lambda scope: Collection.of(scope, np.arange(6)).filter(lambda x: x % 3 == 0))
    [((0,), 1), ((3,), 1)]
    """

    def transform(updates: Updates) -> Updates:
        mask = as_mask(consult(predicate, updates.columns), len(updates))
        return updates if mask.all() else updates.take(mask)

    return linear(collection, transform, name=name)
