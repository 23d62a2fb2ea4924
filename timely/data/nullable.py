"""Text or null, and bytes or null."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timely.data.logical import TEXT, Array, LogicalType, nulled
from timely.errors import DataError

LAST = "\U0010ffff"
"""The storage of a null text: a code point that Unicode reserves for such uses, and the last one."""


class NullableText(LogicalType):
    """Text or null. A text that begins with U+10FFFF, which is no character, is refused."""

    stores = "T"
    is_strict = True

    def store(self, values: Any) -> Array:
        if isinstance(values, np.ndarray) and values.dtype == TEXT:
            stored = values
        else:
            items = values.tolist() if isinstance(values, np.ndarray) else list(values)
            for row, item in enumerate(items):
                if item is not None and not isinstance(item, str):
                    raise self.refused(items, row, f"is of class {type(item).__name__}")
                if item is not None and item.startswith(LAST):
                    raise self.refused(items, row, "stands for a null")
            try:
                return np.array([LAST if item is None else item for item in items], TEXT)
            except UnicodeEncodeError as error:
                raise DataError(f"cannot make a column of text that is not valid Unicode: {error}") from None
        reserved = np.strings.startswith(stored, LAST)
        if reserved.any():
            raise self.refused(stored, int(np.argmax(reserved)), "stands for a null")
        return stored

    def array(self, storage: Array) -> Array:
        return np.asarray(storage)

    def to_list(self, storage: Array) -> list[Any]:
        return [None if item == LAST else item for item in storage.tolist()]

    def nulls(self, storage: Array) -> NDArray[np.bool_]:
        return np.asarray(storage == LAST)

    def null_storage(self, length: int) -> Array:
        return np.full(length, LAST, TEXT)


class NullableBytes(LogicalType):
    """Bytes or null: stored with a byte before them that distinguishes the two."""

    stores = "O"
    is_strict = True

    def store(self, values: Any) -> Array:
        items = values.tolist() if isinstance(values, np.ndarray) else list(values)
        for row, item in enumerate(items):
            if item is not None and not isinstance(item, bytes):
                raise self.refused(items, row, f"is of class {type(item).__name__}")
        return _objects([b"\1" if item is None else b"\0" + item for item in items])

    def array(self, storage: Array) -> Array:
        return _objects([item[1:] for item in storage.tolist()])

    def to_list(self, storage: Array) -> list[Any]:
        return nulled([item[1:] for item in storage.tolist()], self.nulls(storage))

    def nulls(self, storage: Array) -> NDArray[np.bool_]:
        return np.fromiter((item == b"\1" for item in storage.tolist()), np.bool_, len(storage))

    def null_storage(self, length: int) -> Array:
        return _objects([b"\1"] * length)


def _objects(items: list[Any]) -> Array:
    column = np.empty(len(items), np.object_)
    column[:] = items
    return column


PATTERNS: tuple[tuple[str, Callable[..., LogicalType]], ...] = ((r"text\?", NullableText), (r"bytes\?", NullableBytes))
"""The names of the types of this module, and what makes each."""
