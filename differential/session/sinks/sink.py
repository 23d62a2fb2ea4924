"""What a sink is, and what it receives.

A `Sink` describes where the changes of a table or view go: a file, a table of another database, a topic. `Sink.open`
returns a `SinkWriter`, which applies the changes of one or more commits together with a *mark*: the number of the last
of these commits, and the stream of commits that it belongs to. The mark makes each commit count once:

    a sink has exactly the changes of the commits up to its mark, even after a crash at any moment

So a writer applies the changes and the mark in one step, such as a transaction. After an error it is not known whether
this step has happened. The session then closes the writer, and reads the mark from another one. A sink without such a
step may lose the changes of the last commits before it was opened, or apply them twice; its documentation states which.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from differential.session.changes import Change
from differential.session.table_data import Column


class Mark(NamedTuple):
    """The last commit that a sink has applied.

    >>> Mark("8f1d/spent/3", 17).commit
    17
    """

    stream: str
    """Names the view and the session whose commits are counted. Another session or view has another stream."""
    commit: int


class Outlet(NamedTuple):
    """The view that a sink is opened for, and the names of its columns; None if they are not known before rows come."""

    view: str
    columns: tuple[str, ...] | None
    empty: tuple[Column, ...] | None = None
    """The columns, without rows, if the view has none and the types of all its columns are known."""


class SinkWriter(Protocol):
    """A sink that is open. One thread at a time calls its methods.

    They raise OSError or StoreError if another attempt may succeed, and any other TimelyError if none can. After any of
    these errors the session closes the writer.
    """

    def mark(self) -> Mark | None:
        """Return the mark, or None if the sink is empty."""

    def write(self, changes: Sequence[Change], mark: Mark) -> None:
        """Apply the changes of one or more commits, in their order, and the mark of the last one, in one step.

        A step for each commit will do, if the mark then is that of this commit.

        The rows of a change are distinct. The first change after `mark` has returned None, or after `clear`, has the
        contents of the view. Raises SessionError if the mark of the sink is not the one that this writer has last read
        or written.
        """

    def clear(self) -> None:
        """Make the next `write` replace the contents of the sink."""

    def close(self) -> None:
        """Release what the writer holds."""


class Sink(Protocol):
    """Where the changes of a view go. `name` distinguishes it from other sinks of its view, also in later sessions."""

    @property
    def name(self) -> str:
        """The name of the sink."""

    def open(self, outlet: Outlet) -> SinkWriter:
        """Return a writer. Raises the same errors as its methods."""
