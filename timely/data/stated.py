"""Columns without rows whose types a program states."""

from __future__ import annotations

import numpy as np

from timely.data.logical import Array


def stated(column: Array) -> Array:
    """Return a plain column without rows as one whose type a program states, which `is_stated` distinguishes.

    >>> is_stated(stated(np.array([]))), is_stated(np.array([])), is_stated(np.array([], np.int64))
    (True, False, True)
    """
    return np.empty(0, np.dtype(column.dtype, metadata={"stated": True}) if column.dtype.kind in "fO" else column.dtype)


def is_stated(column: Array) -> bool:
    """Return whether an array without rows has the type that it is to have.

    NumPy makes 64-bit floats of an empty list, and programs make objects of anything, whatever the array is for.
    """
    # Types that differ only in their metadata are equal.
    return column.dtype not in (np.float64, np.object_) or bool(column.dtype.metadata)
