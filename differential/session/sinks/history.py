"""How far a sink is, and what it begins with."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from differential.data.codes import kind_of
from differential.session.changes import Change
from differential.session.transaction import in_total


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


class Left(NamedTuple):
    """What a sink has of a view that was replaced: its contents, under the mark of this stream."""

    stream: str
    reach: Reach
    names: tuple[str, ...] | None
    contents: list[Change]

    def difference(self, names: tuple[str, ...] | None, contents: list[Change], time: int) -> list[Change] | None:
        """Return the changes that make other contents of these; None if the columns are not the same.

        >>> first, second = (Change(1, ("x",), (np.array(each),), np.ones(2, np.int64)) for each in ([1, 2], [2, 3]))
        >>> Left("session 1", Reach(1, 1), ("x",), [first]).difference(("x",), [second], 2)[0].records()
        [((1,), -1), ((3,), 1)]
        """
        changes = [*self.contents, *contents]
        if names != self.names or len({(each.columns, tuple(map(kind_of, each.rows))) for each in changes}) > 1:
            return None
        if not changes:
            return []
        columns = tuple(np.concatenate(parts) for parts in zip(*(each.rows for each in changes)))
        diffs = np.concatenate([*(-each.diff for each in self.contents), *(each.diff for each in contents)])
        # There is a row: changes without rows do not occur in contents (`Contents`).
        return [Change(time, changes[0].columns, *in_total(columns, diffs))]


Contents = Callable[[], list[Change]]
"""Returns the contents of a view as of the last commit, as one change; no change if the view is empty."""
