"""Reductions written in Python, which receive all groups of a round in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from differential.data.codes import Codes
from differential.data.interned import Interned
from differential.kernels.compile import NOTHING, Batches, Times
from differential.kernels.reduce_rounds import plan
from differential.kernels.wide import Overflow
from differential.operators.reduction import GroupFault, Pending
from differential.trace.columns import UpdateColumns
from timely.errors import DataError
from timely.lowlevel import Typed, read_only_views


class CodeGroups(NamedTuple):
    """Groups in codes: group `g` has key `keys[g]` and the rows `offsets[g]:offsets[g + 1]` of values and counts."""

    keys: Codes
    offsets: Codes
    vals: Codes
    counts: Codes


class CodeRows(NamedTuple):
    """The values that groups are reduced to, in codes, laid out like `CodeGroups`."""

    offsets: Codes
    vals: Codes
    counts: Codes


class Groups:
    """The groups that a reduction receives.

    `keys` are the key columns, one row for each group. `values` are the value columns and `counts` how often each value
    occurs (never 0); the rows of group `g` are `offsets[g]:offsets[g + 1]`, in any order. No group is empty.
    All columns are read-only.

    >>> def mean(groups):
    ...     number = np.bincount(groups.index, groups.counts)
    ...     total = np.bincount(groups.index, groups.counts * groups.values[0])
    ...     return np.arange(len(groups)), total / number
    >>> example(lambda scope: Collection.of(scope, np.array([1, 1, 2]), np.array([4, 7, 9])).reduce(mean))
    [((1, 5.5), 1), ((2, 9.0), 1)]
    """

    __slots__ = ("counts", "keys", "offsets", "values")

    def __init__(self, keys: tuple[Any, ...], offsets: Codes, values: tuple[Any, ...], counts: Codes) -> None:
        self.keys = read_only_views(keys)
        self.values = read_only_views(values)
        self.offsets, self.counts = read_only_views((offsets, counts))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def index(self) -> Codes:
        """The number of the group that each row belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))


class GroupError(Exception):
    """The values of a group have no reduction; `group` is its number. The time is known only when this is caught."""

    def __init__(self, message: str, group: int) -> None:
        super().__init__(message)
        self.group = group


class InPython:
    """A reduction by a function of `CodeGroups`, called once for each round of interesting times.

    Unless it is `signed`, a negative count is an error. The error does not mention the last `hidden` columns.
    """

    by_value = False

    def __init__(self, function: Callable[[CodeGroups], CodeRows], *, signed: bool = False, hidden: int = 0) -> None:
        self._function = function
        self._signed = signed
        self._hidden = hidden

    def __call__(
        self, new: Batches, pending: Pending, input: Batches, output: Batches, upper: Times
    ) -> tuple[list[UpdateColumns], Pending]:
        state = plan(new, pending, input, output, upper)
        chunks: list[UpdateColumns] = []
        for number in range(state.rounds):
            try:
                active, offsets, vals, counts, fault = state.accumulate(number)
            except Overflow as overflow:
                key, _, visit = overflow.args
                raise GroupFault(np.append(key, state.times[visit]), hidden=self._hidden) from None
            if len(fault) and not self._signed:
                raise GroupFault(fault, hidden=self._hidden)
            try:
                rows = self._reduce(CodeGroups(state.keys[active], offsets, vals, counts))
            except GroupError as error:
                # The function has numbered only the groups that are not empty (`_reduce`).
                place = np.flatnonzero(np.diff(offsets))[error.group]
                raise DataError(str(error), state.time_of(number, int(place))) from None
            block, length, times = state.settle(*rows)
            if length:
                chunks.append(UpdateColumns(length, times, state.times.shape[1], block, None))
        return chunks, state.pending

    def _reduce(self, groups: CodeGroups) -> CodeRows:
        """Call the function with the groups that are not empty."""
        sizes = np.diff(groups.offsets)
        filled = sizes > 0
        if not filled.any():
            return CodeRows(np.zeros(len(sizes) + 1, np.int64), NOTHING, NOTHING)
        if filled.all():
            return self._function(groups)
        offsets = np.concatenate([[0], np.cumsum(sizes[filled])])
        rows = self._function(CodeGroups(groups.keys[filled], offsets, groups.vals, groups.counts))
        # An empty group has no values, but a place in the result: `settle` expects one for each group of the round.
        lengths = np.zeros(len(sizes), np.int64)
        lengths[filled] = np.diff(rows.offsets)
        return CodeRows(np.concatenate([[0], np.cumsum(lengths)]), rows.vals, rows.counts)


def ranks(column: Any) -> Codes:
    """Return, for each row, the place of its value among the distinct values of the column, in their order."""
    if isinstance(column, Typed):
        return ranks(column.storage)
    if isinstance(column, Interned):
        return column.ranks()
    return np.unique(column, return_inverse=True)[1].astype(np.int64)
