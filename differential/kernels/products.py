"""Products of numbers of occurrences, row by row."""

from __future__ import annotations

from differential.kernels.compile import Ints, kernel
from differential.kernels.wide import fits, product_high


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
