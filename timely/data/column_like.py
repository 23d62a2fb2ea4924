"""The base of columns that are no NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray


class ColumnLike:
    """A column that is no NumPy array, and behaves as one: one-dimensional, of a kind that columns can have, immutable.

    It implements NumPy's protocols (`__array__`, `__array_function__`, `__array_ufunc__`) and the attributes of arrays.
    """

    __slots__ = ()

    def hashes(self) -> NDArray[np.uint64] | None:
        """Return the hash of each row that `timely.hash_columns` is to give, or None where it is to make them."""
        return None

    if TYPE_CHECKING:
        ndim: int
        dtype: np.dtype[Any]

        def __len__(self) -> int: ...
