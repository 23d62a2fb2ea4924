"""The kinds of an input's fields: all records have the same number of fields, and each field is always of one kind.

Arranging refuses a column of another kind, but an input gathers changes and sends them later, and by then no error can
name the statement of the program that is wrong. So an input checks every record when the program makes it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from differential.data.codes import kind_of
from differential.data.interned import Interned
from timely.errors import DataError
from timely.lowlevel import Typed, as_column


class Fields:
    """The kinds of an input's fields, as far as its records have shown them.

    >>> fields = Fields()
    >>> fields.check((1, "one"))
    >>> fields.check((np.array([2, 3]), "more"))
    >>> fields.check((4.5, "four and a half"))
    Traceback (most recent call last):
    timely.errors.DataError: field 0 is 1 in one record and 4.5 in another: convert it, so that it is always of one kind
    """

    __slots__ = ("_kinds", "_shown", "_types")

    def __init__(self) -> None:
        self._kinds: list[str] = []
        self._shown: list[Any] = []
        self._types: tuple[type, ...] | None = None

    def check(self, record: tuple[Any, ...]) -> None:
        """Raise DataError unless a record, as scalars or as columns of many, is like those before it."""
        if self._kinds and len(record) != len(self._kinds):
            raise DataError(
                f"a record of {len(record)} field(s) after one of {len(self._kinds)}: "
                "all records of a collection have the same number"
            )
        if self._types is None and self._are_known(record):
            return
        types = tuple([type(field) for field in record])
        if self._types is None and _ARRAYS.issuperset(types):
            kept = [field.type.name if type(field) is Typed else _KINDS.get(field.dtype.char) for field in record]
            if self._kinds != kept:
                self._compare(record, types)
        elif types != self._types or not _are_plain(record):
            self._compare(record, types)

    def _are_known(self, record: tuple[Any, ...]) -> bool:
        """Return whether a record is arrays of the kinds known; arrays of other types need a longer look."""
        for field, kind in zip(record, self._kinds):
            if type(field) is not np.ndarray:
                return False
            dtype = field.dtype
            if (dtype is not _INT64 or kind != "i") and _KINDS.get(dtype.char) != kind:
                return False
        return bool(self._kinds)

    def _compare(self, record: tuple[Any, ...], types: tuple[type, ...]) -> None:
        columns = [as_column(field) for field in record]
        if not all(column.size for column in columns):
            return  # an empty column may be of any kind, so it shows nothing
        kinds = [_kind_of(column) for column in columns]
        shown = [column[0] if column.ndim else field for field, column in zip(record, columns)]
        for position, (known, kind) in enumerate(zip(self._kinds, kinds)):
            if known != kind and {known, kind} != _WHOLE:
                # Names of types, not letters: values of two units may look alike.
                names = f" ({known} and {kind})" if len(known) > 1 and len(kind) > 1 else ""
                raise DataError(
                    f"field {position} is {self._shown[position]!r:.80} in one record and {shown[position]!r:.80} in "
                    f"another{names}: convert it, so that it is always of one kind"
                    + (" and width" if {known, kind} <= _FLOATS else "")
                )
            kinds[position] = known if known == kind else "i"
        self._kinds, self._shown = kinds, self._shown or shown
        # Scalars of the same types as these need no comparison, except where an integer's size decides its kind.
        self._types = None if not _ARRAYS.isdisjoint(types) or "u" in kinds else types


_INT64: Final = np.dtype(np.int64)
_ARRAYS: Final = {np.ndarray, Interned, Typed}
_KINDS: Final = {"?": "b", "l": "i", "q": "i", "d": "d", "f": "f", "e": "e", "T": "T", "O": "O"}
"""The kinds of the types that columns have where they are kept (see `input.owned`), by the letters of the types."""
_WHOLE = {"b", "i"}
_FLOATS = {"d", "f", "e"}
_FIRST_UNSIGNED = 1 << 63
_INTEGERS = {int, np.uint64, np.ulonglong}
"""The classes of scalars that may be too large for int64; `_TEXTS` are those that may not be Unicode."""
_TEXTS = {str, np.str_}


def _are_plain(record: tuple[Any, ...]) -> bool:
    """Return whether whole numbers have 64 bits and texts are plain, so that nothing can be wrong with them."""
    for field in record:
        kind = type(field)
        if kind in _INTEGERS:
            if not -_FIRST_UNSIGNED <= field < _FIRST_UNSIGNED:
                return False
        elif kind in _TEXTS and not field.isascii():
            return False
    return True


def _kind_of(column: np.ndarray[Any, Any]) -> str:
    """Return the kind of a column's type: unsigned integers are integers, unless they are too large for these."""
    if isinstance(column, Typed):
        return column.type.name
    kind = column.dtype.kind
    if kind == "f":
        kind_of(column)  # refuses floats of more than 64 bits
        return str(column.dtype.char)
    return "i" if kind == "u" and int(column.max()) < _FIRST_UNSIGNED else kind
