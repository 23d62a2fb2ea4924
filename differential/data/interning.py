"""Interned items: small numbers for text, bytes and tuples, reclaimed when nothing has them any more.

One table for each worker numbers the distinct items that its inputs and arrangements have encoded. Strings and tuples
are in a `StringTable` each, with numbers of one sequence; no Python object is made for either. The table must not grow
with every item that was ever encoded, so it reclaims numbers as a garbage collector does, by marking and sweeping.

A number is in use if one of these has it:

- a column of a batch: traces announce every batch that they insert or merge (`watch`), and the table keeps weak
  references to the columns. A batch on its way to an operator, or still to be joined, shares its columns with these;
- a column of text or bytes between operators, in a message, in a queue, or in a variable of the program: each
  announces its array when it is made (`watch_strings`, see `differential.data.interned`);
- a column that an operator holds outside batches, such as updates that wait to be sealed: operators list them (`hold`);
- a tuple whose own number is in use, for each of its fields that is interned.

While no operator is in the middle of a run, nothing else has numbers. A collection begins then (`collect`): it takes a
snapshot of these columns. From then on it works in pieces: it marks the numbers in the columns of the snapshot, then
frees those not marked. The invariant that it relies on:

    a number in use is in a column of the snapshot, or has been encoded since the snapshot was taken

because a new column is made of older columns or by encoding. Encoding marks the numbers that it returns, and those of
the strings in a tuple. Freed numbers are reused.

A collection begins when there are as many new items as the last one found in use, or a sixteenth of the rows that it
marked, if that is more. So the table has about twice the items in use, and a new item pays for a constant amount of
work. Long strings are counted in words of 8 bytes as well: a collection also begins when there are as many new words as
the last one found in use, or a quarter of the rows that it marked, or `LEAST_WORDS`, whichever is the largest.

The work is done in steps. For each item that is new since the step before, a step marks at most `MARKED_PER_ITEM` rows
and sweeps at most `SWEPT_PER_ITEM` numbers, a fraction of the cost of encoding it; for each word, `MARKED_PER_WORD` and
`SWEPT_PER_WORD`; or it does `LEAST_STEP`, some 0.1 ms to 1 ms. The tables of hashes still grow all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

from differential.data.strings import TEXT, Packed, StringTable, packed, packed_rows
from timely.lowlevel import DataflowCore

Codes = NDArray[np.int64]
Column = NDArray[Any]

ABSENT = (1 << 62) - 1
"""Stands for the number of an item that has none."""

LEAST_ITEMS = 1 << 14
"""How many items must be new before a collection is worth its cost."""

LEAST_WORDS = 1 << 20
"""How many words of strings must be new before a collection is worth its cost, even if they are few items."""

MARKED_PER_ITEM, MARKED_PER_WORD = 64, 4
SWEPT_PER_ITEM, SWEPT_PER_WORD = 8, 1
LEAST_STEP = 1 << 12
_COLUMN_COST = 64
_FEW_ROWS = 256
_AT_ONCE = 1 << 14
"""How many rows are looked up at a time: few, so that intermediate columns stay in the processor's cache, and room is
made for few more items than are new."""
_LEAST_WATCHED = 256


class Meaning(Protocol):
    """What the codes of a column stand for."""

    def mark(self, codes: Codes) -> object:
        """Call `Interner.mark` with the numbers in `codes`."""
        ...


Held = tuple[Meaning, Codes]
"""A column of codes, and what they mean."""


class Interner:
    """One worker's table of distinct strings, byte strings, and tuples of codes.

    It is itself the meaning of columns whose codes are numbers of strings, and nothing else.
    """

    def __init__(self) -> None:
        self.strings = StringTable()
        self.tuples = StringTable()
        self._forms: dict[tuple[int, ...], int] = {}
        self._free: list[int] = []
        self.capacity = 0
        """The number of items that have a number, and of numbers that are free."""
        self._watched: list[tuple[Meaning, ref[Column]]] = []
        self._most_watched = _LEAST_WATCHED
        self._holders: dict[Callable[[], Iterable[Held]], None] = {}
        self.has_work = False
        """Whether a collection is under way, or is due: enough items, or words of strings, are new."""
        self._collection: _Collection | None = None
        self._added = 0
        self._threshold = LEAST_ITEMS
        self._seen = 0
        self._words = 0  # of the strings that have a number
        self._most_words = LEAST_WORDS
        self._words_seen = 0
        # A column of values that are all 0 is absent, and nothing could mark its items: so 0 is never freed.
        self.encode_strings(np.array([""], TEXT))
        self._added = 0
        self.is_used = False
        """Whether any other item has ever received a number."""

    def __len__(self) -> int:
        """The number of items that have a number."""
        return len(self.strings) + len(self.tuples)

    @property
    def nbytes(self) -> int:
        """The bytes of the tables, which are always in memory."""
        return self.strings.nbytes + self.tuples.nbytes

    def encode_strings(self, column: Column) -> Codes:
        """Return the number of each row of a column of text or bytes. A string without one receives a number."""
        numbers = _in_parts(len(column), lambda part: self._numbered(self.strings, packed(column[part])))
        if self._collection is not None:
            self._collection.keep(numbers)  # no column of the snapshot need have them
        return numbers

    def find_strings(self, column: Column) -> Codes:
        """Return the number of each row of a column of text or bytes, `ABSENT` for one that has none."""
        return self.strings.find(packed(column), ABSENT)[0]

    def to_list(self, numbers: Codes, *, is_text: bool) -> list[Any]:
        """Return the strings with these numbers, as one object for each distinct string where there are many."""
        if len(numbers) > _FEW_ROWS:
            distinct, which = np.unique(numbers, return_inverse=True)
            items = self.to_list(distinct, is_text=is_text) if len(distinct) < len(numbers) else None
            if items is not None:
                return [items[place] for place in which.tolist()]
        contents = self.strings.contents(numbers)
        return [content.decode() for content in contents] if is_text else contents

    def number_of(self, string: str | bytes) -> int:
        """Return the number of a string, `ABSENT` if it has none."""
        is_text = isinstance(string, str)
        return int(self.find_strings(np.array([string], TEXT if is_text else np.object_))[0])

    def watch_strings(self, numbers: Codes) -> None:
        """Keep the strings with these numbers for as long as the array exists."""
        if len(numbers):
            self.watch(self, numbers)

    def encode_tuples(self, columns: Sequence[Codes], strings: tuple[int, ...]) -> Codes:
        """Return the number of each tuple, one of each row of codes. A tuple without a number receives one.

        `strings` lists the columns that are numbers of strings: tuples that differ in this are not equal.
        """
        numbers = _in_parts(
            len(columns[0]), lambda part: self._numbered(self.tuples, self._packed_tuples(columns, strings, part))
        )
        if self._collection is not None:
            # Once a tuple is marked, no column marks its strings. They need not have been encoded since the snapshot:
            # a column that was decoded has their numbers.
            for column in [numbers, *[columns[position] for position in strings]]:
                self._collection.keep(column)
        return numbers

    def find_tuples(self, columns: Sequence[Codes], strings: tuple[int, ...]) -> Codes:
        """Return the number of each tuple, `ABSENT` for one that has none."""
        return self.tuples.find(self._packed_tuples(columns, strings, slice(None)), ABSENT)[0]

    def decode_tuples(self, numbers: Codes, count: int) -> list[Codes]:
        """Return the columns of the tuples with these numbers, each of `count` codes."""
        rows = self.tuples.words(numbers, 1 + count)
        return [rows[:, 1 + position].copy() for position in range(count)]

    def watch(self, meaning: Meaning, column: Codes) -> None:
        """Keep the items in `column` for as long as the array exists."""
        if not len(column):
            return  # kernels return one array for all columns without items: it always exists
        watched = self._watched
        watched.append((meaning, ref(column)))
        if len(watched) > self._most_watched:
            self._watched = watched = [pair for pair in watched if pair[1]() is not None]
            self._most_watched = max(_LEAST_WATCHED, 2 * len(watched))

    def hold(self, columns: Callable[[], Iterable[Held]]) -> None:
        """Keep the items in what `columns` returns, until it is released."""
        self._holders[columns] = None

    def release(self, columns: Callable[[], Iterable[Held]]) -> None:
        """Undo `hold`."""
        self._holders.pop(columns, None)

    def end(self) -> None:
        """Release all items except strings that the program still holds in a column. The worker has no dataflows left.

        Their objects refer to each other and to this table, which may be large. They are few, so that the garbage
        collector may not look for them for a long time.
        """
        has_strings = any(meaning is self and reference() is not None for meaning, reference in self._watched)
        if not has_strings:
            self.strings = StringTable()
        self.tuples = StringTable()
        self._free, self._watched, self._collection = [], [], None
        self.has_work = False
        self._holders.clear()

    def collect(self) -> None:
        """Reclaim numbers for a bounded time. Called only when no operator is in the middle of a run."""
        if not self.has_work:
            return
        if self._collection is None:
            # Numbers from `capacity` on are of later items, which this collection leaves alone.
            self._collection = _Collection(self._snapshot(), self.capacity)
            self._added = self._seen = 0
            self._words_seen = self._words
        new, self._seen = self._added - self._seen, self._added
        is_complete = self._collection.work(self, new, max(0, self._words - self._words_seen))
        self._words_seen = self._words
        if is_complete:
            survivors, rows = len(self), self._collection.rows
            self._threshold = max(LEAST_ITEMS, survivors, rows // 16)
            self._most_words = self._words + max(LEAST_WORDS, self._words, rows // 4)
            self._collection, self.has_work = None, self._is_due()

    def _is_due(self) -> bool:
        return self._added >= self._threshold or self._words >= self._most_words

    def mark(self, numbers: Codes) -> Codes:
        """Mark numbers as in use, in a collection; return those not marked before, some perhaps several times."""
        assert self._collection is not None
        return self._collection.mark(numbers)

    def sweep(self, numbers: Codes) -> None:
        """Free numbers that are not in use."""
        # Each number is in one of the tables, or free already: tables return only those that they had.
        for table in (self.strings, self.tuples):
            self._free.extend(table.remove(numbers).tolist())
        self._words = self.strings.size

    def _packed_tuples(self, columns: Sequence[Codes], strings: tuple[int, ...], part: slice) -> Packed:
        """Return tuples as words, the first of which states the columns that are numbers of strings."""
        form = self._forms.setdefault(strings, len(self._forms))
        return packed_rows(form, [column[part] for column in columns])

    def _numbered(self, table: StringTable, items: Packed) -> Codes:
        """Return the number of each item of a table. An item without one receives one."""
        numbers, missing = table.find(items, ABSENT)
        if not missing:
            return numbers
        if missing == len(numbers):
            return self._added_to(table, items)
        rows = np.flatnonzero(numbers == ABSENT)
        numbers[rows] = self._added_to(table, items.take(rows))
        return numbers

    def _added_to(self, table: StringTable, items: Packed) -> Codes:
        """Return the number of each item of a table, none of which has one yet."""
        free, top, most = self._free, self.capacity, len(items.sizes)
        reused = min(most, len(free))
        if reused:
            # Reversed: the table uses the first ones, which are then the last of `free`, where they are removed.
            again = np.array(free[len(free) - reused :][::-1], np.int64)
            unused = np.concatenate((again, np.arange(top, top + most - reused)))
        else:
            unused = np.arange(top, top + most)
        numbers, used = table.add(items, unused)
        reused = min(reused, used)
        del free[len(free) - reused :]
        self.capacity += used - reused
        self._added += used
        self._words = self.strings.size
        self.has_work = self.has_work or self._is_due()
        self.is_used = True
        return numbers

    def _snapshot(self) -> list[Held]:
        """Return all columns that may hold numbers, each once."""
        # The snapshot refers to the columns, so that none is freed before its numbers are marked.
        held: list[Held] = []
        for meaning, reference in self._watched:
            column = reference()
            if column is not None:
                held.append((meaning, column))
        for columns in self._holders:
            held += columns()
        found = {id(column): (meaning, column) for meaning, column in held if len(column)}
        return list(found.values())


class _Collection:
    """A collection under way: the columns whose numbers it has yet to mark, and how far it has swept."""

    def __init__(self, columns: list[Held], limit: int) -> None:
        """Collect among the numbers below `limit`."""
        self.rows = sum(len(column) for _, column in columns)
        self._columns = columns
        self._row = 0
        self._limit = limit
        self._marked = np.zeros(limit, np.bool_)
        self._swept = 1  # the number 0 is never freed

    def keep(self, numbers: Codes) -> None:
        """Mark numbers that are in use from now on."""
        self._marked[numbers[numbers < self._limit]] = True

    def mark(self, numbers: Codes) -> Codes:
        """Mark numbers; return those not marked before."""
        # Numbers from the limit on are newer than the snapshot: never swept, and `encode` has marked their strings.
        numbers = numbers[numbers < self._limit]
        fresh = numbers[~self._marked[numbers]]
        self._marked[fresh] = True
        return fresh

    def work(self, interner: Interner, new: int, words: int) -> bool:
        """Do the work that `new` items and new words of strings pay for; return whether the collection is complete."""
        fuel = max(LEAST_STEP, MARKED_PER_ITEM * new, MARKED_PER_WORD * words)
        while self._columns and fuel > 0:
            meaning, column = self._columns[-1]
            rows = column[self._row : self._row + fuel]
            meaning.mark(rows)
            fuel -= max(len(rows), _COLUMN_COST)
            self._row += len(rows)
            if self._row >= len(column):
                self._columns.pop()
                self._row = 0
        if self._columns:
            return False
        stop = min(self._limit, self._swept + max(LEAST_STEP, SWEPT_PER_ITEM * new, SWEPT_PER_WORD * words))
        dead = np.flatnonzero(~self._marked[self._swept : stop]) + self._swept
        interner.sweep(dead)
        self._swept = stop
        return stop == self._limit


def _in_parts(rows: int, numbered: Callable[[slice], Codes]) -> Codes:
    """Return the numbers of rows, which are looked up `_AT_ONCE` at a time."""
    if rows <= _AT_ONCE:
        return numbered(slice(None))
    numbers = np.empty(rows, np.int64)
    for start in range(0, rows, _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        numbers[part] = numbered(part)
    return numbers


_interners: WeakKeyDictionary[Any, Interner] = WeakKeyDictionary()


def interner_of(worker: object) -> Interner:
    """Return the table that all of a worker's arrangements share."""
    interner = _interners.get(worker)
    if interner is None:
        interner = _interners[worker] = Interner()
    return interner


def interned_bytes(worker: object) -> int:
    """Return the bytes of a worker's table, 0 if it has none."""
    interner = _interners.get(worker)
    return 0 if interner is None else interner.nbytes


def end_interner(worker: object) -> None:
    """Release the table of a worker that has no dataflows left."""
    interner = _interners.pop(worker, None)  # columns that the program still holds keep the table itself
    if interner is not None:
        interner.end()


def hold_columns(dataflow: DataflowCore, columns: Callable[[], Iterable[Held]]) -> None:
    """Keep the items in what `columns` returns until a dataflow is complete."""
    interner = interner_of(dataflow.host)
    interner.hold(columns)
    dataflow.when_complete(partial(interner.release, columns))
