"""Combine the values of each node: the core of every combination of messages.

Values are combined by ufuncs, one for each column: `np.add`, `np.minimum`, `np.maximum`, `np.bitwise_or`, ... If there
are many values for few slots, each is added to the total of its slot directly (`ufunc.at`). If there are few values for
many slots, they are sorted, so the cost depends on the number of values alone. Input that is already sorted and
distinct, as most messages are that were combined where they were sent, costs only the check.

Sums and products of booleans and short integers have 64 bits, and `np.logical_or` makes booleans, as in NumPy. Results
that do not fit are refused (see `wrapped` in `timely.lowlevel`) wherever values are combined, also where they are sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from timely.errors import DataError
from timely.graphlinq.index import Ints, is_increasing
from timely.lowlevel import Array, may_wrap, wrapped

FEW = 8
"""Values are few if there are more than this many slots for each."""

_SETS = dict.fromkeys((np.logical_or, np.bitwise_or, np.maximum), True) | dict.fromkeys(
    (np.logical_and, np.bitwise_and, np.minimum), False
)
"""The boolean of which one occurrence decides the result of a ufunc."""

_LOGICAL = (np.logical_and, np.logical_or, np.logical_xor)
"""The ufuncs that make booleans of whatever they combine."""

Combination = np.ufunc | tuple[np.ufunc, ...]
"""How the values of a node are combined: a ufunc for each column of values, or one for the only column."""


def ufuncs_of(combine: Combination, columns: Sequence[Array]) -> tuple[np.ufunc, ...]:
    """Return a ufunc for each column; raise DataError for another number of them, or for any that cannot combine it."""
    ufuncs = combine if isinstance(combine, tuple) else (combine,)
    for ufunc in ufuncs:
        if not isinstance(ufunc, np.ufunc):
            raise DataError(f"the values of a node are combined by ufuncs, such as np.add, not by {ufunc!r}")
    if len(ufuncs) != len(columns):
        raise DataError(f"{len(ufuncs)} ufunc(s) cannot combine values of {len(columns)} column(s): give one for each")
    for ufunc, column in zip(ufuncs, columns):
        _check(ufunc, summable(ufunc, column[:0]).dtype)
    return ufuncs


def _check(ufunc: np.ufunc, dtype: np.dtype[Any]) -> None:
    """Raise DataError unless a ufunc can combine values of a type, whether or not any node has several of them."""
    identity(ufunc, dtype)
    try:
        made = ufunc.resolve_dtypes((dtype, dtype, None))[2]
    except TypeError:
        raise DataError(f"np.{ufunc.__name__} cannot combine values of {dtype}: convert them first") from None
    if not np.can_cast(made, dtype, "equiv"):
        raise DataError(f"np.{ufunc.__name__} combines values of {dtype} to {made}: convert them first")


def meaning(ufunc: np.ufunc) -> str:
    """Return a phrase for what values do whose sum or product is too large, for error messages.

    >>> meaning(np.add)
    'add up to'
    """
    return "add up to" if ufunc is np.add else "make when they are multiplied"


def summable(ufunc: np.ufunc, values: Array) -> Array:
    """Return values converted to the type of their combination.

    >>> summable(np.add, np.array([1], np.int8)), summable(np.maximum, np.array([1], np.int8))
    (array([1]), array([1], dtype=int8))
    """
    kind = values.dtype.kind
    if ufunc in _LOGICAL and kind in "biuf":
        return values.astype(np.bool_, copy=False)
    if ufunc not in (np.add, np.multiply) or kind not in "biu":
        return values
    return values.astype(ufunc.reduce(values[:0]).dtype, copy=False)


def grouped(
    combine: Combination, slots: Ints, values: Sequence[Array], size: int, nodes: Ints | None = None
) -> tuple[Ints, tuple[Array, ...]]:
    """Return the distinct `slots` (all below `size`), in order, and the combination of the values of each.

    Raises DataError if a sum or product of integers does not fit into 64 bits. The error names the node, given by
    `nodes` for each slot; without `nodes`, slots are nodes.

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
    """Return the combination of the values of each of `size` slots; a slot without values has the identity.

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
            total[slots[column == decides]] = decides  # ten times as fast as `at`, which has no loop for booleans
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
    # There is a first row: no rows at all are increasing, and then no caller comes here.
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
    """Raise DataError, naming a node, if there are any `slots` whose values do not fit."""
    if len(slots):
        node = int(slots[0] if nodes is None else nodes[slots[0]])
        raise DataError(
            f"what the values of node {node} {meaning(ufunc)} does not fit into 64 bits: divide them first, or combine "
            "floats"
        )


def group_nodes(combine: Combination, nodes: Ints, values: Sequence[Array]) -> tuple[Ints, tuple[Array, ...]]:
    """Return the distinct nodes, in order, and the combination of the values of each.

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
    """Return the identity of `ufunc`: the value that changes no other.

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
        raise DataError(
            f"np.{ufunc.__name__} cannot combine messages: it has no identity, a value that changes no other"
        )
    return np.array(ufunc.identity).astype(dtype)[()]  # that of `np.bitwise_and` is -1, even for unsigned numbers
