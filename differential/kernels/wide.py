"""Sums in two words, so that a sum that does not fit into 64 bits is an error and does not wrap around.

Additions to the low word wrap, and `carry` is what the high word grows by. *The invariant*: high * 2**64 + low, with
low unsigned, is the exact sum. It fits into 64 bits if the high word is only the sign of the low one (`fits`). So what
counts is the sum, not what it was on the way: the order of the terms does not matter. No step takes a branch.

Kernels raise `Overflow` with the codes of the record, which are all they know; operators name the record (see
`differential.data.overflow`).
"""

from __future__ import annotations

from differential.kernels.compile import bare

_LEAST = -1 << 63
_HALF = (1 << 32) - 1


class Overflow(ArithmeticError):
    """A count does not fit into 64 bits. Its arguments are the codes of the record's key and value."""


@bare
def carry(low: int, item: int) -> int:
    """Return what the high word of a sum grows by after `item` was added to the low word, which is `low` now."""
    return (item >> 63) + int((low ^ _LEAST) < (item ^ _LEAST))


@bare
def fits(low: int, high: int) -> bool:
    """Return whether a sum in two words fits into 64 bits."""
    return high == low >> 63


@bare
def product_high(one: int, other: int) -> int:
    """Return the high word of a product of which `one * other` is the low word."""
    one_low, one_high, other_low, other_high = one & _HALF, one >> 32, other & _HALF, other >> 32
    middle = one_high * other_low + ((one_low * other_low >> 32) & _HALF)
    return one_high * other_high + (middle >> 32) + (((middle & _HALF) + one_low * other_high) >> 32)
