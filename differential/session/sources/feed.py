"""A source that fills a table: what it has delivered for the next commit, and what happened to its records.

A feed belongs to the catalog of its session, whose lock orders everything here. `gather` keeps what has arrived;
`statements` are what the next commit makes of it. `take` follows once the commit has begun, and `settle` when it is
complete. A commit that fails before it begins leaves what was gathered where it is, so that the next one has it.

    reading ──► failing ──► stopped          any state ──► closed, by `close` or when the table is dropped
        └─────► exhausted ──► ended          exhausted, ended ──► failing, if a commit fails to make or confirm changes

A failing feed first delivers what it gathered before the error. A commit that leaves nothing to deliver stops it.

    state       what holds                                   is_waiting   may_deliver   is_over
    reading     the reader is open and has not ended         if batches   yes           no
    failing     `_failing` is set                            yes          yes           no
    stopped     `error` is set, and the reader is closed     no           yes           yes
    exhausted   the reader has ended, and batches wait       yes          no            no
    ended       the reader has ended, and no batches wait    no           no            no
    closed      `is_closed` is set                           no           no            yes

`is_exhausted` is true in the last three states, and `is_ended` in the last two. Both are also true of a stopped feed:
`error` distinguishes it from one that has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from differential.session.item import Item
from differential.session.rows import columns_of_records
from differential.session.sources.source import Extent, Position, Reader, Rejected, Source, SourceBatch, Target
from differential.session.table_data import Column
from differential.session.transaction import Kind, RowStatement
from timely.errors import DataError, SessionError
from timely.lowlevel import Origin, user_origin

ROWS = 1 << 17
"""A source is asked for no more once at least this many rows wait for a commit."""
REJECTS = {"source": str, "place": str, "line": int, "record": str, "error": str}
"""The columns of a table of rejects."""


class Feed:
    """A source that fills a table.

    >>> import tempfile
    >>> from differential.session import Session
    >>> from differential.session.sources import json_lines
    >>> with tempfile.NamedTemporaryFile("w+") as file, Session() as db:
    ...     print('{"x": 1}', "oops", sep="\\n", file=file, flush=True)
    ...     feed = db.table("numbers", {"x": int}).read_from(json_lines(file.name), on_error="skip")
    ...     number = db.commit()
    ...     feed.rows, feed.rejected, feed.is_ended, feed.error, feed.state
    ...     feed.close()
    (1, 1, True, None, 'has ended')
    """

    def __init__(
        self,
        source: Source,
        item: Item,
        rejects: Item | None,
        exclusive: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self.name = source.name
        self.origin = user_origin()
        """Where the program asked for it."""
        self.rows = 0
        """How many rows commits have taken, in this session."""
        self.rejected = 0
        """How many records were not rows, in this session."""
        self.error: SessionError | None = None
        """Why it has stopped."""
        self.is_closed = False
        self.position: Position | None = None
        """The position as of the last commit."""
        self.item = item
        self.rejects = rejects
        self._exclusive = exclusive
        self._read = 0.0
        """How many bytes were read as of the last look."""
        self._stops = True
        self._reader: Reader | None = None
        """Open until the feed stops or is closed; a reader that has ended stays open, for `confirm`."""
        self._ready: list[SourceBatch] = []
        """What waits for the next commit."""
        self._taken: list[SourceBatch] = []
        """What belongs to the commit under way: after `take`, until `settle`."""
        self._failing: SessionError | None = None
        """Why the feed will stop, once `_ready` is empty."""

    def open(self, source: Source, target: Target, position: Position | None) -> None:
        """Open the source at a position. Raises SessionError where it cannot be."""
        self.position = position
        try:
            self._reader = source.open(target, position)
        except (DataError, OSError) as error:
            raise SessionError(f"{self} cannot be read: {error}") from error
        self._stops = target.stops

    @property
    def is_ended(self) -> bool:
        """Whether nothing more will come from it, and nothing waits for the next commit."""
        return not self._ready and self.is_exhausted

    @property
    def is_exhausted(self) -> bool:
        """Whether nothing more will come from its reader: at most, batches wait for the next commit."""
        return self._failing is None and (self._reader is None or self._reader.is_ended)

    @property
    def is_over(self) -> bool:
        """Whether it was closed, or has stopped."""
        return self.is_closed or self.error is not None

    @property
    def may_deliver(self) -> bool:
        """Whether further rows may come, now or, from a feed that has stopped, in a later session.

        A watermark waits for such a feed (`differential.session.clock`).
        """
        return not self.is_closed and (self.error is not None or not self.is_exhausted)

    @property
    def is_waiting(self) -> bool:
        """Whether something waits for the next commit."""
        return bool(self._ready) or self._failing is not None

    @property
    def state(self) -> str:
        """What it does: "reads", perhaps with what it waits for, "has ended", "is closed", or why it has stopped."""
        if self.error is not None:
            return f"stopped: {self.error}"
        note = getattr(self._reader, "note", "")
        return (
            "is closed" if self.is_closed else "has ended" if self.is_ended else f"reads; {note}" if note else "reads"
        )

    @property
    def extent(self) -> Extent | None:
        """How far it is, None if it does not end."""
        rows = self.rows + sum(batch.rows for batch in (*self._taken, *self._ready))
        if self._reader is None:
            return Extent(rows, self._read, self._read)
        found: tuple[float, float | None] | None = getattr(self._reader, "extent", None)
        if found is None:
            return None
        self._read = found[0]
        return Extent(rows, *found)

    def gather(self) -> None:
        """Take what has arrived, up to a bound, without waiting."""
        rows = sum(batch.rows + len(batch.rejected) for batch in self._ready)
        while self._reader is not None and self._failing is None and not self._reader.is_ended and rows < ROWS:
            try:
                batch = self._reader.poll()
                if batch is None:
                    return
                for _, columns in batch.changes:
                    self._fitted(columns)
            except (DataError, SessionError, OSError) as error:
                self._failing = SessionError(f"{self} has stopped: {error}")
                return
            self._ready.append(batch)  # also with a record that stops the source: the batch ends before it
            rows += batch.rows + len(batch.rejected)
            if batch.rejected and self._stops:
                self._failing = SessionError(f"{self} has stopped at {batch.rejected[0]}")

    def statements(self) -> Iterator[tuple[Item, RowStatement]]:
        """Yield what the next commit makes of what was gathered."""
        origin = Origin(self.name, 0)
        for batch in self._ready:
            for kind, columns in batch.changes:
                yield self.item, RowStatement(kind, self._fitted(columns), origin)
            if batch.rejected and self.rejects is not None and self.rejects.error is None:
                yield self.rejects, RowStatement(Kind.INSERT, rejected_columns(self.name, batch.rejected), origin)

    @property
    def next_position(self) -> Position | None:
        """The position after what was gathered, None if nothing was."""
        return self._ready[-1].position if self._ready else None

    @property
    def key(self) -> tuple[str, str]:
        """The names of the table and the source."""
        return self.item.name, self.name

    def take(self) -> None:
        """Assign what was gathered to the commit that has begun."""
        # Handlers of signals run at calls, and there is none here: an interrupt finds each batch in one of the lists.
        self._taken, self._ready = [*self._taken, *self._ready], []

    def settle(self) -> SessionError | None:
        """Record that what was taken is committed; return why the feed stops now, if it does.

        If an interrupt comes before all is noted, nothing is, and the next commit settles the feed.
        """
        taken = self._taken
        if taken:
            position = taken[-1].position
            if self._reader is not None:
                try:
                    # Before it is noted: after an interrupt, the next commit confirms the same position again.
                    self._reader.confirm(position)
                except (SessionError, OSError) as error:
                    self._failing = SessionError(f"{self} has stopped: {error}")
            rows = self.rows + sum(batch.rows for batch in taken)
            rejected = self.rejected + sum(len(batch.rejected) for batch in taken)
            self.rows, self.rejected, self.position, self._taken = rows, rejected, position, []
        if self._failing is not None and not self._ready:
            self.error, self._failing = self._failing, None
            self._close()
            return self.error
        return None

    def fail(self, error: BaseException) -> None:
        """Discard what was gathered, and stop with this error in the next commit."""
        # The reader has gone on, so these are not delivered later either: the position stays that of the last commit.
        self._ready = []
        self._failing = SessionError(f"{self} has stopped: {error}")

    def close(self) -> None:
        """Stop reading the source. What waits for a commit is given up; a later session reads it again."""
        with self._exclusive():
            self.end()

    def stop(self) -> None:
        """Let a reader that waits in a thread end, so that `end` need not wait as long."""
        stop = getattr(self._reader, "stop", None)
        if stop is not None:
            stop()

    def end(self) -> None:
        """Do what `close` does, under the lock of the catalog."""
        self.is_closed = True
        self._ready, self._failing = [], None
        self._close()

    def __str__(self) -> str:
        return f"source {self.name!r} of {self.item} (at {self.origin})"

    def __repr__(self) -> str:
        return f"<{self}: {self.rows:,} rows, {self.rejected:,} rejected, {self.state}>"

    def _close(self) -> None:
        # First: a reader whose `close` raises must not be polled again.
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _fitted(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        """Return columns as the table holds them. Raises DataError where it would refuse them."""
        return self.item.schema.fit(self.item.name, (self.item.names or ())[: len(columns)], columns)


def rejected_columns(source: str, rejected: Sequence[Rejected]) -> tuple[np.ndarray[Any, Any], ...]:
    """Return records that are not rows as columns of a table of rejects.

    >>> [column.tolist() for column in rejected_columns("a", [Rejected("a.csv", 3, "x", "no number")])]
    [['a'], ['a.csv'], [3], ['x'], ['no number']]
    """
    records = [(source, _text(each.place), each.line, _text(each.record), _text(each.error)) for each in rejected]
    return columns_of_records(REJECTS, records)


def _text(given: str) -> str:
    """Return a text that a table can hold: bytes of a file name that are not UTF-8 are escaped."""
    return given.encode(errors="surrogateescape").decode(errors="backslashreplace")
