"""Blocks: the rows of a batch in one array, for batches of few rows.

A block is int64[8 + items]: first the row that stands for the batch in a table of batches (`memory`), then the columns
that are present, in the order keys, values, time index, diffs, and the times row by row. The addresses in the row are
those of the columns in the block itself. So a reference to the block keeps the columns alive: a tuple of blocks is a
table of batches that needs no other owner.

*Why.* An array that a kernel returns costs a third of a microsecond, from its allocation to its release. A batch in
five arrays, with a sixth for their addresses, cost more than the work on a few rows.
"""

from __future__ import annotations

from differential.kernels.compile import Batches, Ints, Table, Times, bare, inner, kernel
from differential.kernels.consolidate import consolidate, consolidate_parts
from differential.kernels.memory import (
    COORDINATES,
    DIFFS,
    KEYS,
    ROWS,
    TIME_INDEX,
    TIME_ROWS,
    TIMES,
    VALS,
    column,
    empty,
    times_of,
)
from differential.kernels.times import times_inside

HEAD = 8
"""How many items of a block come before the columns."""


@bare
def _append(block: Ints, start: int, place: int, which: int, items: Ints) -> int:
    """Write a column from `place` on, and its address; return where it ends. `start` is the address of the block."""
    block[which] = start + 8 * place if len(items) != 0 else 0
    for item in range(len(items)):
        block[place + item] = items[item]
    return place + len(items)


@inner
def block_of(keys: Ints, vals: Ints, time_index: Ints, diffs: Ints, times: Table) -> Ints:
    """Return a block with copies of the given columns."""
    items = len(times) * times.shape[1]
    block = empty(HEAD + len(keys) + len(vals) + len(time_index) + len(diffs) + items)
    start = block.ctypes.data
    place = _append(block, start, HEAD, KEYS, keys)
    place = _append(block, start, place, VALS, vals)
    place = _append(block, start, place, TIME_INDEX, time_index)
    place = _append(block, start, place, DIFFS, diffs)
    block[TIMES] = start + 8 * place if items != 0 else 0
    for row in range(len(times)):
        for coordinate in range(times.shape[1]):
            block[place] = times[row, coordinate]
            place += 1
    block[ROWS], block[TIME_ROWS], block[COORDINATES] = len(keys), len(times), times.shape[1]
    return block


@kernel
def pack_block(keys: Ints, vals: Ints, time_index: Ints, diffs: Ints, times: Table) -> Ints:
    """Return a block with copies of the given columns."""
    return block_of(keys, vals, time_index, diffs, times)


@kernel
def columns_of(block: Ints) -> tuple[Ints, Ints, Ints, Ints, Table]:
    """Return the columns of a block: keys, values, time index, diffs and times, without copying."""
    row = block[:HEAD].reshape((1, HEAD))
    return (
        column(row, 0, KEYS),
        column(row, 0, VALS),
        column(row, 0, TIME_INDEX),
        column(row, 0, DIFFS),
        times_of(row, 0),
    )


@kernel
def consolidated_block(keys: Ints, vals: Ints, time_index: Ints, diffs: Ints, times: Table) -> tuple[Ints, int, int]:
    """Return the given updates consolidated, as a block, and its numbers of rows and of times."""
    keys, vals, time_index, diffs, times = consolidate(keys, vals, time_index, diffs, times)
    return block_of(keys, vals, time_index, diffs, times), len(keys), len(times)


@kernel
def merged_block(parts: Batches, since: Times) -> tuple[Ints, int, int]:
    """Return the updates of all parts consolidated, as a block, and its numbers of rows and of times.

    Times are first advanced to `since`, unless it is a table without coordinates.
    """
    keys, vals, time_index, diffs, times = consolidate_parts(parts, since)
    return block_of(keys, vals, time_index, diffs, times), len(keys), len(times)


@kernel
def entered_block(block: Ints) -> Ints:
    """Return a block with the same rows, whose times have one more coordinate, 0."""
    row = block[:HEAD].reshape((1, HEAD))
    keys, vals = column(row, 0, KEYS), column(row, 0, VALS)
    return block_of(keys, vals, column(row, 0, TIME_INDEX), column(row, 0, DIFFS), times_inside(times_of(row, 0), 1))
