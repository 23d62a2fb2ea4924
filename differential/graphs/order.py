"""How two nodes compare: as keys do, among which nulls and NaN have a place.

NumPy's NaN equals nothing, and a comparison with a null has no result. As keys, each equals itself: NaN is greater than
all numbers, and a null is greater than everything.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from timely.lowlevel import Typed, fill_null, is_null


def is_same(one: Any, other: Any) -> Any:
    """Return in which rows two columns have the same node.

    >>> nan = np.nan
    >>> is_same(np.array([1.0, nan, nan]), np.array([1.0, nan, 1.0])).tolist()
    [True, True, False]
    """
    if not (_is_special(one) or _is_special(other)):
        return one == other
    # Two NaN, or two nulls, are the same; values are if they are equal, and a comparison with a null counts as unequal.
    places = _places(one)
    return (places == _places(other)) & ((places > 0) | fill_null(one == other, False))


def is_before(one: Any, other: Any) -> Any:
    """Return in which rows the node of `one` is before that of `other`.

    >>> nan = np.nan
    >>> is_before(np.array([1.0, nan, 1.0]), np.array([nan, nan, 2.0])).tolist()
    [True, False, True]
    """
    if not (_is_special(one) or _is_special(other)):
        return one < other
    ours, theirs = _places(one), _places(other)
    return (ours < theirs) | ((ours == theirs) & (ours == 0) & fill_null(one < other, False))


def _is_special(column: Any) -> bool:
    """Return whether a column may have nulls or NaN."""
    return isinstance(column, Typed) or column.dtype.kind == "f"


def _places(column: Any) -> Any:
    """Return 0 for each value, 1 for NaN and 2 for a null."""
    return np.where(is_null(column), 2, fill_null(column != column, False))  # only NaN differs from itself
