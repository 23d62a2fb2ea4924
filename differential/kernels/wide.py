"""Sums in two words, so that a sum that does not fit into 64 bits is an error and does not wrap around.

Additions to the low word wrap, and `carry` is what the high word grows by. *The invariant*: high * 2**64 + low, with
low unsigned, is the exact sum. It fits into 64 bits if the high word is only the sign of the low one (`fits`). So what
counts is the sum, not what it was on the way: the order of the terms does not matter. No step takes a branch.

Kernels raise `Overflow` with the codes of the record, which are all they know; operators name the record (see
`differential.data.overflow`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from differential.kernels.compile import bare, primitive

_LEAST = -1 << 63


class Overflow(ArithmeticError):
    """A count does not fit into 64 bits. Its arguments are the codes of the record's key and value.

    A third one, from kernels that go through the rows in the order of times, identifies the time.
    """

    time: tuple[int, ...] | None = None
    """When it does not fit, if the caller of the kernel has found out."""


@bare
def carry(low: int, item: int) -> int:
    """Return what the high word of a sum grows by after `item` was added to the low word, which is `low` now."""
    return (item >> 63) + int((low ^ _LEAST) < (item ^ _LEAST))


@bare
def fits(low: int, high: int) -> bool:
    """Return whether a sum in two words fits into 64 bits."""
    return high == low >> 63


def _product_high(one: int, other: int) -> int:
    return int(one) * int(other) >> 64


@primitive(_product_high)
def product_high(numba: Any) -> Callable[[int, int], int]:
    """Return the high word of a product of which `one * other` is the low word: `product_high(one, other)`.

    Processors compute both words in one instruction, which integers of 128 bits make LLVM choose.
    """
    types = numba.core.types
    words: Any = importlib.import_module("llvmlite.ir").IntType(128)

    @numba.extending.intrinsic
    def product_high(typing_context, one, other):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
            product = builder.mul(builder.sext(args[0], words), builder.sext(args[1], words))
            return builder.trunc(builder.ashr(product, words(64)), args[0].type)

        return types.int64(types.int64, types.int64), generate

    return product_high  # type: ignore[no-any-return]
