"""The base of columns that are not NumPy arrays, and what a function writes instead of a method that columns lack.

Such methods are those of Python's text, pandas or Polars.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray


class ColumnLike(NDArrayOperatorsMixin):
    """A column that is not a NumPy array but behaves as one: one-dimensional, immutable, of a kind columns can have.

    A class of columns implements NumPy's protocols (`__array__`, `__array_function__`, `__array_ufunc__`), `__len__`
    and `tolist`. Attributes that it lacks are those of the array.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]
    ndim = 1

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    @property
    def size(self) -> int:
        return len(self)

    def __setitem__(self, rows: Any, values: Any) -> None:
        raise ValueError("assignment destination is read-only")

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getattr__(self, name: str) -> Any:
        # NumPy asks for further protocols by names of this form; the column has none of them.
        if name.startswith("__"):
            raise AttributeError(name)
        if not hasattr(np.ndarray, name):
            error = AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}", name=name, obj=self)
            error.add_note(
                f"functions receive whole columns{instead(name)}; timely.rowwise(f) makes one of a function f of one "
                "row's values"
            )
            raise error
        return getattr(np.asarray(self), name)

    def __bool__(self) -> bool:
        return bool(np.asarray(self))

    def setflags(self, write: bool | None = None, align: bool | None = None, uic: bool | None = None) -> None:
        """Do nothing: the column is read-only. Raises ValueError where it is to be writable."""
        if write:
            raise ValueError("cannot set WRITEABLE flag to True of this array")

    def hashes(self) -> NDArray[np.uint64] | None:
        """Return the hash of each row that `timely.hash_columns` is to give, or None where it is to make them."""
        return None

    if TYPE_CHECKING:
        dtype: np.dtype[Any]

        @property
        def compared_as(self) -> str | None:
            """What kind of values the column holds, where it is compared (`timely.data.comparisons`); None for any."""

        def __len__(self) -> int: ...
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]: ...
        def tolist(self) -> list[Any]: ...


_NULL: Final = "is_null(column) of differential.frames is True where a value is null"
_PRESENT: Final = "~is_null(column), with is_null of differential.frames, is True where a value is not null"
_FILL: Final = "fill_null(column, value) of differential.frames replaces nulls"
_OF_TEXT: Final = "capitalize isalnum isalpha isdigit islower isspace isupper lower lstrip rstrip strip title upper"
_OF_TEXT_AND_MORE: Final = "count endswith find ljust replace rjust startswith zfill"
"""Methods of text that NumPy has for columns of it, and those that take an argument."""
_INSTEAD: Final = {
    **{name: f"np.strings.{name}(column)" for name in _OF_TEXT.split()},
    **{name: f"np.strings.{name}(column, ...)" for name in _OF_TEXT_AND_MORE.split()},
    "str": "np.strings has upper, startswith, find and others for columns of text",
    "contains": "np.strings.find(column, 'text') >= 0 is True where the text occurs",
    "len": "np.strings.str_len(column)",
    **dict.fromkeys(("isin", "is_in"), "np.isin(column, [value, ...])"),
    **dict.fromkeys(("is_null", "isnull", "isna", "is_none"), _NULL),
    **dict.fromkeys(("notnull", "notna", "is_not_null"), _PRESENT),
    **dict.fromkeys(("fillna", "fill_null"), _FILL),
    "between": "(column >= least) & (column <= most)",
    "date": "column.astype('datetime64[D]') are the dates of timestamps",
    "year": "column.astype('datetime64[Y]').astype(int) + 1970 are the years of dates without nulls",
    "total_seconds": "column / np.timedelta64(1, 's') are durations in seconds",
    "dt": "column.astype('datetime64[D]') are the dates of timestamps, and timely.rowwise(function) computes others",
}
"""What to write, by the name of a method or attribute that columns do not have."""


def instead(name: str) -> str:
    """Return what to write instead of an attribute, after a colon; an empty text where that is not known.

    >>> instead("upper"), instead("unknown")
    (': np.strings.upper(column)', '')
    """
    return f": {_INSTEAD[name]}" if name in _INSTEAD else ""
