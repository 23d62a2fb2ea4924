"""Several aggregates of the records of a group, as a definition names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np

from differential.data.codes import Codes, kind_of, settled
from differential.operators import map as _map
from differential.operators.exact_sums import sum_of_decimals
from differential.operators.totals import totals
from timely.errors import DataError
from timely.lowlevel import NULL, Decimals, Typed, logical_type, refusal

Aggregate = Literal["count"] | tuple[str, Literal["count_distinct", "sum", "min", "max", "mean"]]
"""The number of records, or a column and the aggregate of its values."""

KINDS = ("count_distinct", "sum", "min", "max", "mean")

_SUMS = {
    "bool": "int64",
    "int64": "int64",
    "uint64": "uint64",
    **dict.fromkeys(("float16", "float32", "float64"), "float64"),
}
"""The types of the sums of numbers."""


def check_aggregates(groups: Sequence[str], aggregates: Mapping[str, Any]) -> None:
    """Raise BuildError unless there are aggregates, with other names than the columns by which the groups are made.

    >>> check_aggregates(["customer"], {"orders": "count", "spent": ("total", "sum")})
    """
    example = "as in aggregate(orders='count', spent=('total', 'sum'))"
    if not aggregates:
        raise refusal("aggregate", f"name at least one aggregate, {example}")
    for name, of in aggregates.items():
        if name in groups:
            raise refusal("aggregate", f"{name!r} is a column of the groups, so an aggregate needs another name")
        if of != "count" and not (isinstance(of, tuple) and len(of) == 2 and isinstance(of[0], str) and of[1] in KINDS):
            raise refusal(
                "aggregate",
                f"{name}={of!r:.80} is neither 'count' nor a column and one of {', '.join(KINDS)}, {example}",
            )


def type_of(aggregate: str, of: str | None) -> str | None:
    """Return the name of the type of an aggregate of a column of type `of`; None if it is not known without rows.

    >>> type_of("count", None), type_of("sum", "float32"), type_of("mean", "int64"), type_of("max", "text?")
    ('int64', 'float64', 'float64', 'text?')
    >>> type_of("sum", "decimal(9, 2)"), type_of("mean", "duration[s]"), type_of("sum", "text")
    ('decimal(38, 2)', 'duration[us]', None)
    """
    if aggregate in ("count", "count_distinct"):
        return "int64"
    if of is None or aggregate in ("min", "max"):
        return of
    if (plain := of.removesuffix("?")) in _SUMS:
        return _SUMS[plain] if aggregate == "sum" else "float64"
    if of.startswith("decimal("):
        return sum_of_decimals(cast(Decimals, logical_type(of))).name if aggregate == "sum" else "float64"
    if of.startswith("duration["):
        return of if aggregate == "sum" or of == "duration[ns]" else "duration[us]"
    return None


def refuse_type(aggregate: str, column: str, of: str | None) -> None:
    """Raise BuildError where a column is known to be of a type whose values cannot be added up.

    >>> refuse_type("sum", "total", "int64")
    """
    if aggregate in ("sum", "mean") and of is not None and type_of(aggregate, of) is None:
        raise refusal(
            aggregate,
            f"column {column!r} holds {of}, and a {aggregate} is one of numbers, booleans, decimals or durations",
        )


def quotient(sums: Any, counts: Any) -> Any:
    """Return the means of groups: floats for numbers, and durations rounded to the nearest microsecond or nanosecond.

    The mean of no values is NaN, or null.

    >>> quotient(np.array([3, 4]), np.array([2, 1]))
    array([1.5, 4. ])
    >>> quotient(np.array([3, -1], "m8[D]"), np.array([2, 3])).tolist()
    [datetime.timedelta(days=1, seconds=43200), datetime.timedelta(days=-1, seconds=57600)]
    """
    sums = np.asarray(sums)
    if sums.dtype.kind == "m":
        return _mean_durations(sums, counts)
    if sums.dtype == np.object_:  # decimals: Python divides integers of any size, and rounds once
        ratios = zip((one.as_integer_ratio() for one in sums.tolist()), counts.tolist())
        return np.array([above / (below * count) if count else np.nan for (above, below), count in ratios], np.float64)
    # A count may be 0 beside another sum: the join also emits the pairs of former values, and retracts them.
    with np.errstate(divide="ignore", invalid="ignore"):
        divided = sums / counts
    if sums.dtype.kind in "iu":
        is_large = (sums >= _EXACT) | (sums < -_EXACT if sums.dtype.kind == "i" else False)
        large = np.flatnonzero(is_large & (counts != 0))
        divided[large] = [one / count for one, count in zip(sums[large].tolist(), counts[large].tolist())]
    return divided


_EXACT = 1 << 53
"""Integers beyond this are rounded before NumPy divides them, and Python rounds the quotient alone."""
_NAT = -(1 << 63)
"""NaT as an integer."""


def _mean_durations(sums: Any, counts: Any) -> Any:
    unit = "ns" if sums.dtype == np.dtype("m8[ns]") else "us"
    ratio = int(np.ones(1, sums.dtype).astype(f"m8[{unit}]").astype(np.int64)[0])
    means = []
    for one, count in zip(sums.astype(np.int64).tolist(), counts.tolist()):
        if not count:
            means.append(_NAT)
            continue
        mean, rest = divmod(one * ratio, count)  # rounds down, below zero too: the rest is never negative
        mean += 2 * rest > count or (2 * rest == count and mean % 2)
        if abs(mean) >= 1 << 63:  # the least number of 64 bits is NaT
            raise DataError(f"a mean of durations does not fit into 64 bits in {unit}")
        means.append(mean)
    return np.array(means, np.int64).view(f"m8[{unit}]")


_LOW = 32
_MOST_DIGITS = 18


def is_narrow_decimal(of: str) -> bool:
    """Return whether a type is one of decimals that are stored as integers.

    >>> is_narrow_decimal("decimal(18, 2)"), is_narrow_decimal("decimal(19, 2)")
    (True, False)
    """
    return of.startswith("decimal(") and cast(Decimals, logical_type(of)).precision <= _MOST_DIGITS


def sums_of_decimals(records: Any, column: str, of: str) -> Any:
    """Return (group, sum of a column of decimals of type `of`), to which a null adds nothing.

    The cost does not depend on how many records a group has. A decimal of up to 18 digits is stored as a whole number
    of 60 bits. Its upper part and its lower 32 bits are added up apart, as integers, and put together in the end:
    neither sum leaves 64 bits before a group has 2 ** 31 records.
    """
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
