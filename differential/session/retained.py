"""What a durable view, or a table of a durable session, retains for its sinks.

The reach of each sink is an offset of the durable collection, written with each append. It is one append behind,
so it is never beyond what the sink has, and the collection stays readable as of the reach:

    since <= reach of each sink <= what the sink has

So the commits that a sink does not have can always be read, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from differential.data.updates import Updates
from differential.durable import rows
from differential.durable.manifest import Position
from differential.durable.writer import Writer
from differential.session.changes import Change
from differential.session.item import Item
from differential.session.sinks.history import Reach
from differential.session.sources.bytes_of import digest

_PREFIX = "sink\t"


class Reaches(dict[str, Reach]):
    """How far the sinks of a view are known to be, by their names."""

    @classmethod
    def from_offsets(cls, offsets: Mapping[str, Position]) -> Reaches:
        """Return the reaches that the offsets of a durable view contain."""
        found = {key.removeprefix(_PREFIX): text for key, text in offsets.items() if key.startswith(_PREFIX)}
        return cls({sink: Reach.from_text(text) for sink, text in found.items()})

    def offsets(self) -> dict[str, Position]:
        """Return the reaches as offsets."""
        return {f"{_PREFIX}{sink}": reach.to_text() for sink, reach in self.items()}

    def limit(self, most: int | None = None) -> int | None:
        """Return the commit as of which the collection must stay readable: at most `most`; None if any will do."""
        limits = [reach.through for reach in self.values()]
        return min(limits if most is None else [*limits, most], default=None)


def stream_of(identity: str, name: str, about: Mapping[str, Any]) -> str:
    """Return the name of the stream of commits of a durable table or view, given what is noted of it.

    >>> stream_of("0f", "spent", {"created": 3})
    '0f/spent/3'
    """
    token = about.get("token")
    return f"{identity}/{name}/{about['created']}{'' if token is None else f'/{token}'}"


def begun(at: int) -> dict[str, Any]:
    """Return what is noted of a view that begins at a commit. Its token distinguishes it from others of that commit."""
    return {"created": at, "token": token_hex(4)}


@dataclass(frozen=True, eq=False)
class Retained:
    """The changes of a table or durable view, and what is retained of them for a sink. Use under the catalog's lock.

    A table has no durable collection before the next commit, which then makes the reaches durable.
    """

    item: Item
    sink: str
    identity: str
    """That of the session's directory."""
    writer_of: Callable[[], Writer | None]
    """Returns the writer of the durable collection; None if the next commit makes it."""
    next: int
    """The commit that makes the durable collection if there is none."""
    reaches: Reaches
    attempt: Callable[[Callable[[], object]], object]
    """Runs what writes to the store."""

    @property
    def stream(self) -> str:
        """The name of the stream of commits, for marks: another one if the view begins anew.

        That of a table depends on its columns and their order, because a table keeps its rows if these change.
        """
        stream = stream_of(self.identity, self.item.name, self.about)
        return stream if self.item.kind == "view" else f"{stream}/{digest(repr(self.item.columns(0)).encode())[:8]}"

    @property
    def about(self) -> Mapping[str, Any]:
        """What is noted of the durable collection."""
        writer = self.writer_of()
        return {"created": self.next} if writer is None else writer.manifest.about

    def since(self) -> int:
        """Return the first commit as of which it can be read. Before its first commit, a table was empty."""
        writer = self.writer_of()
        since = self.next if writer is None else writer.manifest.since
        # A table was empty before the commit that made it. A view has rows as of the commit at which it begins.
        return since - (self.item.kind == "table" and since == self.about["created"])

    def changes(self, after: int, end: int) -> list[Change]:
        """Return the changes of each commit after `after`, up to and including `end`."""
        writer = self.writer_of()
        if writer is None:
            return []
        # It can be read as of `after`, or was empty then, so what came later still has its own times.
        table = writer.shard.updates(after + 1, end + 1)
        return [self._change(time, updates) for time, updates in rows.by_time(table)]

    def contents(self, at: int) -> list[Change]:
        """Return the rows as of a commit, as one change; no change if there are none.

        If the view was replaced since that commit, these are the rows of the former one: the next commit has the
        difference.
        """
        writer = self.writer_of()
        if writer is None or not len(table := rows.consolidated(writer.shard.updates(), at)):
            return []
        return [self._change(at, rows.updates_of(table))]

    def _change(self, time: int, updates: Updates) -> Change:
        columns = self.item.reordered(updates.columns)
        return Change(time, self.item.columns(len(columns)), columns, updates.each_diff())

    def reach(self) -> Reach | None:
        """Return how far the sink is known to be, or None if it is not known."""
        return self.reaches.get(self.sink)

    def retain(self, reach: Reach) -> None:
        """Retain all commits after that reach, durably, until `note` replaces it."""
        self.reaches[self.sink] = reach
        if (writer := self.writer_of()) is not None:
            self.attempt(lambda: writer.note(self.reaches.offsets()))

    def note(self, reach: Reach) -> None:
        """Record how far the sink is; the next append makes this durable."""
        self.reaches[self.sink] = reach

    def forget(self) -> None:
        """Stop retaining commits for the sink."""
        if self.reaches.pop(self.sink, None) is not None and (writer := self.writer_of()) is not None:
            self.attempt(lambda: writer.note({f"{_PREFIX}{self.sink}": None}))
