"""Reduce the values of every key by a function that is called once for all groups of a round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from differential.arrangement.core import ArrangementCore, C, Keyed
from differential.data.codes import Encoder
from differential.kernels.compile import NOTHING
from differential.operators.groups import CodeGroups, CodeRows, Groups, InPython
from differential.operators.reduction import reduce_arrangement
from timely.errors import DataError
from timely.lowlevel import as_columns, check_parameters


def reduce(collection: Keyed[C], function: Callable[[Groups], Any], *, name: str = "reduce") -> C:
    """Return (key, value) for the values that `function` makes of each key's values.

    `function` receives `Groups` and returns `(index, *value columns)`: for each value, the number of its group. One
    call has many groups, and `function` must treat each by itself.

    >>> def mean(groups):
    ...     totals = np.add.reduceat(groups.values[0] * groups.counts, groups.offsets[:-1])
    ...     return np.arange(len(groups)), totals / np.add.reduceat(groups.counts, groups.offsets[:-1])
    >>> example(lambda scope: Collection.of(scope, np.array([1, 1, 2]), np.array([10, 20, 5])).reduce(mean))
    [((1, 15.0), 1), ((2, 5.0), 1)]
    """
    received = "the `Groups` of many keys (reduce_each calls a function for each key)"
    check_parameters(name, 1, received, function=function)
    return reduce_groups(collection.arrange_by_key(), function, name=name)


def reduce_groups(source: ArrangementCore[C], function: Callable[[Groups], Any], *, hidden: int = 0, name: str) -> C:
    """Return what `reduce` does; the last `hidden` columns are not the program's."""

    def make(key: Encoder, value: Encoder, result: Encoder) -> InPython:
        return InPython(lambda groups: _call(function, groups, key, value, result), hidden=hidden)

    source.value.hidden = hidden
    return reduce_arrangement(source, make, name=name).as_collection()


def _call(
    function: Callable[[Groups], Any], groups: CodeGroups, key: Encoder, value: Encoder, result: Encoder
) -> CodeRows:
    number = len(groups.offsets) - 1
    values = value.decode(groups.vals, len(groups.counts))
    # The arrays that the function returns are copied below, in the order of the groups, so it may keep them.
    returned = function(Groups(key.decode(groups.keys, number), groups.offsets, values, groups.counts))
    if not isinstance(returned, tuple) or not returned:
        raise DataError("a reduction must return (index, value column, ...)")
    index, *columns = as_columns(returned)
    if not len(index):
        # Empty columns may be of any kind.
        return CodeRows(np.zeros(number + 1, np.int64), NOTHING, NOTHING)
    if index.dtype.kind not in "iu" or not (0 <= int(index.min()) and int(index.max()) < number):
        raise DataError(f"a reduction must return group numbers from 0 to {number - 1} first")
    order = np.argsort(index, kind="stable")
    vals = result.encode(tuple(column[order] for column in columns))
    lengths = np.bincount(index, minlength=number)
    return CodeRows(np.concatenate([[0], np.cumsum(lengths)]), vals, np.ones(len(index), np.int64))
