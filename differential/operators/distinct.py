"""Apply a function to how often each record occurs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from differential.arrangement.core import ArrangementCore, C, Keyed
from differential.data.codes import Codes
from differential.kernels import reduce as kernels
from differential.operators.groups import CodeGroups, CodeRows, InPython
from differential.operators.reduction import BuiltIn, Reduction, reduce_arrangement
from differential.operators.selected import SameValues
from differential.operators.threshold_in_order import threshold_in_order
from timely.errors import DataError
from timely.lowlevel import check_functions, consult


def distinct(collection: Keyed[C], *, name: str = "distinct") -> C:
    """Return the collection in which every record that occurs at all occurs once.

    A record that occurs a negative number of times is an error, which names the record.

    >>> example(lambda scope: Collection.of(scope, np.array([1, 2, 1])).distinct())
    [((1,), 1), ((2,), 1)]
    """
    source = collection.arrange_by_key()
    if source.is_in_order:
        return threshold_in_order(source, None, name).as_collection()
    return _same_values(source, BuiltIn(kernels.DISTINCT, 0), name)


def threshold(collection: Keyed[C], function: Callable[[Codes], Codes], *, name: str = "threshold") -> C:
    """Return the collection in which a record that occurs n times occurs `function(n)` times.

    `function` receives a column of counts, none of them 0, and returns a column of counts.

    A DataError ends the run where `function` does not return an integer for each count.

    >>> example(lambda scope: Collection.of(scope, np.array([1, 2, 1])).threshold(lambda n: n // 2))
    [((1,), 1)]
    """
    check_functions(name, function=function)

    def checked(counts: Codes) -> Codes:
        result = np.asarray(consult(function, (counts,)))
        if result.shape != counts.shape or result.dtype.kind not in "iub":
            raise DataError("the function of threshold must return one integer for each count")
        if result.dtype.kind == "u" and result.size and int(result.max()) >= 1 << 63:
            raise DataError(f"records cannot occur {result.max()} times: that is too large for a 64-bit integer")
        return result.astype(np.int64)

    def in_order(counts: Codes) -> Codes:
        result = np.zeros(len(counts), np.int64)
        occurs = counts != 0
        if occurs.any():
            result[occurs] = checked(counts[occurs])
        return result

    def apply(groups: CodeGroups) -> CodeRows:
        return CodeRows(groups.offsets, groups.vals, checked(groups.counts))

    source = collection.arrange_by_key()
    if source.is_in_order:
        return threshold_in_order(source, in_order, name).as_collection()
    return _same_values(source, InPython(apply), name)


def _same_values(source: ArrangementCore[C], reduction: Reduction, name: str) -> C:
    return reduce_arrangement(
        source, lambda key, value, result: SameValues(reduction, value, result), None, name=name
    ).as_collection()
