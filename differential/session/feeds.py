"""The sources of a session, as its commits use them."""

from __future__ import annotations

from collections.abc import Sequence

from differential.session.in_use import InUse
from differential.session.item import Item
from differential.session.rows import Rows
from differential.session.sources.feed import Feed
from differential.session.sources.source import Extent, Position
from differential.session.transaction import RowStatement
from timely.errors import SessionError


class Feeds:
    """The feeds of a session. Use under the lock of its catalog."""

    def __init__(self) -> None:
        self.all: tuple[Feed, ...] = ()
        self.in_use = InUse()
        """Of all readers at once, because tables of one slot of PostgreSQL share a connection."""

    def add(self, feed: Feed) -> None:
        """Add a feed. Raises SessionError where its table has one of the same name that reads."""
        if any(each.key == feed.key and not each.is_over for each in self.all):
            raise SessionError(f"{feed.item} already reads {feed.name!r}: name=... gives the source another name")
        # Replaced, never modified: `status` reads it without the lock.
        self.all = (*(each for each in self.all if each.key != feed.key), feed)

    def forget(self, feed: Feed) -> None:
        self.all = tuple(each for each in self.all if each is not feed)

    def gather(self) -> bool:
        """Take what has arrived; return whether anything waits for a commit."""
        with self.in_use:
            for feed in self.all:
                feed.gather()
        return any(feed.is_waiting for feed in self.all)

    def loaded(self) -> dict[Feed, Extent] | None:
        """Return how far each feed is; None if all have ended, or if one of them does not end."""
        extents = {feed: extent for feed in self.all if (extent := feed.extent) is not None}
        return None if self.are_ended or len(extents) < len(self.all) else extents

    @property
    def are_ended(self) -> bool:
        """Whether no more rows will arrive."""
        return all(feed.is_over or feed.is_ended for feed in self.all)

    def statements(self, *without: Feed) -> list[tuple[Item, RowStatement]]:
        """Return what the next commit makes of what has arrived."""
        return [each for feed in self.all if feed not in without for each in feed.statements()]

    def positions(self) -> dict[str, dict[str, Position]]:
        """Return the positions after what has arrived, by table."""
        found: dict[str, dict[str, Position]] = {}
        for feed in self.all:
            if (position := feed.next_position) is not None:
                found.setdefault(feed.item.name, {})[feed.name] = position
        return found

    def take(self) -> None:
        """Assign what has arrived to the commit that has begun."""
        for feed in self.all:
            feed.take()

    def settle(self) -> SessionError | None:
        """Record that what was taken is committed; return why a source stops now, if one does."""
        with self.in_use:
            errors = [error for feed in self.all if (error := feed.settle()) is not None]
        return errors[0] if errors else None

    def close_for(self, item: Item) -> None:
        """Close the feeds of a table that is dropped."""
        self._end([feed for feed in self.all if feed.item is item])
        self.all = tuple(feed for feed in self.all if feed.item is not item)

    def end(self) -> None:
        self._end(self.all)

    def rows(self) -> Rows:
        """Return what each feed has done, for people."""
        types = {"source": str, "table": str, "rows": int, "rejected": int, "state": str}
        return Rows.of(types, [(each.name, each.item.name, each.rows, each.rejected, each.state) for each in self.all])

    def _end(self, feeds: Sequence[Feed]) -> None:
        """Close feeds, and wait for all at once."""
        for feed in feeds:
            feed.stop()
        with self.in_use.closing():
            for feed in feeds:
                feed.end()
