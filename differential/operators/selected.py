"""Reductions whose results are among the values of their input, and have codes of the same meaning."""

from __future__ import annotations

import numpy as np

from differential.data.codes import AnyKind, Encoder
from differential.kernels.compile import Batches, Ints, Times
from differential.kernels.memory import DIFFS, TIME_INDEX, VALS
from differential.kernels.reduce_fold import FIRST, LARGEST, LAST, MAX, MIN, SMALLEST
from differential.kernels.value_order import in_value_order
from differential.operators.reduction import BuiltIn, Pending, Reduction
from differential.trace.columns import UpdateColumns
from differential.trace.table import owning

_WITHOUT_ORDER = {
    MIN: FIRST,
    SMALLEST: FIRST,
    MAX: LAST,
    LARGEST: LAST,
}
"""The kinds that do the same where codes do not order as values do."""


class Ordered:
    """The least or greatest values. A change reads few of them, whether codes order as the values do or not."""

    by_value = False

    def __init__(self, kind: int, k: int, value: Encoder) -> None:
        self._value = value
        self._in_order = BuiltIn(kind, k)
        self._kind = _WITHOUT_ORDER[kind]
        self._k = k
        self._kinds: tuple[AnyKind, ...] | None = None
        self._order = np.empty(0, np.int64)
        self._address = 0
        self._by_order = self._in_order
        self._sorted = Sorted()

    def __call__(
        self, new: Batches, pending: Pending, input: Batches, output: Batches, upper: Times
    ) -> tuple[list[UpdateColumns], Pending]:
        if self._value.ordered:
            return self._in_order(new, pending, input, output, upper)
        if self._value.kinds is not self._kinds:
            self._kinds = self._value.kinds
            # Kernels read this by its address, so the attribute keeps the memory. The tables in it do not move, either.
            self._order = np.array([self._k, *self._value.order()])
            self._address = self._order.ctypes.data
            self._by_order = BuiltIn(self._kind, self._address)
        # The order of values begins after `k`, which is the first item.
        return self._by_order(new, pending, self._sorted.heads(input, self._address + 8), output, upper)


class Sorted:
    """Batches whose rows are, within each key, in an order of values. Each batch is sorted when it is new."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Ints, Ints]] = {}

    def heads(self, input: Batches, order: int) -> Batches:
        """Return the heads of batches in place of those given, which are kept until the next call."""
        known = self._known  # a pair keeps the head given, so that no other object has its id
        pairs = [known.get(id(head)) or (head, _sorted(head, order)) for head in input]
        self._known = {id(pair[0]): pair for pair in pairs}
        return tuple([pair[1] for pair in pairs])


def _sorted(head: Ints, order: int) -> Ints:
    """Return the head of a batch with its rows in an order of values."""
    if head[0] < 2:
        return head
    vals, index, diffs, is_sorted = in_value_order((head,), order)
    if is_sorted:
        return head
    row = head[:8].copy()
    for place, column in ((VALS, vals), (TIME_INDEX, index), (DIFFS, diffs)):
        row[place] = column.ctypes.data if len(column) else 0
    ordered: Ints = owning([row], (head, vals, index, diffs))[0]
    return ordered


class SameValues:
    """A reduction whose output records are among its input's."""

    def __init__(self, reduction: Reduction, value: Encoder, result: Encoder) -> None:
        self.by_value = reduction.by_value
        self._reduction = reduction
        self._value = value
        self._result = result

    def __call__(
        self, new: Batches, pending: Pending, input: Batches, output: Batches, upper: Times
    ) -> tuple[list[UpdateColumns], Pending]:
        if self._value.kinds is not None:
            self._result.adopt(self._value)
        return self._reduction(new, pending, input, output, upper)
