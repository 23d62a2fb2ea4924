"""Several sums in one pass: diffs that are vectors.

A diff of W parts is kept as up to W rows that differ in a last column, the number of the part. A part of 0 has no row.
So vectors add up and cancel as diffs do, in ordinary arrangements and kernels, and a key keeps one row for each part,
however many values were added up.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from differential.arrangement.core import ArrangementCore, C
from differential.data.codes import Encoder
from differential.data.updates import Ints, Updates
from differential.operators.groups import CodeGroups, CodeRows, InPython
from differential.operators.linear import linear
from differential.operators.reduction import reduce_arrangement


def as_part(collection: C, part: int, *, name: str) -> C:
    """Return the collection with `part` as another, last column."""

    def transform(updates: Updates) -> Updates:
        return updates.with_columns((*updates.columns, np.full(len(updates), part, np.int64)))

    return linear(collection, transform, name=name)


def reduce_parts(
    source: ArrangementCore[C],
    parts: int,
    function: Callable[[Ints], tuple[tuple[Ints, ...], Ints]],
    *,
    signed: bool,
    name: str,
) -> ArrangementCore[C]:
    """Return (key, value) as often as `function` returns for each key's vector.

    The values of `source` are the parts' numbers. `function` receives int64[groups, parts], no row of which is all 0,
    and returns value columns and how often each value occurs. The parts are counts, and a negative one is an
    error; if `signed`, they are sums.
    """

    def make(_key: Encoder, _value: Encoder, result: Encoder) -> InPython:
        def apply(groups: CodeGroups) -> CodeRows:
            columns, counts = function(vectors(groups, parts))
            kept = counts != 0
            offsets = np.concatenate([[0], np.cumsum(kept)])
            return CodeRows(offsets, result.encode(tuple(column[kept] for column in columns)), counts[kept])

        return InPython(apply, signed=signed, hidden=1)

    source.value.hidden = 1  # the number of the part
    source.value.adds = signed
    return reduce_arrangement(source, make, name=name)


def vectors(groups: CodeGroups, parts: int) -> Ints:
    """Return the vector of each group, int64[groups, parts]."""
    number = len(groups.offsets) - 1
    table = np.zeros((number, parts), np.int64)
    index = np.repeat(np.arange(number), np.diff(groups.offsets))
    # A group has one row for each part at most, because rows are consolidated.
    table[index, groups.vals if len(groups.vals) else 0] = groups.counts
    return table
