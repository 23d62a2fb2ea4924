"""Suggest an existing name for one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def known(name: str, names: Iterable[str]) -> str:
    """Return a text for an error about a column that does not exist: all columns, and the most similar one.

    >>> known("totl", ["customer", "total"])
    "the columns are customer, total; did you mean 'total'?"
    """
    there = list(names)
    near = get_close_matches(name, there, 1)
    return f"the columns are {', '.join(there)}" + (f"; did you mean {near[0]!r}?" if near else "")
