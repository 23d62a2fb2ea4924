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
    return f"the columns are {', '.join(there)}{meant(name, there)}"


def meant(name: str, names: Iterable[str]) -> str:
    """Return the end of an error that suggests the most similar of some names; an empty text if none is similar.

    >>> meant("order", ["orders", "people"])
    "; did you mean 'orders'?"
    """
    near = get_close_matches(name, list(names), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
