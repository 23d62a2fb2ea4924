"""Turn occurrences into their opposite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from differential.operators.linear import linear
from differential.updates import Updates

if TYPE_CHECKING:
    from differential.collection import Collection


def negate(collection: Collection, *, name: str = "negate") -> Collection:
    """Return the collection in which every record occurs minus as often; `a.concat(b.negate())` is their difference.

    >>> example(lambda scope: Collection.of(scope, np.arange(2)).negate())
    [((0,), -1), ((1,), -1)]
    """
    return linear(collection, Updates.negated, name=name)
