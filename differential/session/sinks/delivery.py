"""The changes of a view on their way to a sink, and what a session does if the sink does not accept them.

A delivery belongs to the catalog of its session, whose lock orders everything here. At the end of a commit, `deliver`
writes the changes that the sink does not have, as its mark states. After an error it is not known what the sink has, so
the sink is opened again, and its mark is read:

    to write = the changes of the commits after the mark

`take` has collected these changes, or they are read again from the durable view. A new sink begins with the contents of
the view.

**Invariant.** Between two calls, if `_is_complete`:

    contents of the sink as of `_reach` + `_pending` + `_first` = contents of the view as of the last commit taken

If `_reach` is None, the sink counts as empty. If not `_is_complete`, `_pending` is of no use, and `_read` replaces it:
by the contents of the view if `_reach` is None, and otherwise by the changes after `_reach.through`, which only a
durable view retains. A successful attempt leaves `_pending` empty, and `_reach` at the commit. An error of a write
changes none of the three, but closes the writer: the sink may have more than `_reach` states. When it is opened again,
`_begin` reads its mark, moves `_reach` there, and removes from `_pending` what the sink has.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Sequence
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Literal

from differential.session.changes import Change
from differential.session.in_use import InUse
from differential.session.item import Item
from differential.session.sinks.history import Contents, Left, Reach
from differential.session.sinks.sink import Mark, Outlet, Sink, SinkWriter
from timely.errors import DataError, SessionError, StoreError, TimelyError
from timely.lowlevel import user_origin

if TYPE_CHECKING:
    from differential.session.retained import Retained

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Seconds between two attempts to write; each pause is twice the previous one."""
ROWS = 1 << 20
"""At most this many changed rows of a durable view are kept in memory while its sink does not accept them."""
Existing = Literal["stop", "replace"]


class Delivery:
    """The changes of a view on their way to a sink.

    >>> import os, tempfile
    >>> from differential.session import Session
    >>> from differential.session.sinks import json_lines
    >>> with tempfile.TemporaryDirectory() as directory, Session() as db:
    ...     stock = db.table("stock", {"item": ["nut"]})
    ...     view = db.view("all", lambda t: t.stock)
    ...     delivery = view.write_to(json_lines(os.path.join(directory, "stock.jsonl")))
    ...     number = db.commit()
    ...     delivery.rows, delivery.commit, delivery.state, delivery.error
    ...     delivery.close()
    (1, 1, 'is up to date', None)
    """

    def __init__(
        self,
        sink: Sink,
        item: Item,
        history: Retained | None,
        contents: Contents,
        outlet: Callable[[], Outlet],
        patience: float,
        existing: Existing,
    ) -> None:
        self.name = sink.name
        self.item = item
        self.origin = user_origin()
        """The file and line of the program that attached the sink."""
        self.rows = 0
        """How many changed rows were written in this session."""
        self.attempts = 0
        """How many attempts in succession have failed."""
        self.error: BaseException | None = None
        """Why the last attempt failed; None if it succeeded."""
        self.is_over = False
        """Whether the delivery was closed, or has stopped because another attempt cannot succeed."""
        self._sink = sink
        self._history = history
        self._contents = contents
        self._outlet = outlet
        self._patience = patience
        self._existing = existing
        self._own_stream = f"session {token_hex(8)}"
        self._writer: SinkWriter | None = None
        self._reach: Reach | None = None
        """How far the sink is; None before it has the contents of the view."""
        self._pending: list[Change] = []
        """What the next write contains."""
        self._first: list[Change] = []
        """What the next commit changes beside its own changes, after the view has replaced another one (`succeed`)."""
        self._is_complete = False
        """Whether `_pending` has all changes after the reach."""
        self._in_use = InUse()
        """`close` may be called at any time, by any thread."""

    @property
    def commit(self) -> int | None:
        """The last commit that the sink has completely; None before there is one."""
        return None if self._reach is None else self._reach.through

    @property
    def state(self) -> str:
        """The state as a text: "is up to date", "is closed", or why the delivery waits or has stopped."""
        if self.error is not None:
            return f"{'stopped' if self.is_over else f'waits after {self.attempts} attempt(s)'}: {_text(self.error)}"
        return "is closed" if self.is_over else "is up to date"

    def left(self, number: int) -> Left | None:
        """Return what the sink has, for a view that replaces this one after commit `number`.

        Return None if the sink lacks anything, or if rows of the view occur a negative number of times.
        """
        if self.is_over or self._reach is None or self.commit != number or self._first:
            return None
        try:
            return Left(self._own_stream, self._reach, self.item.names, self._contents())
        except DataError:
            return None

    def succeed(self, left: Left, number: int) -> None:
        """Continue a sink after commit `number` with what has changed since a former view wrote to it.

        If the mark of the sink is that of this commit, the next one has the difference. If the sink cannot have the
        rows of both views, it is refused, as any other.
        """
        # Later than the mark: a change that is not later counts as written (`_begin`).
        time = max(number, left.reach.applied + 1)
        changes = left.difference(self.item.names, self._contents(), time)
        if changes is not None:
            self._own_stream, self._reach = left.stream, Reach(left.reach.applied, number)
            self._pending, self._first = (changes, []) if time == number else ([], changes)
            self._is_complete = True

    def take(self, changes: Sequence[Change] | None) -> None:
        """Collect the changes of a commit; None if they must be read again from the durable view."""
        if self.is_over:
            return
        if changes is not None:
            changes, self._first = [*self._first, *changes], []
        if changes is None:
            self._is_complete = False
            self._close()  # the view may have begun anew, so the mark is read again
        elif self._is_complete:
            self._pending += changes
        if self._history is not None and sum(len(change.diff) for change in self._pending) > ROWS and self.attempts:
            self._is_complete = False
        if not self._is_complete:
            self._pending = []

    def deliver(
        self, number: int, is_closing: Callable[[], bool], later: str = "the next commit tries again"
    ) -> SessionError | None:
        """Write all changes up to a commit; return the error if not all are written, and otherwise None.

        Failed attempts are repeated until the patience (in seconds) is over; the error then ends with what happens
        `later`. If another attempt cannot succeed, the delivery ends.
        """
        end, pause = clock.monotonic() + self._patience, FIRST_PAUSE
        while True:
            try:
                with self._in_use:
                    if self.is_over:  # it was closed meanwhile, and its sink must not be opened again
                        return None
                    self._attempt(number)
            except (OSError, StoreError) as error:
                self._lose(error)
                if clock.monotonic() + pause > end or is_closing():
                    return SessionError(
                        f"{self} has not taken the changes up to commit {number} ({self.attempts} attempt(s) in "
                        f"succession failed, the last one with: {_text(error)}); {later}"
                    )
                clock.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            except TimelyError as error:
                self._lose(error)
                self.is_over, self._pending = True, []
                return SessionError(f"{self} has stopped: {error}")
            except Exception as error:  # not of the sink: another attempt at once would raise it again
                self._lose(error)
                failure = SessionError(
                    f"{self} has not taken the changes up to commit {number}, because its writer has raised "
                    f"{type(error).__name__}: {error}; {later}"
                )
                failure.__cause__ = error
                return failure
            except BaseException:
                self._lose(None)
                raise
            else:
                self.error, self.attempts = None, 0
                return None

    def close(self) -> None:
        """Stop writing to the sink. A durable session retains the changes that the sink does not have."""
        with self._in_use.closing():
            self.is_over, self._pending = True, []
            self._close()

    def __str__(self) -> str:
        return f"sink {self.name!r} of {self.item} (at {self.origin})"

    def __repr__(self) -> str:
        return f"<{self}: {self.rows:,} rows, {self.state}>"

    @property
    def _stream(self) -> str:
        return self._own_stream if self._history is None else self._history.stream

    def _attempt(self, number: int) -> None:
        if self._writer is None:
            self._writer = self._sink.open(self._outlet())
            self._begin(self._writer, number)
        if not self._is_complete:
            self._read(number)
        if self._pending or self._reach is None:
            # That of the last commit with changes: some sinks find their mark by what was written, as a directory does.
            mark = Mark(self._stream, self._pending[-1].time if self._pending else number)
            self._writer.write(self._pending, mark)
            self.rows += sum(len(change.diff) for change in self._pending)
            # If an interrupt comes before both are set, `_begin` finds the commit in the mark.
            self._pending = []
            self._reach = Reach(mark.commit, number)
        else:
            self._reach = Reach(self._reach.applied, number)
        if self._history is not None:
            self._history.note(self._reach)

    def _begin(self, writer: SinkWriter, number: int) -> None:
        """Read the mark of the sink, and retain the commits after it."""
        mark = writer.mark()
        why = None if mark is None else self._refusal(mark, number)
        if why is not None:
            if self._existing == "stop":
                raise SessionError(
                    f'it cannot go on, because the sink {why}: write_to(..., existing="replace") replaces its contents'
                )
            writer.clear()
        if mark is None or why is not None:
            self._reach, self._pending, self._first, self._is_complete = None, [], [], False
            if self._history is not None:
                # Before the sink receives anything: a crash after its first write finds the commits that follow.
                self._history.retain(Reach(number, number))
            return
        known = self._reach or (None if self._history is None else self._history.reach())
        # Up to which commit nothing has changed is known only of the mark that was noted with it.
        through = known.through if known is not None and known.applied == mark.commit else mark.commit
        self._reach = Reach(mark.commit, through)
        self._pending = [change for change in self._pending if change.time > mark.commit]
        if self._history is not None:
            self._history.retain(self._reach)

    def _refusal(self, mark: Mark, number: int) -> str | None:
        """Return why a sink with this mark cannot be continued, or None if it can."""
        if mark.stream != self._stream:
            return (
                "has what another view or session has written, or an earlier write_to of a session without state=, or "
                f"something else ({mark.stream or 'no mark'})"
            )
        if mark.commit > number:
            return f"has commit {mark.commit}, and the session only {number}: one of them was restored from a copy"
        if self._history is not None:
            reach = self._reach or self._history.reach()
            is_known = reach is not None and reach.applied == mark.commit
            if not is_known and mark.commit < self._history.since():
                return f"has the commits up to {mark.commit} only, and what came then is no longer retained"
        return None

    def _read(self, number: int) -> None:
        """Replace the pending changes by all changes that the sink does not have."""
        if self._reach is None:
            self._pending = self._contents() if self._history is None else self._history.contents(number)
        elif self._history is not None:
            self._pending = self._history.changes(self._reach.through, number)
        self._is_complete = True

    def _lose(self, error: BaseException | None) -> None:
        """Record an error after which it is not known what the sink has."""
        self.error, self.attempts = error, self.attempts + 1
        # Whatever it has is found by the mark that the next writer reads.
        with suppress(Exception):  # the writer has failed already
            self._close()

    def _close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


def _text(error: BaseException) -> str:
    """Return the text of an error, or the name of its class if the text is empty, as that of a timeout may be."""
    return str(error) or type(error).__name__
