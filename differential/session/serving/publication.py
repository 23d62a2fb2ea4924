"""A table or view that is published to other sessions, as Arrow record batches over encrypted sockets.

A thread receives the changes of each commit, converts them to Arrow once, and keeps the last commits up to a bound.
Readers request the commit after a mark, which is a label and the number of a commit. A durable table or view has a
lasting label, and begins with the commits that are retained. Any other table or view has a random label. A reader
without a mark, or with a mark after which commits are not kept, receives a snapshot.
"""

from __future__ import annotations

from collections import deque
from threading import Lock, Thread

import numpy as np

from differential.session.catalog import Catalog
from differential.session.changes import Change
from differential.session.item import Item
from differential.session.serving.outgoing import followed
from differential.session.sources.arrow_socket import CHANGES, GONE, SNAPSHOT, packed
from timely.errors import DataError, SessionError, TimelyError
from timely.services import AnsweringSocket

BACKLOG = 64 << 20
FAILURES = (TimelyError, ArithmeticError, TypeError)
"""What reading a table or view may raise, and converting it to Arrow."""


class Publication:
    """What `Readable.publish` returns. It ends with `close`, or with the session or view."""

    def __init__(self, catalog: Catalog, item: Item, address: str, keys: str, backlog: int = BACKLOG) -> None:
        self._catalog = catalog
        self._item = item
        self._limit = backlog
        self._kept: deque[tuple[int, list[bytes]]] = deque()
        """The last commits, and the answer with each."""
        self._bytes = 0
        self._lock = Lock()
        """Held for `_kept`, `_bytes`, `_since` and `_begun`: one thread adds commits, and another one answers."""
        self._over: str | None = None
        """Why nothing follows any more. Readers of a session that ends, and may be opened again, are not answered."""
        self._is_closed = False
        self._begun: tuple[int, bytes] | None = None
        self._changes, past = followed(catalog, item, "publish()")
        self._label, self._since = past.label, past.since
        for change in past.changes:
            self._add(change)
        try:  # last, because it answers at once
            self._socket = AnsweringSocket(address, keys, self._answer)
        except BaseException:
            self._changes.close()
            raise
        self.address = self._socket.address
        """Where it is published: with the port, if that was left open."""
        self._thread = Thread(target=self._run, name="timely publication", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the publication: readers are no longer answered."""
        self._is_closed = True  # first: `_run` then ends without a reason for readers
        self._changes.close()
        self._thread.join()
        self._socket.close()

    def __repr__(self) -> str:
        return f"<Publication of {self._item} at {self.address}>"

    def _run(self) -> None:
        over = f"{self._item} was dropped or replaced"
        try:
            for change in self._changes:
                self._add(change)
                self._socket.ring()  # once it is kept: those who wait for it are answered now
        except FAILURES as error:
            over = f"{self._item} has failed: {error}"
        if not self._ends:
            self._over = over  # once all commits are kept: readers receive these first
        self._socket.ring()

    @property
    def _ends(self) -> bool:
        return self._is_closed or self._catalog.engine.is_closing

    def _add(self, change: Change) -> None:
        try:
            answer = [CHANGES, f"{self._label}.{change.time}".encode(), self._packed(change)]
        except SessionError as error:  # no reader follows past this commit; a later snapshot may be without its rows
            answer = [GONE, str(error).encode()]
        with self._lock:
            self._begun = None
            self._kept.append((change.time, answer))
            self._bytes += len(answer[-1])
            while self._bytes > self._limit:
                self._since, former = self._kept.popleft()
                self._bytes -= len(former[-1])

    def _answer(self, question: bytes) -> list[bytes] | None:
        """Return the commit after a mark, a snapshot, or None while there is no such commit."""
        label, _, number = question.decode("utf-8", "replace").rpartition(".")
        # A question has at most QUESTION_BYTES, which are too few digits for `int` to refuse.
        commit = int(number) if label == self._label and number.isascii() and number.isdecimal() else None
        with self._lock:
            if commit is not None and self._since <= commit <= self._catalog.last:
                found = next((each for each in self._kept if each[0] > commit), None)
                if found is not None:
                    return found[1]
                return [GONE, self._over.encode()] if self._over is not None else None
            begun = self._begun
        if self._over is not None:
            return [GONE, self._over.encode()]
        if begun is None or begun[0] < self._catalog.last:
            try:
                begun = self._snapshot()
            except FAILURES as error:
                return None if self._ends else [GONE, str(error).encode()]
        return [SNAPSHOT, f"{self._label}.{begun[0]}".encode(), begun[1]]

    def _snapshot(self) -> tuple[int, bytes]:
        rows, commit = self._catalog.snapshot(self._item)
        whole = Change(commit, rows.columns, rows.arrays(), np.ones(len(rows), np.int64))
        made = commit, self._packed(whole)
        with self._lock:
            self._begun = made
        return made

    def _packed(self, change: Change) -> bytes:
        try:
            return packed(change)
        except DataError as error:
            raise SessionError(f"commit {change.time} of {self._item} cannot be converted to Arrow: {error}") from None


def publish(catalog: Catalog, item: Item, address: str, keys: str) -> Publication:
    """Publish a table or view, and return it.

    Raises ConfigError if the address or the keys cannot be used, SessionError for a column named `diff`.
    """
    catalog.check(item)
    if "diff" in (item.names or ()):
        raise SessionError(f"{item} has a column 'diff', the name of one that readers receive: rename it in a view")
    publication = Publication(catalog, item, address, keys)
    catalog.deliveries.publications.add(publication)  # its threads keep it until it is closed
    return publication
