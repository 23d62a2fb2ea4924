"""Reductions of each key's values that run in kernels."""

from __future__ import annotations

from functools import partial
from numbers import Integral

from differential.arrangement.core import ArrangementCore, C, Keyed
from differential.data.codes import FLOAT_TYPES, ColumnKind, Encoder
from differential.kernels.compile import Batches, Times
from differential.kernels.reduce_fold import LARGEST, LINEAR, MAX, MIN, SMALLEST, SUM, SUM_FLOAT
from differential.operators.exact_sums import is_summable, sums_of
from differential.operators.groups import InPython
from differential.operators.reduction import BuiltIn, Pending, reduce_arrangement
from differential.operators.selected import Ordered, SameValues
from differential.trace.columns import UpdateColumns
from timely.errors import DataError
from timely.lowlevel import LogicalType, user_origin


def sum(collection: Keyed[C], *, name: str = "sum") -> C:
    """Return (key, sum of its values); the value must be one column of numbers or durations.

    A sum of integers, decimals or durations is exact. A sum of floats is rounded once, to 64 bits, whatever the width
    of the values, so it does not depend on the order of changes; it is infinite beyond the largest float, and NaN where
    a value is NaN, or where there are infinities of both signs.

    A DataError ends the run where the value is no such column, a decimal or a duration is null, or a sum does not fit
    into 64 bits (38 digits, for decimals).

    >>> example(lambda scope: Collection.of(scope, np.array([1, 1]), np.array([10, 20])).sum())
    [((1, 30), 1)]
    """
    source = collection.arrange_by_key()
    return reduce_arrangement(source, partial(Sum, source), name=name).as_collection()


def min(collection: Keyed[C], *, name: str = "min") -> C:
    """Return (key, smallest of its values); values of several columns are compared column by column.

    >>> example(lambda scope: Collection.of(scope, np.array([1, 1, 2]), np.array([10, 20, 5])).min())
    [((1, 10), 1), ((2, 5), 1)]
    """
    return _by_order(collection, MIN, 1, name)


def max(collection: Keyed[C], *, name: str = "max") -> C:
    """Return (key, largest of its values); values of several columns are compared column by column.

    >>> example(lambda scope: Collection.of(scope, np.array([1, 1, 2]), np.array([10, 20, 5])).max())
    [((1, 20), 1), ((2, 5), 1)]
    """
    return _by_order(collection, MAX, 1, name)


def top_k(collection: Keyed[C], k: int, *, smallest: bool = False, name: str = "top_k") -> C:
    """Return (key, value) for the `k` largest (or smallest) values of each key. A value that occurs twice counts twice.

    Raises DataError where `k` is not a whole number of at least 1.

    >>> example(lambda scope: Collection.of(scope, np.array([1, 1, 1]), np.array([10, 30, 20])).top_k(2))
    [((1, 20), 1), ((1, 30), 1)]
    """
    if not isinstance(k, Integral) or isinstance(k, bool) or not 1 <= k <= _MOST:
        raise DataError(
            f"top_k (at {user_origin()}) needs a whole number, at most {_MOST} and at least 1, not {k!r:.80}"
        )
    kind = SMALLEST if smallest else LARGEST
    return _by_order(collection, kind, int(k), name)


_MOST = 1 << 62


class Sum:
    """The sum of one column of numbers or durations: in a kernel for integers and floats, else in Python."""

    by_value = False

    def __init__(self, source: ArrangementCore[C], key: Encoder, value: Encoder, result: Encoder) -> None:
        self._value = value
        self._result = result
        # `LINEAR` requires that all new rows are due, and an imported trace may have some at later times.
        self._integers = BuiltIn(SUM, 0 if source.is_advanced else LINEAR)
        self._floats = BuiltIn(SUM_FLOAT, 0)
        self._exact = InPython(lambda groups: sums_of(groups, key, value, result))

    def __call__(
        self, new: Batches, pending: Pending, input: Batches, output: Batches, upper: Times
    ) -> tuple[list[UpdateColumns], Pending]:
        kinds = self._value.kinds
        if kinds is None or kinds in ((ColumnKind.INT,), (ColumnKind.BOOL,)):
            self._result.kinds = (ColumnKind.INT,)
            return self._integers(new, pending, input, output, upper)
        if len(kinds) == 1 and isinstance(kinds[0], LogicalType) and is_summable(kinds[0]):
            return self._exact(new, pending, input, output, upper)
        if len(kinds) != 1 or kinds[0] not in FLOAT_TYPES:
            raise self._refused()
        self._result.kinds = (ColumnKind.FLOAT,)
        return self._floats(new, pending, input, output, upper)

    def _refused(self) -> DataError:
        """Return the error for values that have no sum."""
        holds, names = self._value.describe(), self._value.names
        has_nulls = holds.endswith("?") and holds not in ("text?", "bytes?")
        nulls = ", without nulls: fill_null(column, 0) of differential.frames" if has_nulls else ""
        but = f"; column {names[0]!r} holds {holds}" if len(names) == 1 else f", not {holds}"
        return DataError(f"sum needs one column of numbers as the value{nulls}{but}")


def _by_order(collection: Keyed[C], kind: int, k: int, name: str) -> C:
    source = collection.arrange_by_key()
    return reduce_arrangement(
        source, lambda key, value, result: SameValues(Ordered(kind, k, value), value, result), name=name
    ).as_collection()
