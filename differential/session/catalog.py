"""The tables and views of a session, and the transaction under way.

One lock, which a thread may take again, orders everything that changes the catalog or the transaction: so a commit is
whole, and a `transaction()` block belongs to its thread alone. Reading needs no lock: workers answer in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any

from differential.session.blocks import TORN, Blocks
from differential.session.building import built, install
from differential.session.call import Call
from differential.session.changes import Changes
from differential.session.clock import Clocks
from differential.session.deliveries import Deliveries, show_ended
from differential.session.engine import Engine
from differential.session.failures import Failures, report, stating_outcome
from differential.session.feeds import Feeds
from differential.session.interrupt import Deferral
from differential.session.item import Item, failure, refuse_readers
from differential.session.live import Watch, Watches
from differential.session.near import meant
from differential.session.netting import Begun, Nets, Stated, changes_of, forget_kinds
from differential.session.rows import Rows
from differential.session.site import Definition, Site
from differential.session.table_data import Column
from differential.session.transaction import Net, RowStatement
from timely.errors import SessionError

if TYPE_CHECKING:
    from differential.session.storage import SessionStorage


class Catalog:
    """What a session has. Its methods may be called from any thread."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._lock = RLock()
        self.items: dict[str, Item] = {}
        self.last = 0
        """The last commit."""
        self._pending: list[Stated] = []
        self._aside: list[Stated] = []
        """The statements of the program while others are committed apart."""
        self.begun: set[Item] = set()
        """Tables that begin with rows that are not committed."""
        self._failures = Failures()
        self.watches = Watches()
        self.blocks = Blocks()
        self.feeds = Feeds()
        self.clocks = Clocks()
        self.deliveries = Deliveries()
        self.ends: list[Callable[[], object]] = []
        """Functions that stop serving other programs when the session is closed, before and after the workers end."""
        self.storage: SessionStorage | None = None
        """Where tables and commits are durable, if they are."""
        self._begun: Begun | None = None
        """The commit that begins, until the catalog is updated to it."""

    def exclusive(self) -> AbstractContextManager[object]:
        """Return the lock. Raises SessionError on the threads for which its holder may be waiting."""
        self.engine.refuse_inside()
        self.blocks.wait(self.engine.refuse_ended)
        if self._begun is not None:  # perhaps a commit that an interrupt has left to the next caller
            with self._lock:
                self._settle()
        return self._lock

    # The transaction

    @property
    def uncommitted(self) -> int:
        """How many statements are not committed. Those on tables that were dropped do not count."""
        return sum(item.error is None for item, _ in self._pending)

    @property
    def changing(self) -> tuple[str, ...]:
        """The names of the tables that these statements are about."""
        return tuple(dict.fromkeys(item.name for item, _ in self._pending if item.error is None))

    @property
    def is_over(self) -> bool:
        """Whether no commit can follow: the session has ended, or its disk has failed."""
        return self.engine.is_over or (self.storage is not None and self.storage.failure is not None)

    @property
    def unused(self) -> set[str]:
        """The durable tables of earlier sessions that the program has not named yet."""
        return set() if self.storage is None else self.storage.unused

    def watermark(self, item: Item) -> Any:
        """Return the least watermark of the tables that an item is or reads (`Clocks.least`), without waiting."""
        if self._begun is not None and self._lock.acquire(blocking=False):
            try:
                self._settle()
            finally:
                self._lock.release()
        return self.clocks.least(item)

    def state(self, item: Item, statement: RowStatement) -> None:
        """Add a statement about a table to the transaction. Raises DataError where values are of other kinds."""
        names = (item.names or ())[: len(statement.columns)]
        with self.exclusive():
            self.engine.refuse_ended()
            self.blocks.refuse_other_task()
            self.check(item)
            columns = item.schema.fit(item.name, names, statement.columns)
            item.schema.fit_lists(item.name, names, columns)
            statement = RowStatement(statement.kind, columns, statement.origin)
            if len(columns[0]):
                self.clocks.check(item, statement)
                self._pending.append((item, statement))

    def stated(self, item: Item) -> list[RowStatement]:
        """Return the statements about a table that are not committed."""
        return [statement for each, statement in self._pending if each is item]

    def commit(self) -> int:
        """Make all changes of the transaction in one commit; return its number.

        Raises SessionError where a row to delete does not exist: then nothing has changed and the transaction is over.
        Where a view fails, the error names it and comes after the commit.
        """
        with self.exclusive():
            self.blocks.refuse_other_task()
            self.blocks.refuse_inside()
            return self._commit()

    def commit_apart(self, statements: Iterable[tuple[Item, RowStatement]]) -> int:
        """Commit these statements alone. The uncommitted statements of the program stay as they are."""
        with self.exclusive():
            apart: list[Stated] = []
            self._aside, self._pending = self._pending, apart
            try:
                for item, statement in statements:
                    self.state(item, statement)
                return self._commit()
            finally:
                # A commit that has begun leaves another list, which has what callbacks of watch() have stated since.
                added = [] if self._pending is apart else self._pending
                self._aside, self._pending = [], [*self._aside, *added]
                self.rollback(len(self._pending))  # the schemas forget statements apart that have failed

    def arrived(self) -> bool:
        """Take what sources have delivered; return whether anything waits for a commit."""
        with self.exclusive():
            return self.feeds.gather()

    def rollback(self, kept: int = 0) -> None:
        """Forget all but the first `kept` statements, and drop the tables that lose the rows they begin with."""
        with self.exclusive():
            self.blocks.refuse_other_task()
            begun = self.begun & {item for item, _ in self._pending[kept:]}
            if begun:
                begun -= {item for item, _ in (*self._aside, *self._pending[:kept])}
            del self._pending[kept:]  # in place: to `commit_apart`, another list means that a commit has begun
            self.blocks.forget_beyond(kept)
            forget_kinds(self.items.values(), self._pending)
            self._unmake(begun)

    def _unmake(self, tables: set[Item]) -> None:
        """Drop tables without their first rows, except those that views, sources or event times use."""
        self.begun -= tables
        read = {each for item in self.items.values() for each in item.reads.values()}
        used = read | {feed.item for feed in self.feeds.all} | {*self.clocks.all}
        for item in tables - used if not self.is_over else ():
            if item.error is None:
                self._drop(item, "was rolled back with the rows that it began with: db.table() makes it again")
                self.drop(item.name)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit at the end of the block, or forget its changes after an error; blocks inside it do not commit."""
        try:
            with self.exclusive():
                self.blocks.refuse_other_task()
                with self.blocks.block(len(self._pending)):
                    try:
                        yield
                    except BaseException:
                        if not self.blocks.is_torn_here():
                            self.rollback(self.blocks.begun[-1])
                        raise
                    if self.blocks.is_torn_here():
                        raise SessionError(TORN)
                if not self.blocks.depth:
                    self._commit()
        except RuntimeError as error:  # another thread holds the lock, and never releases it
            if not self.blocks.is_torn:
                raise
            if not isinstance(error.__context__, GeneratorExit):  # which means that nobody has ended the block
                raise SessionError(TORN) from None

    def _commit(self) -> int:
        """Commit, unless the session has ended; the error states what is durable."""
        self.watches.refuse_inside()
        with stating_outcome(self.engine, self.storage, lambda: (self.last, len(self._pending))):
            return self._committed()

    def _committed(self) -> int:
        """Make the changes durable, submit the call to the workers, and then update the catalog.

        A crash loses nothing. If it comes before `storage.commit` decides, a later session reads the batches again,
        because their positions are durable only with the commit. If it comes later, that session has the commit.

        An interrupt leaves all of a commit or nothing. The call is submitted by one assignment, before which nothing
        of the catalog changes: the statements stay in the transaction, and batches with their sources. After it, the
        workers complete the commit, and whoever uses the catalog next updates it first (`_settle`).
        """
        self.engine.catch_up()  # with a commit that was interrupted
        self.reap()
        stopped = self.feeds.settle()  # what was found since the last commit, or in one that was interrupted
        self.feeds.gather()
        changes, pending, at = self._changes(), self._pending, self.last + 1  # `_settle` knows the list by identity

        def done(call: Call[int]) -> None:
            self.last = call.results[0]  # before any later call is over: what these read is never beyond `last`
            self.begun.difference_update(item for item, _ in pending)
            self.engine.publish(self.last)

        changed = tuple(item.number for item, _ in changes.values())
        call = Call(Site.commit, (changes, changed), self.engine.workers, elsewhere=({}, changed), done=done)
        try:
            self._begin(Begun(call, at, pending), changes)
            self.engine.wait(call, f"commit {at}")
            return self._deliver(self.engine.result(call)[0], stopped)
        except BaseException as stop:
            self._settle()
            if not call.is_submitted and self.storage is not None and self.storage.fail_beyond(at):
                self._pending = []  # it is durable
                stop.add_note(f"commit {at} is complete")
            elif call.is_submitted and not isinstance(stop, Exception):
                self.engine.wait_after_interrupt(call, f"commit {at}", stop)
            raise

    def _begin(self, begun: Begun, changes: Nets) -> None:
        """Begin a commit on the disk, if there is one, and on the workers. SIGINT waits until both have it."""
        self._begun = begun
        if self.storage is None:
            self.engine.submit(begun.call)  # from here on the workers make the commit
            self._settle()
            return
        with Deferral():
            self.engine.refuse_ended()  # checked after what has changed was computed: tables of an ended session fail
            self.storage.commit(begun.number, changes, self.feeds.positions())
            self.engine.submit(begun.call)
            self._settle()

    def _settle(self) -> None:
        """Update the catalog to a commit that the workers have. If an interrupt ends this, it is done again."""
        begun = self._begun
        if begun is not None and begun.call.is_submitted:
            if self._pending is begun.statements:
                self._pending = []
            for item in {*(item for item, _ in begun.statements), *(feed.item for feed in self.feeds.all)}:
                item.schema.keep()
            self.feeds.take()
            self.clocks.settle()
            self._begun = None

    def _deliver(self, number: int, stopped: SessionError | None) -> int:
        """Pass on what a commit has changed, and raise the first error; `stopped` is one of a source, known before."""
        untaken = self.deliveries.gather(self.storage, number)
        untaken = untaken or self.deliveries.deliver(number, lambda: self.engine.is_closing)
        settled = self.feeds.settle()
        stopped = stopped or settled or untaken  # the first to stop may be the reason why others do
        refused = self.watches.deliver(number, self._failures.among(self.items), self.engine.is_running)
        self.reap(number)
        if stopped is not None:
            raise SessionError(f"{stopped} (commit {number} is complete)") from stopped
        if refused is not None:
            raise refused
        return number

    def _changes(self) -> Nets:
        """Return the changes of each table, by the program and by sources. After an error the transaction is empty."""
        try:
            return changes_of(self._pending, self.engine, self.clocks, self.feeds)
        except SessionError:
            if not self.engine.is_over:
                self.rollback()
            raise

    # Tables and views

    def add_table(self, item: Item, declared: Mapping[str, Column]) -> None:
        """Build an empty table; `declared` are empty columns of those whose kinds are given."""
        with self.exclusive():
            self.reap()
            name = item.name
            if (known := self.items.get(name)) is not None:
                raise SessionError(f"there is already a {known}: db[{name!r}] returns it, db.drop({name!r}) drops it")
            if self.storage is not None:
                self.storage.add(item, declared)
            try:
                self.fill_table(item, None)
            except BaseException:
                if self.storage is not None:
                    self.storage.drop(item)
                raise

    def fill_table(self, item: Item, rows: Net | None) -> None:
        """Build a table that has these rows as of the last commit."""
        install(self.engine, item, Site.add_table, (item, rows), (item, None))
        self.items[item.name] = item

    def rebuild_table(self, item: Item, rows: Net | None) -> None:
        """Build a table in the place of one of the same name that the program does not use."""
        with self.exclusive():
            former = self.items[item.name]
            self.fill_table(item, rows)
            self._drop(former)

    def add_view(self, item: Item, definition: Definition) -> Item:
        """Build a view, complete as of the last commit, in the place of one of the same name that no view reads.

        Return the item that it has become.
        """
        with self.exclusive():
            self.reap()
            former = self.items.get(item.name)
            if former is not None and former.kind == "table":
                raise SessionError(f"{item.name!r} is the name of a table: give the view another one")
            if former is not None:
                refuse_readers(former, self.items, "replaced")
            item, _ = built(self.engine, item, Site.add_view, definition, self.items)
            if former in item.reads.values():
                self._drop(item)
                raise SessionError(f"{item} (at {item.origin}) reads {former}, which it replaces: give it another name")
            self.items[item.name] = item
            if former is not None:
                ended = self.deliveries.ended(former)
                self.deliveries.leave_to_successor(former, self.last)
                self._drop(former)
                show_ended(f"{former} is replaced", ended)
            return item

    def ask(self, item: Item, definition: Definition) -> Rows:
        """Return the answer to a question as of the last commit, after dropping it."""
        with self.exclusive():
            self.reap()
            item, shares = built(self.engine, item, Site.ask, definition, self.items)
            if self.engine.workers > 1:
                self._drop(item)
            return item.rows(shares)

    def drop(self, name: str) -> None:
        """Drop a table or view that no other view reads."""
        self.engine.refuse_ended()
        item = self.items.get(name)
        if item is None:
            raise SessionError(f"there is no table or view {name!r}{meant(name, self.items)}")
        ended = self.deliveries.ended(item)
        if item.kind == "view":
            refuse_readers(item, self.items, "dropped")
            item.is_dropped = True
            # Without the lock: a commit that waits for this view holds it, until the view has failed.
            self.engine.fail(item, SessionError(f"{item} was dropped"))
            self.engine.release(item)
        with self.exclusive():
            self.clocks.refuse_to_drop(item)
            beside = self._beside(item)
            if item.error is None:
                for each in (item, *beside):
                    refuse_readers(each, self.items, "dropped")
                self._drop(item)
            self.feeds.close_for(item)
            self.clocks.all.pop(item, None)
            self.deliveries.close_for(item)
            item.end()
            if self.items.get(name, item) is item:  # else another thread has defined the name again before the lock
                self.items.pop(name, None)
                if self.storage is not None:
                    self.storage.drop(item)
            for each in beside:
                self.drop(each.name)
        show_ended(f"{item} is dropped", ended)

    def _beside(self, item: Item) -> tuple[Item, ...]:
        """Return the tables that exist because of a table; those of earlier sessions, too, if it is durable."""
        if item in self.clocks.all or self.storage is None:
            return self.clocks.beside(item)
        return tuple(self.items[name] for name in self.storage.beside(item.name))

    def withdraw(self, item: Item) -> None:
        """Drop a view that could not be made durable. What an earlier view of its name has on the disk stays."""
        with self.exclusive():
            self._drop(item)
            self.items.pop(item.name, None)

    def read(self, item: Item) -> Rows:
        """Return the rows of an item as of the last commit."""
        return self.snapshot(item)[0]

    def snapshot(self, item: Item) -> tuple[Rows, int]:
        """Return the rows of an item as of the last commit, and its number: no lock is needed for them to agree."""
        self.check(item)
        commits, shares = zip(*self.engine.call(Site.snapshot, item))
        return item.rows(list(shares)), commits[0]

    def check(self, item: Item) -> None:
        """Raise SessionError where an item was dropped or has failed."""
        if item.error is not None:
            raise failure(item, item.error)

    def reap(self, commit: int | None = None) -> None:
        """Forget items that have failed. Raises SessionError if they failed in `commit`; otherwise prints a notice."""
        failed = self._failures.among(self.items)
        if failed and self.engine.ended is not None:  # which is why they have failed
            self.engine.refuse_ended()
        for item in failed:
            self.items.pop(item.name, None)
            self.deliveries.close_for(item)
            item.end_failed(self.engine.is_running)
        report([item for item in failed if not item.is_dropped], commit)

    # Changes

    def follow(self, item: Item, made_by: str | None = None) -> Changes:
        """Return what each commit from now on changes. `made_by` is the method that the program has called."""
        self.check(item)
        changes = Changes(item.unfollow, made_by)
        call: Call[None] = Call(Site.collect, (item,), self.engine.workers, done=lambda call: item.follow(changes))
        self.engine.submit(call)
        call.wait()
        self.engine.result(call)
        return changes

    def watch(self, watch: Watch) -> Watch:
        """Deliver to a watch at the end of each commit."""
        with self.exclusive():
            self.watches.add(watch)
        return watch

    def _drop(self, item: Item, why: str = "was dropped") -> None:
        """Drop an item. If an interrupt comes, workers drop it in their next step."""
        self.engine.fail(item, SessionError(f"{item} {why}"))
        self.engine.call(Site.sweep)
        self.deliveries.close_for(item)
        item.end()
