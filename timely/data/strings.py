"""Python's text and bytes as NumPy takes them without a change.

NumPy makes text of a `str` by its `__str__`, which returns the name of a member of `class State(str, Enum)` instead of
the value.
"""

from __future__ import annotations

from typing import Any


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
