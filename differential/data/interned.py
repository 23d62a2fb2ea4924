"""Columns of text and bytes as the dataflow passes them on: numbers of strings, and the table that has the strings.

Operators that only move rows, and functions that pass a column on, or choose among its rows, cost what they cost for
integers. To everything else the column is the array of its strings: a NumPy array of variable-width strings (of objects
where they are bytes), made when it is first needed, and kept. It is read-only, as all columns are that functions
receive.

*The invariant.* The numbers in a column are in use (see `differential.data.interning`): its table watches the array.
A column belongs to one worker; `strings_of` makes columns of it that may go to others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from differential.data.interning import Codes, Interner
from differential.data.strings import TEXT
from timely.lowlevel import (
    BYTES,
    COMPARISONS,
    TEXTS,
    ColumnLike,
    Typed,
    exact_operand,
    plain_string,
    refuse_comparison,
    refuse_members,
)

Array = NDArray[Any]

_OBJECT = np.dtype(np.object_)


class Interned(ColumnLike):
    """A column of interned text or bytes. It behaves as the read-only NumPy array of its strings.

    Slices, masks, positions, `take`, `repeat`, `np.concatenate` and `np.where` of such columns make another one, and
    `==` and `!=` compare numbers; `tolist` and iteration make Python's strings, and all else the array. `in` is
    refused: it looks like a condition on each row's text.

    >>> column = interned(np.array(["to", "be"], TEXT), Interner())
    >>> column[::-1].tolist(), (column == "be").tolist(), len(column), column.dtype
    (['be', 'to'], [False, True], 2, StringDType())
    >>> np.strings.upper(column)
    array(['TO', 'BE'], dtype=StringDType())
    """

    __slots__ = ("_array", "codes", "dtype", "interner")

    def __init__(self, interner: Interner, codes: Codes, dtype: np.dtype[Any]) -> None:
        """Take numbers of the table `interner`; `dtype` is that of text, or of objects for bytes."""
        if not codes.flags.carray:  # kernels take no others
            codes = codes.copy()
        self.interner = interner
        self.codes = codes
        self.dtype = dtype
        self._array: Array | None = None
        # The array that is kept here, not the one that was given: the table refers to it weakly.
        interner.watch_strings(codes)

    @property
    def compared_as(self) -> str:
        """What kind of values the column holds, where it is compared."""
        return TEXTS if self.dtype.kind == "T" else BYTES

    @property
    def nbytes(self) -> int:
        """The bytes of the numbers: strings are counted by their table."""
        return self.codes.nbytes

    def __len__(self) -> int:
        return len(self.codes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self._array
        if array is None:
            strings = self.interner.strings
            if self.dtype.kind == "T":
                array = strings.text(self.codes)
            else:
                array = np.empty(len(self), _OBJECT)
                array[:] = strings.contents(self.codes)
            array.setflags(write=False)  # all who ask receive this one
            self._array = array
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and not options and (ufunc is np.equal or ufunc is np.not_equal):
            one, other = inputs
            if isinstance(one, Interned) and isinstance(other, Interned) and one.is_like(other):
                return ufunc(one.codes, other.codes)
            column, value = (one, plain_string(other)) if isinstance(one, Interned) else (other, plain_string(one))
            if type(value) is (str if column.dtype.kind == "T" else bytes):
                # A string without a number is `ABSENT`, which no column has, so it equals none.
                return ufunc(column.codes, column.interner.number_of(value))
        if ufunc in COMPARISONS and method == "__call__":
            refuse_comparison(*inputs)
        return getattr(ufunc, method)(*map(_spelled_out, inputs), **_all_spelled_out(options))

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        refuse_members(function, args)
        moved = _MOVERS.get(function)
        if moved is not None and not options:
            result = moved(*args)
            if result is not None:
                return result
        if function in _MIXING:
            raise TypeError(f"np.{function.__name__} of NumPy mixes up texts: write array[rows] = column")
        if function is np.searchsorted:  # up to NumPy 2.4 it reads texts of one array in the memory of the other
            args, options = tuple(map(_as_objects, args)), {name: _as_objects(each) for name, each in options.items()}
        return function(*_all_spelled_out(args), **_all_spelled_out(options))

    def __getitem__(self, rows: Any) -> Any:
        if rows is ...:
            return self  # immutable, so it is a view of itself
        if type(rows) is slice:
            return self if rows == _WHOLE else self._of(self.codes[rows])
        if isinstance(rows, (list, np.ndarray)):
            codes = self.codes[rows]
            if codes.ndim == 1:
                return self._of(codes)
        if type(rows) is int and self._array is None:
            number = np.array([self.codes[rows]])
            return self.interner.to_list(number, is_text=self.dtype.kind == "T")[0]
        return np.asarray(self)[rows]

    def __contains__(self, value: object) -> bool:
        raise TypeError(
            f"`{value!r:.80} in column` is about a whole column of text: np.strings.find(column, {value!r:.80}) >= 0 "
            "finds a text in that of each row, np.isin(column, values) each row's text among some, and "
            "column.tolist() makes a list"
        )

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __str__(self) -> str:
        return str(np.asarray(self))

    def __reduce__(self) -> Any:
        return np.asarray(self).__reduce__()  # in another process the numbers have no meaning

    def tolist(self) -> list[Any]:
        """Return the strings as Python objects, one for each distinct string."""
        if self._array is not None and len(self) < _FEW:
            return cast(list[Any], self._array.tolist())
        return self.interner.to_list(self.codes, is_text=self.dtype.kind == "T")

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:
        """Return the column for its own type, or Python's name of it, else a converted array."""
        if np.dtype(dtype) == self.dtype or (self.dtype.kind == "T" and np.dtype(dtype) == np.dtype(str)):
            return self
        return np.asarray(self).astype(dtype, *args, **options)

    def copy(self, order: str = "C") -> Array:
        """Return the strings as an array that the caller may change."""
        return np.asarray(self).copy()

    def take(self, rows: Any, *args: Any, **options: Any) -> Any:
        """Return the rows at some positions."""
        taken = self.codes.take(rows, *args, **options)
        return self._of(taken) if taken.ndim == 1 else np.asarray(self).take(rows, *args, **options)

    def repeat(self, times: Any, axis: int | None = None) -> Interned:
        """Return each row several times over."""
        return self._of(self.codes.repeat(times, axis))

    def is_like(self, other: Interned) -> bool:
        """Return whether equal numbers mean equal strings in both columns."""
        # `TEXT` and `_OBJECT` are the only types, so identity is equality.
        return self.interner is other.interner and self.dtype is other.dtype

    def hashes(self) -> NDArray[np.uint64] | None:
        """Return the hash of each string that routes it; None if one is so long that it has another."""
        return self.interner.strings.hashes(self.codes)

    def ranks(self) -> Codes:
        """Return, for each row, the place of its string among the distinct strings of the column, in their order."""
        distinct, which = np.unique(self.codes, return_inverse=True)
        places = np.empty(len(distinct), np.int64)
        places[np.searchsorted(distinct, self.interner.strings.sorted(distinct))] = np.arange(len(distinct))
        return places[which]

    def _of(self, codes: Codes) -> Interned:
        return Interned(self.interner, codes, self.dtype)


_WHOLE = slice(None)
_FEW = 16


def interned(column: Array, interner: Interner) -> Array:
    """Return a column of text or bytes as numbers in a worker's table; other columns as they are.

    A typed column that is stored as text or bytes is then stored as such numbers.
    """
    if isinstance(column, Typed):
        storage = interned(column.storage, interner)
        return column if storage is column.storage else Typed(column.type, storage)
    kind = column.dtype.kind
    if kind not in "TO" or codes_of(column, interner) is not None:
        return column
    return cast(Array, Interned(interner, interner.encode_strings(column), TEXT if kind == "T" else _OBJECT))


def of_codes(interner: Interner, codes: Codes, is_text: bool) -> Array:
    """Return the column of the strings with these numbers."""
    return cast(Array, Interned(interner, codes, TEXT if is_text else _OBJECT))


def codes_of(column: Array, interner: Interner) -> Codes | None:
    """Return the numbers in a column, if they are those of this table; None for others, and for arrays of strings."""
    table: object = column
    return table.codes if isinstance(table, Interned) and table.interner is interner else None


def strings_of(columns: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return columns that any worker may read, and a program keep: arrays of strings instead of numbers."""
    for column in columns:
        if is_interned(column) or (isinstance(column, Typed) and is_interned(column.storage)):
            return tuple([_strings(each) for each in columns])
    return columns


def own_strings(columns: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return columns that a program may change: arrays of strings instead of numbers."""
    return tuple([column.copy() if is_interned(column) else _strings(column) for column in columns])


def _strings(column: Array) -> Array:
    """Return a column, or that as which it is stored, as an array of strings instead of numbers."""
    if isinstance(column, Interned):
        return column.__array__()  # `np.asarray` takes 3 us to find this
    if isinstance(column, Typed) and is_interned(column.storage):
        return Typed(column.type, np.asarray(column.storage))
    return column


def is_interned(column: object) -> bool:
    """Return whether a column is one of numbers."""
    return type(column) is Interned


def _spelled_out(value: Any) -> Any:
    """Return a value with every column in it as an array of its strings, and other strings as NumPy keeps them."""
    kind = type(value)
    if kind is Interned:
        return np.asarray(value)
    operand = exact_operand(value)
    if operand is value and (kind is tuple or kind is list):
        return kind(map(_spelled_out, value))
    return operand


def _as_objects(value: Any) -> Any:
    """Return a column of text as Python's strings; other values as they are."""
    return np.asarray(value, _OBJECT) if getattr(value, "dtype", _OBJECT).kind == "T" else value


def _all_spelled_out(values: Any) -> Any:
    return (
        {name: _spelled_out(value) for name, value in values.items()} if type(values) is dict else _spelled_out(values)
    )


def _alike(columns: Any) -> bool:
    """Return whether all are columns of one table, and of one type."""
    if not isinstance(columns, (tuple, list)) or not columns:
        return False
    first = columns[0]
    return all(isinstance(column, Interned) and column.is_like(first) for column in columns)


def _concatenated(columns: Any, axis: Any = 0) -> Any:
    if axis != 0 or not _alike(columns):
        return None
    first: Interned = columns[0]
    return Interned(first.interner, np.concatenate([column.codes for column in columns]), first.dtype)


def _where(condition: Any, *chosen: Any) -> Any:
    if len(chosen) != 2 or isinstance(condition, Interned) or not _alike(chosen):
        return None
    codes = np.where(condition, chosen[0].codes, chosen[1].codes)
    return Interned(chosen[0].interner, codes, chosen[0].dtype) if codes.ndim == 1 else None


_MOVERS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.concatenate: _concatenated,
    np.where: _where,
    np.repeat: lambda column, times: column.repeat(times) if isinstance(column, Interned) else None,
    np.take: lambda column, rows: column.take(rows) if isinstance(column, Interned) else None,
}
"""The functions that only move rows, as they do it with numbers: they return None where they do not."""

_MIXING = frozenset({np.place, np.put, np.putmask})
"""The functions that, up to NumPy 2.4, copy texts of more than 15 bytes from an array without their memory."""
