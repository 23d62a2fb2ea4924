"""One worker's part of a session: the dataflows of its tables and views, and what is done with them.

All workers do the same in the same order (see `differential.session.engine`), each with its share of the rows. Every
table, view and question is a dataflow of its own, which imports the indexes that it reads. So an error in one leaves
all others as they are: the dataflow is dropped, and what reads it, too.

Times are numbers of commits. `commit` ends the present epoch at the tables that change, and at those that views of them
read, then steps until these views are final there. All others stay final as of an earlier commit (`ItemPart.at`), at
which they have the same rows, until something is built that may read them. So nothing runs for tables that share no
view with those that change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from differential.collection import Arrangement, Collection, Trace
from differential.data.interning import end_interner, interned_bytes
from differential.kernels.compile import NOTHING
from differential.operators.input import InputSession
from differential.session.definition import Tables, explain
from differential.session.interrupt import Closing, Interrupted
from differential.session.item import Item, ItemPart, Share, failure, negative_rows
from differential.session.relation import Relation
from differential.session.transaction import FoundRows, Net, Wanted
from differential.sources import new_input
from timely import Worker
from timely.errors import NegativeCountError, OperatorError, SessionError, TimelyError
from timely.lowlevel import Input, attributed, inline, new_input as new_stream_input

Definition = Callable[[Tables], Any]

COMMITS = 16
"""After this many commits in a row, indexes are compacted although the next call waits."""
COMBINATIONS = 256
"""For how many sets of tables that change together it is remembered what they concern."""


class Site:
    """The part of a session on one worker. Only its thread uses it."""

    def __init__(
        self,
        worker: Worker,
        agree: Callable[[Item], object],
        is_closing: Callable[[], bool],
        fail: Callable[[Item, BaseException], object],
        left: Callable[[Item], object],
        noted: set[Item],
    ) -> None:
        """`agree` returns once all workers have reached it with an item, or raises Closing.

        `fail` lets an item fail on all workers, and `left` is called when it is gone from this one. The items of which
        this worker counts or keeps something are added to `noted`.
        """
        self.worker = worker
        self.epoch = 0
        """The last commit."""
        self.building: Item | None = None
        """The item whose definition runs."""
        self.interrupted: Item | None = None
        """The item whose function was interrupted last."""
        self.awaited: tuple[Item, ...] = ()
        """What is to become final as of the last commit."""
        self._swept = 0
        """The last failure, of any item, that was looked at."""
        self._compacted = 0
        """The commit after which indexes were last allowed to be compacted."""
        self._ahead: dict[int, ItemPart] = {}
        """The parts whose indexes may be compacted further, by their dataflows."""
        self._agree = agree
        self._is_closing = is_closing
        self._fail = fail
        self._left = left
        self._noted = noted
        self._items: dict[int, Item] = {}
        """What is built here, by its dataflow: each after what it reads."""
        self._concerned: dict[tuple[int, ...], tuple[Item, ...]] = {}
        """What a commit concerns, by the numbers of the tables that it changes, as of the last item that was built."""
        with worker.dataflow("session") as scope:
            # An open input: with it, the worker sleeps while there is nothing to do.
            self._open: Input
            self._open, _ = new_stream_input(scope, name="open")

    def begin_at(self, epoch: int) -> None:
        """Continue after a commit of an earlier session, before there is a table."""
        self.epoch = self._compacted = epoch

    def add_table(self, item: Item, rows: Net | None = None) -> None:
        """Build a table, which has these rows as of the last commit; none by default."""

        def build(tables: Tables) -> tuple[Collection, InputSession]:
            session, collection = new_input(tables.scope, keys=item.keys, name=item.name)
            return collection, session

        if self._build(item, build, {}):
            part = item.parts[self.worker.index]
            assert part is not None
            assert part.session is not None
            # The first worker has all rows, as in `commit`. They go from there to the workers of their keys.
            if rows is not None and self.worker.index == 0:
                part.session.update(*rows.columns, diff=rows.diffs)
            self._advance((item,))

    def add_view(self, item: Item, definition: Definition, items: Mapping[str, Item]) -> None:
        """Build a view or a question, and step until it is complete as of the last commit, or fails (`Item.error`)."""

        def build(tables: Tables) -> tuple[Any, None]:
            if not callable(definition):
                raise SessionError(
                    f"the definition of {item} is {_shown(definition)}: give a function, such as lambda t: t.orders"
                )
            return definition(tables), None

        self._catch_up()
        self.compact()  # what is imported arrives as of one time, the same on all workers
        if self._build(item, build, items):
            self._settle((item,))

    def ask(self, item: Item, definition: Definition, items: Mapping[str, Item]) -> Share:
        """Return this worker's rows of the answer to a question, and none if it has failed (`Item.error`).

        A single worker drops the question at once. With others it is dropped in another call: they may still need the
        progress that this one sends.
        """
        self.add_view(item, definition, items)
        try:
            return self.read(item) if item.error is None else Share((), NOTHING)
        finally:
            if self.worker.peers == 1:
                self.drop(item)

    def commit(self, changes: Mapping[str, tuple[Item, Net]], changed: tuple[int, ...]) -> int:
        """Make changes of tables in one epoch, and step until their views are final; return the number of the commit.

        The first worker has the `changes`. All of them know the numbers of the tables that are `changed`.
        """
        self.epoch = epoch = self.epoch + 1
        for item, (columns, diffs) in changes.values():
            part = item.parts[self.worker.index]
            if part is not None and part.session is not None and self.worker.index == 0:
                try:
                    part.session.update(*columns, diff=diffs)
                except TimelyError as error:
                    # No error that the caller receives: the commit may be durable, so the session must end.
                    raise RuntimeError(f"{item} cannot take the changes: {error}") from error
        self._advance(self._concern(changed))
        if epoch - self._compacted >= COMMITS:
            self.compact()
        return epoch

    def compact(self) -> None:
        """Allow indexes to be compacted up to the commits as of which everything that follows reads them."""
        self._compacted = self.epoch
        while self._ahead:
            _, part = self._ahead.popitem()
            part.trace.allow_compaction_to(part.at)

    def consolidate(self, items: Sequence[Item]) -> bool:
        """Remove rows that are gone from the indexes of some items; return whether there were any.

        An index keeps the updates that have removed a row beside those that inserted it, until they are merged.
        """
        self._catch_up()
        self.compact()
        traces = [part.trace for item in items if (part := item.parts[self.worker.index]) is not None]
        before = sum(trace.statistics().rows for trace in traces)
        for trace in traces:
            trace.set_physical_compaction(self.epoch + 1)
            trace.consolidate()
        return sum(trace.statistics().rows for trace in traces) < before

    def look_up(self, wanted: Mapping[str, tuple[Item, Wanted]]) -> dict[str, FoundRows]:
        """Return the committed rows of keys of tables that live on this worker, and how often rows occur here."""
        found = {}
        for name, (item, (replaced, removed)) in wanted.items():
            part = item.parts[self.worker.index]
            if part is not None:
                cursor = part.trace.cursor(part.at)
                rows = FoundRows()
                if replaced is not None:
                    rows = FoundRows(*cursor[replaced if len(replaced) > 1 else replaced[0]])
                found[name] = rows if removed is None else rows._replace(present=cursor.counts(removed))
        return found

    def read(self, item: Item) -> Share:
        """Return this worker's rows of an item as of the last commit.

        Raises DataError, which names the item, where a row occurs a negative number of times.
        """
        try:
            part = self.part(item)
            keys, values, counts = part.trace.contents(part.at)
        except NegativeCountError as error:
            raise negative_rows(item, error.fault) from None
        return Share((*keys, *values), counts)

    def snapshot(self, item: Item) -> tuple[int, Share]:
        """Return the last commit, which is the same on all workers, and this one's rows of an item as of it."""
        return self.epoch, self.read(item)

    def read_before(self, index: Item, limit: int) -> Share:
        """Return the rows of an index by event time that are before a limit, without the column of the index."""
        part = self.part(index)
        _, rows, counts = part.trace.cursor(part.at).below(limit)
        return Share(rows, counts)

    def part(self, item: Item) -> ItemPart:
        """Return this worker's part of an item. Raises SessionError if the item was dropped."""
        part = item.parts[self.worker.index]
        if item.error is not None or part is None:
            raise SessionError(f"{item} was dropped") from item.error
        return part

    def collect(self, item: Item) -> None:
        """Keep what changes here from now on, between two commits."""
        item.collects[self.worker.index] = True

    def measure(self) -> int:
        """Record how many bytes the indexes have here; return those of the distinct texts and wide records."""
        for item in self._items.values():
            part = item.parts[self.worker.index]
            if part is not None:
                item.nbytes[self.worker.index] = part.trace.statistics().nbytes
                self._noted.add(item)
        return interned_bytes(self.worker)

    def drop(self, item: Item) -> None:
        """Forget an item."""
        index = self.worker.index
        part, item.parts[index] = item.parts[index], None
        if part is not None:
            self._items.pop(part.dataflow, None)
            self._ahead.pop(part.dataflow, None)
            self._concerned.clear()
            part.trace.drop()
            self.worker.drop_dataflow(part.dataflow)
        item.totals[index] = 0
        self._noted.discard(item)
        self._left(item)

    def close(self) -> None:
        """Drop everything, so that the worker can end."""
        for item in tuple(self._items.values()):
            self.drop(item)
            item.end()
        for dataflow in self.worker.dataflows:
            self.worker.drop_dataflow(dataflow)
        end_interner(self.worker)  # last: indexes have numbers of its texts

    def end(self, error: BaseException, was_closed: bool) -> None:
        """Record why the session has ended while it had tables and views. Any thread may do so then."""
        for item in tuple(self._items.values()):
            item.fail(error)
            item.end(None if was_closed else error)

    def step(self) -> None:
        """Do work that no caller waits for, or sleep until there is something to do. An item that fails is dropped."""
        self.compact()
        self._step()

    def _step(self) -> None:
        """Step the worker, or sleep until there is something to do. An item that fails is dropped."""
        try:
            self.worker.step_or_park()
        except OperatorError as error:
            self._failed(self._items.get(-1 if error.dataflow is None else error.dataflow), error)
        except Interrupted as error:
            self._failed(self.interrupted, error)
        except BaseException as error:
            if isinstance(error, (Exception, Closing, KeyboardInterrupt)):
                raise
            # One that no operator expects, such as the panic of a Rust extension.
            lost = next((each.index for each in self.worker.dataflows if each.loss), -1)
            item = self._items.get(lost)
            self._failed(item, error if item is None else failure(item, error))
        self.sweep()

    def sweep(self) -> None:
        """Drop what has failed, on any worker, and what reads it."""
        if self._is_closing():
            raise Closing
        last = Item.last_failure  # read first: an item that fails from now on changes it again
        if last == self._swept:
            return
        # Items follow what they read, so one pass finds readers of readers.
        for item in tuple(self._items.values()):
            cause = next((each for each in item.reads.values() if each.error is not None), None)
            if cause is not None and item.error is None:
                item.fail(SessionError(f"{item} reads {cause}, which was dropped"))
            if item.error is not None:
                self.drop(item)
        self._swept = last

    def _failed(self, item: Item | None, error: BaseException) -> None:
        """Record why an item failed; raise the error again where no view is to blame."""
        if item is None or item.kind == "table":
            raise error
        self._fail(item, error)

    def running(self) -> Item | None:
        """Return the item whose definition or operator runs. For any thread."""
        if self.building is not None:
            return self.building
        running = [dataflow.index for dataflow in self.worker.dataflows if dataflow.running is not None]
        return self._items.get(running[0]) if running else None

    def unfinished(self) -> list[Item]:
        """Return what is being built, and what is not final though it is awaited. For any thread."""
        building, epoch, found = self.building, (self.epoch,), []
        for item in self.awaited:
            part = item.parts[self.worker.index]
            if item.error is None and part is not None and part.trace.upper.less_equal(epoch):
                found.append(item)
        return found if building is None else [*found, building]

    def _build(self, item: Item, build: Callable[[Tables], tuple[Any, InputSession | None]], items: Any) -> bool:
        """Build the dataflow of an item on all workers, or on none; return whether it is built.

        A worker that leaves the `with` block has built the dataflow, so none does before all others can.
        """
        index = self.worker.index
        self.building = item
        try:
            with attributed(item.origin), self.worker.dataflow(f"{item.kind} {item.name}") as scope:
                tables = Tables(scope, items)
                try:
                    if item.error is not None:  # it was given up before this worker came to it
                        raise SessionError(f"{item} was dropped")
                    made, session = build(tables)
                    trace = self._exported(item, made)
                except BaseException as error:
                    explain(tables, error)
                    item.refused = error
                self.building = None  # while it waits for the others, it runs nothing that may be interrupted
                self._agree(item)
                # Not `item.error`: a worker that is further may have failed in a step already.
                if item.refused is not None:
                    raise item.refused
        except Closing:
            raise
        except BaseException as error:
            self._fail(item, error)
            return False
        finally:
            self.building = None
        item.reads = tables.reads
        item.parts[index] = ItemPart(scope.dataflow.index, trace, session, self.epoch)
        self._items[scope.dataflow.index] = item
        self._noted.add(item)
        self._concerned.clear()
        return True

    def _exported(self, item: Item, made: Any) -> Trace:
        """Return the trace of what a definition returned, after naming its columns and following its changes."""
        collection = made.as_collection() if isinstance(made, Arrangement) else made
        if not isinstance(collection, Collection):
            raise SessionError(
                f"the definition of {item} returns {_shown(made)}: return a collection, such as t.orders.count()"
            )
        if isinstance(collection, Relation):
            item.take_names(collection.names)
        if isinstance(collection, Relation) and item.kind != "table":
            named = dict(zip(collection.names or (), item.names or ()))  # the program may name the columns otherwise
            item.event_time = named.get(collection.event_time or "")
            item.schema.declare_types({named[was]: of for was, of in collection.types.items() if was in named})
            item.schema.keep()
        item.keys = collection.keys
        arranged = collection.arrange_by_key()
        if item.names is not None and not arranged.key.names:
            arranged.key.names, arranged.value.names = item.names[: item.keys], item.names[item.keys :]
        index = self.worker.index
        is_first = True

        def note(batch: Any) -> Any:
            nonlocal is_first
            if is_first:
                item.check_width(len(arranged.updates_of(batch).columns))
                is_first = False
            item.note(index, batch, arranged.updates_of)
            self._noted.add(item)
            return batch

        inline(arranged.stream, note, name=item.name)
        return arranged.trace()

    def _concern(self, changed: tuple[int, ...]) -> tuple[Item, ...]:
        """Return what a change of the tables with these numbers concerns.

        These are the tables, what reads them, and what else that reads: an answer is final only once all of its inputs
        are.
        """
        found = self._concerned.get(changed)
        if found is None:
            items = tuple(self._items.values())
            concerned = {item for item in items if item.number in changed}
            # Items follow what they read: one pass finds readers of readers, and one backwards inputs of inputs.
            for item in items:
                if not concerned.isdisjoint(item.reads.values()):
                    concerned.add(item)
            for item in reversed(items):
                if item in concerned:
                    concerned.update(item.reads.values())
            if len(self._concerned) == COMBINATIONS:
                self._concerned.clear()
            found = self._concerned[changed] = tuple(item for item in items if item in concerned)
        return found

    def _catch_up(self) -> None:
        """Make everything final as of the last commit. Its rows stay the same."""
        index, epoch = self.worker.index, self.epoch
        self.sweep()
        items = self._items.values()
        self._advance(tuple(item for item in items if (part := item.parts[index]) is not None and part.at < epoch))

    def _advance(self, items: tuple[Item, ...]) -> None:
        """End the present epoch at the tables among some items, and step until the items are final there."""
        index, following = self.worker.index, self.epoch + 1
        for item in items:
            if (part := item.parts[index]) is not None and part.session is not None:
                part.session.advance_to(following)
        self._settle(items)

    def _settle(self, items: tuple[Item, ...]) -> None:
        """Step until items are final as of the last commit, or have failed."""
        index, epoch = self.worker.index, self.epoch
        self.awaited = items
        self.sweep()
        for item in items:
            while (part := item.parts[index]) is not None and part.trace.upper.less_equal((epoch,)):
                self._step()  # drops an item that fails, which ends the wait for it
            if part is not None and part.at < epoch:
                part.at, self._ahead[part.dataflow] = epoch, part
        self.awaited = ()


def _shown(value: object) -> str:
    """Return a value for an error. What a program calls its table or view cannot be read here, but has a name."""
    item = getattr(value, "_item", None)
    return f"{item}, which is t[{item.name!r}] in a definition" if isinstance(item, Item) else f"{value!r:.120}"
