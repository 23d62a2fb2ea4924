"""Add collections up."""

from __future__ import annotations

from differential.arguments import check_rows
from differential.arrangement.core import C
from differential.keys import described
from differential.operators.innermost import innermost
from timely.lowlevel import merged, refusal


def concat(collection: C, *others: C, name: str = "concat") -> C:
    """Return the collection in which each record occurs as often as in all given collections together.

    Raises BuildError where the keys are not of the same number of columns.

    >>> example(lambda scope: Collection.of(scope, np.arange(2)).concat(Collection.of(scope, np.arange(1, 3))))
    [((0,), 1), ((1,), 2), ((2,), 1)]
    """
    for position, other in enumerate(others):
        check_rows(name, **{f"argument {position}": other})
    collections = innermost(collection, *others)
    for other in collections[1:]:
        if other.keys != collection.keys:
            raise refusal(
                name,
                f"the key of one collection is {described(collection.keys)}, "
                f"that of another {described(other.keys)}; give map() the right `keys`",
            )
    return collection.with_stream(merged([each.stream for each in collections], name=name))
