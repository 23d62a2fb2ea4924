"""What a source is, and what it delivers.

A `Source` describes where rows come from: a path, a topic, a slot. Opened for a table, at a position, it is a `Reader`,
which is polled and never waits. Each `SourceBatch` has rows as columns of the table, the records that are not rows of
it, and the position after both.

The position is what makes each record count once: it is durable in the same commit as the rows that come from before
it, so a reader that is opened there delivers exactly the rest. A position is a number or a text that only its source
understands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

from differential.session.table_data import Column
from differential.session.transaction import Kind

Position = int | str
"""Where a source is."""
Statement = tuple[Kind, tuple[Column, ...]]
"""What to do with rows, and their columns."""


class Target(NamedTuple):
    """The table that a source is opened for: the names and types of its columns by position, the key's first."""

    table: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    keys: int
    replaces: bool = False
    """Whether a row replaces all rows of its key."""
    stops: bool = True
    """Whether the source ends before the first record that is not a row, instead of leaving it out."""
    required: tuple[str, ...] = ()
    """The columns that have no nulls, whatever their types: that of event times."""

    @property
    def kind(self) -> Kind:
        """What the statements about rows do."""
        return Kind.UPSERT if self.replaces else Kind.INSERT


class Rejected(NamedTuple):
    """A record that is not a row of the table: where it is, and what is wrong with it."""

    place: str
    """The file, topic or slot."""
    line: int
    """The number of the line, row or message in it."""
    record: str
    error: str

    def __str__(self) -> str:
        return f"{self.place}, line {self.line}: {self.error}, in {self.record!r:.200}"


class SourceBatch:
    """What a reader delivers at once: statements of (kind, columns) in order, and the position after them.

    Columns are those of the table by position; DELETE_KEYS has those of the key, and CLEAR none. The position may be a
    function that returns it: of the batches of a commit, only that of the last one is called, and once.

    >>> SourceBatch((), (), lambda: "row 3").position
    'row 3'
    """

    def __init__(
        self,
        changes: Sequence[Statement],
        rejected: Sequence[Rejected],
        position: Position | Callable[[], Position],
    ) -> None:
        self.changes = changes
        self.rejected = rejected
        self._position = position

    @cached_property
    def position(self) -> Position:
        """The position after the changes."""
        return self._position() if callable(self._position) else self._position

    @property
    def rows(self) -> int:
        """The number of rows in all statements."""
        return sum(len(columns[0]) for _, columns in self.changes if columns)


class Extent(NamedTuple):
    """How far sources that end are: the rows delivered, and the bytes read of their files, out of a total."""

    rows: int
    done: float = 0.0
    total: float | None = None
    """None if it is not known."""


class Reader(Protocol):
    """A source that is open. Its methods are called by one thread at a time.

    A reader that ends may have an attribute `extent`, the bytes read and the total, or None; another attribute,
    `note`, is what a person should know. One that reads in a thread may have a method `stop`, which lets the thread end
    and does not wait: it is called before `close`, of all readers that are closed together.
    """

    @property
    def is_ended(self) -> bool:
        """Whether nothing will follow."""

    def poll(self) -> SourceBatch | None:
        """Return what has arrived, None if nothing has, without waiting.

        If the target stops, the batch ends before the first record that is not a row, which is its only rejected one.
        Raises DataError, SessionError or OSError if the source cannot be read: then the feed stops.
        """

    def confirm(self, position: Position) -> None:
        """Record that everything before a position is committed, and durable in a durable session.

        By default this does nothing: the session stores the position with the rows.
        """
        return

    def close(self) -> None:
        """Release what the reader holds."""


class Source(Protocol):
    """Where rows come from. `name` distinguishes it from other sources of its table, in later sessions too."""

    @property
    def name(self) -> str:
        """The name of its position."""

    def open(self, target: Target, position: Position | None) -> Reader:
        """Return a reader from a position on, by default from the beginning.

        Raises DataError if it has no rows for such a table, SessionError if it cannot be read.
        """
