"""Sums that do not fit into 64 bits are found, not wrapped around.

A sum is kept in two words. Additions to the low word wrap, and `carry` is what the high word grows by; a sum fits into
64 bits where the high word is nothing but the low one's sign (`fits`). So it is the sum that counts, and not what it
was on the way: the order in which its terms come does not matter. No branch is taken for any of this.

Kernels raise `Overflow`, with the codes of the record, where they know them; operators name it (see
`differential.data.overflow`).
"""

from __future__ import annotations

from differential.kernels.compile import bare

_LEAST = -1 << 63
_HALF = (1 << 32) - 1


class Overflow(ArithmeticError):
    """How often a record occurs, of which the codes of key and value are given, does not fit into 64 bits."""


@bare
def carry(low: int, item: int) -> int:
    """Return what the high word of a sum grows by after `item` was added to the low word, which is `low` now."""
    return (item >> 63) + int((low ^ _LEAST) < (item ^ _LEAST))


@bare
def fits(low: int, high: int) -> bool:
    """Return whether a sum of two words is one of 64 bits."""
    return high == low >> 63


@bare
def product_high(one: int, other: int) -> int:
    """Return the high word of a product of which `one * other` is the low word."""
    one_low, one_high, other_low, other_high = one & _HALF, one >> 32, other & _HALF, other >> 32
    middle = one_high * other_low + ((one_low * other_low >> 32) & _HALF)
    return one_high * other_high + (middle >> 32) + (((middle & _HALF) + one_low * other_high) >> 32)
