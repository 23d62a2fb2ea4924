"""The answer of a job, gathered on worker 0 in columns.

`Output` makes Python objects of each update, which suits small answers. A job's answer may have a record for each of
millions of nodes, so its updates stay columns here: they are kept as they arrive, divided by epoch once they are final,
and added up when someone reads the whole answer or when they have become many.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from differential import Collection, Updates
from differential.data.overflow import too_often
from differential.jobs.job import Answer, Column
from differential.operators.output import GatherUpdates
from timely.lowlevel import OperatorBuilder, starts_of_runs, wrapped

WORKER = 0
"""The worker that receives the answer, and with it everything that a job prints or writes."""

LEAST = 1 << 16
"""Fewer rows than this are never added up before someone reads them."""


class Delta(NamedTuple):
    """What has changed in one epoch: distinct records, in columns and in order, and by how much each occurs more."""

    epoch: int
    columns: tuple[Column, ...]
    diffs: NDArray[np.int64]


class Gathered:
    """A collection on worker 0, in columns. The other workers receive nothing; `less_than` is the same on all.

    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         session, numbers = new_input(scope)
    ...         gathered = Gathered(numbers)
    ...     session.insert(np.array([3, 1, 3]))
    ...     session.advance_to(1)
    ...     session.remove(3)
    ...     session.close()
    ...     worker.step_while(lambda: not gathered.is_done)
    ...     print([(delta.epoch, delta.columns[0].tolist(), delta.diffs.tolist()) for delta in gathered.deltas(2)])
    ...     return gathered.answer()
    >>> execute_directly(program)
    [(0, [1, 3], [1, 2]), (1, [3], [-1])]
    Answer(columns=(array([1, 3]),), counts=array([1, 1]))
    """

    def __init__(self, collection: Collection, name: str = "answer") -> None:
        builder = OperatorBuilder(collection.scope, name, static=True)
        self._input = builder.add_input(collection.stream, GatherUpdates(WORKER), frontier=True)
        self._dataflow = collection.scope.dataflow
        self._arrived: list[Updates] = []
        self._final: list[Delta] = []
        self._rows = 0
        self._added_up = 0
        self.differences = 0
        """How many updates have arrived."""
        # Nothing happens when the frontier moves: whoever reads asks for it.
        builder.operator.waits = False
        builder.build_from(self._gather)

    @property
    def is_done(self) -> bool:
        """Whether the answer is final at all times."""
        return self._dataflow.built and not self._input.frontier

    def less_than(self, epoch: int) -> bool:
        """Return whether the answer may still change before `epoch`."""
        return self._input.frontier.less_than((epoch,))

    def deltas(self, end: int) -> list[Delta]:
        """Return the changes of each epoch before `end` since the last call; these epochs must be final."""
        arrived, self._arrived = self._arrived, []
        due: dict[int, list[Delta]] = {}
        for updates in arrived:
            for delta in _by_epoch(updates):
                due.setdefault(delta.epoch, []).append(delta)
        for epoch in [epoch for epoch in due if epoch >= end]:
            # Back into the form in which they arrived: the next call divides them again, with what arrives meanwhile.
            self._arrived += [Updates.at((epoch,), delta.columns, delta.diffs) for delta in due.pop(epoch)]
        deltas = [added_up(epoch, due[epoch]) for epoch in sorted(due)]
        self._final += deltas
        self._rows += sum(len(delta.diffs) for delta in deltas)
        # Only once the rows have doubled, so each row is sorted a few times in all, however many epochs there are.
        if self._rows > 2 * self._added_up + LEAST:
            self.answer()
        return deltas

    def answer(self) -> Answer:
        """Return the records of all epochs that `deltas` has returned, in order, and how often each occurs."""
        # Nothing can be added up of no deltas, whose columns are not known.
        if not self._final:
            return Answer((), np.zeros(0, np.int64))
        total = added_up(0, self._final)
        self._final, self._rows, self._added_up = [total], len(total.diffs), len(total.diffs)
        return Answer(total.columns, total.diffs)

    def _gather(self) -> None:
        for _, batch in self._input.drain():
            updates = cast(Updates, batch)
            if len(updates):
                self._arrived.append(updates)
                self.differences += len(updates)


def _by_epoch(updates: Updates) -> list[Delta]:
    diffs = updates.each_diff()
    if len(updates.times) == 1:
        return [Delta(int(updates.times[0, 0]), updates.columns, diffs)]
    each = updates.times[updates.time_index, 0]
    deltas = []
    for epoch in np.unique(each).tolist():
        rows = each == epoch
        deltas.append(Delta(epoch, tuple(column[rows] for column in updates.columns), diffs[rows]))
    return deltas


def added_up(epoch: int, deltas: list[Delta]) -> Delta:
    """Return the deltas as one, of distinct records in lexicographic order; records whose diffs cancel are left out."""
    columns = tuple(np.concatenate(parts) for parts in zip(*(delta.columns for delta in deltas)))
    diffs = np.concatenate([delta.diffs for delta in deltas])
    order = np.lexsort(columns[::-1]) if all(column.dtype.kind in "ifb" for column in columns) else _ordered(columns)
    columns, diffs = tuple(column[order] for column in columns), diffs[order]
    # Equal records are neighbours now, so each run of them is one record.
    starts = starts_of_runs(columns)
    sums = _sums(diffs, starts, columns) if len(starts) else diffs
    kept = starts[sums != 0]
    return Delta(epoch, tuple(column[kept] for column in columns), sums[sums != 0])


def _sums(diffs: NDArray[np.int64], starts: NDArray[np.int64], columns: tuple[Column, ...]) -> NDArray[np.int64]:
    """Return the sum of the diffs from each start on. Raises DataError for the record of one beyond 64 bits."""
    groups = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(diffs)))
    for start in starts[wrapped(np.add, groups, diffs, len(starts))].tolist():
        raise too_often([column[start : start + 1] for column in columns])
    return np.add.reduceat(diffs, starts)


def _ordered(columns: tuple[Column, ...]) -> NDArray[np.int64]:
    """Return the order of rows with text among their fields, which `lexsort` does not take."""
    rows = list(zip(*(column.tolist() for column in columns)))
    return np.array(sorted(range(len(rows)), key=rows.__getitem__), np.int64)
