"""How two nodes compare: as keys do, among which nulls and NaN have a place.

NumPy's NaN equals nothing, and a comparison with a null has no result. As keys, each equals itself: NaN is greater than
all numbers, and a null is greater than everything. Lists and structs have an order as keys, and none in Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from timely.lowlevel import Typed


def is_same(one: Any, other: Any) -> Any:
    """Return in which rows two columns have the same node.

    >>> nan = np.nan
    >>> is_same(np.array([1.0, nan, nan]), np.array([1.0, nan, 1.0])).tolist()
    [True, True, False]
    """
    one, other = _stored(one, other)
    return (one == other) | (_is_nan(one) & _is_nan(other))


def is_before(one: Any, other: Any) -> Any:
    """Return in which rows the node of `one` is before that of `other`.

    >>> nan = np.nan
    >>> is_before(np.array([1.0, nan, 1.0]), np.array([nan, nan, 2.0])).tolist()
    [True, False, True]
    """
    one, other = _stored(one, other)
    return (one < other) | (~_is_nan(one) & _is_nan(other))


def _stored(one: Any, other: Any) -> tuple[Any, Any]:
    """Return two columns of one type as what they store, which is equal and less exactly as keys are."""
    if isinstance(one, Typed) and isinstance(other, Typed) and one.type == other.type:
        return one.storage, other.storage
    return one, other


def _is_nan(column: Any) -> Any:
    return column != column if column.dtype.kind == "f" else np.False_
