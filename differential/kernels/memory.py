"""Arrays in kernels: from addresses, and columns that may be absent.

A kernel receives a trace as one table, int64[batches, 8], so that one call sees all layers, however many there are. A
row is the address of a batch, oldest first:

    [rows, &keys, &values, &time index, &diffs, &times, number of times, coordinates]

where & is the address of an array and 0 marks an absent column. An address keeps nothing alive: a kernel relies on the
table that it receives, which owns the columns (see `differential.trace.table`).

A column is absent if it would hold only the default: no values, all are 0; no time index, all rows are at time 0 of the
table of times; no diffs, all are 1. Inside a kernel, and as an argument of one, an absent column is an array of length
0, which `at(column, row, absent)` reads.

*Cost.* An array that `column` makes is a pointer and a length; it owns nothing, and is nearly free. Arrays of megabytes
are allocated with `empty`, which asks the operating system for large pages: touching fresh memory a small page at a
time costs more than sorting what is put there.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from differential.kernels.compile import Ints, Table, bare, inner, kernel, primitive

ROWS, KEYS, VALS, TIME_INDEX, DIFFS, TIMES, TIME_ROWS, COORDINATES = range(8)
"""The columns of a table of batches."""

_MANY = 1 << 19
"""From this many items on, `empty` asks for large pages."""
_SMALL_PAGE = 4096
_USE_LARGE_PAGES = 14
"""`MADV_HUGEPAGE` of Linux."""


def _view(address: int, n: int) -> Ints:
    return np.ctypeslib.as_array((ctypes.c_int64 * int(n)).from_address(int(address))) if n else np.empty(0, np.int64)


def _view2(address: int, rows: int, columns: int) -> Table:
    return _view(address, rows * columns).reshape((rows, columns))


def _item(address: int) -> int:
    return np.int64(ctypes.c_int64.from_address(int(address)).value)  # type: ignore[return-value]  # wraps around


def _fetch(address: int) -> None:
    """Do nothing: only speed depends on it."""


def _empty(n: int) -> Ints:
    return np.empty(n, np.int64)


@primitive(_view)
def view(numba: Any) -> Callable[[int, int], Ints]:
    """Return `n` int64 at `address`, without copying: `view(address, n)`."""
    carray, pointer = numba.carray, _pointer(numba)

    @numba.njit  # type: ignore[untyped-decorator]
    def view(address: int, n: int) -> Ints:
        return carray(pointer(address), (n,), np.int64)  # type: ignore[no-any-return]

    return view  # type: ignore[no-any-return]


@primitive(_view2)
def view2(numba: Any) -> Callable[[int, int, int], Table]:
    """Return `rows` times `columns` int64 at `address`, without copying: `view2(address, rows, columns)`."""
    carray, pointer = numba.carray, _pointer(numba)

    @numba.njit  # type: ignore[untyped-decorator]
    def view2(address: int, rows: int, columns: int) -> Table:
        return carray(pointer(address), (rows, columns), np.int64)  # type: ignore[no-any-return]

    return view2  # type: ignore[no-any-return]


@primitive(_item)
def item(numba: Any) -> Callable[[int], int]:
    """Return the int64 at any `address`, a multiple of 8 or not: `item(address)`."""
    types, cgutils = numba.core.types, numba.core.cgutils

    @numba.extending.intrinsic
    def item(typing_context, address):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
            return builder.load(builder.inttoptr(args[0], cgutils.intp_t.as_pointer()), align=1)

        return types.int64(types.int64), generate

    return item  # type: ignore[no-any-return]


@primitive(_fetch)
def fetch(numba: Any) -> Callable[[int], None]:
    """Have the processor bring the memory at `address` into its cache, and do not wait for it: `fetch(address)`."""
    types, cgutils = numba.core.types, numba.core.cgutils
    ir: Any = importlib.import_module("llvmlite.ir")

    @numba.extending.intrinsic
    def fetch(typing_context, address):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
            number, integer = context.get_constant, ir.IntType(32)
            shape = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, integer, integer, integer])
            function = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], shape)
            # It is to be read (0), and to be kept in all levels of the cache (3), which is that of data (1).
            how = [number(types.int32, each) for each in (0, 3, 1)]
            builder.call(function, [builder.inttoptr(args[0], cgutils.voidptr_t), *how])
            return context.get_dummy_value()

        return types.void(types.int64), generate

    return fetch  # type: ignore[no-any-return]


@primitive(_empty)
def empty(numba: Any) -> Callable[[int], Ints]:
    """Return `n` int64 of whatever memory holds, in large pages where there are many: `empty(n)`."""
    if not sys.platform.startswith("linux"):

        @numba.njit  # type: ignore[untyped-decorator]
        def plain(n: int) -> Ints:
            return np.empty(n, np.int64)

        return plain  # type: ignore[no-any-return]
    types = numba.core.types
    advise = types.ExternalFunction("madvise", types.int32(types.voidptr, types.int64, types.int32))
    pointer = _pointer(numba)

    @numba.njit  # type: ignore[untyped-decorator]
    def large(n: int) -> Ints:
        array = np.empty(n, np.int64)
        if n >= _MANY:
            # The advice is about whole pages. If the system ignores it, only time is lost.
            first = (array.ctypes.data + _SMALL_PAGE - 1) & -_SMALL_PAGE
            advise(pointer(first), (array.ctypes.data + 8 * n - first) & -_SMALL_PAGE, _USE_LARGE_PAGES)
        return array

    return large  # type: ignore[no-any-return]


def _pointer(numba: Any) -> Callable[[int], object]:
    types, cgutils = numba.core.types, numba.core.cgutils

    @numba.extending.intrinsic
    def pointer(typing_context, address):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
            return builder.inttoptr(args[0], cgutils.voidptr_t)

        return types.voidptr(types.int64), generate

    return pointer  # type: ignore[no-any-return]


@inner
def column(table: Table, batch: int, which: int) -> Ints:
    """Return column `which` (KEYS, VALS, TIME_INDEX, DIFFS) of row `batch` of a table; length 0 if it is absent."""
    address = table[batch, which]
    return view(address, table[batch, 0] if address != 0 else 0)


@inner
def times_of(table: Table, batch: int) -> Table:
    """Return the times, int64[T, D], of row `batch` of a table of batches."""
    return view2(table[batch, 5], table[batch, 6], table[batch, 7])


@bare
def at(column: Ints, row: int, absent: int) -> int:
    """Return the item of `column` at `row`, or `absent` if the column is."""
    return column[row] if len(column) != 0 else absent


@kernel
def address_of(keys: Ints, vals: Ints, time_index: Ints, diffs: Ints, times: Table) -> Ints:
    """Return the row that stands for these columns in a table of batches."""
    address = np.empty(8, np.int64)
    address[ROWS] = len(keys)
    address[KEYS] = keys.ctypes.data if len(keys) != 0 else 0
    address[VALS] = vals.ctypes.data if len(vals) != 0 else 0
    address[TIME_INDEX] = time_index.ctypes.data if len(time_index) != 0 else 0
    address[DIFFS] = diffs.ctypes.data if len(diffs) != 0 else 0
    address[TIMES] = times.ctypes.data if len(times) != 0 else 0
    address[TIME_ROWS], address[COORDINATES] = times.shape
    return address
