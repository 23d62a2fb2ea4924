"""Let equal updates cancel."""

from __future__ import annotations

from differential.arrangement.core import C


def consolidate(collection: C) -> C:
    """Return the same collection, with at most one update for each record and time, sent once the time is complete.

    >>> def nothing(scope):
    ...     some = Collection.of(scope, np.arange(3))
    ...     return some.concat(some.negate()).consolidate()
    >>> example(nothing)
    []
    """
    return collection.arrange_by_key().as_collection()
