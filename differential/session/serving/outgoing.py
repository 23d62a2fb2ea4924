"""Changes that readers receive: what each commit changes in a table or view.

A `Hub` follows one table or view. It keeps the last messages, up to a bound, so that a reader can resume at the id of a
message that it has received. Any other reader receives a snapshot as of a commit, and then the changes of each later
commit. Messages that a reader has not received wait in a queue of bounded size. If they do not fit, the reader is
disconnected, and can resume later or begin again. So the memory for a reader is bounded, and no reader delays a commit
or another reader.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import NamedTuple

from differential.session.catalog import Catalog
from differential.session.changes import Change, Changes, RetainedChanges
from differential.session.item import Item
from differential.session.serving.form import messages
from timely.errors import DataError, TimelyError

CLOSED = "the session is no longer served"
"""The reason for the end of all streams when the server closes."""
DIGITS = 18
"""The number of a commit has at most this many digits."""


class SentMessage(NamedTuple):
    """A message as it is sent."""

    commit: int
    mark: str | None
    text: str


class Cut(Exception):
    """The stream of a reader ends, for the reason in its text."""


class Subscriber:
    """The queue of one reader. Its methods run on the event loop of the server."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: deque[SentMessage] = deque()
        self._bytes = 0
        self._wakes = asyncio.Event()
        self._reason: str | None = None

    def put(self, entry: SentMessage) -> None:
        """Add a message, or end the stream if the message does not fit."""
        if self._reason is None:
            self._entries.append(entry)
            self._bytes += len(entry.text)
            if self._bytes > self._limit:
                self.cut(
                    f"more than {self._limit:,} bytes wait for this reader, which is too slow: connect again with the "
                    "id of the last message, or without an id for a snapshot"
                )
            self._wakes.set()

    def cut(self, reason: str) -> None:
        """End the stream; messages that wait are discarded."""
        if self._reason is None:
            self._reason = reason
            self._entries.clear()
            self._wakes.set()

    async def get(self) -> SentMessage:
        """Wait for the next message. Raises Cut at the end of the stream."""
        while not self._entries:
            if self._reason is not None:
                raise Cut(self._reason)
            self._wakes.clear()
            await self._wakes.wait()
        entry = self._entries.popleft()
        self._bytes -= len(entry.text)
        return entry


class Hub:
    """Follows one item. Everything but `_snapshot` runs on the event loop of the server."""

    def __init__(self, catalog: Catalog, item: Item, backlog: int, queue: int) -> None:
        self.item = item
        self.label = ""
        self._catalog = catalog
        self._limit = backlog
        self._queue = queue
        self._kept: deque[SentMessage] = deque()
        self._bytes = 0
        self._readers: set[Subscriber] = set()
        self._over: str | None = None
        self._is_closed = False
        self._since = 0
        self._begun: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        """Whether the table or view is gone."""
        return self._over is not None

    async def read(self, mark: str | None) -> AsyncIterator[SentMessage]:
        """Yield the messages after an id if they are kept, or else a snapshot and all later messages. Raises Cut."""
        if self._begun is None:
            self._begun = asyncio.create_task(self._begin())
        await asyncio.shield(self._begun)  # a reader that leaves must not end what others wait for
        after = commit_of(mark, self)
        reader = Subscriber(self._queue)
        self._readers.add(reader)  # before it looks at what there is: what comes later is in its queue
        try:
            if self._over is not None:
                reader.cut(self._over)
            if after is not None and self._since <= after <= self._catalog.last:
                # A list, made at once: what is published while this reader waits is in its queue.
                entries: Iterable[SentMessage] = [entry for entry in self._kept if entry.commit > after]
                behind = max((entry.commit for entry in entries), default=after)
            else:
                behind, entries = await asyncio.to_thread(self._snapshot)
            for entry in entries:
                yield entry
                if self._is_closed:
                    break
            while True:
                entry = await reader.get()
                if entry.commit > behind:  # else it has the commit already
                    yield entry
        finally:
            self._readers.discard(reader)

    async def close(self, reason: str) -> None:
        """End all streams, each after the message that is being sent."""
        self._is_closed = True  # readers who are sent what is kept, or a snapshot, stop at this
        self._end(reason)
        if self._task is not None:
            self._task.cancel()

    async def _begin(self) -> None:
        try:
            changes = await self._joined()
        except BaseException as error:
            self._end(f"{self.item} cannot be followed: {error}")  # the next reader begins with another hub
            raise

        async def follow() -> None:
            reason = f"{self.item} was dropped or replaced, or its session has ended"
            try:
                async for change in changes:
                    self._add(change)
            except (TimelyError, ArithmeticError) as error:
                reason = f"{self.item} has failed: {error}"
            finally:
                changes.close()
                self._end(reason)

        self._task = asyncio.create_task(follow())

    async def _joined(self) -> Changes:
        """Take what is retained of a durable table or view, and return the changes that follow."""
        changes, past = await asyncio.to_thread(followed, self._catalog, self.item)
        self.label, self._since = past.label, past.since
        try:
            for change in past.changes:
                self._add(change)
        except BaseException:
            changes.close()
            raise
        return changes

    def _add(self, change: Change) -> None:
        found = messages("changes", change.time, self.label, change.columns, change.rows, change.diff.tolist())
        for mark, text in found:
            self._publish(SentMessage(change.time, mark, text))

    def _snapshot(self) -> tuple[int, Iterator[SentMessage]]:
        """Return the last commit, and the rows as of it. Runs on another thread, because it may wait for a commit."""
        rows, commit = self._catalog.snapshot(self.item)
        values = rows.arrays()
        found = messages("snapshot", commit, self.label, rows.columns, values, [1] * len(rows))
        return commit, (SentMessage(commit, mark, text) for mark, text in found)

    def _publish(self, entry: SentMessage) -> None:
        self._kept.append(entry)
        self._bytes += len(entry.text)
        while self._bytes > self._limit and self._kept:
            former = self._kept.popleft()
            self._bytes -= len(former.text)
            self._since = max(self._since, former.commit)  # what is left of this commit is not whole
        for reader in tuple(self._readers):
            reader.put(entry)

    def _end(self, reason: str) -> None:
        self._over = self._over or reason
        for reader in tuple(self._readers):  # one that comes later finds `_over`
            reader.cut(self._over)


class SessionHubs:
    """The hubs of a session, each made when its first reader comes."""

    def __init__(self, catalog: Catalog, backlog: int, queue: int) -> None:
        self._catalog = catalog
        self._limits = backlog, queue
        self._hubs: dict[Item, Hub] = {}
        self._is_closed = False

    def of(self, item: Item) -> Hub:
        """Return the hub of an item. Raises Cut after `close`."""
        if self._is_closed:
            raise Cut(CLOSED)
        self._hubs = {each: hub for each, hub in self._hubs.items() if not hub.is_over}
        if item not in self._hubs:
            self._hubs[item] = Hub(self._catalog, item, *self._limits)
        return self._hubs[item]

    async def close(self) -> None:
        self._is_closed = True
        for hub in self._hubs.values():
            await hub.close(CLOSED)


def followed(catalog: Catalog, item: Item, made_by: str | None = None) -> tuple[Changes, RetainedChanges]:
    """Return what each commit from now on changes, and what is retained of the commits before.

    That is nothing, under a random label, unless it is a durable table or view. `made_by` is as in `Catalog.follow`.
    """
    with catalog.exclusive():
        past = None if catalog.storage is None else catalog.storage.past(item)
        # In this order: `follow` waits for a commit that an interrupt has left to the workers; then it is `last`.
        changes = catalog.follow(item, made_by)
        return changes, past or RetainedChanges(secrets.token_hex(4), catalog.last, [])


def commit_of(mark: str | None, hub: Hub) -> int | None:
    """Return the commit after which a reader resumes, or None if it begins. Raises DataError if `mark` is not an id.

    With an id of another session, or of a view that was replaced, the reader begins: the number is of another commit.
    """
    if mark is None or mark == "":
        return None
    label, dot, number = mark.rpartition(".")
    if not number.isascii() or not number.isdecimal() or len(number) > DIGITS:
        raise DataError(
            f"{mark!r:.80} is neither the id of a message, such as {hub.label}.7, nor the number of a commit"
        )
    return int(number) if not dot or label == hub.label else None
