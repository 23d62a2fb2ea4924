"""Looking changes up in an arrangement as it was when they were made.

A prefix is an update that remembers its *initial* time: that of the change it began as. It sees of an arrangement the
updates at times before its initial time, or also those at that time itself, in a total order: the lexicographic order
of times, which extends their partial order. So of two changes, one of them sees the other, and never both.

- A prefix waits until the arrangement can show no more that it should see: until the least element, in lexicographic
  order, of the trace's upper, or of the frontier of the arrangement's stream, is beyond its initial time. A capability
  is held while it waits: for the least times of those that wait and no earlier one, or in a loop it would keep back
  the rounds of an earlier epoch, which a prefix of a later one waits for.
- Later updates may be in the trace already, and are not seen.
- The first coordinate of a prefix's time is that of its initial time, since what it sees is not later in it. Times are
  compacted up to `(a - 1, 0, ...)`, where a is the least first coordinate of prefixes waiting and still to come: that
  leaves every comparison with their initial times as it is. Within one value of the first coordinate (in a loop: within
  an epoch) nothing is compacted.

With times of one coordinate the initial time is the update's own. With more, it is carried along, in columns of its
own, the last ones (see `differential.delta`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from differential.arrangement import Arrangement
from differential.codes import Codes, Encoder
from differential.interning import hold_columns
from differential.kernels.times import minimal
from differential.keys import EVERY, described
from differential.operators.arrange import ByKey
from differential.operators.join_arrangements import ROWS_PER_BATCH
from differential.trace.batch import Batch
from differential.updates import Ints, Updates
from timely.dataflow.builder import OperatorBuilder
from timely.dataflow.capability import Capability
from timely.dataflow.pact import Pipeline
from timely.dataflow.ports import InputPort, OutputPort
from timely.dataflow.stream import Stream
from timely.errors import BuildError
from timely.order import Time
from timely.progress.antichain import Antichain


class Answer(Protocol):
    """What comes of looking some prefixes up, in pieces of bounded size."""

    def held_codes(self) -> Iterator[tuple[Encoder, Codes]]:
        """Yield the columns of codes that are needed until the last piece, and what they mean."""
        ...

    def pieces(self) -> Iterator[Updates]:
        """Yield the pieces; each may be empty."""
        ...


Ask = Callable[[Updates, Ints, tuple[Batch, ...]], Answer]
"""From prefixes, their initial times (a row each, or one for all) and the batches of a trace to the answer."""


class Waiting:
    """Prefixes that wait for an arrangement to be complete, and the right to answer them."""

    __slots__ = ("capability", "initial", "prefixes")

    def __init__(self, capability: Capability, prefixes: Updates, initial: Ints) -> None:
        self.capability = capability
        self.prefixes = prefixes
        self.initial = initial


def lookup(prefixes: Stream, keys: int, arrangement: Arrangement, ask: Ask, *, inclusive: bool, name: str) -> Stream:
    """Return the stream of answers to `prefixes`, whose first `keys` columns are looked up in `arrangement`."""
    if prefixes.scope is not arrangement.scope:
        raise BuildError(f"{name}: the prefixes are in {prefixes.scope}, the arrangement in {arrangement.scope}")
    if keys != arrangement.keys < EVERY:
        raise BuildError(
            f"{name}: the prefixes' key is {described(keys)}, the arrangement's {described(arrangement.keys)}"
        )
    builder = OperatorBuilder(prefixes.scope, name)
    first = builder.add_input(prefixes, ByKey(keys), frontier=True, drains=True)
    second = builder.add_input(arrangement.stream, Pipeline(), frontier=True, drains=True)
    output, stream = builder.add_output()
    lookup = Lookup(first, second, output, arrangement, ask, inclusive)
    builder.build(lambda _: lookup.run)
    prefixes.scope.dataflow.when_complete(lookup.drop)
    return stream


class Lookup:
    """The operator: what waits, and what is being answered."""

    def __init__(
        self,
        prefixes: InputPort,
        arranged: InputPort,
        output: OutputPort,
        arrangement: Arrangement,
        ask: Ask,
        inclusive: bool,
    ) -> None:
        self._prefixes = prefixes
        self._arranged = arranged
        self._output = output
        self._ask = ask
        self._inclusive = inclusive
        self._width = arrangement.scope.width
        self._trace = arrangement.reader()
        self._dataflow = arrangement.scope.dataflow
        self._is_released = False
        self._since = 0
        self._upper: Antichain | None = None
        self._waiting: list[Waiting] = []
        self._answering: deque[tuple[Capability, Answer, Iterator[Updates]]] = deque()
        hold_columns(prefixes.dataflow, self.held_codes)

    def held_codes(self) -> Iterator[tuple[Encoder, Codes]]:
        """Yield the columns of codes held between runs, and what they mean."""
        for _, answer, _ in self._answering:
            yield from answer.held_codes()

    def run(self) -> None:
        for time, batch in self._prefixes.drain():
            prefixes = cast(Updates, batch)
            self._hold(Capability(self._output, time), prefixes, initial_times(prefixes, self._width))
        for _ in self._arranged.drain():
            pass
        if self._waiting:
            # What was sealed in this step is in the trace, before the frontier has moved.
            self._admit(self._trace.upper.join(self._arranged.frontier))
        self._compact()
        if self._answering and not self._dataflow.holds_back(self._prefixes.operator):
            self._answer()
        self._prefixes.operator.waits = bool(self._waiting)

    def drop(self) -> None:
        """Stop reading the trace."""
        if not self._is_released:
            self._is_released = True
            self._trace.drop()

    def _hold(self, capability: Capability, prefixes: Updates, initial: Ints) -> None:
        """Let prefixes wait, with the right to send at their least times and no earlier one."""
        times, index = prefixes.times, prefixes.time_index
        if not len(index):
            capability.downgrade(tuple(times[0].tolist()))
            self._waiting.append(Waiting(capability, prefixes, initial))
            return
        used, number = np.unique(index, return_inverse=True)
        times = np.ascontiguousarray(times[used])
        assigned = np.zeros(len(times), np.bool_)
        for least in minimal(times):
            mine = (times >= least).all(axis=1) & ~assigned
            assigned |= mine
            rows = mine[number]
            self._waiting.append(
                Waiting(
                    capability.delayed(tuple(least.tolist())),
                    prefixes.take(rows),
                    initial[rows] if len(initial) > 1 else initial,
                )
            )
        capability.drop()

    def _admit(self, closed: Antichain) -> None:
        """Begin to answer the prefixes for which the arrangement is complete."""
        least = min(closed.elements) if closed.elements else None
        past: tuple[Batch, ...] | None = None
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            due = is_before(each.initial, least, or_at=not self._inclusive)
            if not due.any():
                self._waiting.append(each)
                continue
            capability, prefixes, initial = each.capability, each.prefixes, each.initial
            if not due.all():
                self._hold(capability.clone(), prefixes.take(~due), initial[~due])
                prefixes, initial = prefixes.take(due), initial[due]
            if past is None:
                past = tuple(batch for batch in self._trace.batches() if len(batch))
            if not past:
                capability.drop()
                continue
            answer = self._ask(prefixes, initial, past)
            self._answering.append((capability, answer, answer.pieces()))

    def _answer(self) -> None:
        """Send pieces, up to about a batch of rows, and come back for the rest."""
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
        if self._answering:
            self._dataflow.resume_later(self._prefixes.operator)

    def _compact(self) -> None:
        """Let the trace forget what no prefix, waiting or to come, can tell apart."""
        if self._is_released:
            return
        firsts = [time[0] for time in self._prefixes.frontier.elements]
        firsts += [int(each.initial[:, 0].min()) for each in self._waiting]
        if not firsts:
            self.drop()
            return
        since = max(min(firsts) - 1, 0)
        if since != self._since:
            self._since = since
            frontier = Antichain.of_minimal(((since, *(0,) * (self._width - 1)),))
            # An imported trace may have been compacted further than that already.
            if self._trace.since is None or self._trace.logical.dominates(frontier):
                self._trace.set_logical_compaction(frontier)
        upper = self._trace.upper
        if upper is not self._upper:
            self._upper = upper
            self._trace.set_physical_compaction(upper)


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
