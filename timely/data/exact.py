"""Sums and products of 64-bit integers that do not fit are detected instead of wrapping around.

NumPy's own sums and products wrap. In most cases the largest number and the number of values show that nothing can
overflow, which costs one pass over the values; only otherwise is the result computed exactly. What counts is the final
result: an intermediate sum may overflow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from timely.data.logical import Array, Ints

_EXACT = (np.add, np.multiply)
"""The ufuncs whose results may be too large."""
_LOW = (1 << 32) - 1


def may_wrap(ufunc: np.ufunc, values: Array) -> bool:
    """Return False only if no combination of any of these values by `ufunc` can be too large for their type.

    >>> large = np.array([1, 1 << 62])
    >>> may_wrap(np.add, np.array([1, 2])), may_wrap(np.add, large), may_wrap(np.maximum, large)
    (False, True, False)
    """
    if ufunc not in _EXACT or values.dtype.kind not in "iu" or len(values) < 2:
        return False
    largest, limit = max(int(values.max()), -int(values.min())), int(np.iinfo(values.dtype).max)
    if ufunc is np.add:
        return largest * len(values) > limit
    # Each number is below 2 to its bit length, so a product is below 2 to the sum of the bit lengths.
    return largest > 1 and len(values) * largest.bit_length() >= limit.bit_length()


def wrapped(ufunc: np.ufunc, groups: Ints, values: Array, size: int) -> Ints:
    """Return, in order, which of `size` groups of 64-bit integers have a sum or a product that does not fit.

    >>> wrapped(np.add, np.array([0, 0, 1, 1]), np.array([1 << 62, 1 << 62, 1 << 62, -1]), 2).tolist()
    [0]
    """
    if not may_wrap(ufunc, values):
        return np.empty(0, np.int64)
    kind = np.iinfo(values.dtype)
    if ufunc is np.add:
        largest, most = max(int(values.max()), -int(values.min())), int(np.bincount(groups).max())
        if largest * most <= kind.max:
            return np.empty(0, np.int64)
        # Sums of halves of 32 bits do not overflow for fewer than 2 ** 31 values. With the carry from the low half, the
        # high one alone shows whether the sum fits.
        high, low = np.zeros(size, np.int64), np.zeros(size, np.int64)
        np.add.at(high, groups, (values >> 32).astype(np.int64))
        np.add.at(low, groups, (values & _LOW).astype(np.int64))
        high += low >> 32
        return np.flatnonzero((high < int(kind.min) >> 32) | (high > int(kind.max) >> 32))
    magnitudes = np.ones(size)
    with np.errstate(over="ignore", invalid="ignore"):
        np.multiply.at(magnitudes, groups, values.astype(np.float64))
        # A factor of 2 is more than rounding adds up to. Negated, because a comparison with NaN is False.
        is_doubtful = ~(np.abs(magnitudes) < kind.max / 2)
    found = []
    for group in np.flatnonzero(is_doubtful).tolist():
        if not kind.min <= product(values[groups == group].tolist()) <= kind.max:
            found.append(group)
    return np.array(found, np.int64)


def product(numbers: Iterable[int]) -> int:
    """Return the product of integers; if it does not fit into 64 bits, return any number that does not fit.

    >>> product([3, 4]), product([1 << 40, 1 << 40, 0])
    (12, 0)
    """
    numbers = list(numbers)
    if 0 in numbers:
        return 0
    result = 1
    for number in numbers:
        result *= number
        if abs(result) >= 1 << 64:  # without a zero among the numbers, it can only grow
            break
    return result


def total(ufunc: np.ufunc, values: Array, initial: Any) -> Any:
    """Return `ufunc.reduce(values)` as a Python number, `initial` if there are none; exact for sums and products.

    >>> total(np.add, np.array([1 << 62, 1 << 62]), 0) == 1 << 63
    True
    """
    if not may_wrap(ufunc, values):
        return ufunc.reduce(values, initial=initial).item()
    if ufunc is np.multiply:
        return product(values.tolist())
    return (int((values >> 32).astype(np.int64).sum()) << 32) + int((values & _LOW).astype(np.int64).sum())


def total_of_totals(ufunc: np.ufunc, totals: list[Any]) -> Any:
    """Return the combination of Python numbers by `ufunc`; sums and products of integers are exact.

    >>> total_of_totals(np.add, [1 << 62, 1 << 62, -1]) == (1 << 63) - 1
    True
    """
    if ufunc in _EXACT and all(type(number) is int for number in totals):
        return sum(totals) if ufunc is np.add else product(totals)
    return ufunc.reduce(np.array(totals)).item()


def pairs_wrapped(ufunc: np.ufunc, first: Array, second: Array, result: Array) -> bool:
    """Return whether any number in `result` differs from the exact sum or product of the integers at its position.

    >>> largest = np.array([np.iinfo(np.int64).max])
    >>> pairs_wrapped(np.add, largest, largest, largest + largest)
    True
    """
    if ufunc not in _EXACT or result.dtype.kind not in "iu":
        return False
    if ufunc is np.add and result.dtype.kind == "u":
        return bool((result < first).any())
    if ufunc is np.add:
        # A sum overflows exactly if its sign differs from the signs of both numbers.
        return bool((((first ^ result) & (second ^ result)) < 0).any())
    magnitudes = np.abs(first.astype(np.float64) * second.astype(np.float64))
    doubtful = magnitudes >= float(np.iinfo(result.dtype).max) / 2
    pairs = zip(first[doubtful].tolist(), second[doubtful].tolist(), result[doubtful].tolist())
    return any(one * other != both for one, other, both in pairs)
