"""Whether columns live as long as kernels have their addresses.

A kernel receives batches as a table of their addresses (`differential.kernels.memory`), or as a tuple of heads that
each begin with a row of it (`differential.trace.columns`). An array of addresses keeps no column alive by itself.
A function compiled to C releases a variable after its last use, so columns that only this variable holds are freed
before the kernel is called. Their memory mostly still has its former contents, so nothing shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import ref

import numpy as np

from differential.kernels import compile as kernels
from differential.kernels.memory import COORDINATES, DIFFS, KEYS, TIME_INDEX, TIMES, VALS, address_of

_COLUMNS = {KEYS: "keys", VALS: "values", TIME_INDEX: "time index", DIFFS: "diffs", TIMES: "times"}


@contextmanager
def watched() -> Iterator[None]:
    """Make every call of a kernel fail that receives the address of a freed column."""
    known: dict[int, ref[Any]] = {}
    former = []
    for kernel in kernels._KERNELS:
        compiled = kernel.prepare()
        _exchange(kernel, _noting(compiled, known) if kernel is address_of else _looking(compiled, kernel, known))
        former.append((kernel, compiled))
    try:
        yield
    finally:
        for kernel, compiled in former:
            _exchange(kernel, compiled)


def _exchange(kernel: kernels.Kernel, target: Callable[..., Any]) -> None:
    kernel.__setstate__((target, (), {}, kernel.__dict__))  # type: ignore[attr-defined]


def _noting(compiled: Callable[..., Any], known: dict[int, ref[Any]]) -> Callable[..., Any]:
    def call(*columns: Any) -> Any:
        for column in columns:
            if column.size:
                known[column.ctypes.data] = ref(_owner(column))
        return compiled(*columns)

    return call


def _looking(compiled: Callable[..., Any], kernel: Any, known: dict[int, ref[Any]]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        for argument in arguments:
            table = _table(argument)
            if table is not None:
                for row in table.tolist():
                    for place, name in _COLUMNS.items():
                        holder = known.get(row[place])
                        assert holder is None or holder() is not None, (
                            f"{kernel.__name__} is given the address of {name} that nobody holds any more"
                        )
        return compiled(*arguments)

    return call


def _table(argument: Any) -> Any:
    """Return the table of batches that an argument is, or None."""
    width = COORDINATES + 1
    if isinstance(argument, tuple) and all(isinstance(each, np.ndarray) for each in argument):
        return np.array([_outside(each[:width].tolist(), each) for each in argument]).reshape(-1, width)
    is_table = isinstance(argument, np.ndarray) and argument.ndim == 2 and argument.shape[1] == width
    return argument if is_table else None


def _outside(row: list[int], head: Any) -> list[int]:
    """Return a row without the addresses of columns that are in its block."""
    start = head.ctypes.data
    return [0 if place in _COLUMNS and start <= item < start + head.nbytes else item for place, item in enumerate(row)]


def _owner(column: Any) -> Any:
    """Return the array whose memory a view shows, or the column itself."""
    while isinstance(column.base, np.ndarray):
        column = column.base
    return column
