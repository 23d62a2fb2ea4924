"""A durable collection, to read: as of any time that is final and not compacted away."""

from __future__ import annotations

import hashlib
from typing import Any

from differential.durable import rows
from differential.durable.kinds import pa, pc
from differential.durable.local import LocalStore
from differential.durable.manifest import Manifest, Part
from differential.durable.store import Store
from differential.durable.unanswered import awaited
from timely.errors import StateError

READS = 5
"""How often a reader begins again because a part was merged away while it read."""


class Shard:
    """A durable collection in a store, to read. Reading needs no lock: what a manifest refers to never changes.

    All methods raise StateError if the collection does not exist, is damaged, or cannot be read as of the time.

    >>> import tempfile
    >>> directory = tempfile.TemporaryDirectory()
    >>> from differential.durable.writer import Writer
    >>> shard = Shard("words", LocalStore(directory.name))
    >>> writer = Writer.claim(shard, "output")
    >>> writer.names = ("word",)
    >>> for epoch, word in enumerate(["to", "be", "to"]):
    ...     writer.append(epoch + 1, [Updates.at((epoch,), (np.array([word]),))])
    >>> shard.read(as_of=1), shard.read()
    ({('be',): 1, ('to',): 1}, {('be',): 1, ('to',): 2})
    >>> shard.table().column_names, len(shard.updates(lower=1)), len(shard.paths()), shard.manifest().upper
    (['word', 'diff'], 2, 3, 3)
    >>> shard.verify()
    >>> [len(shard.part(part)) == part.size for part in shard.manifest().parts]
    [True, True, True]
    >>> directory.cleanup()
    """

    def __init__(self, name: str, store: Store) -> None:
        self.name = name
        self.store = store

    def manifest(self) -> Manifest:
        """Return the present manifest."""
        with awaited(self):
            data = self.store.get_manifest()
        if data is None:
            raise StateError(f"there is no durable collection in {self.store}")
        return Manifest.from_bytes(data, self)

    def read(self, as_of: int | None = None) -> dict[tuple[Any, ...], int]:
        """Return the records and how often each occurs, as of a time, or the last that is final."""
        return rows.records(self.table(as_of))

    def table(self, as_of: int | None = None) -> rows.Table:
        """Return the same as a `pyarrow.Table` with a column for each field, and `diff`."""
        for _ in range(READS):
            manifest = self.manifest()
            time = manifest.upper - 1 if as_of is None else as_of
            self._check(manifest, time)
            table = self._updates(manifest, 0, time + 1)
            if table is not None:
                return rows.consolidated(table, time).drop_columns([rows.TIME])
        raise self._busy()

    def updates(self, lower: int = 0, upper: int | None = None) -> rows.Table:
        """Return the updates at times in [lower, upper), consolidated: a `pyarrow.Table` with `time` and `diff`.

        Those before `since` are at this time, whether they have been added up already or not. So what has changed since
        an earlier read is known from `lower` on if that is later than `since` of the manifest.
        """
        for _ in range(READS):
            manifest = self.manifest()
            since, end = manifest.since, manifest.upper if upper is None else min(upper, manifest.upper)
            table = self._updates(manifest, lower if lower > since else 0, end)
            if table is not None:
                # Again, because times that are advanced to `since` may have reached `end`.
                return rows.before(rows.consolidated(table, since), end)
        raise self._busy()

    def paths(self) -> list[str]:
        """Return the paths of the Parquet files that the collection consists of now, for other programs to read.

        Other files in the directory are remains of crashes, or have been merged. Raises StateError if the store is not
        a directory.
        """
        if not isinstance(self.store, LocalStore):
            raise StateError(f"{self.store} keeps no files: read {self} with table() or updates()")
        return [self.store.path(part.name) for part in self.manifest().parts]

    def verify(self) -> None:
        """Read all files. Raises StateError if one is missing or damaged."""
        for _ in range(READS):
            manifest = self.manifest()
            missing = [part.name for part in manifest.files if self.part(part) is None]
            if not missing:
                return
            self._refuse_if_missing(missing[0])
        raise self._busy()

    def part(self, part: Part) -> bytes | None:
        """Return the contents of a part, None if it no longer exists. Raises StateError if it is damaged."""
        with awaited(self):
            data = self.store.get(part.name)
        if data is not None and (len(data) != part.size or hashlib.sha256(data).hexdigest() != part.sha256):
            is_whole = len(data) == part.size
            reason = "its checksum is wrong" if is_whole else f"it has {len(data)} bytes and should have {part.size}"
            raise StateError(f"{self}: {part.name} is damaged, because {reason}: restore the directory from a copy")
        return data

    def _updates(self, manifest: Manifest, lower: int, upper: int) -> rows.Table | None:
        """Return the rows of all parts at times in [lower, upper), None if a part no longer exists."""
        tables = [rows.schema_of(manifest.fields).empty_table()]
        for part in manifest.parts:
            # Compaction advances times only up to `since`, so what is later is in the part that has its time.
            if part.lower < upper and lower < part.upper:
                data = self.part(part)
                if data is None:
                    self._refuse_if_missing(part.name)
                    return None
                tables.append(rows.from_bytes(data, manifest.fields))
        table = rows.before(pa.concat_tables(tables), upper)
        return table.filter(pc.greater_equal(table[rows.TIME], lower)) if lower else table

    def _refuse_if_missing(self, name: str) -> None:
        """Raise StateError if a part that does not exist is still referred to."""
        if any(part.name == name for part in self.manifest().files):
            raise missing(self, name)

    def _check(self, manifest: Manifest, time: int) -> None:
        if manifest.since == manifest.upper:
            raise StateError(f"{self} cannot be read yet, because nothing of it is final")
        if not manifest.since <= time < manifest.upper:
            reason = "compacted away (keep= retains more)" if time < manifest.since else "not final yet"
            if manifest.is_of_session and manifest.role == "input" and time >= manifest.upper:
                reason = "after the last commit that changed this table"
            raise StateError(
                f"{self} cannot be read as of {time}, which is {reason}: it can be as of {manifest.since} up to "
                f"{manifest.upper - 1}"
            )

    def _busy(self) -> StateError:
        return StateError(f"{self} was compacted {READS} times while it was read: read it again")

    def __str__(self) -> str:
        return f"{self.name!r} in {self.store}"


def refuse_remains(shard: Shard) -> None:
    """Raise StateError if there are files and no manifest: the collection is then not new, but has lost it."""
    # Names first: a program that begins the collection meanwhile writes the manifest before any part.
    names = shard.store.names()
    if names and shard.store.get_manifest() is None:
        raise StateError(f"{shard} has {len(names)} file(s), and no manifest: restore the directory from a copy")


def missing(shard: Shard, name: str) -> StateError:
    """Return the error for a part to which the manifest refers, and which does not exist."""
    return StateError(f"{shard}: {name} is missing: restore the directory from a copy")
