"""Count the records of each key: in the order of times, or, in loops and where the outermost times have several
coordinates, as a reduction like others."""

from __future__ import annotations

from differential.arrangement.core import C, Keyed
from differential.data.codes import ColumnKind
from differential.kernels.reduce_fold import COUNT, LINEAR, SIGNED
from differential.operators.count_in_order import count_in_order
from differential.operators.reduction import BuiltIn, reduce_arrangement


def count(collection: Keyed[C], *, signed: bool = False, name: str = "count") -> C:
    """Return (key, number of records with that key), for every key that has records.

    A key that has a negative number of records ends the run with a DataError that names it, unless the collection is a
    difference, as `signed` states.

    >>> example(lambda scope: Collection.of(scope, np.array([1, 1, 2])).count())
    [((1, 2), 1), ((2, 1), 1)]
    """
    source = collection.arrange_by_key()
    if source.is_in_order:
        return count_in_order(source, name, signed=signed).as_collection()
    # `LINEAR` requires that all new rows are due, and an imported trace may have some at later times.
    linear = 0 if source.is_advanced else LINEAR
    reduction = BuiltIn(COUNT, (SIGNED if signed else 0) | linear)
    return reduce_arrangement(
        source, lambda key, value, result: reduction, (ColumnKind.INT,), name=name
    ).as_collection()
