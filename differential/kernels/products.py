"""Products and opposites of numbers of occurrences, row by row."""

from __future__ import annotations

from differential.kernels.compile import Ints, kernel
from differential.kernels.memory import empty
from differential.kernels.wide import fits, product_high

_LEAST = -(2**63)


@kernel
def multiply(diffs: Ints, times: Ints, products: Ints) -> int:
    """Write the product for each row to `products`; return the first row whose product takes more than 64 bits, or -1.

    The products of that row and of those after it are not written.
    """
    for row in range(len(diffs)):
        products[row] = diffs[row] * times[row]
        if not fits(products[row], product_high(diffs[row], times[row])):
            return row
    return -1


@kernel
def opposite(diffs: Ints, rows: int) -> Ints:
    """Return the diffs of all rows with the other sign; nothing if one of them takes more than 64 bits then.

    Without `diffs` these are 1.
    """
    opposites = empty(rows)
    for row in range(rows):
        diff = diffs[row] if len(diffs) != 0 else 1
        opposites[row] = -diff
        if diff == _LEAST:
            return opposites[:0]
    return opposites
