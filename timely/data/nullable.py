"""Text or null, and bytes or null."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timely.data.comparisons import BYTES, TEXTS
from timely.data.logical import TEXT, Array, LogicalType, nulled, objects
from timely.data.strings import plain_string, text_column

LAST = "\U0010ffff"
"""The storage of a null text: a code point that Unicode reserves for such uses, and the last one."""


class NullableText(LogicalType):
    """Text or null. A text that begins with U+10FFFF, which is not a character, is refused."""

    stores = "T"
    compared_as = TEXTS
    is_strict = True

    def store(self, values: Any) -> Array:
        if isinstance(values, np.ndarray) and values.dtype == TEXT:
            stored = values
            # Not only equal texts: a longer one that begins so would order after a null.
            reserved = np.strings.startswith(stored, LAST)
        else:
            items = values.tolist() if isinstance(values, np.ndarray) else list(values)
            stored = of_strings([LAST if item is None else item for item in items], self.name, str)
            missing = np.fromiter((item is None for item in items), np.bool_, len(items))
            reserved = np.strings.startswith(stored, LAST) & ~missing
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
    compared_as = BYTES
    is_strict = True

    def store(self, values: Any) -> Array:
        items = values.tolist() if isinstance(values, np.ndarray) else list(values)
        contents = of_strings([b"" if item is None else item for item in items], self.name, bytes).tolist()
        return objects([b"\1" if item is None else b"\0" + content for item, content in zip(items, contents)])

    def array(self, storage: Array) -> Array:
        return objects([item[1:] for item in storage.tolist()])

    def to_list(self, storage: Array) -> list[Any]:
        return nulled([item[1:] for item in storage.tolist()], self.nulls(storage))

    def nulls(self, storage: Array) -> NDArray[np.bool_]:
        return np.fromiter((item == b"\1" for item in storage.tolist()), np.bool_, len(storage))

    def null_storage(self, length: int) -> Array:
        return objects([b"\1"] * length)


def of_strings(items: list[Any], name: str, of: type) -> Array:
    """Return a plain column of strings, none of which is null, for a type of this name."""
    for row, item in enumerate(items):
        if not isinstance(item, of):
            what = "is a null" if item is None else f"is of class {type(item).__name__}"
            raise LogicalType(name).refused(items, row, what)
    if set(map(type, items)) - {of}:
        items = [plain_string(item) for item in items]
    if of is bytes:
        return objects(items)
    return text_column(items)


PATTERNS: tuple[tuple[str, Callable[..., LogicalType]], ...] = ((r"text\?", NullableText), (r"bytes\?", NullableBytes))
"""The names of the types of this module, and what makes each."""
