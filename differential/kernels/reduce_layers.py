"""The groups of a reduction, and the rows of one group in every layer.

A group is what the function reduces: all rows of a key or, for `distinct`, all rows of a (key, value). A layer is one
batch of new input, input or output.

*The invariant.* Groups are visited in ascending order, and every layer is sorted the same way. So each layer has a
position that only moves forward: no row before it belongs to a group that is still to come.

*Cost.* The walk gallops from the position, over far distances from a guess. A call that touches few groups of a large
layer costs at most the logarithm of the rows for each group; a call that touches all groups costs a scan.

`stack` copies the tables of batches (new input, input, output) into one array of layers, in this order. A row is a
layer: the eight columns of the batch's address (see `memory`), then what the walk remembers of the layer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from differential.kernels.compile import Ints, Table, bare, inner
from differential.kernels.memory import DIFFS, KEYS, ROWS, TIME_INDEX, TIME_ROWS, TIMES, VALS, column, item
from differential.kernels.seek import FAR, guess, prefetch

POSITION, LOW, HIGH, BASE, LAYER_WIDTH = range(8, 13)
"""What the walk remembers of a layer: its first row not visited; the rows LOW to HIGH (excluded) of the present group;
the place of its first time in the sparse set of `reduce_history`, which has one for each time of each layer."""

KEY, VAL, FROM, TO, GROUP_WIDTH = range(5)
"""The present group: its key, its value (0 where groups are keys), and its rows FROM to TO (excluded) of the pending
times."""


class Walk(NamedTuple):
    """The layers, and the group that the walk has reached.

    The layers before `deltas` are new input, those before `inputs` input, and the others output. `latest` has for each
    layer a time that all its times are at or before.
    """

    layers: Table
    deltas: int
    inputs: int
    latest: Table
    group: Ints


PENDING_KEY, PENDING_VAL, PENDING_TIME = range(3)
"""The columns of pending times: the key, the value (0 unless groups are by value), and from here on the coordinates."""

NO_BOUND = 2**63 - 1
_SMALL_TABLE = 64
_NEAR = 8
"""Up to this many rows ahead, a group is galloped to from the position; farther, from a guess at where its key is."""


@bare
def load(address: int, row: int) -> int:
    """Return item `row` of the column at `address`."""
    return item(address + 8 * row)


@bare
def value_at(layers: Table, layer: int, row: int) -> int:
    """Return the value of a row."""
    address = layers[layer, VALS]
    return load(address, row) if address != 0 else 0


@bare
def diff_at(layers: Table, layer: int, row: int) -> int:
    """Return the diff of a row."""
    address = layers[layer, DIFFS]
    return load(address, row) if address != 0 else 1


@bare
def time_index_at(layers: Table, layer: int, row: int) -> int:
    """Return the index, in the layer's table of times, of a row's time."""
    address = layers[layer, TIME_INDEX]
    return load(address, row) if address != 0 else 0


@inner
def stack(delta_table: Table, input_table: Table, output_table: Table) -> Table:
    """Return the three tables as one array of layers, positioned before the first group."""
    deltas, inputs, outputs = len(delta_table), len(input_table), len(output_table)
    layers = np.zeros((deltas + inputs + outputs, LAYER_WIDTH), np.int64)
    base = 0
    for layer in range(len(layers)):
        for which in range(8):
            if layer < deltas:
                layers[layer, which] = delta_table[layer, which]
            elif layer < deltas + inputs:
                layers[layer, which] = input_table[layer - deltas, which]
            else:
                layers[layer, which] = output_table[layer - deltas - inputs, which]
        layers[layer, BASE] = base
        base += layers[layer, TIME_ROWS]
    return layers


@bare
def times_in_all(layers: Table) -> int:
    """Return how many places the sparse set of `reduce_history` has."""
    last = len(layers) - 1
    return layers[last, BASE] + layers[last, TIME_ROWS] if last >= 0 else 0


@inner
def walk_through(delta_table: Table, input_table: Table, output_table: Table, depth: int) -> Walk:
    """Return the walk through three tables of batches, before the first group."""
    for batch in range(len(delta_table)):
        prefetch(column(delta_table, batch, KEYS), input_table)
        prefetch(column(delta_table, batch, KEYS), output_table)
    layers, deltas = stack(delta_table, input_table, output_table), len(delta_table)
    return Walk(layers, deltas, deltas + len(input_table), latest_times(layers, depth), np.zeros(GROUP_WIDTH, np.int64))


@inner
def latest_times(layers: Table, depth: int) -> Table:
    """Return for each layer a time that all its times are at or before.

    For a layer with many times it is the greatest of all, so that nothing follows from it, and nothing is scanned.
    """
    latest = np.empty((len(layers), depth), np.int64)
    for layer in range(len(layers)):
        rows = layers[layer, TIME_ROWS]
        for d in range(depth):
            highest = load(layers[layer, TIMES], d) if 0 < rows <= _SMALL_TABLE else NO_BOUND
            if rows <= _SMALL_TABLE:
                for row in range(1, rows):
                    highest = max(highest, load(layers[layer, TIMES], row * depth + d))
            latest[layer, d] = highest
    return latest


@bare
def _is_before(keys: int, vals: int, row: int, key: int, val: int, by_value: bool, beyond: bool) -> bool:
    """Whether a row comes before the group; with `beyond`, whether it comes before what follows the group."""
    here = load(keys, row)
    if here != key:
        return here < key
    if not by_value:
        return beyond
    value = load(vals, row) if vals != 0 else 0
    return value < val or (beyond and value == val)


@bare
def _guess(keys: int, row: int, rows: int, key: int) -> int:
    """Return the row, from `row` on, at which a key stands if keys are spread evenly."""
    first, last = float(load(keys, row)), float(load(keys, rows - 1))
    share = (float(key) - first) / (last - first) if last > first else 0.0
    expected = row + int(min(max(share, 0.0), 1.0) * (rows - 1 - row))
    # A guess for a far row is corrected, which reads what `prefetch` has asked for.
    return max(row, guess(keys, rows, key)) if expected - row > FAR else expected


@bare
def _gallop(layers: Table, layer: int, row: int, key: int, val: int, by_value: bool, beyond: bool) -> int:
    """Return the first row, from `row` on, that belongs to the group; with `beyond`, that follows the group.

    Throughout, the rows before `low` come before the sought row, and the sought row is at most `high`.
    """
    rows, keys, vals = layers[layer, ROWS], layers[layer, KEYS], layers[layer, VALS]
    low, high, probe, step = row, rows, row, 1
    # A guess pays only for a far row. The guess is checked by galloping down from it, then up.
    near = row + _NEAR
    if not beyond and near < rows and _is_before(keys, vals, near, key, val, by_value, False):
        low, probe, step = near + 1, _guess(keys, near, rows, key), _NEAR
        while probe > low:
            if _is_before(keys, vals, probe - 1, key, val, by_value, False):
                low = probe
                break
            high = probe - 1
            probe = max(low, probe - step)
            step *= 2
    while probe < high:
        if not _is_before(keys, vals, probe, key, val, by_value, beyond):
            high = probe
            break
        low = probe + 1
        probe += step
        step *= 2
    while low < high:
        middle = (low + high) >> 1
        if _is_before(keys, vals, middle, key, val, by_value, beyond):
            low = middle + 1
        else:
            high = middle
    return low


@bare
def seek(layers: Table, first: int, last: int, group: Ints, by_value: bool) -> int:
    """Set LOW and HIGH of the layers `first` to `last` to the group's rows; return how many rows these are."""
    key, val = group[KEY], group[VAL]
    total = 0
    for layer in range(first, last):
        low, rows = layers[layer, POSITION], layers[layer, ROWS]
        high = low
        if rows - low <= _NEAR and not by_value:
            # Few rows are counted, which has no branches to be predicted.
            keys = layers[layer, KEYS]
            for row in range(low, rows):
                here = load(keys, row)
                low += int(here < key)
                high += int(here <= key)
        elif low < rows:
            low = _gallop(layers, layer, low, key, val, by_value, False)
            high = _gallop(layers, layer, low, key, val, by_value, True)
        layers[layer, LOW] = low
        layers[layer, HIGH] = high
        # The next group comes after this one, so none of its rows is before `high`.
        layers[layer, POSITION] = high
        total += high - low
    return total


@bare
def unseek(layers: Table, group: Ints) -> None:
    """Make the present group the next one again."""
    # In the layers of new input, on which `next_group` relies, this group has been sought. In another layer LOW may
    # be that of an earlier group: no row before it is still to come, so it is a valid position.
    for layer in range(len(layers)):
        layers[layer, POSITION] = layers[layer, LOW]
    group[TO] = group[FROM]


@bare
def next_group(walk: Walk, pending: Table, by_value: bool) -> bool:
    """Move the walk to the next group that has new rows or pending times; return False if there is none."""
    layers, group = walk.layers, walk.group
    # Every earlier group has been sought in the layers of new input, so their positions are exactly at new groups.
    found = False
    key = 0
    val = 0
    for layer in range(walk.deltas):
        row = layers[layer, POSITION]
        if row < layers[layer, ROWS]:
            here = load(layers[layer, KEYS], row)
            value = value_at(layers, layer, row) if by_value else 0
            if not found or here < key or (here == key and value < val):
                found = True
                key = here
                val = value
    first = group[TO]
    if first < len(pending):
        here, value = pending[first, PENDING_KEY], pending[first, PENDING_VAL]
        if not found or here < key or (here == key and value < val):
            found = True
            key = here
            val = value
    last = first
    # Pending times are sorted by (key, value), so those of a group are neighbours.
    while last < len(pending) and pending[last, PENDING_KEY] == key and pending[last, PENDING_VAL] == val:
        last += 1
    group[KEY] = key
    group[VAL] = val
    group[FROM] = first
    group[TO] = last
    return found
