"""The base of columns that are not NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from timely.data.hints import instead


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
