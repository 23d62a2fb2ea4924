"""Look changes up in arrangements as these were when the changes were made.

A prefix is an update that carries its *initial* time: that of the change it began as. In an arrangement it sees the
updates at times before its initial time, or also those at that time, in a total order: the lexicographic order of
times, which extends their partial order. So of two changes exactly one sees the other.

- A prefix waits until no arrangement can receive more updates that it sees: until the lexicographically least element
  of the trace's upper, joined with the frontier of the arrangement's stream, is beyond its initial time. While prefixes
  wait, the operator holds capabilities for their least times and no earlier ones. An earlier one would hold back the
  rounds of an earlier epoch of a loop, for which a prefix of a later epoch waits.
- Later updates may be in the trace already, and are not seen.
- The first coordinate of a prefix's time is that of its initial time, since nothing that it sees is later in it. Times
  are compacted up to `(a - 1, 0, ...)`, where a is the least first coordinate of prefixes waiting and still to come:
  that leaves every comparison with their initial times as it is. Within one value of the first coordinate (in a loop:
  within an epoch) nothing is compacted.

With times of one coordinate the initial time is the update's own. With more, it is carried along, in columns of its
own, the last ones (see `differential.delta`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from differential.collection import Arrangement
from differential.data.codes import Codes, Encoder
from differential.data.interning import hold_columns
from differential.data.updates import Ints, Updates
from differential.kernels.times import minimal
from differential.keys import EVERY, described
from differential.operators.catching_up import CatchingUp
from differential.operators.join_arrangements import ROWS_PER_BATCH
from differential.trace.batch import Batch
from differential.trace.reader import TraceReader
from timely import Stream
from timely.errors import BuildError
from timely.lowlevel import Antichain, Capability, InputPort, OperatorBuilder, OutputPort, Pact, Pipeline, Time


class LookupAnswer(Protocol):
    """The result of looking some prefixes up, in pieces of bounded size."""

    def held_codes(self) -> list[tuple[Encoder, Codes]]:
        """Return the columns of codes that are needed until the last piece, and what they mean."""

    def pieces(self) -> Iterator[Updates]:
        """Yield the pieces. An empty one stands for as much work as a large one: other operators run after it."""


Past = tuple[Batch, ...]
"""The batches of a trace that have rows."""

Ask = Callable[[Updates, Ints, list[Past]], LookupAnswer]
"""From prefixes, their initial times (a row each, or one for all) and the past of each arrangement to the answer."""


WaitingPrefixes = tuple[Capability, Updates, Ints]
"""Prefixes that wait for an arrangement to be complete, with a capability for the answer and their initial times."""


class Reading:
    """An arrangement that is read, and whether prefixes see the updates at their initial times."""

    __slots__ = ("input", "is_inclusive", "trace", "upper")

    def __init__(self, input: InputPort, trace: TraceReader, is_inclusive: bool) -> None:
        self.input = input
        self.trace = trace
        self.is_inclusive = is_inclusive
        self.upper: Antichain | None = None

    def least_to_come(self) -> Time | None:
        """Return the lexicographically least time at which the trace may receive updates, None if it is complete."""
        # The trace is complete below either frontier: a batch enters it before the stream's frontier moves, and the
        # upper of its batches lags where nothing was sealed.
        closed = self.trace.upper.join(self.input.frontier)
        return min(closed.elements) if closed.elements else None


def lookup(
    prefixes: Stream, pact: Pact, arrangements: Sequence[tuple[Arrangement, bool]], ask: Ask, *, name: str
) -> Stream:
    """Return the stream of answers to `prefixes`, which `pact` sends to the workers that hold what they look up.

    Each arrangement is paired with whether prefixes see its updates at their initial times.
    """
    # In a loop, prefixes wait for all rounds of earlier epochs, and a region runs rounds, not epochs, in order.
    builder = OperatorBuilder(prefixes.scope, name, static=prefixes.scope.width == 1)
    first = builder.add_input(prefixes, pact, frontier=True, drains=True)
    read = []
    for arrangement, is_inclusive in arrangements:
        if prefixes.scope is not arrangement.scope:
            raise BuildError(f"{name}: the prefixes are in {prefixes.scope}, the arrangement in {arrangement.scope}")
        input = builder.add_input(arrangement.stream, Pipeline(), frontier=True, drains=True)
        read.append(Reading(input, arrangement.reader(), is_inclusive))
    output, stream = builder.add_output()
    lookup = Lookup(first, read, output, ask, arrangements[0][0])
    builder.build_from(lookup.run)
    prefixes.scope.dataflow.when_complete(lookup.drop)
    return stream


def refuse_other_keys(name: str, keys: int, arrangement: Arrangement) -> None:
    """Raise BuildError where prefixes with `keys` columns as key cannot be looked up in an arrangement."""
    if keys != arrangement.keys < EVERY:
        raise BuildError(
            f"{name}: the prefixes' key is {described(keys)}, the arrangement's {described(arrangement.keys)}"
        )


class Lookup:
    """The operator: what waits, and what is being answered."""

    def __init__(
        self, prefixes: InputPort, read: list[Reading], output: OutputPort, ask: Ask, arrangement: Arrangement
    ) -> None:
        self._prefixes = prefixes
        self._read = read
        self._output = output
        self._ask = ask
        self._width = arrangement.scope.width
        self._arrangement = arrangement
        self._interner = arrangement.key.interner
        self._dataflow = prefixes.dataflow
        self._is_released = False
        self._since = 0
        self._waiting: list[WaitingPrefixes] = []
        self._answering: deque[tuple[Capability, LookupAnswer, Iterator[Updates]]] = deque()
        self._catching_up = CatchingUp((prefixes, *[reading.input for reading in read]), self._catch_up)
        hold_columns(prefixes.dataflow, self.held_codes)

    def held_codes(self) -> list[tuple[Encoder, Codes]]:
        """Return the columns of codes held between runs, and what they mean."""
        return [held for _, answer, _ in self._answering for held in answer.held_codes()]

    def run(self) -> None:
        for time, batch in self._prefixes.drain():
            prefixes = cast(Updates, batch)
            if not len(prefixes):  # other workers have the prefixes, this one learns their kinds
                self._arrangement.key.learn(prefixes.columns[: self._arrangement.keys])
                continue
            self._hold(Capability(self._output, time), prefixes, initial_times(prefixes, self._width))
        # Prefixes that wait are columns, and answers list their codes: a collection may begin.
        self._interner.collect()
        # The traces have these batches already, so the messages themselves are not needed.
        for reading in self._read:
            for _ in reading.input.drain():
                pass
        if self._waiting:
            self._admit()
        self._compact()
        if self._answering and not self._prefixes.operator.must_wait():
            self._answer()
        self._prefixes.operator.waits = bool(self._waiting)
        self._catching_up.expect()

    def drop(self) -> None:
        """Stop reading the traces."""
        if not self._is_released:
            self._is_released = True
            for reading in self._read:
                reading.trace.drop()

    def _hold(self, capability: Capability, prefixes: Updates, initial: Ints) -> None:
        """Let prefixes wait, with capabilities for their least times and no earlier ones."""
        times, index = prefixes.times, prefixes.time_index
        if not len(index):
            capability.downgrade(tuple(times[0].tolist()))
            self._waiting.append((capability, prefixes, initial))
            return
        used, number = np.unique(index, return_inverse=True)
        times = np.ascontiguousarray(times[used])
        assigned = np.zeros(len(times), np.bool_)
        # Each time goes with one of the least times at or before it, so that a capability for that permits it.
        for least in minimal(times):
            mine = (times >= least).all(axis=1) & ~assigned
            assigned |= mine
            rows = mine[number]
            part = initial[rows] if len(initial) > 1 else initial
            self._waiting.append((capability.delayed(tuple(least.tolist())), prefixes.take(rows), part))
        capability.drop()

    def _admit(self) -> None:
        """Begin to answer the prefixes for which all arrangements are complete."""
        pasts: list[Past] | None = None
        waiting, self._waiting = self._waiting, []
        closed = [reading.least_to_come() for reading in self._read]
        for capability, prefixes, initial in waiting:
            due = self._is_due(initial, closed)
            if not due.any():
                self._waiting.append((capability, prefixes, initial))
                continue
            if not due.all():
                # Some are due and others are not, so `initial` has a row for each prefix.
                self._hold(capability.clone(), prefixes.take(~due), initial[~due])
                prefixes, initial = prefixes.take(due), initial[due]
            if pasts is None:
                pasts = [tuple([batch for batch in reading.trace.batches() if len(batch)]) for reading in self._read]
            if not all(pasts):  # a result needs a record of every arrangement
                capability.drop()
                continue
            answer = self._ask(prefixes, initial, pasts)
            self._answering.append((capability, answer, answer.pieces()))

    def _is_due(self, initial: Ints, closed: list[Time | None]) -> NDArray[np.bool_]:
        """Return for which initial times all arrangements are complete; updates to come are at `closed` or later."""
        due = is_before(initial, closed[0], or_at=not self._read[0].is_inclusive)
        for reading, least in zip(self._read[1:], closed[1:]):
            due = due & is_before(initial, least, or_at=not reading.is_inclusive)
        return due

    def _answer(self) -> None:
        """Emit pieces, up to about a batch of rows or as much work, and resume later for the rest."""
        rows = 0
        while self._answering and rows < ROWS_PER_BATCH:
            capability, _, pieces = self._answering[0]
            piece = next(pieces, None)
            if piece is None:
                capability.drop()
                self._answering.popleft()
            elif len(piece):
                self._output.give(capability, piece)
                rows += len(piece)
            else:
                break
        if self._answering:
            self._prefixes.operator.resume_later()

    def _catch_up(self) -> bool:
        """Compact; return whether a trace may hold updates at times that prefixes to come need not tell apart."""
        self._compact()
        if self._is_released:
            return False
        uppers = [reading.trace.upper.elements for reading in self._read]
        return any(not upper or upper[0][0] > self._since + 1 for upper in uppers)

    def _compact(self) -> None:
        """Allow compaction of what no prefix, waiting or to come, can tell apart."""
        if self._is_released:
            return
        # Answers under way do not count: they hold the batches that they read.
        firsts = [time[0] for time in self._prefixes.frontier.elements]
        firsts += [int(initial[:, 0].min()) for _, _, initial in self._waiting]
        if not firsts:
            self.drop()
            return
        since = max(min(firsts) - 1, 0)
        has_moved = since != self._since
        self._since = since
        for reading in self._read:
            trace = reading.trace
            if has_moved:
                frontier = Antichain.of_minimal(((since, *(0,) * (self._width - 1)),))
                trace.set_logical_compaction(frontier)
            upper = trace.upper
            if upper is not reading.upper:
                reading.upper = upper
                # Whole traces are read, so no batch needs to be kept apart from others.
                trace.set_physical_compaction(upper)


def initial_times(prefixes: Updates, width: int) -> Ints:
    """Return the initial times of prefixes: a row for each, or one for all."""
    if width == 1:
        return prefixes.times[prefixes.time_index] if len(prefixes.time_index) else prefixes.times
    initial = np.column_stack(prefixes.columns[-width:]).astype(np.int64)
    return initial[:1] if (initial == initial[0]).all() else initial


def is_before(times: Ints, bound: Time | None, *, or_at: bool) -> NDArray[np.bool_]:
    """Return which rows of `times` are lexicographically before `bound`, None being after everything."""
    if bound is None:
        return np.ones(len(times), np.bool_)
    if len(bound) == 1:
        return times[:, 0] <= bound[0] if or_at else times[:, 0] < bound[0]
    before = np.zeros(len(times), np.bool_)
    same = np.ones(len(times), np.bool_)
    for coordinate, limit in zip(times.T, bound):
        before |= same & (coordinate < limit)
        same &= coordinate == limit
    return before | same if or_at else before
