"""Which times of a collection a watermark has passed.

A watermark is a time up to which a source is complete: the source has no more records before it. The watermark of
several sources is the least of theirs, and it only grows. A time enters the output in the epoch in which the watermark
reaches it. Until then the time waits in a heap, so the cost of an epoch depends only on the times that change or are
passed in it.

Each worker has the times of its keys, and every worker has all watermarks.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import heappop, heappush
from typing import Any, cast

import numpy as np

from differential.arguments import check_rows
from differential.arrangement.core import C
from differential.data.ticks import LARGEST, in_units, of_ticks, ticks
from differential.data.updates import Array, Updates
from differential.operators.consolidate import consolidate
from differential.operators.hold import by_time
from timely.errors import DataError
from timely.lowlevel import (
    Broadcast,
    CapabilitySet,
    InputPort,
    OperatorBuilder,
    OutputPort,
    Pipeline,
    Time,
    check_whole,
    refusal,
)


def passed(moments: C, watermarks: C, sources: int, *, name: str = "passed") -> C:
    """Return the records (time,) of `moments` that are at or before the least of `watermarks`.

    `moments` has one column of times: integers, dates or timestamps. `watermarks` has one record (source, watermark)
    for each source that has a watermark, which only a later one may replace. `sources` is the number of sources:
    nothing is passed before all of them have a watermark.

    Raises BuildError in a loop, and where `sources` is not a whole number of at least 1. A DataError ends the run where
    records have other columns, watermarks are not of the type of the times, one is null or goes back, or more than
    `sources` sources have one.

    >>> def program(scope):
    ...     ends = Collection.of(scope, np.array([10, 20, 30]))
    ...     return ends.passed(Collection.of(scope, np.array(["a", "b"]), np.array([25, 20])), 2)
    >>> example(program)
    [((10,), 1), ((20,), 1)]
    """
    check_rows(name, watermarks=watermarks)
    check_whole(name, 1, sources=sources)
    if moments.scope.width != 1:
        raise refusal(name, "a watermark grows from epoch to epoch, so it cannot be in a loop")
    builder = OperatorBuilder(moments.scope, name)
    first = builder.add_input(consolidate(moments).stream, Pipeline(), frontier=True, drains=True)
    second = builder.add_input(watermarks.stream, Broadcast(), frontier=True, drains=True)
    output, stream = builder.add_output()
    operator = Passing(first, second, output, sources, name)
    builder.build_from(operator.run)
    return moments.with_stream(stream)


class Passing:
    """The operator. Here an epoch is a timestamp, and a moment is one of the times in the records.

    Invariant: after the step of an epoch, while all sources have a watermark, the output has the moments up to
    `_passed`, and `_waiting` the others. A moment whose changes add up to nothing may still wait, with a count of 0.
    """

    def __init__(self, moments: InputPort, watermarks: InputPort, output: OutputPort, sources: int, name: str) -> None:
        self._moments = moments
        self._watermarks = watermarks
        self._output = output
        self._name = name
        self._held = CapabilitySet(output)
        self._batches: dict[Time, tuple[list[Updates], list[Updates]]] = defaultdict(lambda: ([], []))
        """The updates of moments and of watermarks in each epoch that is not complete."""
        self._number = sources
        self._sources: dict[Any, dict[Any, int]] = {}
        """The watermarks that each source has as of the last step, and how often. Several count as none (`_least`)."""
        self._latest: dict[Any, Any] = {}
        """The last watermark of each source, kept to refuse one that goes back."""
        self._passed: int | None = None
        """The least watermark as of the last step, in the unit of the moments; None if a source has none."""
        self._waiting: dict[int, int] = {}
        """How often each moment occurs that is not passed."""
        self._order: list[int] = []
        """The keys of `_waiting`, as a heap."""
        self._like: Array | None = None
        """An empty column of the type of the moments, once some have come."""

    def run(self) -> None:
        for place, input in enumerate((self._moments, self._watermarks)):
            for _, batch in input.drain():
                for time, updates in by_time(cast(Updates, batch)):
                    if time not in self._batches:
                        # In this activation the message permits its own time and all later ones, such as this.
                        self._held.hold(time)
                    self._batches[time][place].append(updates)
        # In order, because a step goes on from the state that the step of the epoch before has left.
        frontiers = self._moments.frontier, self._watermarks.frontier
        due = sorted(time for time in self._batches if not any(frontier.admits(time) for frontier in frontiers))
        for time in due:
            moments, watermarks = self._batches.pop(time)
            try:
                found = self._step(moments, watermarks)
            except DataError as error:
                raise DataError(f"{self._name}: {error}", time) from None
            if found is not None:
                self._output.give(self._held.covering(time), Updates.at(time, *found))
        if due:
            self._held.downgrade(list(self._batches))

    def _step(self, moments: list[Updates], watermarks: list[Updates]) -> tuple[tuple[Array, ...], Any] | None:
        """Take the changes of an epoch; return the changes of the output, or None if there are none."""
        self._take(watermarks)
        changed: dict[int, int] = {}
        for updates in moments:
            if len(updates.columns) != 1:
                raise DataError(
                    f"the times are one column, and records of {len(updates.columns)} columns are not times"
                )
            self._like = updates.columns[0][:0]
            for moment, diff in zip(ticks(updates.columns[0]).tolist(), updates.each_diff().tolist()):
                changed[moment] = changed.get(moment, 0) + diff
        if self._like is None:
            return None
        self._passed = self._least(self._like)
        found = {}
        for moment, diff in changed.items():
            # A moment that waits goes through the heap even if it is passed now: what it had before is counted there.
            if self._passed is not None and moment <= self._passed and moment not in self._waiting:
                found[moment] = diff
                continue
            if moment not in self._waiting:
                heappush(self._order, moment)
            self._waiting[moment] = self._waiting.get(moment, 0) + diff
        while self._passed is not None and self._order and self._order[0] <= self._passed:
            moment = heappop(self._order)
            found[moment] = found.get(moment, 0) + self._waiting.pop(moment)
        left = {moment: diff for moment, diff in found.items() if diff}
        if not left:
            return None
        return (of_ticks(np.array(list(left), np.int64), self._like),), np.array(list(left.values()), np.int64)

    def _take(self, watermarks: list[Updates]) -> None:
        """Take the changes of the watermarks in an epoch."""
        changed = set()
        for updates in watermarks:
            for record, _, diff in updates.rows():
                if len(record) != 2:
                    raise DataError(f"a watermark is a record (source, watermark), not {record!r:.80}")
                source, mark = record
                if mark is None:
                    raise DataError(f"the watermark of {source!r:.80} is null")
                marks = self._sources.setdefault(source, {})
                marks[mark] = marks.get(mark, 0) + diff
                if not marks[mark]:
                    del marks[mark]
                changed.add(source)
        for source in changed:
            marks = self._sources[source]
            if not marks:
                del self._sources[source]
            elif len(marks) == 1:
                (mark,) = marks
                before = self._latest.setdefault(source, mark)
                if type(mark) is type(before) and mark < before:
                    raise DataError(f"the watermark of {source!r:.80} goes back, from {before} to {mark}")
                self._latest[source] = mark
        if len(self._sources) > self._number:
            names = " and ".join(sorted(map(repr, self._sources)))
            raise DataError(f"{names:.200} have watermarks, which are more than sources={self._number}")

    def _least(self, like: Array) -> int | None:
        """Return the least watermark, in the unit of the times; None if a source has none."""
        marks = [list(each) for each in self._sources.values()]
        if len(marks) < self._number or any(len(each) != 1 for each in marks):
            return None
        dtype = np.asarray(like).dtype
        try:
            return min(_counted(each[0], dtype) for each in marks)
        except (TypeError, ValueError) as error:
            raise DataError(f"watermarks and times are of different types: {error}") from None


def _counted(mark: Any, dtype: np.dtype[Any]) -> int:
    """Return a watermark in the unit of a type, rounded down; if all times of the type are before it, the largest."""
    if dtype.kind != "M":
        if isinstance(mark, bool) or not isinstance(mark, int):
            raise TypeError(f"{mark!r} is not an integer")
        return mark
    if isinstance(mark, int):
        raise TypeError(f"{mark!r} is not a time")
    zone = getattr(mark, "tzinfo", None)
    plain = mark if zone is None else mark.replace(tzinfo=None)
    return max(-LARGEST, min(in_units(np.datetime64(plain), dtype)[0], LARGEST))
