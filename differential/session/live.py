"""Follow the commits: callbacks, and a table in a notebook that changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar, copy_context
from importlib import import_module
from types import TracebackType
from typing import Any

from differential.session.changes import Change, Changes
from differential.session.item import Item
from timely.errors import SessionError
from timely.lowlevel import is_ours


class Watch:
    """A callback that receives what each commit changes, until `close`.

    >>> from differential.session import Session
    >>> with Session() as db:
    ...     numbers = db.table("numbers", {"x": int})
    ...     watch = numbers.watch(lambda change: print(change.time, change.records()))
    ...     numbers.insert(x=3)
    ...     print(db.commit())
    ...     watch.close()
    1 [((3,), 1)]
    1
    """

    def __init__(self, changes: Changes, callback: Callable[[Change], object]) -> None:
        self._changes = changes
        self._callback = callback
        self.is_closed = False

    def deliver(self) -> None:
        """Call the callback with the changes so far. If the callback raises an error, the watch ends.

        A view that has failed ends the watch, too. Its error is not raised here, because the commit raises it. A cell
        shows this end, and that of a view that was dropped or replaced.
        """
        if self.is_closed:
            return
        is_over = self._changes.is_over  # read first: what came before the end is then delivered below
        try:
            for change in self._read():
                self._callback(change)
            if is_over and isinstance(self._callback, Cell):
                self._callback.show()
        except BaseException:
            self.close()
            raise
        if is_over:
            self.close()

    def _read(self) -> list[Change]:
        try:
            return self._changes.read_nowait()
        except Exception:
            return []

    def close(self) -> None:
        """Stop calling the callback."""
        self.is_closed = True
        self._changes.close()


class Cell:
    """A table or view in a cell of a notebook, which shows the current rows again after each change."""

    def __init__(self, shown: object) -> None:
        try:
            display: Any = import_module("IPython.display").display
        except ImportError:
            raise ImportError("watch() without a callback shows a cell of a notebook: pip install ipython") from None
        self._shown = shown
        self._handle = display(shown, display_id=True)

    def __call__(self, change: Change) -> None:
        self.show()

    def show(self) -> None:
        if self._handle is not None:
            self._handle.update(self._shown)


class Watches:
    """The watches of a session."""

    def __init__(self) -> None:
        self._all: list[Watch] = []
        self._commit: int | None = None
        """The commit whose changes are being delivered."""

    def add(self, watch: Watch) -> None:
        """Deliver to a watch at the end of each commit."""
        self._all.append(watch)

    def deliver(self, commit: int, failed: Iterable[Item], is_running: bool) -> Exception | None:
        """Deliver to all watches, those of failed views for the last time; return the first error of a callback."""
        for item in failed:
            item.end_failed(is_running)
        if not self._all:
            return None
        self._commit = commit
        try:
            return copy_context().run(self._delivered, commit)
        finally:
            self._commit = None

    def refuse_inside(self) -> None:
        """Raise SessionError in a callback: the commit that calls it is not over.

        An interrupt may leave `_commit` as it is, but never the context of callbacks. That is copied by tasks which a
        callback begins, and which may commit later: then `_commit` is None.
        """
        if self._commit is not None and _delivering.get() is self:
            raise SessionError(
                f"a callback of watch() cannot commit, because commit {self._commit} calls it: leave out commit(). "
                "What the callback has inserted or removed belongs to the next commit of the program"
            )

    def _delivered(self, commit: int) -> Exception | None:
        _delivering.set(self)
        refused = None
        for watch in self._all:  # which callbacks may extend
            try:
                watch.deliver()
            except Exception as error:
                why = f"{type(error).__name__}: {error} (commit {commit} is complete, and the watch has ended)"
                failure = SessionError(f"a callback of watch() failed: {why}")
                failure.__cause__ = error.with_traceback(_of_the_program(error.__traceback__))
                refused = refused or failure
        self._all = [watch for watch in self._all if not watch.is_closed]
        return refused


_delivering: ContextVar[Watches | None] = ContextVar("_delivering", default=None)
"""Whose callbacks run in this context."""


def _of_the_program(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the first line of the program on; all of it if there is none."""
    inner = trace
    while inner is not None and is_ours(inner.tb_frame.f_code.co_filename):
        inner = inner.tb_next
    return inner or trace
