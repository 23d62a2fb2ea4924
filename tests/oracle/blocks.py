"""The result of the kernel that reduces, in columns, with what it states about its block checked."""

from __future__ import annotations

from typing import Any

from differential.kernels.blocks import columns_of
from differential.kernels.reduce import reduce


def columns_in(block: Any, rows: int, distinct: int) -> tuple[Any, ...]:
    """Return keys, values, times, time index and diffs in a block that has as many rows and times."""
    keys, vals, index, diffs, times = columns_of(block)
    assert (len(keys), len(times)) == (rows, distinct)
    return keys, vals, times, index, diffs


def reduced(*arguments: Any) -> tuple[Any, ...]:
    """Return keys, values, times, time index and diffs emitted; the pending times; and the fault."""
    block, rows, distinct, is_sealed, *others = reduce(*arguments)
    keys, vals, times, index, diffs = columns_in(block, rows, distinct)
    if is_sealed and not len(others[-1]):
        data = list(zip(keys.tolist(), vals.tolist() if len(vals) else [0] * rows))
        assert distinct == 1
        assert data == sorted(set(data))
        assert all(diffs.tolist())
    return (keys, vals, times, index, diffs, *others)
