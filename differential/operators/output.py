"""Read final answers out of a dataflow."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from differential.arrangement.core import C
from differential.data.codes import FLOAT_TYPES, AnyKind, kind_of, settled
from differential.data.negative import negative_count
from differential.data.pact import OfUpdates
from differential.data.updates import Updates, updates_of
from timely.errors import BuildError, DataError
from timely.lowlevel import (
    Antichain,
    Gather,
    LogicalType,
    Moment,
    OperatorBuilder,
    Time,
    as_column,
    as_time,
    float_codes,
)

Record = tuple[Any, ...]


class GatherUpdates(OfUpdates, Gather):
    """A pact: one worker receives all updates."""


class Output:
    """The changes of a collection, on one worker, as they become final.

    A change at time `t` can be read once the collection is final at `t`. Changes are consolidated, in the lexicographic
    order of their times. The other workers have no changes to read; `done` and the frontier are the same on all.

    Where times are totally ordered, reading refuses a record that occurs a negative number of times, unless the output
    is `signed`, for a difference of collections.

    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         session, words = new_input(scope)
    ...         counts = words.count().output()
    ...     for epoch, word in enumerate(["to", "be", "to"]):
    ...         session.insert(word)
    ...         session.advance_to(epoch + 1)
    ...         worker.step_while(lambda: counts.less_than(epoch + 1))
    ...         print(counts.changes())
    ...     session.close()
    ...     worker.step_while(lambda: not counts.done())
    ...     return counts.contents()
    >>> execute_directly(program)
    [(('to', 1), (0,), 1)]
    [(('be', 1), (1,), 1)]
    [(('to', 1), (2,), -1), (('to', 2), (2,), 1)]
    {('be', 1): 1, ('to', 2): 1}
    """

    def __init__(self, collection: C, worker: int, signed: bool, name: str) -> None:
        scope = collection.scope
        builder = OperatorBuilder(scope, name, static=True)
        self._input = builder.add_input(collection.stream, GatherUpdates(worker), frontier=True)
        self._waiting: dict[Time, dict[Record, int]] = {}
        self._contents: dict[Record, int] = {}
        self._kinds: tuple[AnyKind, ...] = ()
        self._has_plain_order = True
        self._width = scope.width
        self._is_signed = signed
        self._dataflow = scope.dataflow
        self._operator = builder.operator
        builder.operator.waits = False  # nothing happens when the frontier moves: who reads asks for it
        builder.build_from(self._gather)

    def changes(self) -> list[tuple[Record, Time, int]]:
        """Return the updates (record, time, diff) that have become final since the last call, of this or of `contents`.

        Raises BuildError where the dataflow is not built yet, as all methods but `done` do; OperatorError where a
        record occurs a negative number of times, and then no change counts as read.
        """
        frontier = self._frontier
        try:
            self._gather()
            passed = sorted(time for time in self._waiting if not frontier.admits(time))
            if self._width == 1 and not self._is_signed:
                self._refuse_negative(passed)  # before anything is taken out, so that the next call raises it again
        except DataError as error:
            raise self._operator.failure(error, self._input.time) from error
        result = []
        contents = self._contents
        for time in passed:
            updates = self._waiting.pop(time)
            for record, diff in sorted(updates.items()) if self._has_plain_order else in_order(updates, self._kinds):
                result.append((record, time, diff))
                contents[record] = diff = contents.get(record, 0) + diff
                if not diff:
                    del contents[record]
        return result

    def contents(self) -> dict[Record, int]:
        """Return the records of the collection and how often each occurs, after all changes that have become final.

        These changes then count as read: `changes` returns only later ones.
        """
        self.changes()
        return dict(self._contents)

    def records(self) -> list[tuple[Record, int]]:
        """Return what `contents` does as a list in the order of the records, NaN after other floats and nulls last.

        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         numbers = Collection.of(scope, np.array([np.nan, 2.0, np.inf])).output()
        ...     worker.step_while(lambda: not numbers.done())
        ...     return numbers.records()
        >>> execute_directly(program)
        [((2.0,), 1), ((inf,), 1), ((nan,), 1)]
        """
        contents = self.contents()
        return sorted(contents.items()) if self._has_plain_order else in_order(contents, self._kinds)

    def done(self) -> bool:
        """Return whether the collection is final at all times."""
        return self._dataflow.built and not self._input.frontier

    def less_than(self, time: Moment) -> bool:
        """Return whether the collection may still change before `time`."""
        frontier, at = self._frontier, as_time(time)
        if len(at) != self._width:
            raise BuildError(f"{at} is not a time of {self._operator}, whose times have {self._width} coordinate(s)")
        return frontier.less_than(at)

    def __repr__(self) -> str:
        state = f"frontier={self._input.frontier}" if self._dataflow.built else "not built"
        return f"Output({self._operator.name!r}, {state})"

    @property
    def _frontier(self) -> Antichain:
        if not self._dataflow.built:
            raise BuildError(self._dataflow.until_built("an output can be read"))
        return self._input.frontier

    def _check(self, updates: Updates) -> None:
        """Raise DataError where records are of other kinds than those before."""
        kinds = tuple([kind_of(column) for column in updates.columns])
        if kinds != self._kinds:
            if self._kinds and len(kinds) != len(self._kinds):
                raise DataError(
                    f"some records have {len(self._kinds)} column(s), others {len(kinds)}: all records of a collection "
                    "have the same number"
                )
            try:
                self._kinds = settled(self._kinds or kinds, kinds, "collection")
            except DataError as error:
                record, _, _ = next(updates.rows())
                raise DataError(f"{record!r:.80} is not like the records before it: {error}") from None
            self._has_plain_order = not any(kind in FLOAT_TYPES or isinstance(kind, LogicalType) for kind in kinds)

    def _refuse_negative(self, times: list[Time]) -> None:
        """Raise DataError where after the changes at `times` a record occurs a negative number of times."""
        counts: dict[Record, int] = {}
        for time in times:
            for record, diff in self._waiting[time].items():
                counts[record] = count = counts.get(record, self._contents.get(record, 0)) + diff
                if count < 0:
                    values = [np.fromiter((value,), object, 1) for value in record]
                    raise negative_count(values, count, time, may_be_signed=True)

    def _gather(self) -> None:
        for _, batch in self._input.drain():
            updates = updates_of(batch)
            self._check(updates)
            for record, time, diff in updates.rows():
                at = self._waiting.setdefault(time, {})
                at[record] = diff = at.get(record, 0) + diff
                if not diff:
                    del at[record]


def in_order(updates: dict[Record, int], kinds: tuple[AnyKind, ...]) -> list[tuple[Record, int]]:
    """Return updates in the order of their records, NaN after other floats and nulls last."""
    keys = list(zip(*map(_sortable, zip(*updates), kinds)))
    items = list(updates.items())
    return [items[row] for row in sorted(range(len(items)), key=keys.__getitem__)]


def _sortable(values: tuple[Any, ...], kind: AnyKind) -> list[Any]:
    """Return the values of a field as what orders as they do."""
    if isinstance(kind, LogicalType):
        return cast(list[Any], kind.store(values).tolist())
    return float_codes(as_column(list(values))).tolist() if kind in FLOAT_TYPES else list(values)


def output(collection: C, worker: int = 0, *, signed: bool = False, name: str = "output") -> Output:
    """Return a handle on `worker` to read the collection's final changes from.

    It makes Python objects for each update, so use it for answers, not for the data that they are computed from.
    `signed` is for a difference of collections, in which records may occur a negative number of times (see `Output`).

    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         answer = Collection.of(scope, np.array([3, 4])).count().output()
    ...     worker.step_while(lambda: not answer.done())
    ...     return answer.contents()
    >>> execute_directly(program)
    {(3, 1): 1, (4, 1): 1}
    """
    return Output(collection, worker, signed, name)
