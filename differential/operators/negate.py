"""Turn occurrences into their opposite."""

from __future__ import annotations

from differential.arrangement.core import C
from differential.data.updates import Updates
from differential.operators.linear import linear


def negate(collection: C, *, name: str = "negate") -> C:
    """Return the collection in which every record occurs minus as often; `a.concat(b.negate())` is their difference.

    >>> example(lambda scope: Collection.of(scope, np.arange(2)).negate())
    [((0,), -1), ((1,), -1)]
    """
    return linear(collection, Updates.negated, name=name)
