"""The durable part of a session: its tables, and the views that it is to keep, as of each commit.

Each is a durable collection (`differential.durable`) whose times are numbers of commits. A commit is durable before the
workers make it:

    append to each table that it changes  ──►  decide: the collection `_session` is final up to the commit  ──►  commit

The decision is one atomic append. After a crash before it, what was appended to tables is given up when the session is
opened again; after a crash behind it, the commit is made. Views are appended to after the commit. If a crash comes
in between, the difference is appended when the view is defined again.

If the store fails, nothing more is written: it is not known what is durable, and opening the session again finds out.

`_session` also notes the last commit that changed each table. So a table that was removed, or replaced by an older
copy, is refused when the session is opened. A collection that is not noted is not a table: the session that made it was
replaced before it could decide the commit. While a session runs, each commit compares the manifests of all collections.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from secrets import token_hex
from typing import Any, TypeVar

from differential.data.updates import Updates
from differential.durable import rows
from differential.durable.kinds import empty, kind_of
from differential.durable.manifest import Keep, Manifest, Position
from differential.durable.shard import Shard
from differential.durable.store import Directory, Stores, check_name, place_of
from differential.durable.writer import Writer
from differential.session.changes import Change, Changes, RetainedChanges
from differential.session.interrupt import Deferral
from differential.session.item import Item
from differential.session.kept import Kept, check_columns, ends_before, noted_as, position_of
from differential.session.retained import Reaches, Retained, begun, stream_of
from differential.session.sources.bytes_of import digest
from differential.session.table_data import Column
from differential.session.transaction import Net
from timely.errors import ConfigError, SessionError, StateError, TimelyError

T = TypeVar("T")
PAST = 1_000
"""At most this many commits are read for readers that resume after one of them."""
COMMITS = "_session"
"""The collection that decides which commits are durable. No table or view can have its name.

It has no records, but offsets. Their keys have two forms, which the second tab distinguishes:

    TABLE <tab> CREATED                  the last commit that changed the table (`noted_as`)
    TABLE <tab> CREATED <tab> SOURCE     the position of a source of the table (`position_of`)

CREATED is the commit that made the table: a later table of the same name has other keys.
"""
_NOTES = "notes_tables"
"""Noted of a `_session` that has the last commit of each of its tables from the beginning."""
Fields = tuple[tuple[str, str], ...]
"""The names of columns, and their kinds."""
Nets = Mapping[str, tuple[Item, Net]]
Positions = Mapping[str, Mapping[str, Position]]


class SessionStorage:
    """The durable tables and views of one session. Use under the lock of the session's catalog."""

    def __init__(self, where: str | os.PathLike[str] | Stores, keep: int | str | None) -> None:
        """Claim all that is there. Raises StateError if something is damaged, StoreError if the store fails."""
        self._place = place_of(where)
        self._keep = Keep(keep)
        self.failure: BaseException | None = None
        """Why nothing more becomes durable."""
        self.outcome = ""
        """What becomes of the commit in which that happened, if it is known."""
        self.tables: dict[str, Kept] = {}
        """The durable tables by name."""
        self._writers: dict[str, Writer] = {}
        self._views: list[tuple[Item, Changes]] = []
        self._corrections: dict[str, rows.Table] = {}
        self._reaches: dict[str, Reaches] = {}
        self._others: set[str] = set()
        self._grown: tuple[str, ...] = ()
        """The tables that the last commit has changed."""
        names = self._place.names()
        if names and COMMITS not in names:
            raise ConfigError(
                f"{self._place} has the durable collections of another program, or of a session whose directory "
                f"{COMMITS!r} was removed: restore it from a copy, or name another directory"
            )
        # Claimed first: from here on an earlier session can decide no commit.
        self._commits = Writer.claim(self._shard(COMMITS), "commits", 1, about={"identity": token_hex(8), _NOTES: True})
        self._identity = str(self._commits.manifest.about.get("identity", ""))
        self._commits.keep = Keep(0)  # of decisions, only the last one is read
        self._refuse_lost()  # before anything is removed from an older copy
        others = [name for name in names if name != COMMITS]
        for name in others:
            self._refuse_undecided(name)
        for name in others:
            self._open(name)
        self.unused = set(self.tables)
        """The tables that the program has not named yet."""

    @property
    def last(self) -> int:
        """The last commit that is durable."""
        return self._commits.manifest.upper - 1

    def rows(self, name: str) -> Net | None:
        """Return the rows of a table as of the last commit, None if it has none."""
        table = self._writers[name].shard.updates()
        found = rows.consolidated(table, self.last)
        if not len(found):
            return None
        updates = rows.updates_of(found)
        return Net(updates.columns, updates.each_diff())

    def examples(self, name: str) -> dict[str, Column]:
        """Return an empty column for each column of a table whose kind is known."""
        return {column: empty(kind) for column, kind in self.tables[name].kinds.items()}

    def add(self, item: Item, columns: Mapping[str, Column]) -> None:
        """Keep a new table, from the next commit on; `columns` are examples of those whose kinds are known."""
        self._check(item.name)
        names = item.names or ()
        check_columns(f"{item} (at {item.origin})", names)
        kinds = {name: kind_of(column) for name, column in columns.items()}
        if (reaches := self._reaches.get(item.name)) is not None:  # of a view of an earlier session
            if reaches:
                raise SessionError(
                    f"{item} (at {item.origin}) would replace a durable view of an earlier session, of which sink "
                    f"{min(reaches)!r} may lack changes: choose another name, or define the view again and drop it"
                )
            del self._writers[item.name], self._reaches[item.name]  # `_writer` begins the collection again
        self.tables[item.name] = Kept(names, kinds, item.keys, item.has_key, item.shown or tuple(range(len(names))))

    def add_columns(self, name: str, added: Mapping[str, tuple[Column, Any]]) -> None:
        """Give a durable table more columns: an example of each, and the value in the existing rows."""
        kept = self.tables[name]
        check_columns(f"table {name!r}", tuple(added))
        kinds = {column: (kind_of(example), value) for column, (example, value) in added.items()}
        width = len(kept.columns)
        kept = kept._replace(
            columns=(*kept.columns, *kinds),
            kinds=kept.kinds | {column: kind for column, (kind, _) in kinds.items()},
            shown=(*kept.shown, *range(width, width + len(kinds))),
        )
        writer = self._writers[name]
        about = kept.about(writer.manifest.about["created"])
        self._attempt(lambda: writer.add_fields(kinds, about))
        self.tables[name] = kept

    def beside(self, name: str) -> tuple[str, ...]:
        """Return the names of the tables that exist because a table has event times, in an earlier session at least."""
        kept = self.tables.get(name)
        names = () if kept is None or kept.event_time is None else (f"{name}_late", f"{name}_watermark")
        return tuple(each for each in names if each in self.tables)

    def note(self, name: str, **changes: Any) -> None:
        """Note, durably, what has changed of a `Kept` table."""
        self.tables[name] = kept = self.tables[name]._replace(**changes)
        if (writer := self._writers.get(name)) is not None:
            self._attempt(lambda: writer.describe(kept.about(writer.manifest.about["created"])))

    def commit(self, number: int, changes: Nets, positions: Positions | None = None) -> None:
        """Make a commit durable, and with it the positions of sources of tables, by the names of both.

        The caller defers interrupts until the workers have the commit, too. Raises SessionError if the storage has
        failed, StateError if it fails now, which states what is known of the commit.
        """
        self.fail_beyond(number)  # two interrupts may have come in the commit before, and this is its number
        self._refuse_failed()
        outcome = f"commit {number} is not made"
        offsets = self._attempt(lambda: self._appended(number, changes, positions or {}), outcome)
        outcome = f"opening the session again shows whether commit {number} is made"
        self._attempt(lambda: self._commits.append(number + 1, [], offsets), outcome)
        self._grown = tuple(changes)  # `publish` merges their files, once the commit is decided

    def position(self, table: str, source: str) -> Position | None:
        """Return the position of a source as of the last commit, None if it has none."""
        writer = self._writers.get(table)
        return None if writer is None else self._commits.manifest.offsets.get(position_of(writer, source))

    def publish(self, number: int) -> dict[Item, list[Change] | None]:
        """Append the changes of a commit to the durable views; return them, None for a view that was corrected."""
        published: dict[Item, list[Change] | None] = {}
        self._refuse_failed()
        self._attempt(lambda: self._publish(number, published))
        return published

    def retained(self, item: Item, sink: str) -> Retained:
        """Return what is retained for a sink of a table or view. Raises SessionError if the view is not durable."""
        if not self._is_durable(item):
            raise SessionError(
                f"{item} must be durable, because the sinks of a durable session rely on it: db.view(..., durable=True)"
            )
        return self._retained(item, sink, self._reaches.setdefault(item.name, Reaches()))

    def past(self, item: Item) -> RetainedChanges | None:
        """Return the retained changes of a durable table or view; None if it is not durable.

        None also for a view that the next commit will correct, because the retained changes lack the correction.
        """
        if not self._is_durable(item) or item.name in self._corrections:
            return None
        retained = self._retained(item, "", Reaches())
        since = max(retained.since(), self.last - PAST)
        label = digest(stream_of(self._identity, item.name, retained.about).encode())[:8]
        return RetainedChanges(label, since, retained.changes(since, self.last))

    def _is_durable(self, item: Item) -> bool:
        return item.name in self.tables if item.kind == "table" else any(each is item for each, _ in self._views)

    def _retained(self, item: Item, sink: str, reaches: Reaches) -> Retained:
        writer_of = partial(self._writers.get, item.name)
        return Retained(item, sink, self._identity, writer_of, self.last + 1, reaches, self._attempt)

    @property
    def reaches(self) -> dict[str, Reaches]:
        """How far the sinks of each view are known to be, those that the program has not named yet, too."""
        return {view: Reaches(each) for view, each in tuple(self._reaches.items())}  # without the lock: for `status`

    def follow(self, item: Item, changes: Changes, contents: Net | None) -> None:
        """Keep a view durable, from its contents as of the last commit on."""
        self._check(item.name)
        check_columns(f"{item} (at {item.origin})", item.names or ())
        self._refuse_failed()
        self._attempt(lambda: self._follow(item, changes, contents))

    def drop(self, item: Item) -> None:
        """Forget a table or view: its durable collection is empty from now on, and no longer one of the session."""
        self.tables.pop(item.name, None)
        self.unused.discard(item.name)
        self._views = [(each, changes) for each, changes in self._views if each is not item]
        self._corrections.pop(item.name, None)
        self._reaches.pop(item.name, None)
        writer = self._writers.pop(item.name, None)
        if writer is not None and self.failure is None:
            self._attempt(lambda: self._commits.note({noted_as(writer): None}))  # first: it is not missing meanwhile
            self._attempt(lambda: writer.begin_again(self.last + 1, {}, writer.manifest.role))

    def fail(self, error: BaseException, outcome: str = "") -> None:
        """Stop writing: what is durable may not be what the session has."""
        if self.failure is None:
            self.failure, self.outcome = error, outcome

    def fail_beyond(self, number: int) -> bool:
        """Stop writing if a commit is durable that the workers have not completed; return whether it was not known."""
        is_found = self.failure is None and self.last >= number
        if is_found:
            self.fail(SessionError(f"the workers have not completed commit {number}, which is durable"))
        return is_found

    def _shard(self, name: str) -> Shard:
        return Shard(name, self._place.store(name))

    def _check(self, name: str) -> None:
        try:
            check_name(name)
        except ConfigError as error:
            raise SessionError(str(error)) from None
        if name in self._others:
            raise SessionError(
                f"{name!r} is a durable collection of another program in {self._place}: take another name"
            )

    def _open(self, name: str) -> None:
        """Claim a collection; give up what is not decided."""
        shard = self._shard(name)
        writer = Writer.claim(shard, shard.manifest().role)
        about = writer.manifest.about
        if not writer.manifest.is_of_session:
            if writer.manifest.fields or writer.manifest.files:
                self._others.add(name)
            return  # that of a program, or dropped
        if about["created"] > self.last:
            return  # made by a commit that is not durable
        if (
            self._has_notes
            and writer.manifest.role == "input"
            and noted_as(writer) not in self._commits.manifest.offsets
        ):
            return  # likewise, while another session made the commit of this number
        writer.retract(self.last + 1)
        writer.remove_garbage()
        writer.keep = self._keep
        self._writers[name] = writer
        self._reaches[name] = Reaches.from_offsets(writer.manifest.offsets)
        if writer.manifest.role == "input":
            self.tables[name] = Kept.of(writer.manifest)

    @property
    def _has_notes(self) -> bool:
        """Whether `_session` notes all tables; that of an earlier version of this library does once it has a commit."""
        manifest = self._commits.manifest
        return _NOTES in manifest.about or any(key.count("\t") == 1 for key in manifest.offsets)

    def _refuse_lost(self) -> None:
        """Raise StateError if a table does not have a commit that changed it."""
        for key, commit in self._commits.manifest.offsets.items():
            name, _, created = key.partition("\t")
            if not created.isdecimal() or not isinstance(commit, int):
                continue  # the position of a source: CREATED, a tab and SOURCE are not a number
            shard = self._shard(name)
            data = shard.store.get_manifest()
            manifest = None if data is None else Manifest.from_bytes(data, shard)
            if manifest is None or ends_before(manifest, int(created), commit):
                what = "missing" if manifest is None else "an older copy"
                hint = f", or go on without it after 'timely state --accept {name} {self._place}'"
                raise StateError(
                    f"{shard} is {what}, and commit {commit} of the session changed this table: restore the directory "
                    f"from a copy that has it{hint if isinstance(self._place, Directory) else ''}"
                )

    def _refuse_undecided(self, name: str) -> None:
        """Raise StateError if a table or view has more commits that are not decided than a crash leaves."""
        shard = self._shard(name)
        manifest = shard.manifest()
        if manifest.is_of_session and manifest.upper > self.last + 2:
            raise StateError(
                f"{shard} has commits up to {manifest.upper - 1}, and the session has decided those up to {self.last}: "
                f"{COMMITS!r} is an older copy, so restore the whole directory from one copy"
            )

    def _writer(self, name: str, role: str, at: int, about: dict[str, Any]) -> Writer:
        """Return the writer of a collection that begins now."""
        self._commits.check()  # a session that was replaced claims nothing of the later one
        shard = self._shard(name)
        former = shard.store.get_manifest()
        found = role if former is None else Manifest.from_bytes(former, shard).role
        writer = Writer.claim(shard, found, at, since=at, about=about)
        self._commits.check()  # a later session claims what it finds, so nothing of it is changed after this
        if former is not None:
            writer.begin_again(at, about, role)  # it was another one, which was dropped
            writer.remove_garbage()
        writer.keep = self._keep
        self._writers[name] = writer
        self._reaches.setdefault(name, Reaches())  # a table may have sinks already
        return writer

    def _appended(self, number: int, changes: Nets, positions: Positions) -> dict[str, Position]:
        """Append the changes to tables; return what the decision notes of tables and sources."""
        last = self.last
        self._commits.check()
        for name, writer in self._writers.items():
            if name not in changes:  # the append of a table that changes checks its manifest
                writer.check()
        for name, kept in self.tables.items():
            if name not in self._writers:
                writer = self._writer(name, "input", number, kept.about(number))
                if name not in changes:
                    writer.append(number + 1, [], self._reaches[name].offsets())  # so that it can be read: it is empty
        for name, (_, net) in changes.items():
            writer, reaches = self._writers[name], self._reaches[name]
            writer.names, batch = self.tables[name].columns, Updates.at((number,), net.columns, net.diffs)
            # Readable as of `last`, too: without a decision, the next session returns to it.
            writer.append(number + 1, [batch], reaches.offsets(), limit=reaches.limit(last))
        offsets: dict[str, Position] = {
            noted_as(self._writers[table]): self._writers[table].manifest.upper - 1 for table in self.tables
        }
        return offsets | {
            position_of(self._writers[table], source): position
            for table, each in positions.items()
            for source, position in each.items()
        }

    def _publish(self, number: int, published: dict[Item, list[Change] | None]) -> None:
        self._views = [(item, changes) for item, changes in self._views if item.error is None]
        for item, changes in self._views:
            writer, reaches = self._writers[item.name], self._reaches[item.name]
            changed = changes.read_nowait()
            batches = [Updates.at((each.time,), each.rows, each.diff) for each in changed]
            correction = self._corrections.pop(item.name, None)
            is_whole = correction is None
            if changed:
                writer.names = item.columns(len(batches[0].columns))
                if writer.manifest.fields not in ((), rows.fields_of(batches[0], writer.names)):
                    self._begin_again(item.name, number - 1)  # without rows, the kinds of columns were not known
                    correction, is_whole = None, False
            if correction is not None:
                batches.append(rows.updates_of(correction, number))
            writer.append(number + 1, batches, reaches.offsets(), limit=reaches.limit())
            writer.compact()
            published[item] = changed if is_whole else None  # its sinks read it again
        for name in self._grown:
            while (table := self._writers.get(name)) is not None and table.compact():
                pass

    def _follow(self, item: Item, changes: Changes, contents: Net | None) -> None:
        """Append, or keep for the next commit, what the view has more or less than its durable collection."""
        last = self.last
        self._corrections.pop(item.name, None)  # that of the view which this one replaces
        batches = [] if contents is None else [Updates.at((last,), contents.columns, contents.diffs)]
        names = item.columns(len(batches[0].columns)) if batches else item.names
        fields = rows.fields_of(batches[0], names) if batches else ()
        writer = self._writers.get(item.name)
        if writer is None:
            writer = self._writer(item.name, "output", last, begun(last))
        elif writer.manifest.fields and _are_others(fields, names, writer.manifest.fields):
            self._begin_again(item.name, last)
        writer.names = names
        fields = fields or writer.manifest.fields
        found = rows.consolidated(rows.table_of(batches, fields), last)
        was = rows.consolidated(writer.shard.updates(), last) if writer.manifest.fields else found.slice(0, 0)
        writer.check()  # otherwise these may be the updates of a later session
        differing = rows.difference(found, was)
        if writer.manifest.upper <= last:  # it is new, or a crash came before it had this commit
            limit = self._reaches[item.name].limit()
            writer.append(last + 1, [rows.updates_of(differing)] if len(differing) else [], limit=limit)
        elif len(differing):  # readers may have the commit already, so the difference belongs to the next one
            self._corrections[item.name] = differing
        self._views.append((item, changes))  # last: a view that cannot be kept is not appended to

    def _begin_again(self, name: str, at: int) -> None:
        """Make the durable collection of a view empty as of a commit, and without columns; forget its sinks."""
        self._writers[name].begin_again(at, begun(at), "output")
        self._reaches[name].clear()  # they count the commits of the former collection

    def _refuse_failed(self) -> None:
        if self.failure is not None:
            why = str(self.failure) or type(self.failure).__name__
            text = f"the session can no longer make anything durable ({why}): close it, and open it again"
            raise SessionError(text) from self.failure

    def _attempt(self, write: Callable[[], T], outcome: str = "") -> T:
        """Return what `write` returns. An error of it is the last one, and ends with the outcome."""
        with Deferral():
            try:
                return write()
            except BaseException as error:
                if outcome and isinstance(error, TimelyError):
                    error.args = (f"{error} ({outcome})",)
                self.fail(error, outcome)
                raise


def _are_others(fields: Fields, names: tuple[str, ...] | None, known: Fields) -> bool:
    """Return whether a view has other columns than these; of one without rows, only the names can be known."""
    return fields != known if fields else names not in (None, tuple(name for name, _ in known))
