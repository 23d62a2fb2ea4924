"""What a name that does not exist may have been meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def known(name: str, names: Iterable[str]) -> str:
    """Return, for an error about a column that does not exist, the columns that do, and the one that is most like it.

    >>> known("totl", ["customer", "total"])
    "the columns are customer, total; did you mean 'total'?"
    """
    there = list(names)
    near = get_close_matches(name, there, 1)
    return f"the columns are {', '.join(there)}" + (f"; did you mean {near[0]!r}?" if near else "")
