"""Columns in unusual forms: the same values in other types, and values that are not a column at all.

A form takes a list of Python values and returns an argument for the library. `EXACT` forms mean the same values: the
library must read these values, now and later, or refuse the form. `BROKEN` forms must be refused.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

Form = Callable[[list[Any]], Any]


class Subclass(np.ndarray[Any, Any]):
    """An array whose operators differ from those of an array."""

    def __getitem__(self, key: Any) -> Any:
        raise AssertionError("a subclass was indexed")

    def __len__(self) -> int:
        return 1 << 40


class Lazy:
    """A sequence that becomes an array only on request."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        return plain(self._values)


def plain(values: list[Any]) -> np.ndarray[Any, Any]:
    """Return the array that a program would make of values."""
    if values and isinstance(values[0], bytes):
        column = np.empty(len(values), np.object_)
        column[:] = values
        return column
    return np.array(values, None if values else np.int64)


def strided(values: list[Any]) -> np.ndarray[Any, Any]:
    """Return every other row of an array."""
    return np.repeat(plain(values), 2)[::2]


def reversed_view(values: list[Any]) -> np.ndarray[Any, Any]:
    """Return an array that runs backwards through memory."""
    return plain(values[::-1])[::-1]


def read_only(values: list[Any]) -> np.ndarray[Any, Any]:
    """Return an array that cannot be written to."""
    column = plain(values)
    column.flags.writeable = False
    return column


def big_endian(values: list[Any]) -> np.ndarray[Any, Any]:
    """Return an array in the other order of bytes."""
    column = plain(values)
    return column.astype(column.dtype.newbyteorder(">"))


def of_objects(values: list[Any]) -> np.ndarray[Any, Any]:
    """Return an array of Python objects."""
    column = np.empty(len(values), np.object_)
    column[:] = values
    return column


def of_scalars(values: list[Any]) -> list[Any]:
    """Return a list of NumPy's scalars."""
    return list(plain(values))


def small(values: list[Any]) -> np.ndarray[Any, Any]:
    """Return integers in the smallest type that holds them, everything else as it is."""
    column = plain(values)
    return column.astype(np.min_scalar_type(max(map(abs, values), default=0))) if _are_naturals(values) else column


def masked(values: list[Any]) -> np.ndarray[Any, Any]:
    """Return a masked array in which nothing is masked."""
    return np.ma.MaskedArray(plain(values))


def mangled(values: list[Any]) -> np.ndarray[Any, Any]:
    """Return a subclass of an array."""
    return plain(values).view(Subclass)


def field(values: list[Any]) -> np.ndarray[Any, Any]:
    """Return a field of an array of structures: aligned to nothing."""
    column = plain(values)
    table = np.zeros(len(column), [("pad", "i1"), ("value", column.dtype)])
    table["value"] = column
    return table["value"]


def in_memory(values: list[Any]) -> Any:
    """Return a buffer, for numbers, which is not an array."""
    column = plain(values)
    return memoryview(column) if column.dtype.kind in "if" else column


def _are_naturals(values: list[Any]) -> bool:
    return all(type(value) is int and value >= 0 for value in values)


EXACT: tuple[Form, ...] = (
    plain,
    list,
    strided,
    reversed_view,
    read_only,
    big_endian,
    of_objects,
    of_scalars,
    small,
    masked,
    mangled,
    field,
    in_memory,
    Lazy,
)


def square(values: list[Any]) -> np.ndarray[Any, Any]:
    """Return an array of two dimensions."""
    return np.stack([plain(values), plain(values)], axis=1)


def with_none(values: list[Any]) -> list[Any]:
    """Return values of which one is missing."""
    return [*values[:-1], None]


def with_hole(values: list[Any]) -> np.ndarray[Any, Any]:
    """Return a masked array in which a row is masked."""
    return np.ma.MaskedArray(plain(values), mask=[*[False] * (len(values) - 1), True])


def mixed(values: list[Any]) -> list[Any]:
    """Return values of which the last is of another kind: one more, where there is one only."""
    return [*values, "one" if not isinstance(values[0], str) else 1][-max(2, len(values)) :]


def lists(values: list[Any]) -> list[Any]:
    """Return a list of lists."""
    return [[value] for value in values]


def complex_numbers(values: list[Any]) -> np.ndarray[Any, Any]:
    """Return a column of numbers that have no order."""
    return np.arange(len(values)) * 1j


def months(values: list[Any]) -> np.ndarray[Any, Any]:
    """Return a column of times in a unit that columns do not have."""
    return np.arange(len(values)).astype("M8[M]")


def structures(values: list[Any]) -> np.ndarray[Any, Any]:
    """Return a column of structures."""
    return np.zeros(len(values), [("a", "i8"), ("b", "f8")])


def generator(values: list[Any]) -> Any:
    """Return an iterator over the values."""
    return (value for value in values)


def mapping(values: list[Any]) -> Any:
    """Return a dictionary."""
    return dict(enumerate(values))


def a_set(values: list[Any]) -> Any:
    """Return a set."""
    return set(values)


def huge(values: list[Any]) -> list[Any]:
    """Return integers that do not fit into 64 bits."""
    return [1 << 70, *[0] * (len(values) - 1)]


def decimals(values: list[Any]) -> list[Any]:
    """Return decimals."""
    return [Decimal(1) / 3 for _ in values]


def anything(values: list[Any]) -> Any:
    """Return an object."""
    return object()


BROKEN: tuple[Form, ...] = (
    square,
    with_none,
    with_hole,
    mixed,
    lists,
    complex_numbers,
    months,
    structures,
    generator,
    mapping,
    a_set,
    huge,
    decimals,
    anything,
)
