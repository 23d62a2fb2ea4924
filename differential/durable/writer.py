"""The one writer of a durable collection: claims it, appends, and merges what it has appended.

Every change is one compare-and-set of the manifest, from the one that this writer wrote last. So a writer that another
one has replaced is refused at its next change, whatever it was about to do, and what it had written beside the manifest
is garbage. If the store does not answer, the writer reads the manifest and finds either its own change, which happened,
or the one before, after which it tries again: the change happens once, because a second attempt expects a manifest that
the first has replaced.

**Garbage.** The name of a part begins with the number of the claim under which it was written. A writer removes parts
that its manifest does not refer to and that were written under earlier claims: their writers are fenced off, so no
manifest will ever refer to them. Parts of later claims it leaves alone, because it may be replaced itself and not know.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import time as clock
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from secrets import token_hex
from typing import Any, TypeVar

from differential.data.updates import Updates
from differential.durable import compaction, rows
from differential.durable.kinds import pa
from differential.durable.manifest import Keep, Manifest, Owner, Part, Position, described
from differential.durable.shard import Shard, missing
from differential.durable.unanswered import awaited
from timely.errors import FencedError, StateError, StoreError

T = TypeVar("T")

ATTEMPTS = 5
_FIRST_PAUSE = 0.02
_OF_PART = re.compile(r"\d{8}-")
"""How the names of parts begin, and of what is left of them. Other names are not those of writers."""


class Writer:
    """The writer of a durable collection. Use from one thread at a time.

    All methods raise FencedError if another writer has claimed the collection, or if it was removed or replaced, and
    StoreError if the store fails. After a StoreError the last change may have happened or not, as after a crash: the
    next claim finds out.
    """

    def __init__(self, shard: Shard, manifest: Manifest, pause: Callable[[float], None] = clock.sleep) -> None:
        self.shard = shard
        self.manifest = manifest
        self.names: tuple[str, ...] | None = None
        self.keep = Keep(None)
        self._store = shard.store
        self._bytes = manifest.to_bytes()
        self._pause = pause
        self._sequence = 0

    @classmethod
    def claim(
        cls,
        shard: Shard,
        role: str,
        at: int = 0,
        *,
        since: int = 0,
        about: Mapping[str, Any] | None = None,
        is_new: bool = False,
        pause: Callable[[float], None] = clock.sleep,
    ) -> Writer:
        """Return the writer of a collection, which fences off all earlier ones; make the collection if there is none.

        A new collection is empty from `since` up to `at`, and its `role` is "input", "output", "snapshot" or "commits";
        `about` is noted of it. Raises StateError if it exists in another role, FencedError if it exists and was to be
        new.
        """
        owner = Owner(token_hex(8), platform.node(), os.getpid(), clock.time())
        for attempt in range(ATTEMPTS * 4):
            data = _patiently(shard, shard.store.get_manifest, pause)
            if data is None:
                manifest = Manifest(role, since, at, 1, 1, owner, about=dict(about or {}))
            else:
                found = Manifest.from_bytes(data, shard)
                if is_new:
                    raise FencedError(
                        f"{shard} was made by process {found.owner.process} on {found.owner.host} since this program "
                        "began, so this program must end: one program at a time can write to a state"
                    )
                if found.role != role:
                    raise StateError(
                        f"{shard} is {described(found.role)} of the program that wrote it, not {described(role)}"
                    )
                manifest = found.after(owner=owner, fence=found.fence + 1)
            writer = cls(shard, manifest, pause)
            try:
                writer._replace(data, manifest)  # `data` as found: an older version writes another format
            except FencedError:  # another claim came in between: read what it has written
                pause(_FIRST_PAUSE * attempt)
                continue
            return writer
        raise StoreError(f"{shard} could not be claimed: others claim it at the same time")

    def append(
        self,
        upper: int,
        batches: Sequence[Updates],
        offsets: Mapping[str, Position] | None = None,
        *,
        limit: int | None = None,
    ) -> None:
        """Make the updates at all times from `manifest.upper` up to `upper` durable, and final.

        Give up the times before those that `keep` retains, and at most those before `limit` (by default, all).

        Raises StateError if an update is at another time; DataError if records do not have the collection's fields.
        """
        manifest = self.manifest
        lower = manifest.upper
        if not lower < upper:
            raise StateError(f"{self.shard} is final before {lower}, so nothing can be appended up to {upper}")
        fields = manifest.fields
        batches = [batch for batch in batches if len(batch)]
        if batches and not fields:
            fields = rows.fields_of(batches[0], self.names, self.shard)
        table = rows.table_of(batches, fields, self.shard)
        if len(table) <= rows.LARGE:
            table = rows.consolidated(table)
        parts = manifest.parts
        if len(table):
            first, last = rows.span(table)
            if first < lower or last >= upper:
                raise StateError(f"{self.shard}: updates at {first} to {last} do not belong to [{lower}, {upper})")
            # Before the manifest names it: a crash between the two leaves a file that no reader knows of, and the next
            # claim removes.
            parts = (*parts, self._put(table, lower, upper))
        now = clock.time()
        after = manifest.after(
            upper=upper,
            fields=fields,
            parts=parts,
            marks=self.keep.marked(manifest.marks, upper, now),
            offsets={**manifest.offsets, **(offsets or {})},
        )
        # The last final time stays readable, and what was given up cannot come back: `since` never decreases.
        wanted = min(self.keep.since(after, now), upper - 1, upper if limit is None else limit)
        self._replace(self._bytes, replace(after, since=max(manifest.since, wanted)))

    def _put(self, table: rows.Table, lower: int, upper: int) -> Part:
        """Write a part; return its entry for the manifest."""
        data = rows.to_bytes(table)
        sha256 = hashlib.sha256(data).hexdigest()
        self._sequence += 1  # begins anew with each claim, but no two claims have the same fence
        name = f"{self.manifest.fence:08d}-{self._sequence:08d}-{sha256[:12]}.parquet"
        try:
            _patiently(self.shard, lambda: self._store.put_new(name, data), self._pause)
        except StoreError:
            self.check()  # if the collection was removed, FencedError names the cause of the failure
            raise
        digest = rows.digest(table) if self.manifest.role == "output" else 0
        return Part(name, lower, upper, len(table), len(data), sha256, digest)

    def check(self) -> None:
        """Raise FencedError unless the manifest is the one that this writer wrote last."""
        if _patiently(self.shard, self._store.get_manifest, self._pause) != self._bytes:
            raise FencedError(self._who(self.manifest))

    def note(self, offsets: Mapping[str, Position | None]) -> None:
        """Make offsets durable, and nothing else; None removes one."""
        merged = {**self.manifest.offsets, **offsets}
        kept = {name: position for name, position in merged.items() if position is not None}
        if kept != self.manifest.offsets:
            self._replace(self._bytes, self.manifest.after(offsets=kept))

    def describe(self, about: Mapping[str, Any]) -> None:
        """Replace what is noted of the collection."""
        if self.manifest.about != about:
            self._replace(self._bytes, self.manifest.after(about=dict(about)))

    def compact(self) -> bool:
        """Merge some small parts that follow each other, if there are many; return whether there were.

        One call merges at most `compaction.MOST_ROWS` rows. Parts that were merged are removed, so readers that still
        read them begin again. If the store has no room for the merged part, all stay as they are: what was appended is
        durable, so this is not a failure of the append.
        """
        manifest = self.manifest
        chosen = compaction.choose(manifest.parts)
        if chosen is None:
            return False
        start, end = chosen
        merged = manifest.parts[start:end]
        tables = [rows.from_bytes(self._get(part), manifest.fields) for part in merged]
        table = rows.consolidated(pa.concat_tables(tables), manifest.since)
        try:
            part = (self._put(table, merged[0].lower, merged[-1].upper),) if len(table) else ()
        except StoreError:
            return False
        self._replace(self._bytes, manifest.after(parts=(*manifest.parts[:start], *part, *manifest.parts[end:])))
        self._remove(merged)  # only now that no manifest names them
        return True

    def keep_states(
        self,
        upper: int,
        states: Sequence[Part],
        former: int | None = None,
        offsets: Mapping[str, Position] | None = None,
    ) -> None:
        """Let a snapshot consist of these states, which have been written, as of the frontier `upper`.

        What it was as of the frontier `former`, which must be one of its own, remains if that is given.
        """
        kept = tuple(state for state in self.manifest.states if state.upper == former)
        since = (upper if former is None else former) - 1
        dropped = [state for state in self.manifest.states if state not in kept]
        merged = {**self.manifest.offsets, **(offsets or {})}
        after = self.manifest.after(since=since, upper=upper, states=(*kept, *states), offsets=merged)
        self._replace(self._bytes, after)
        self._remove(dropped)  # only now, as in `compact`

    def retract(self, upper: int) -> None:
        """Give up what was appended at times from `upper` on, which no other program may have relied on.

        A part with times on both sides is written again without the later ones. Raises StateError if the collection
        cannot be read as of `upper` - 1.
        """
        manifest = self.manifest
        if manifest.upper <= upper:
            return
        if manifest.since >= upper:
            raise StateError(f"{self.shard} cannot be read as of {upper - 1}, so what came later cannot be given up")
        # Parts follow each other, so at most one has `upper` inside, and it comes after those that are kept.
        parts = [part for part in manifest.parts if part.upper <= upper]
        for part in manifest.parts:
            if part.lower < upper < part.upper:
                table = rows.before(rows.from_bytes(self._get(part), manifest.fields), upper)
                parts += [self._put(table, part.lower, upper)] if len(table) else []
        self._replace(self._bytes, manifest.after(parts=tuple(parts), upper=upper))

    def begin_again(self, at: int, about: Mapping[str, Any], role: str) -> None:
        """Make the collection an empty one without fields, from `at` on."""
        after = self.manifest.after(since=at, upper=at, fields=(), parts=(), marks=(), offsets={})
        self._replace(self._bytes, replace(after, about=dict(about), role=role))

    def add_fields(self, added: Mapping[str, tuple[str, Any]], about: Mapping[str, Any] | None = None) -> None:
        """Give all records further fields: (kind, value) by name. Raises DataError if a value is not of its kind.

        `about` replaces what is noted of the collection. All parts are written again, one at a time, and replaced in
        one step. The old ones are left to readers, until the next claim. A collection that has had no records has no
        fields yet, and takes those of the first ones.
        """
        manifest = self.manifest
        more = tuple((name, kind) for name, (kind, _) in added.items())
        fields = (*manifest.fields, *more) if manifest.fields else ()
        parts = []
        for part in manifest.parts:
            table = rows.from_bytes(self._get(part), manifest.fields)
            parts.append(self._put(rows.with_fields(table, added), part.lower, part.upper))
        noted = manifest.about if about is None else dict(about)
        self._replace(self._bytes, manifest.after(fields=fields, parts=tuple(parts), about=noted))

    def remove_garbage(self) -> list[str]:
        """Remove what crashed writers have left; return the names of what was removed.

        What the store keeps, for want of a permission, say, is left to the next claim.
        """
        known = {part.name for part in self.manifest.files}
        # A fence has a fixed number of digits, so the order of names is that of claims. Names of this claim are greater
        # than their prefix `mine`, and those of later claims, too.
        mine = f"{self.manifest.fence:08d}-"
        garbage = [name for name in self._store.names() if _OF_PART.match(name) and name not in known and name < mine]
        removed = []
        for name in garbage:
            with suppress(StoreError):
                self._store.delete(name)
                removed.append(name)
        return removed

    def _remove(self, parts: Sequence[Part]) -> None:
        """Remove files that the manifest no longer has. The next claim removes those that the store keeps."""
        with suppress(StoreError):
            for part in parts:
                self._store.delete(part.name)

    def _get(self, part: Part) -> bytes:
        data = _patiently(self.shard, lambda: self.shard.part(part), self._pause)
        if data is None:
            self.check()  # a writer that has replaced this one may have merged it
            raise missing(self.shard, part.name)
        return data

    def _replace(self, expected: bytes | None, manifest: Manifest) -> None:
        """Replace the manifest `expected` by another one. Raises FencedError if it no longer exists."""
        data = manifest.to_bytes()
        # It may be repeated: if an attempt that failed has happened, or still happens, the next one finds `data` and
        # not `expected`.
        is_done = _patiently(self.shard, lambda: self._store.compare_and_set(expected, data), self._pause)
        # An attempt that seemed to fail may be what replaced `expected`. No other writer writes `data`, which has the
        # token of this one.
        if not is_done and _patiently(self.shard, self._store.get_manifest, self._pause) != data:
            raise FencedError(self._who(manifest))
        # Only after the store has answered: other threads read `manifest` to learn what is durable.
        self.manifest, self._bytes = manifest, data

    def _who(self, manifest: Manifest) -> str:
        """Return why this writer must end."""
        data = self._store.get_manifest()
        found = None if data is None else Manifest.from_bytes(data, self.shard)
        if found is None or found.version <= self.manifest.version:
            what = "removed" if found is None else "replaced by an older copy"
            return (
                f"{self.shard} was {what} while this program wrote to it, so nothing more becomes durable: end the "
                "program, and restore the directory from a copy that has all that was durable"
            )
        owner, mine = found.owner, manifest.owner
        is_this = (owner.process, owner.host) == (mine.process, mine.host)
        again = "which is this one: it opened the state again, so what opened it before"
        return (
            f"{self.shard} was claimed by process {owner.process} on {owner.host}, "
            f"{again if is_this else f'so process {mine.process} on {mine.host}'} must end: one program at a time can "
            "write to it"
        )


def _patiently(shard: Shard, operation: Callable[[], T], pause: Callable[[float], None]) -> T:
    """Return the result of an operation that may be repeated, tried again while the store fails."""
    for attempt in range(ATTEMPTS - 1):
        try:
            with awaited(shard):
                return operation()
        except StoreError:
            pause(_FIRST_PAUSE * 2**attempt)
    with awaited(shard):
        return operation()
