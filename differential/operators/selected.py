"""Reductions whose results are among the values of their input, and have codes of the same meaning."""

from __future__ import annotations

from functools import partial

from differential.data.codes import Encoder
from differential.kernels import reduce as kernels
from differential.kernels.compile import Batches, Times
from differential.operators.groups import InPython, largest_rows
from differential.operators.reduction import BuiltIn, Pending, Reduction
from differential.trace.columns import Columns

_OF_TEXT = {kernels.MIN: kernels.MIN_TEXT, kernels.MAX: kernels.MAX_TEXT}
"""The kinds that find the least and the greatest of one text."""


class Ordered:
    """The least or greatest values: in a kernel where codes order as the values do, or for one text; else in Python."""

    by_value = False

    def __init__(self, kind: int, general: int, k: int, value: Encoder) -> None:
        self._value = value
        self._in_kernel = BuiltIn(kind, k)
        self._text = _OF_TEXT.get(kind)
        smallest = general == kernels.SMALLEST
        self._in_python = InPython(partial(largest_rows, value=value, k=k, smallest=smallest))

    def __call__(
        self, new: Batches, pending: Pending, input: Batches, output: Batches, upper: Times
    ) -> tuple[list[Columns], Pending]:
        reduction: Reduction
        if self._value.ordered:
            reduction = self._in_kernel
        elif self._text is not None and self._value.is_one_string:
            reduction = BuiltIn(self._text, self._value.interner.strings.address)
        else:
            reduction = self._in_python
        return reduction(new, pending, input, output, upper)


class SameValues:
    """A reduction whose output records are among its input's."""

    def __init__(self, reduction: Reduction, value: Encoder, result: Encoder) -> None:
        self.by_value = reduction.by_value
        self._reduction = reduction
        self._value = value
        self._result = result

    def __call__(
        self, new: Batches, pending: Pending, input: Batches, output: Batches, upper: Times
    ) -> tuple[list[Columns], Pending]:
        if self._value.kinds is not None:
            self._result.adopt(self._value)
        return self._reduction(new, pending, input, output, upper)
