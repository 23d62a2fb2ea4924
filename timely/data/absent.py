"""What pandas has in the place of a null, where a list of Python values has None."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from timely.data.logical import OBJECT


def with_none(values: Any) -> Any:
    """Return values with None for nulls of pandas, which only a program that uses pandas can have; others as they are.

    These are NA and NaT in a list or an array of objects, and what `isna()` finds in a series, an index or an array of
    pandas that is not one of numbers.

    >>> with_none([3, None])
    [3, None]
    """
    pandas = sys.modules.get("pandas")
    # While another thread imports pandas, these names are missing, and no value can be one of the two.
    missing, no_time = getattr(pandas, "NA", None), getattr(pandas, "NaT", None)
    if missing is None or no_time is None:
        return values
    if isinstance(values, np.ndarray) and values.dtype == OBJECT and values.ndim == 1:
        values = values.tolist()
    if isinstance(values, (list, tuple)):
        return [None if value is missing or value is no_time else value for value in values]
    is_numbers = isinstance(getattr(values, "dtype", None), np.dtype) and values.dtype != OBJECT
    if not hasattr(values, "isna") or is_numbers:
        return values
    return [None if is_null else value for value, is_null in zip(values, values.isna())]
