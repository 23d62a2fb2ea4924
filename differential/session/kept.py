"""What a session records about a durable table besides its rows, under which names, and reserved column names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from differential.durable.manifest import Manifest
from differential.durable.rows import DIFF, TIME
from differential.durable.writer import Writer
from timely.errors import SessionError


class Kept(NamedTuple):
    """A durable table: its columns by position, their kinds where known, its key, and the order in which it is read.

    >>> kept = Kept(("id", "at"), {"id": "int64", "at": "int64"}, 1, True, (0, 1), "at")
    >>> kept.about(3)["event_time"], kept._replace(event_time=None).about(3)["created"]
    ('at', 3)
    """

    columns: tuple[str, ...]
    kinds: dict[str, str]
    keys: int
    has_key: bool
    shown: tuple[int, ...]
    event_time: str | None = None
    """The column of event times, if an earlier session or this one has stated it."""

    def about(self, created: int) -> dict[str, Any]:
        """Return what is noted of the table, which a commit has made."""
        about = {"columns": list(self.columns), "shown": list(self.shown), "kinds": self.kinds, "keys": self.keys}
        about |= {"has_key": self.has_key, "created": created}
        return about if self.event_time is None else about | {"event_time": self.event_time}

    @classmethod
    def of(cls, manifest: Manifest) -> Kept:
        """Return the table that a manifest describes."""
        about = manifest.about
        columns, kinds, shown = tuple(about["columns"]), dict(manifest.fields) or about["kinds"], tuple(about["shown"])
        return cls(columns, kinds, about["keys"], about["has_key"], shown, about.get("event_time"))


def check_columns(what: str, names: Sequence[str]) -> None:
    """Raise SessionError for a column whose name is reserved in durable collections."""
    taken = [name for name in (TIME, DIFF) if name in names]
    if taken:
        raise SessionError(
            f"{what} has a column {taken[0]!r}, a name that is reserved in durable collections: "
            "give the column another name"
        )


def noted_as(writer: Writer) -> str:
    """Return the name by which the last commit that changed a table is noted."""
    return f"{writer.shard.name}\t{writer.manifest.about['created']}"


def position_of(writer: Writer, source: str) -> str:
    """Return the name of a source's position: another one for a table that was dropped and made again."""
    return f"{noted_as(writer)}\t{source}"


def ends_before(manifest: Manifest, created: int, commit: int) -> bool:
    """Return whether a table lacks a commit; not if it was dropped since then, with or without a successor."""
    found = manifest.about.get("created", created + 1)
    return found < created or (found == created and manifest.upper <= commit)
