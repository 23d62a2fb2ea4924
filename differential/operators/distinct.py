"""Apply a function to how often each record occurs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from differential.arrangement.core import ArrangementCore, C, Keyed, records_of
from differential.data.codes import Codes
from differential.data.negative import negative_count
from differential.data.overflow import multiplied, too_often
from differential.data.updates import Updates
from differential.kernels.compile import NOTHING
from differential.kernels.consolidate import consolidate
from differential.kernels.reduce_fold import DISTINCT
from differential.kernels.wide import Overflow
from differential.keys import EVERY
from differential.operators.count import count
from differential.operators.reduction import BuiltIn, reduce_arrangement
from differential.operators.selected import SameValues
from differential.operators.threshold_in_order import threshold_in_order
from timely.errors import DataError
from timely.lowlevel import check_functions, consult, inline


def distinct(collection: Keyed[C], *, name: str = "distinct") -> C:
    """Return the collection in which every record that occurs at all occurs once.

    A record that occurs a negative number of times is an error, which names the record.

    >>> example(lambda scope: Collection.of(scope, np.array([1, 2, 1])).distinct())
    [((1,), 1), ((2,), 1)]
    """
    source = collection.arrange_by_key()
    if source.is_in_order:
        return threshold_in_order(source, None, name).as_collection()
    return reduce_arrangement(
        source, lambda key, value, result: SameValues(BuiltIn(DISTINCT, 0), value, result), name=name
    ).as_collection()


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
        # A count of 0 is that of a record which is absent before or after its change: it has no function value.
        result = np.zeros(len(counts), np.int64)
        occurs = counts != 0
        if occurs.any():
            result[occurs] = checked(counts[occurs])
        return result

    # Only there an index by key is of use: elsewhere records are counted, and all of their columns are the key.
    if collection.scope.width == 1:
        source = collection.arrange_by_key()
        if source.is_in_order:
            return threshold_in_order(source, in_order, name).as_collection()
    counted = count(records_of(collection).arrange_by(EVERY, name=name), signed=True, name=name)
    return _exploded(counted.arrange_by_key(), checked, collection.keys, name)


def _exploded(counted: ArrangementCore[C], function: Callable[[Codes], Codes], keys: int, name: str) -> C:
    """Return the collection in which each record of (record, n) occurs `function(n)` times; n may not be negative."""

    def transform(batch: Any) -> Updates:
        updates, counts = counted.updates_of(batch), batch.vals
        row = int(counts.argmin())
        if counts[row] < 0:
            fault = updates.take(np.array([row]))
            raise negative_count(fault.columns[:-1], int(counts[row]), fault.each_time()[0])
        records = updates.with_columns(updates.columns[:-1])
        diffs = multiplied(records, function(counts))
        # At the time at which a number changes, the function of the one before is subtracted from that of the new one.
        try:
            codes, _, time_index, diffs, times = consolidate(batch.keys, NOTHING, batch.time_index, diffs, batch.times)
        except Overflow as overflow:
            raise too_often(counted.key.decode(np.array(overflow.args[:1], np.int64), 1)) from None
        return Updates(counted.key.decode(codes, len(codes)), times, time_index, diffs)

    return counted.with_updates(inline(counted.stream, transform, name=name), keys)
