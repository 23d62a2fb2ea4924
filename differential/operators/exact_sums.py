"""Sums of decimals, durations and unsigned integers: exact, over the values that each key has.

They are computed from all values of a key that changed, by NumPy where 64 bits are enough and by Python elsewhere. Sums
of integers and of floats are computed in kernels (`aggregates.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np

from differential.data.codes import Codes, Encoder
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
            "filter(lambda key, value: ~is_null(value)), with is_null of differential.frames, leaves nulls out",
            group,
        )
    stored = _stored(column.type, _totals(column, groups), groups, key)
    return CodeRows(np.arange(len(groups.keys) + 1), result.encode((stored,)), np.ones(len(groups.keys), np.int64))


def _totals(column: Typed, groups: CodeGroups) -> list[int]:
    """Return the sum of each group: by NumPy, which takes a tenth of the time, if no sum can need more than 64 bits."""
    of = column.type
    array = column.storage if isinstance(of, Decimals) else np.asarray(column)
    numbers = array.view(np.int64) if array.dtype.kind != "O" else None
    if numbers is not None and (of.name != "uint64" or int(numbers.min()) >= 0):
        # A bound in Python's integers, which do not wrap around: the largest value, count and number of rows.
        most = _magnitude(numbers) * _magnitude(groups.counts) * int(np.diff(groups.offsets).max())
        if most < 1 << 63:
            # Groups are not empty (`InPython`): of an empty one, `reduceat` would return an item that is not its own.
            totals: list[int] = np.add.reduceat(numbers * groups.counts, groups.offsets[:-1]).tolist()
            return totals
    if isinstance(of, Decimals):
        items = cast(list[int], of.unscaled(column.storage))
    else:
        items = (array if numbers is None or of.name == "uint64" else numbers).tolist()
    counts = groups.counts.tolist()
    return [
        sum(number * count for number, count in zip(items[start:end], counts[start:end]))
        for start, end in pairwise(groups.offsets.tolist())
    ]


def sum_of_decimals(of: Decimals) -> Decimals:
    """Return the type of sums of decimals of a type."""
    digits = _MOST_DIGITS[of.precision > _MOST_DIGITS[0]]
    return cast(Decimals, logical_type(f"decimal({digits}, {of.scale})"))


def _magnitude(numbers: Codes) -> int:
    return max(int(numbers.max()), -int(numbers.min()))


def _stored(of: LogicalType, totals: Sequence[int], groups: CodeGroups, key: Encoder) -> Any:
    """Return sums as a column. Raises GroupError, which names the key, where one does not fit."""
    least, most, room = -NULL, NULL, "64 bits"
    wide: Any = None
    if of.name == "uint64":
        least, most = 0, (1 << 64) - 1
    elif isinstance(of, Decimals):
        wide = sum_of_decimals(of)
        least, most, room = 1 - 10**wide.precision, 10**wide.precision - 1, f"{wide.precision} digits"
    for group, total in enumerate(totals):
        if not least <= total <= most:
            error = too_large(key.decode(groups.keys[group : group + 1], 1), room=room)
            raise GroupError(str(error), group)
    if wide is not None:
        return Typed(wide, wide.of_unscaled(list(totals)))
    if of.name == "uint64":
        return Typed(of, of.store(np.array(totals, np.uint64)))
    # A duration is stored less 1, by which NaT, the least integer, becomes `NULL`, the greatest.
    return Typed(of, np.array(totals, np.int64) - 1)
