"""What a delivery reads of the past of a durable view."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

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


class History(Protocol):
    """The changes of a durable view, and what is retained of them for a sink."""

    stream: str
    """The name of the stream of commits, for marks."""

    def since(self) -> int:
        """Return the first commit as of which the view can be read."""

    def changes(self, after: int, end: int) -> list[Change]:
        """Return the changes of each commit after `after`, up to and including `end`."""

    def reach(self) -> Reach | None:
        """Return how far the sink is known to be, or None if it is not known."""

    def retain(self, reach: Reach) -> None:
        """Retain all commits after that reach, durably, until `note` replaces it."""

    def note(self, reach: Reach) -> None:
        """Record how far the sink is; the next append of the view makes this durable."""


Contents = Callable[[], list[Change]]
"""Returns the contents of a view as of the last commit, as one change; no change if the view is empty."""
