"""Python's text and bytes as NumPy takes them without a change.

NumPy makes text of a `str` by its `__str__`, which returns the name of a member of `class State(str, Enum)` instead of
the value. And it makes a fixed-width array of a text or of bytes beside an array, which drops NULs at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timely.data.logical import TEXT, objects
from timely.errors import DataError


def plain_string(value: Any) -> Any:
    """Return text or bytes of a subclass as `str` or `bytes` of the same content, any other value as it is.

    >>> plain_string(np.str_("a")), plain_string(7)
    ('a', 7)
    """
    if isinstance(value, str):
        return value if type(value) is str else str.__str__(value)
    if isinstance(value, bytes):
        return value if type(value) is bytes else bytes(memoryview(value))
    return value


def text_column(items: Sequence[str]) -> NDArray[Any]:
    """Return a column of text; raise DataError where one is not valid Unicode.

    >>> text_column(["to", "be"]).tolist()
    ['to', 'be']
    """
    try:
        return np.asarray(items, TEXT)
    except UnicodeEncodeError as error:
        raise DataError(f"cannot make a column of text that is not valid Unicode: {error}") from None


def exact_operand(value: Any) -> Any:
    """Return text or bytes, or a list of them, such that NumPy keeps NULs at the end; any other value as it is.

    >>> exact_operand("a"), exact_operand(b"a\\0"), exact_operand(["a", "b\\0"])
    ('a', array(b'a\\x00', dtype=object), array(['a', 'b\\x00'], dtype=StringDType()))
    """
    if isinstance(value, str):
        text = plain_string(value)
        return np.array(text, TEXT) if text.endswith("\0") else text
    if isinstance(value, bytes):
        content = plain_string(value)
        return np.array(content, np.object_) if content.endswith(b"\0") else content
    if isinstance(value, (list, tuple)) and value:
        if all(isinstance(each, str) for each in value):
            return np.array([plain_string(each) for each in value], TEXT)
        if all(isinstance(each, bytes) for each in value):
            return objects([plain_string(each) for each in value])
    return value
