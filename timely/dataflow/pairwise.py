"""Sums of vectors in a fixed order: a balanced binary tree over the order in which they are given.

The first is combined with the second, the third with the fourth, those two results with each other, and so on; what is
left over at the end is combined from the back. At most one result of each size waits, so n vectors need the memory of
log n. The order depends on the number of vectors alone. A tree over 2^k vectors consists of trees over any 2^j
consecutive ones: that is what makes floating-point totals the same, bit by bit, however the vectors are dealt to a
power of two of workers in equal shares. Rounding errors grow as the depth, not the number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from timely.data.container import Array
from timely.data.exact import pairs_wrapped
from timely.errors import DataError


class Pairwise:
    """Combines arrays of one shape and type by a ufunc.

    >>> total = Pairwise(np.add)
    >>> for vector in np.arange(6).reshape(3, 2):
    ...     total.include(vector)
    >>> total.result()
    array([6, 9])
    """

    __slots__ = ("_ufunc", "_waiting")

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc
        self._waiting: list[tuple[int, Array]] = []  # (how many were combined, their total), growing towards the front

    def include(self, vector: Any) -> None:
        """Add one more; raise `DataError` unless it is like those before it."""
        array, waiting = np.asarray(vector), self._waiting
        if array.dtype.kind not in "biuf" or not array.size:
            given = f"an array of {array.dtype} and shape {array.shape}"
            raise DataError(f"cannot combine {given}: give numbers, at least one")
        if waiting:
            before = waiting[0][1]
            if (before.shape, before.dtype) != (array.shape, array.dtype):
                raise DataError(
                    f"cannot combine an array of {array.dtype} and shape {array.shape} with one of {before.dtype} and "
                    f"shape {before.shape}: all of a time must be alike, on all workers"
                )
        # As in a binary counter: the counts that wait are distinct powers of two.
        count = 1
        while waiting and waiting[-1][0] == count:
            array = self._combined(waiting.pop()[1], array)
            count *= 2
        waiting.append((count, array))

    def result(self) -> Array:
        """Return the total of what was included, at least one."""
        waiting = self._waiting
        while len(waiting) > 1:
            _, last = waiting.pop()
            count, before = waiting.pop()
            waiting.append((count, self._combined(before, last)))
        return waiting[0][1]

    def _combined(self, first: Array, second: Array) -> Array:
        # The type stays: a result of another one could not be combined further.
        with np.errstate(over="ignore"):
            total = np.asarray(self._ufunc(first, second, dtype=first.dtype))
        if pairs_wrapped(self._ufunc, first, second, total):
            raise DataError(f"a total of vectors does not fit into {total.dtype}: use floats, or a wider type")
        return total
