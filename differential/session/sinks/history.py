"""How far a sink is, and what it begins with."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from differential.session.changes import Change


class Reach(NamedTuple):
    """How far a sink is known to be: the commit of its mark, and a later one up to which nothing has changed.

    >>> Reach.from_text(Reach(3, 7).to_text()).through
    7
    """

    applied: int
    through: int

    def to_text(self) -> str:
        """Return the two numbers as a position of a durable collection."""
        return f"{self.applied} {self.through}"

    @classmethod
    def from_text(cls, text: object) -> Reach:
        """Return the reach that `to_text` has written as this text."""
        applied, through = map(int, str(text).split())
        return cls(applied, through)


Contents = Callable[[], list[Change]]
"""Returns the contents of a view as of the last commit, as one change; no change if the view is empty."""
