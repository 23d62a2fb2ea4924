"""Running totals, in which a change costs a number of steps that is logarithmic in the number of positions.

The positions of a key are the leaves of a binary tree, whose nodes hold the sum of the values below them. The positions
up to a given one are covered by at most one node of each level: the nodes that the binary digits of the next position
name (Fenwick, "A new data structure for cumulative frequency tables", 1994). Sums are numbers of occurrences, so no
node has a state but its row, and one join adds the nodes up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from differential.arrangement.core import C, Keyed, records_of
from differential.keys import columns_of
from differential.operators.concat import concat
from differential.operators.distinct import distinct
from differential.operators.explode import explode, occurrences
from differential.operators.flat_map import flat_map
from differential.operators.join import semijoin
from differential.operators.map import map
from differential.operators.totals import summed
from differential.operators.vectors import as_part
from timely.errors import DataError
from timely.lowlevel import check_whole, refusal


def prefix_sum(collection: Keyed[C], *, bits: int = 30, name: str = "prefix_sum") -> C:
    """Return (key, position, sum of the values of the key at this and earlier positions) for each position there is.

    The records are (key, position, value), integers; positions are at least 0 and less than 2 ** `bits`. Each record is
    kept in `bits` + 1 nodes, and a change costs as many steps, besides the changes of the result.

    Raises BuildError unless `bits` is a whole number of 1 to 60, and where all columns are the key. A DataError ends
    the run where a position is out of bounds, a value is not an integer, or a record has other columns.

    >>> def balance(scope):
    ...     booked = Collection.of(scope, np.array([7, 7, 7]), np.array([0, 5, 9]), np.array([100, -30, 12]))
    ...     return booked.prefix_sum()
    >>> example(balance)
    [((7, 0, 100), 1), ((7, 5, 70), 1), ((7, 9, 82), 1)]
    """
    check_whole(name, 1, bits=bits)
    bits = int(bits)  # a NumPy integer of 8 bits cannot be a shift's result
    if bits > 60:
        raise refusal(name, f"positions of {bits} bits; 1 to 60 are possible")
    keys = columns_of(collection.keys, name)
    levels = np.arange(bits + 1)

    def above(*columns: Any) -> tuple[Any, ...]:
        """Return the value at all nodes above its position."""
        if len(columns) != keys + 2:
            raise DataError(f"{name}: a record has {keys + 2} columns (key, position, value), not {len(columns)}")
        *key, position, value = columns
        if position.dtype.kind not in "iub" or (position < 0).any() or (position >> bits).any():
            raise DataError(f"{name}: a position must be an integer from 0 to {(1 << bits) - 1}")
        value = occurrences(value, len(position), f"{name}: values")
        position = position.astype(np.int64)
        rows, level = np.repeat(np.arange(len(value)), bits + 1), np.tile(levels, len(value))
        # The nodes of a level, of which there are 2 ** (bits - level), are numbered from that on, as in a heap.
        node = (1 << (bits - level)) | (position[rows] >> level)
        return (rows, *(column[rows] for column in key), node, value[rows])

    def before(*columns: Any) -> tuple[Any, ...]:
        """Return the nodes that cover a position and all before it."""
        *key, position = columns
        end = position + 1
        rows, level = np.nonzero((end[:, None] >> levels) & 1)
        node = (1 << (bits - level)) | ((end[rows] >> level) - 1)
        return (rows, *(column[rows] for column in key), node, position[rows])

    records = records_of(collection)
    valued = flat_map(records, above, keys=keys + 1, name=name)
    nodes = explode(valued, lambda *columns: (columns[:-1], columns[-1]), keys=keys + 1, name=name)
    index = nodes.arrange_by_key()
    index.key.hidden, index.value.adds = 1, True  # a node is the last column of the key, and its sum a diff
    placed = map(records, lambda *columns: columns[:-1], keys=keys + 1, name=name)
    positions = distinct(placed.arrange_by_key(), name=name)
    covering = flat_map(positions, before, keys=keys + 1, name=name)
    found = semijoin(covering.arrange_by_key(), index, name=name)
    sums = map(found, lambda *columns: (*columns[:keys], columns[-1]), keys=keys + 1, name=name)
    # The second part is 1 wherever there is a position, so that a sum of 0 is output, too.
    totals = summed(concat(as_part(sums, 0, name=name), as_part(positions, 1, name=name)), 2, name=name)
    return map(totals, lambda *columns: columns[:-1], keys=keys, name=name)
