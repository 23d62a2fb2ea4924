"""What a durable view retains for its sinks.

The reach of each sink is an offset of the view's durable collection, written with each append. It is one append behind,
so it is never beyond what the sink has, and the collection stays readable as of the reach:

    since <= reach of each sink <= what the sink has

So the commits that a sink does not have can always be read, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from differential.durable import rows
from differential.durable.manifest import Position
from differential.durable.writer import Writer
from differential.session.changes import Change
from differential.session.item import Item
from differential.session.sinks.history import Reach

_PREFIX = "sink\t"


class Reaches(dict[str, Reach]):
    """How far the sinks of a view are known to be, by their names."""

    @classmethod
    def from_offsets(cls, offsets: Mapping[str, Position]) -> Reaches:
        """Return the reaches that the offsets of a durable view contain."""
        found = {key: text for key, text in offsets.items() if key.startswith(_PREFIX)}
        return cls({key.removeprefix(_PREFIX): Reach.from_text(text) for key, text in found.items()})

    def offsets(self) -> dict[str, Position]:
        """Return the reaches as offsets."""
        return {f"{_PREFIX}{sink}": reach.to_text() for sink, reach in self.items()}

    def limit(self) -> int | None:
        """Return the commit as of which the view must stay readable, or None if it has no sink."""
        return min((reach.through for reach in self.values()), default=None)


class Retained:
    """The `History` of one sink of a durable view. Use under the lock of the session's catalog."""

    def __init__(
        self,
        item: Item,
        sink: str,
        stream: str,
        writer: Writer,
        reaches: Reaches,
        attempt: Callable[[Callable[[], object]], None],
    ) -> None:
        self.stream = stream
        self._item = item
        self._sink = sink
        self._writer = writer
        self._reaches = reaches
        self._attempt = attempt

    def since(self) -> int:
        return self._writer.manifest.since

    def changes(self, after: int, end: int) -> list[Change]:
        table = self._writer.shard.updates(after + 1, end + 1)
        table = table.take(rows.order_of_times(table))
        found, start = [], 0
        for time, length in rows.runs_of_times(table):
            part = table.slice(start, length)
            updates = rows.updates_of(part)
            names = self._item.columns(len(updates.columns))
            found.append(Change(time, names, updates.columns, updates.each_diff()))
            start += length
        return found

    def reach(self) -> Reach | None:
        return self._reaches.get(self._sink)

    def retain(self, reach: Reach) -> None:
        self._reaches[self._sink] = reach
        self._attempt(lambda: self._writer.note(self._reaches.offsets()))

    def note(self, reach: Reach) -> None:
        self._reaches[self._sink] = reach

    def forget(self) -> None:
        """Stop retaining commits for the sink."""
        if self._reaches.pop(self._sink, None) is not None:
            self._attempt(lambda: self._writer.note({f"{_PREFIX}{self._sink}": None}))
