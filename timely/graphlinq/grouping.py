"""Values of the same node, made one: the heart of every combination of messages.

Values are combined by ufuncs, one for each column: `np.add`, `np.minimum`, `np.maximum`, `np.bitwise_or`, ... Of many
values beside few slots, each is added to the total of its slot as it comes (`ufunc.at`); of few values beside many
slots, they are sorted, so that the cost is that of the values alone. What is in order and distinct already, as nearly
all messages are that were combined where they were sent, costs only the look.

Sums and products of booleans and of integers of few bits have 64 bits, as NumPy's own have. What does not fit into
these is refused (see `timely.data.exact`), wherever values are combined: where they are sent, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timely.data.container import Array
from timely.data.exact import may_wrap, meaning, wrapped
from timely.errors import DataError
from timely.graphlinq.index import Ints, is_increasing

FEW = 8
"""Values are few where the slots are more than so many times as many."""

_SETS = dict.fromkeys((np.logical_or, np.bitwise_or, np.maximum), True) | dict.fromkeys(
    (np.logical_and, np.bitwise_and, np.minimum), False
)
"""Of which boolean one is enough to decide what the combination by a ufunc is."""

Combination = np.ufunc | tuple[np.ufunc, ...]
"""How values of the same node become one: a ufunc for each column of values."""


def ufuncs_of(combine: Combination, columns: Sequence[Array]) -> tuple[np.ufunc, ...]:
    """Return a ufunc for each column; refuse another number of them, and other functions."""
    ufuncs = combine if isinstance(combine, tuple) else (combine,)
    for ufunc in ufuncs:
        if not isinstance(ufunc, np.ufunc):
            raise DataError(f"values of a node are combined by ufuncs, such as np.add, not by {ufunc!r}")
    if len(ufuncs) != len(columns):
        raise DataError(f"{len(ufuncs)} ufunc(s) cannot combine values of {len(columns)} column(s): give one for each")
    return ufuncs


def summable(ufunc: np.ufunc, values: Array) -> Array:
    """Return values in the type of their combination.

    >>> summable(np.add, np.array([1], np.int8)), summable(np.maximum, np.array([1], np.int8))
    (array([1]), array([1], dtype=int8))
    """
    if ufunc not in (np.add, np.multiply) or values.dtype.kind not in "biu":
        return values
    return values.astype(ufunc.reduce(values[:0]).dtype, copy=False)


def grouped(
    combine: Combination, slots: Ints, values: Sequence[Array], size: int, nodes: Ints | None = None
) -> tuple[Ints, tuple[Array, ...]]:
    """Return the different `slots` (all below `size`), in order, and the combination of the values of each.

    Raises DataError where a sum or product of integers does not fit into 64 bits; it names the node, which `nodes` has
    for each slot. Without `nodes`, slots are nodes.

    >>> slots, (totals,) = grouped(np.add, np.array([2, 0, 2]), [np.array([1, 2, 3])], 3)
    >>> slots.tolist(), totals.tolist()
    ([0, 2], [2, 4])
    """
    ufuncs = ufuncs_of(combine, values)
    values = tuple(map(summable, ufuncs, values))
    if is_increasing(slots):
        return slots, values
    if FEW * len(slots) < size:
        return _sorted(ufuncs, slots, values, nodes)
    is_there = np.zeros(size, np.bool_)
    is_there[slots] = True
    found = np.flatnonzero(is_there)
    return found, tuple(total[found] for total in totalled(combine, slots, values, size, nodes))


def totalled(
    combine: Combination, slots: Ints, values: Sequence[Array], size: int, nodes: Ints | None = None
) -> tuple[Array, ...]:
    """Return the combination of the values of each of `size` slots; that of none is what changes no other.

    Raises DataError as `grouped` does.

    >>> totalled(np.add, np.array([2, 0, 2]), [np.array([1, 2, 3])], 3)[0].tolist()
    [2, 0, 4]
    """
    totals = []
    for ufunc, column in zip(ufuncs_of(combine, values), values):
        column = summable(ufunc, column)
        total = np.full(size, identity(ufunc, column.dtype), column.dtype)
        if column.dtype.kind == "b" and ufunc in _SETS:
            decides = _SETS[ufunc]
            total[slots[column == decides]] = decides  # a tenth of the time of `at`, which has no loop for booleans
        else:
            ufunc.at(total, slots, column)
            _refuse(ufunc, wrapped(ufunc, slots, column, size), nodes)
        totals.append(total)
    return tuple(totals)


def _sorted(
    ufuncs: tuple[np.ufunc, ...], slots: Ints, values: Sequence[Array], nodes: Ints | None = None
) -> tuple[Ints, tuple[Array, ...]]:
    order = np.argsort(slots, kind="stable")
    slots = slots[order]
    is_first = np.append(True, slots[1:] != slots[:-1])
    starts = np.flatnonzero(is_first)
    found = slots[starts]
    totals = []
    for ufunc, value in zip(ufuncs, values):
        column = value[order]
        totals.append(ufunc.reduceat(column, starts, dtype=value.dtype))
        if may_wrap(ufunc, column):
            groups = np.cumsum(is_first) - 1
            _refuse(ufunc, found[wrapped(ufunc, groups, column, len(starts))], nodes)
    return found, tuple(totals)


def _refuse(ufunc: np.ufunc, slots: Ints, nodes: Ints | None) -> None:
    """Raise DataError, which names a node, if there are any `slots` whose values do not fit."""
    if len(slots):
        node = int(slots[0] if nodes is None else nodes[slots[0]])
        raise DataError(
            f"what the values of node {node} {meaning(ufunc)} does not fit into 64 bits: divide them first, or combine "
            "floats"
        )


def group_nodes(combine: Combination, nodes: Ints, values: Sequence[Array]) -> tuple[Ints, tuple[Array, ...]]:
    """Return the different nodes, in order, and the combination of the values of each.

    >>> nodes, (least,) = group_nodes(np.minimum, np.array([9, 5, 9]), [np.array([1.0, 2.0, 0.5])])
    >>> nodes.tolist(), least.tolist()
    ([5, 9], [2.0, 0.5])
    """
    if is_increasing(nodes) or nodes.min() < 0 or nodes.max() >= FEW * len(nodes):
        ufuncs = ufuncs_of(combine, values)
        values = tuple(map(summable, ufuncs, values))
        return (nodes, values) if is_increasing(nodes) else _sorted(ufuncs, nodes, values)
    return grouped(combine, nodes, values, int(nodes.max()) + 1)


def identity(ufunc: np.ufunc, dtype: np.dtype[Any]) -> Any:
    """Return the value that changes no other by `ufunc`.

    >>> identity(np.minimum, np.dtype(np.int64)), identity(np.maximum, np.dtype(np.float64))
    (9223372036854775807, -inf)
    """
    if dtype.kind not in "biuf":
        raise DataError(f"np.{ufunc.__name__} cannot combine values of {dtype}: only numbers and booleans are combined")
    if ufunc is np.minimum or ufunc is np.maximum:
        if dtype.kind == "b":
            return ufunc is np.minimum
        if dtype.kind == "f":
            return np.inf if ufunc is np.minimum else -np.inf
        return np.iinfo(dtype).max if ufunc is np.minimum else np.iinfo(dtype).min
    if ufunc.identity is None:
        raise DataError(f"np.{ufunc.__name__} cannot combine messages: it has no value that changes no other")
    return np.array(ufunc.identity).astype(dtype)[()]  # that of `np.bitwise_and` is -1, also for unsigned numbers
