"""Combine two collections record by record: how often each occurs is a function of how often it does in either.

One arrangement holds both collections' records, by all of their columns, so a change looks at one record. A record that
occurs a negative number of times in either collection is an error.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from differential.arguments import check_rows
from differential.arrangement.core import C
from differential.data.updates import Ints
from differential.keys import ALL_BUT_LAST
from differential.operators.concat import concat
from differential.operators.vectors import as_part, reduce_parts


def union(left: C, right: C, *, name: str = "union") -> C:
    """Return the collection in which each record occurs as often as in the one that has more of it.

    >>> def program(scope):
    ...     return Collection.of(scope, np.array([1, 1, 2])).union(Collection.of(scope, np.array([1, 3])))
    >>> example(program)
    [((1,), 2), ((2,), 1), ((3,), 1)]
    """
    return _by_both(left, right, np.maximum, name)


def intersect(left: C, right: C, *, name: str = "intersect") -> C:
    """Return the collection in which each record occurs as often as in the one that has less of it.

    >>> def program(scope):
    ...     return Collection.of(scope, np.array([1, 1, 2])).intersect(Collection.of(scope, np.array([1, 3])))
    >>> example(program)
    [((1,), 1)]
    """
    return _by_both(left, right, np.minimum, name)


def except_(left: C, right: C, *, name: str = "except") -> C:
    """Return the collection in which each record occurs as often as on the left minus the right, at least 0 times.

    >>> def program(scope):
    ...     return Collection.of(scope, np.array([1, 1, 2])).except_(Collection.of(scope, np.array([1, 3])))
    >>> example(program)
    [((1,), 1), ((2,), 1)]
    """
    return _by_both(left, right, lambda ours, theirs: np.maximum(ours - theirs, 0), name)


def symmetric_difference(left: C, right: C, *, name: str = "symmetric_difference") -> C:
    """Return the collection in which each record occurs as often as its two counts differ.

    >>> def program(scope):
    ...     left, right = Collection.of(scope, np.array([1, 1, 2])), Collection.of(scope, np.array([1, 3]))
    ...     return left.symmetric_difference(right)
    >>> example(program)
    [((1,), 1), ((2,), 1), ((3,), 1)]
    """
    return _by_both(left, right, lambda ours, theirs: np.abs(ours - theirs), name)


def _by_both(left: C, right: C, function: Callable[[Ints, Ints], Ints], name: str) -> C:
    check_rows(name, right=right)
    both = concat(as_part(left, 0, name=name), as_part(right, 1, name=name), name=name)
    source = both.arrange_by(ALL_BUT_LAST, name=name)
    result = reduce_parts(source, 2, lambda table: ((), function(table[:, 0], table[:, 1])), signed=False, name=name)
    return left.with_stream(result.as_updates())
