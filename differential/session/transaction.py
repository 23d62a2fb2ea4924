"""What statements of a transaction add up to: which rows occur more often, and which less.

The statements on one table are kept in order. `plan` goes through them backwards: once a statement replaces all rows of
a key, earlier ones about that key no longer matter. What is left are rows to insert, rows to remove, and keys whose
committed rows are removed. The latter two are looked up where they live: all rows of a key, and how often a row
occurs, which takes a binary search among the rows of its key. `settled` turns what was found into changes:

    change of a row = times inserted - times removed - (times committed, if its key is replaced, or the table cleared)

No row may then occur a negative number of times: a removal of a row that is not there is refused. Nothing here runs a
dataflow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from differential.frames.python import items
from differential.kernels.compile import NOTHING
from differential.session.table_data import Column, order_of, ordered
from timely.errors import SessionError
from timely.lowlevel import Origin, starts_of_runs

Key = tuple[Any, ...]

SHORT = 64
"""Fewer rows are compared as Python's values."""


class Kind(Enum):
    """What a statement does: with rows, or with the rows of keys."""

    INSERT = "insert"
    DELETE = "delete"
    DELETE_KEYS = "delete by key"
    UPSERT = "upsert"
    CLEAR = "delete all"
    EXPIRE = "expire"


class RowStatement(NamedTuple):
    """A statement about rows, in columns with the key first; DELETE_KEYS has the key alone, and CLEAR none."""

    kind: Kind
    columns: tuple[Column, ...]
    origin: Origin

    @property
    def source(self) -> str | None:
        """The name of the source that the rows come from, None for those of the program."""
        return None if self.origin.line else self.origin.file


class Wanted(NamedTuple):
    """What to look up: keys that lose all their rows, and rows to remove. None where there are none."""

    replaced: tuple[Column, ...] | None
    removed: tuple[Column, ...] | None


class FoundRows(NamedTuple):
    """The committed rows of the keys wanted: the place of each row's key among them, its other columns, and its count.

    `present` has how often each of the rows wanted occurs.
    """

    place: Column = NOTHING
    values: tuple[Column, ...] = ()
    counts: Column = NOTHING
    present: Column = NOTHING


class Net(NamedTuple):
    """Rows of a table in columns, and how much more often each occurs."""

    columns: tuple[Column, ...]
    diffs: Column


class TransactionPlan(NamedTuple):
    """What the statements on a table leave to do. `replaced` are columns of keys, each of them once.

    If the table `is_cleared`, all its committed rows are removed, and `replaced` is None.
    """

    keys: int
    inserted: list[tuple[Column, ...]]
    removed: list[RowStatement]
    replaced: tuple[Column, ...] | None
    is_cleared: bool = False

    @property
    def wanted(self) -> Wanted | None:
        """What to look up, None if there is nothing."""
        if self.is_cleared or (self.replaced is None and not self.removed):
            return None
        return Wanted(self.replaced, stacked([each.columns for each in self.removed]) if self.removed else None)


def plan(statements: Sequence[RowStatement], keys: int) -> TransactionPlan:
    """Return what the statements on a table with that many key columns add up to."""
    inserted: list[tuple[Column, ...]] = []
    removed: list[RowStatement] = []
    replaced = _Keys()
    is_cleared = False
    for statement in reversed(statements):
        columns, kind = statement.columns, statement.kind
        if kind is Kind.CLEAR:
            is_cleared = True
            break  # what earlier statements insert or remove is gone after this one
        if kind in (Kind.UPSERT, Kind.DELETE_KEYS):
            # Of several rows of one key, the last one replaces the others.
            columns = _taken(columns, last_of_each(columns[:keys]))
            if replaced.parts:
                columns = replaced.without(columns, keys)
            replaced.parts.append(columns[:keys])
        elif replaced.parts:
            columns = replaced.without(columns, keys)
        if len(columns[0]) and kind in (Kind.UPSERT, Kind.INSERT):
            inserted.append(columns)
        elif len(columns[0]) and kind is Kind.DELETE:
            removed.append(statement._replace(columns=columns))
    parts = None if is_cleared else replaced.parts
    return TransactionPlan(keys, inserted[::-1], removed[::-1], stacked(parts) if parts else None, is_cleared)


class _Keys:
    """Keys that later statements replace. Python's values are made of them only if earlier statements have rows."""

    def __init__(self) -> None:
        self.parts: list[tuple[Column, ...]] = []
        """The keys in columns. None is there twice."""
        self._known: set[Key] = set()
        self._number = 0
        """How many parts are known."""

    def without(self, columns: tuple[Column, ...], keys: int) -> tuple[Column, ...]:
        for part in self.parts[self._number :]:
            self._known.update(keys_of(part))
        self._number = len(self.parts)
        return _taken(columns, np.array([key not in self._known for key in keys_of(columns[:keys])], np.bool_))


def last_of_each(keys: tuple[Column, ...]) -> Column:
    """Return the positions of the last rows of all keys, ascending.

    >>> last_of_each((np.array([7, 8, 7, 7]),))
    array([1, 3])
    """
    number = len(keys[0])
    if _are_sorted_fast(keys):
        # The order is stable, so the last of equal keys in it is the last among the rows.
        order, starts = _runs(keys)
        last = order[np.append(starts[1:], number) - 1]
    else:
        # Of equal keys, a dict has the last position.
        found = dict(zip(items(keys[0]) if len(keys) == 1 else keys_of(keys), range(number)))
        last = np.fromiter(found.values(), np.int64, len(found))
    return np.arange(number) if len(last) == number else np.sort(last)


def _are_sorted_fast(columns: Sequence[Column]) -> bool:
    """Return whether to find equal rows by sorting columns: that of a few rows takes longer, and that of texts."""
    return len(columns[0]) >= SHORT and all(ordered(column).dtype.kind in "biufmM" for column in columns)


def _runs(columns: Sequence[Column]) -> tuple[Column, Column]:
    """Return the positions of rows in order, equal ones as they are, and where equal ones begin in this order."""
    order = order_of(columns)
    return order, starts_of_runs([ordered(column)[order] for column in columns])


def settled(
    planned: TransactionPlan, found: Iterable[FoundRows], table: str, cleared: Sequence[Net] = ()
) -> Net | None:
    """Return the changes of a plan, given what each worker found for `planned.wanted`; None if there are none.

    `cleared` are the committed rows of a table that is cleared.

    Raises SessionError where a row is to be removed more often than it occurs, with the line of the statement.
    """
    parts = list(planned.inserted)
    diffs = [np.ones(len(columns[0]), np.int64) for columns in parts]
    pieces = list(found)
    for columns, counts in cleared:
        parts.append(columns)
        diffs.append(-counts)
    if planned.replaced is not None:
        for each in pieces:
            if len(each.place):
                parts.append((*_taken(planned.replaced, each.place), *each.values))
                diffs.append(-each.counts)
    if planned.removed:
        # In the order of `TransactionPlan.wanted`, so that `present` has the counts of these rows.
        columns = stacked([statement.columns for statement in planned.removed])
        present = np.zeros(len(columns[0]), np.int64)
        # A row lives on one worker. The others find that it occurs 0 times.
        for each in pieces:
            present += each.present
        if planned.replaced is not None:  # rows of these keys are removed already, so only inserted ones can be
            replaced = set(keys_of(planned.replaced))
            present[[key in replaced for key in keys_of(columns[: planned.keys])]] = 0
        _refuse_absent(planned, columns, present, table)
        parts.append(columns)
        diffs.append(np.full(len(columns[0]), -1, np.int64))
    if not parts:
        return None
    return Net(stacked(parts), np.concatenate(diffs))


def _refuse_absent(planned: TransactionPlan, columns: tuple[Column, ...], present: Column, table: str) -> None:
    """Raise SessionError where a row is removed more often than it occurs, counting those inserted beside it."""
    if (present > 0).all() and _are_distinct(columns):
        return  # each row is removed once, and is there
    removals = Counter(keys_of(columns))
    # Equal rows have equal counts, so it does not matter which one the dict has.
    occurs = dict(zip(keys_of(columns), present.tolist()))
    short = {row: times - occurs[row] for row, times in removals.items() if times > occurs[row]}
    if not short:
        return
    for part in planned.inserted:
        for row in keys_of(part):
            if row in short:
                short[row] -= 1
    missing = next((row for row, times in short.items() if times > 0), None)
    if missing is not None:
        origin = next(each.origin for each in planned.removed if missing in set(keys_of(each.columns)))
        raise SessionError(
            f"table {table!r} does not have the row {missing} that delete (at {origin}) is to remove: the changes of "
            "the transaction are discarded"
        )


def _are_distinct(rows: Sequence[Column]) -> bool:
    return len(_runs(rows)[1] if _are_sorted_fast(rows) else set(keys_of(rows))) == len(rows[0])


def keys_of(columns: Sequence[Column]) -> list[Key]:
    """Return the rows of columns as Python's values.

    >>> keys_of((np.array([1, 2]), np.array([3, 4])))
    [(1, 3), (2, 4)]
    """
    return list(zip(*map(items, columns)))


def _taken(columns: tuple[Column, ...], rows: Column) -> tuple[Column, ...]:
    return tuple(column[rows] for column in columns)


def in_total(columns: tuple[Column, ...], diffs: Column) -> tuple[tuple[Column, ...], Column]:
    """Return each of some rows once with the sum of its diffs, and none whose sum is 0. There is a row at least.

    >>> in_total((np.array([7, 8, 7, 8]),), np.array([1, 1, 1, -1]))
    ((array([7]),), array([2]))
    """
    order, starts = _runs(columns)
    sums = np.add.reduceat(diffs[order], starts)
    return _taken(columns, order[starts][sums != 0]), sums[sums != 0]


def stacked(parts: Sequence[tuple[Column, ...]]) -> tuple[Column, ...]:
    """Return parts of the same columns as one."""
    if len(parts) == 1:
        return parts[0]
    full = [part for part in parts if len(part[0])] or list(parts[:1])
    return tuple(np.concatenate(columns) for columns in zip(*full))
