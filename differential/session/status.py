"""What a session has, for people."""

from __future__ import annotations

from typing import NamedTuple

from differential.session.rows import Rows

_SHOWN = 100_000
"""The tables of distinct texts and records are shown from this many bytes on: they have some from the beginning."""


class Status(NamedTuple):
    """The state of a session. `items` are its tables and views, with rows and bytes of their indexes.

    >>> from differential.session import Session
    >>> with Session() as db:
    ...     db.status().heading()
    'commit 0, 1 worker(s), 0 uncommitted statement(s), 0.0 MB of indexes'
    """

    workers: int
    commit: int
    uncommitted: int
    """How many statements are not committed."""
    nbytes: int
    """The bytes of the indexes of tables and views; those inside of views are not counted."""
    items: Rows
    sources: Rows
    """The sources of tables, with the rows that they have delivered, and the records that were none."""
    sinks: Rows
    """The sinks of views, with the last commit that each has, and the rows that were written to it."""
    computing: tuple[str, ...] = ()
    """The names of what still computes: views that do not have the last commit yet, or are being built."""
    interned_bytes: int = 0
    """The bytes of the tables in which distinct texts, and keys or values wider than a word, have their numbers."""

    def heading(self) -> str:
        """Return a line about the session as a whole."""
        has_interned = self.interned_bytes >= _SHOWN
        return (
            f"commit {self.commit}, {self.workers} worker(s), {self.uncommitted} uncommitted statement(s), "
            f"{self.nbytes / 1e6:.1f} MB of indexes"
            + (f", {self.interned_bytes / 1e6:.1f} MB of distinct texts and records" if has_interned else "")
            + (f", still computing: {', '.join(self.computing)}" if self.computing else "")
        )

    def __str__(self) -> str:
        return "\n".join([self.heading(), *map(str, self._shown())])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<p>{self.heading()}</p>{''.join(rows._repr_html_() for rows in self._shown())}"

    def _shown(self) -> list[Rows]:
        return [self.items, *(rows for rows in (self.sources, self.sinks) if len(rows))]
