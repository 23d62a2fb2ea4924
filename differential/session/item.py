"""What a session keeps up to date: a table, a view, or, for a moment, a question.

An `Item` is shared by all workers; each has an `ItemPart`: a dataflow, the trace that holds the rows, and, of a table,
the session that changes them. An item that failed, or was dropped, has an `error`; then each worker drops its part, and
nobody reads it any longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from threading import Lock
from typing import Any, ClassVar, NamedTuple
from weakref import ref

import numpy as np

from differential.collection import Trace
from differential.data.updates import Updates
from differential.operators.input import InputSession
from differential.session.changes import Change, Changes
from differential.session.interrupt import Interrupted
from differential.session.rows import Rows
from differential.session.schema import Schema
from differential.session.table_data import Column
from differential.trace.batch import Batch
from differential.trace.columns import FEW
from timely.errors import DataError, SessionError, TimelyError
from timely.lowlevel import Origin, raised_at, typed

_numbers, _failures = count(), count(1)


@dataclass(slots=True)
class ItemPart:
    """One worker's share of an item."""

    dataflow: int
    trace: Trace
    session: InputSession | None
    at: int
    """The commit as of which it is read: it is final there, and no later commit has changed it."""


class Share(NamedTuple):
    """The records of an item on one worker, in columns, and how often each occurs."""

    columns: tuple[Column, ...]
    counts: Column


@dataclass(eq=False)
class Item:
    """A table, a view or a question, as all workers of a process share it. `kind` is its noun.

    Each other process has an `Item` of its own, with the same `number`. After each call it sends what its worker has
    written to `totals`, `nbytes` and `_changed` to the item of the first process (`adopt`).
    """

    last_failure: ClassVar[int] = 0
    """The number of the last failure of any item of this process. No two are equal, in whatever order threads fail."""

    # What it is. All but `has_key` is sent to other processes.
    name: str
    kind: str
    origin: Origin
    peers: int
    names: tuple[str, ...] | None = None
    """The names of the columns by their positions."""
    shown: tuple[int, ...] | None = None
    """The positions of the columns in the order in which they are read; None for that of the positions."""
    keys: int = 1
    has_key: bool = False
    """Whether it is a table that the program has given a key."""
    event_time: str | None = None
    """The column of event times. Of a table, another table has the watermark (`Item.watermark`)."""
    number: int = field(default_factory=_numbers.__next__)
    """The number by which other processes know it."""

    # What building it found, and why it failed. The same for all workers.
    reads: dict[str, Item] = field(default_factory=dict)
    """The tables and views whose indexes the definition uses, by name."""
    refused: BaseException | None = None
    """Why the definition could not be built, on any worker."""
    error: BaseException | None = None
    """Why it failed or was dropped; the first error stays."""

    # A place for each worker. Only the thread of the worker writes to it, or the one that receives from its process.
    parts: list[ItemPart | None] = field(default_factory=list)
    """The parts of the workers in this process; None for the others, and before it is built or after it is dropped."""
    totals: list[int] = field(default_factory=list)
    """The number of rows on each worker, while a commit is made, too."""
    nbytes: list[int] = field(default_factory=list)
    """The bytes of the index on each worker, as of the last look."""
    collects: list[bool] = field(default_factory=list)
    """Whether somebody follows the changes, so that the worker keeps them."""
    _changed: list[list[Updates]] = field(default_factory=list)
    """What each worker has kept since the last commit."""

    schema: Schema = field(default_factory=Schema)
    """The kinds of a table's columns. Those of other processes have them as of the last call about the table."""

    # What only the first process uses.
    is_dropped: bool = False
    """Whether the program dropped it, so that no commit reports its error."""
    elsewhere: set[int] = field(default_factory=set)
    """The workers in other processes that have a part."""
    size: int = 0
    """The number of rows as of the last commit."""
    followers: tuple[ref[Changes], ...] = ()
    """Those who follow the changes, as long as the program keeps them. The tuple is replaced, never modified."""
    _lock: Lock = field(default_factory=Lock)
    """Held while `followers` is replaced."""

    def __post_init__(self) -> None:
        self.parts = [None] * self.peers
        self.totals = [0] * self.peers
        self.nbytes = [0] * self.peers
        self.collects = [False] * self.peers
        self._changed = [[] for _ in range(self.peers)]

    @property
    def watermark(self) -> str | None:
        """The name of the table that has the watermark; None where this is not a table with event times."""
        return f"{self.name}_watermark" if self.kind == "table" and self.event_time is not None else None

    @property
    def required(self) -> tuple[str, ...]:
        """The columns that have no nulls, whatever their types: that of event times."""
        return () if self.event_time is None else (self.event_time,)

    def __str__(self) -> str:
        return "the question" if self.kind == "question" else f"{self.kind} {self.name!r}"

    def again(self) -> Item:
        """Return another item for the same definition."""
        # With a number of its own: other processes may still have the former one.
        return Item(self.name, self.kind, self.origin, self.peers, self.names)

    def fail(self, error: BaseException) -> None:
        """Keep the first error; each worker then drops its part."""
        if self.error is None:
            self.error = error
            # Second: a worker that finds a new number looks at all items once, until the number changes again.
            Item.last_failure = next(_failures)

    def take_names(self, names: tuple[str, ...] | None) -> None:
        """Take the names of columns that a definition gives, unless the program names them.

        Raises SessionError if the program gives another number of names.
        """
        if self.names is None:
            self.names = names
        elif names is not None and len(names) != len(self.names):
            raise SessionError(self._wrong_names(len(names)))

    def _wrong_names(self, width: int) -> str:
        return (
            f"{self} (at {self.origin}) has {width} column(s), but {len(self.names or ())} name(s): "
            f"{', '.join(self.names or ())}"
        )

    def check_width(self, width: int) -> None:
        """Raise DataError if the rows have another number of columns than there are names."""
        if self.names is not None and len(self.names) != width:
            raise DataError(self._wrong_names(width))

    def note(self, worker: int, batch: Batch, decode: Callable[[Batch], Updates]) -> None:
        """Count the rows of a batch, and keep it if somebody follows the changes. On the worker's thread."""
        diffs = batch.diffs
        if not len(diffs):
            self.totals[worker] += len(batch)
        else:
            self.totals[worker] += sum(diffs.tolist()) if len(diffs) <= FEW else int(diffs.sum())
        if self.collects[worker]:
            # Text as it is, not as numbers: another thread publishes it, and only this one may use the worker's table.
            self._changed[worker].append(decode(batch).for_other_worker())

    def take_changed(self, worker: int) -> list[Updates]:
        """Return and discard what was kept on a worker."""
        changed, self._changed[worker] = self._changed[worker], []
        return changed

    def adopt(self, worker: int, total: int, nbytes: int, changed: list[Updates]) -> None:
        """Record what a worker in another process has counted and kept."""
        self.totals[worker], self.nbytes[worker] = total, nbytes
        self._changed[worker] += changed

    def follow(self, changes: Changes) -> None:
        """Add a follower once all workers collect, so that it receives only whole commits."""
        with self._lock:
            self.followers = (*(each for each in self.followers if each() is not None), ref(changes))

    def unfollow(self, changes: Changes) -> None:
        with self._lock:
            self.followers = tuple(each for each in self.followers if each() not in (None, changes))

    def followed(self) -> list[Changes]:
        """Return the changes that the program has asked for, without those that have ended."""
        return [each for each in self._kept_followers() if each.made_by is not None and not each.is_over]

    def _kept_followers(self) -> list[Changes]:
        return [each for follower in self.followers if (each := follower()) is not None]

    def publish(self, time: int) -> None:
        """Count the rows, and pass on what a commit has changed, once all workers have completed it.

        Only an item that a worker has noted since the last commit has anything new.
        """
        self.size = sum(self.totals)  # of whole commits only: `totals` are ahead while one is made
        batches = [batch for changed in self._changed for batch in changed if len(batch)]
        for changed in self._changed:
            changed.clear()
        if batches:
            if len(batches) == 1:  # copied, because a program may write to its changes, and the trace has these arrays
                columns, diffs = tuple([column.copy() for column in batches[0].columns]), batches[0].each_diff().copy()
            else:
                columns = tuple(np.concatenate(columns) for columns in zip(*(batch.columns for batch in batches)))
                diffs = np.concatenate([batch.each_diff() for batch in batches])
            change = Change(time, self.columns(len(columns)), self.reordered(columns), diffs)
            for follower in self._kept_followers():
                follower.put(change)

    def end(self, error: BaseException | None = None) -> None:
        """End the changes of those who follow it, with an error if there is one, or if it has failed."""
        error = error or (None if isinstance(self.error, SessionError) else self.error)
        for follower in self._kept_followers():
            follower.end(None if error is None else failure(self, error))

    def end_failed(self, is_running: bool) -> None:
        """End the changes of an item that has failed, with its error unless the program or the session has ended it."""
        self.end(None if self.is_dropped or not is_running else self.error)

    def columns(self, width: int) -> tuple[str, ...]:
        """Return the names of the columns in the order in which they are read."""
        names = self.names or tuple(f"column_{position}" for position in range(width))
        return names if self.shown is None else tuple(names[place] for place in self.shown)

    def reordered(self, columns: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return columns in the order in which they are read."""
        return columns if self.shown is None or not columns else tuple(columns[place] for place in self.shown)

    def rows(self, shares: list[Share]) -> Rows:
        """Return what all workers have of the item as rows.

        A column of no rows has the type that is known; if none is, it has the type of opaque values.
        """
        full = [share for share in shares if len(share.counts)]
        if not full:
            empty = next((share.columns for share in shares if share.columns), ())
            if self.names is not None and len(empty) != len(self.names):  # no worker knows the kinds of all columns
                types = self.schema.types()
                empty = tuple([typed([], types.get(name, "value")) for name in self.names])
            return Rows(self.columns(len(empty)), self.reordered(empty), np.empty(0, np.int64))
        columns = tuple(np.concatenate(parts) for parts in zip(*(share.columns for share in full)))
        counts = np.concatenate([share.counts for share in full])
        return Rows(self.columns(len(columns)), self.reordered(columns), counts)


def taken(items: set[Item]) -> Iterator[Item]:
    """Remove and yield all items. Other threads may add and remove some meanwhile."""
    with suppress(KeyError):
        while True:
            yield items.pop()


def readers(item: Item, items: Mapping[str, Item]) -> list[Item]:
    """Return the views that read a table or view."""
    return [each for each in tuple(items.values()) if item in each.reads.values()]


def refuse_readers(item: Item, items: Mapping[str, Item], what: str) -> None:
    """Raise SessionError if views read a table or view."""
    if found := readers(item, items):
        raise SessionError(f"{item} cannot be {what} while it is read: first drop {', '.join(map(str, found))}")


def negative_rows(item: Item, what: str) -> DataError:
    """Return the error for an item with rows that occur a negative number of times; `what` names them."""
    changed = ""
    if item.kind == "view":
        changed = (
            ". The likely cause is a function of its definition that returned another value for a row than it did "
            "before, because it depends on other rows, on the time or on something else that has changed. Otherwise"
        )
    return DataError(
        f"{item} (at {item.origin}) cannot be read: {what}{changed or ';'} negate() makes such rows where there are "
        "fewer of them than of others"
    )


def computing(items: list[Item]) -> str:
    """Return, for people, that items still compute, and how they end."""
    if not items:
        return "the workers still compute"
    one = f"db.drop({items[0].name!r}) ends it" if items[0].kind == "view" else "an interrupt of the caller ends it"
    if len(items) == 1:
        return f"{items[0]} still computes; {one}"
    return f"{', '.join(map(str, items))} still compute; db.drop(name) ends one of them"


def failure(item: Item, error: BaseException | None) -> SessionError:
    """Return the error to raise where an item has failed, with its error as the cause."""
    if isinstance(error, SessionError):
        why = str(error)
    elif isinstance(error, (Interrupted, KeyboardInterrupt)):
        why = f"{item} was interrupted, and is dropped"
    else:
        what = f"{error}" if isinstance(error, TimelyError) else f"{type(error).__name__}: {error}"
        line = None if error is None or isinstance(error, TimelyError) else raised_at(error.__traceback__)
        why = f"{item} failed{'' if line is None else f' ({line})'}: {what}"
    found = SessionError(why)
    found.__cause__ = error
    return found
