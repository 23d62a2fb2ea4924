"""Commits of another session that a thread reads ahead of the one that polls them, up to a bound."""

from __future__ import annotations

from collections import deque
from threading import Condition, Thread
from typing import Generic, TypeVar

from differential.session.sources.source import Reader, SourceBatch
from timely.errors import SessionError

Entry = TypeVar("Entry")


class ReadAhead(Reader, Generic[Entry]):
    """A reader whose thread waits while entries of at least the size `most` wait for `poll`.

    A subclass calls `__init__` last, because it starts the thread, which runs `_run`.
    """

    is_ended = False

    def __init__(self, name: str, most: int) -> None:
        self.note = ""
        """Why nothing arrives, empty if the other session answers."""
        self._most = most
        self._ready: deque[tuple[Entry, int]] = deque()
        self._size = 0
        self._failure: SessionError | None = None
        self._is_closed = False
        self._changed = Condition()
        self._thread = Thread(target=self._run, name=f"timely {name}", daemon=True)
        self._thread.start()

    def poll(self) -> SourceBatch | None:
        """Return the next commit of the other session, None if none has arrived. Raises SessionError or DataError."""
        with self._changed:
            # An error comes after the entries that arrived before it.
            if not self._ready:
                if self._failure is not None:
                    raise self._failure
                return None
            entry, size = self._ready.popleft()
            self._size -= size
            self._changed.notify_all()
        return self._batch(entry)  # without the lock: the thread reads on meanwhile

    def stop(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        """Call `_add` for each commit until `_is_closed`, or `_fail`."""
        raise NotImplementedError

    def _batch(self, entry: Entry) -> SourceBatch:
        """Return the rows of a commit."""
        raise NotImplementedError

    def _add(self, entry: Entry, size: int) -> None:
        """Make `poll` return an entry, and wait until more may be read."""
        with self._changed:
            self._ready.append((entry, size))
            self._size += size
            self._changed.wait_for(lambda: self._is_closed or self._size < self._most)

    def _fail(self, failure: SessionError) -> None:
        """Make `poll` raise an error after all entries."""
        with self._changed:
            self._failure = failure
