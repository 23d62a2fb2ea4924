"""Logical types: what the values of a typed column mean, beside the column of a plain kind that stores them.

A plain column holds integers, floats, booleans, text or bytes. A logical type maps every other value to one of a plain
column, its storage, such that

    two values are equal exactly if their storage is, and one is less than the other exactly if its storage is

so whatever counts, joins and orders plain columns does the same for typed ones. A null equals a null, and every null
comes after all values. Types with a name that ends in `?` may hold nulls; dates, timestamps, durations, times of day,
decimals and opaque values always may. `docs/types.md` lists all types.

A type is known by its name: `types.logical_type("timestamp[us, Europe/Berlin]")`. What fits into 64 bits is stored as
int64, whose largest number is the null.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from timely.errors import DataError

Array = NDArray[Any]
Ints = NDArray[np.int64]

TEXT = np.dtypes.StringDType()
OBJECT = np.dtype(np.object_)
NULL = (1 << 63) - 1
"""The storage of a null in a column stored as int64."""


class LogicalType:
    """A logical type. Types of one name are equal.

    `stores` is the kind of the storage: "i" for int64, "T" for text, "O" for bytes. `dtype` is what `column.dtype` is.
    """

    stores: ClassVar[str] = "i"
    dtype: np.dtype[Any] = OBJECT
    is_strict = False
    """Whether the array of the values has no place for a null, so that a column with one has no such array."""
    is_opaque = False
    """Whether values are not numbers, text or bytes in a new guise, but other Python objects."""

    compared_as: ClassVar[str | None] = None
    """What kind the values are of, where they are compared (`timely.data.comparisons`); None for any."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogicalType) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name

    @property
    def value(self) -> str:
        """The name, as an error shows it beside the kinds of plain columns."""
        return self.name

    def store(self, values: Any) -> Array:
        """Return the storage of values: an array, or a list in which None is a null.

        Raises DataError where a value is not of this type.
        """
        raise NotImplementedError

    def array(self, storage: Array) -> Array:
        """Return the values as functions see them. A strict type's storage must have no null."""
        raise NotImplementedError

    def to_list(self, storage: Array) -> list[Any]:
        """Return the values as Python objects, None for a null."""
        raise NotImplementedError

    def nulls(self, storage: Array) -> NDArray[np.bool_]:
        """Return which rows are null."""
        return np.asarray(storage == NULL)

    def null_storage(self, length: int) -> Array:
        """Return the storage of a column of nulls."""
        return np.full(length, NULL, np.int64)

    def refused(self, values: Any, row: int, why: str) -> DataError:
        """Return the error for a row that is not of this type."""
        value = values[row].item() if isinstance(values[row], np.generic) else values[row]
        return DataError(f"{value!r:.80} at row {row} {why}, so it is not a value of a column of {self.name}")


def objects(items: Sequence[Any]) -> Array:
    """Return scalars, such as bytes, decimals and None, as an array of objects."""
    array = np.empty(len(items), np.object_)
    array[:] = items
    return array


def nulled(items: list[Any], missing: Array) -> list[Any]:
    """Return a list with None in the rows that are missing."""
    for row in np.flatnonzero(missing).tolist():
        items[row] = None
    return items


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
