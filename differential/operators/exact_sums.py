"""Sums of decimals, durations and unsigned integers: exact, over the values that each key has.

They are computed as Python's integers, from all values of a key that changed. Sums of integers and of floats are
computed in kernels (`aggregates.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np

from differential.data.codes import Encoder
from differential.data.overflow import shown, too_large
from differential.operators.groups import CodeGroups, CodeRows, GroupError
from timely.lowlevel import NULL, Decimals, Durations, LogicalType, Typed, is_null, logical_type

_MOST_DIGITS = (38, 76)
"""How many digits sums have: as many as the first of these that the decimals do not exceed."""


def is_summable(of: LogicalType) -> bool:
    """Return whether values of a type have a sum here."""
    return of.name == "uint64" or isinstance(of, (Decimals, Durations))


def sums_of(groups: CodeGroups, key: Encoder, value: Encoder, result: Encoder) -> CodeRows:
    """Return the sum of each group's values. Raises GroupError where one is null, or the sum does not fit its type.

    A sum of decimals of up to 38 digits has 38 digits, a wider one 76; other sums have the type of their values.
    """
    (column,) = value.decode(groups.vals, len(groups.counts))
    assert isinstance(column, Typed)
    missing = is_null(column)
    if missing.any():
        group = int(np.searchsorted(groups.offsets, np.argmax(missing), side="right")) - 1
        raise GroupError(
            f"the values of {shown(key.decode(groups.keys[group : group + 1], 1))} have no sum: one is null; "
            "filter(lambda key, value: ~is_null(value)) leaves nulls out",
            group,
        )
    numbers, counts = _integers(column), groups.counts.tolist()
    bounds = groups.offsets.tolist()
    totals = [
        sum(number * count for number, count in zip(numbers[start:end], counts[start:end]))
        for start, end in pairwise(bounds)
    ]
    stored = _stored(column.type, totals, groups, key)
    return CodeRows(np.arange(len(totals) + 1), result.encode((stored,)), np.ones(len(totals), np.int64))


def _integers(column: Typed) -> list[int]:
    of = column.type
    if isinstance(of, Decimals):
        return cast(list[int], of.unscaled(column.storage))
    array = np.asarray(column)
    numbers: list[int] = (array if of.name == "uint64" else array.view(np.int64)).tolist()
    return numbers


def _stored(of: LogicalType, totals: Sequence[int], groups: CodeGroups, key: Encoder) -> Any:
    """Return sums as a column. Raises GroupError, which names the key, where one does not fit."""
    least, most, room = -NULL, NULL, "64 bits"
    wide: Any = None
    if of.name == "uint64":
        least, most = 0, (1 << 64) - 1
    elif isinstance(of, Decimals):
        digits = _MOST_DIGITS[of.precision > _MOST_DIGITS[0]]
        wide = logical_type(f"decimal({digits}, {of.scale})")
        least, most, room = 1 - 10**digits, 10**digits - 1, f"{digits} digits"
    for group, total in enumerate(totals):
        if not least <= total <= most:
            error = too_large(key.decode(groups.keys[group : group + 1], 1), room=room)
            raise GroupError(str(error), group)
    if wide is not None:
        return Typed(wide, wide.of_unscaled(list(totals)))
    if of.name == "uint64":
        return Typed(of, of.store(np.array(totals, np.uint64)))
    return Typed(of, np.array(totals, np.int64) - 1)
