"""Sums of decimals of groups, at a cost that does not depend on how many records a group has.

A decimal of up to 18 digits is stored as a whole number of 60 bits. Its upper part and its lower 32 bits are added up
apart, as integers, and put together in the end: neither sum leaves 64 bits before a group has 2 ** 31 records.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from differential.data.codes import Codes, kind_of, settled
from differential.operators import map as _map
from differential.operators.exact_sums import sum_of_decimals
from differential.operators.totals import totals
from timely.lowlevel import NULL, Decimals, Typed, logical_type

_LOW = 32
_MOST_DIGITS = 18


def is_narrow_decimal(of: str) -> bool:
    """Return whether a type is one of decimals that are stored as integers.

    >>> is_narrow_decimal("decimal(18, 2)"), is_narrow_decimal("decimal(19, 2)")
    (True, False)
    """
    return of.startswith("decimal(") and cast(Decimals, logical_type(of)).precision <= _MOST_DIGITS


def sums_of_decimals(records: Any, column: str, of: str) -> Any:
    """Return (group, sum of a column of decimals of type `of`), to which a null adds nothing."""
    narrow = cast(Decimals, logical_type(of))
    wide = sum_of_decimals(narrow)

    def numbers(values: Any) -> Codes:
        settled((narrow,), (kind_of(values),), "value", (column,))  # else the numbers would have another scale
        return np.where(values.storage == NULL, 0, values.storage)

    def together(*columns: Any) -> Any:
        *group, _, high, low = columns
        sums: list[int | None] = [(one << _LOW) + other for one, other in zip(high.tolist(), low.tolist())]
        return (*group, Typed(wide, wide.of_unscaled(sums)))

    parts = totals(
        records,
        lambda *_: 1,  # a group of records whose sum is 0 has this total
        lambda *columns: numbers(columns[-1]) >> _LOW,
        lambda *columns: numbers(columns[-1]) & ((1 << _LOW) - 1),
        name="sum",
    )
    return _map.map(parts, together, keys=records.keys)
