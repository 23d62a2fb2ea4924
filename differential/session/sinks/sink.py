"""What a sink is, and what it receives.

A `Sink` describes where the changes of a view go: a file, a table of another database, a topic. Opened for a view, it
is a `SinkWriter`, which applies the changes of some commits together with a *mark*: the number of the last of these
commits, and the stream of commits that it belongs to. The mark is what makes each commit count once:

    a sink has exactly the changes of the commits up to its mark, after a crash at any moment, too

so a writer keeps both in one step, such as a transaction. After an error nobody knows whether this step has happened;
the writer is then closed, and another one is asked for the mark. A sink that has no such step may drop changes of the
last commits that it has applied before it opens, or apply them twice; its documentation states which.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from differential.session.changes import Change


class Mark(NamedTuple):
    """The last commit that a sink has applied.

    >>> Mark("8f1d/spent/3", 17).commit
    17
    """

    stream: str
    """Names the view and the session whose commits are counted. Another session or view has another stream."""
    commit: int


class Outlet(NamedTuple):
    """The view that a sink is opened for, and the names of its columns where they are known before there are rows."""

    view: str
    columns: tuple[str, ...] | None


class SinkWriter(Protocol):
    """A sink that is open. Its methods are called by one thread at a time.

    They raise OSError or StoreError where another attempt may succeed, and any other TimelyError where none will. After
    either the writer is closed.
    """

    def mark(self) -> Mark | None:
        """Return the mark, None if the sink is empty."""
        ...

    def write(self, changes: Sequence[Change], mark: Mark) -> None:
        """Apply the changes of some commits, in their order, and the mark of the last one, in one step.

        A change has no row twice. The first one after `mark` has returned None, or after `clear`, has the contents of
        the view. Raises SessionError if the sink has another mark than this writer has read or written last.
        """
        ...

    def clear(self) -> None:
        """Let the next `write` replace what the sink has."""
        ...

    def close(self) -> None:
        """Release what the writer holds."""
        ...


class Sink(Protocol):
    """Where the changes of a view go. `name` tells it apart from other sinks of its view, in later sessions too."""

    @property
    def name(self) -> str:
        """The name of the sink."""
        ...

    def open(self, outlet: Outlet) -> SinkWriter:
        """Return a writer. Raises what its methods raise."""
        ...
