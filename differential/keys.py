"""How many of a record's columns are its key: a number, or one of two that stand for a number not known beforehand."""

from __future__ import annotations

from numbers import Integral

from timely.errors import BuildError
from timely.lowlevel import refusal, user_origin

ALL_BUT_LAST = -1
"""As a number of key columns: all but the last column are the key."""

EVERY = 1 << 30
"""As a number of key columns: all columns are the key."""


def check_keys(keys: int) -> None:
    """Raise BuildError unless `keys` is a number of key columns.

    >>> check_keys(0)
    Traceback (most recent call last):
    ...
    timely.errors.BuildError: at ...: a key is of at least one column, so `keys` cannot be 0
    """
    if not isinstance(keys, Integral) or isinstance(keys, bool) or keys < 1:
        raise BuildError(f"at {user_origin()}: a key is of at least one column, so `keys` cannot be {keys!r:.80}")


def columns_of(keys: int, name: str) -> int:
    """Return how many columns the key has; raise BuildError where the operator `name` cannot know.

    >>> columns_of(EVERY, "totals")
    Traceback (most recent call last):
    ...
    timely.errors.BuildError: totals (at ...): how many columns are the key? not all columns: map() takes a ...
    """
    if not 1 <= keys < EVERY:
        raise refusal(name, f"how many columns are the key? not {described(keys)}: map() takes a number as `keys`")
    return keys


def described(keys: int) -> str:
    """Return which columns are the key, in words.

    >>> described(1), described(2), described(EVERY), described(ALL_BUT_LAST)
    ('the first column', 'the first 2 columns', 'all columns', 'all columns but the last')
    """
    if keys == EVERY:
        return "all columns"
    if keys == ALL_BUT_LAST:
        return "all columns but the last"
    return "the first column" if keys == 1 else f"the first {keys} columns"
