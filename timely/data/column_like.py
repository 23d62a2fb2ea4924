"""The base of columns that are no NumPy arrays."""

from __future__ import annotations


class ColumnLike:
    """A column that is no NumPy array, and behaves as one: one-dimensional, of a kind that columns can have, immutable.

    It implements NumPy's protocols (`__array__`, `__array_function__`, `__array_ufunc__`) and the attributes of arrays.
    """

    __slots__ = ()
