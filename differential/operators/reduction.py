"""Reduce the values of every key to others, and keep the result right as the input changes.

The result is itself arranged: operators that need it by key use it as it is. This module is the operator;
`differential.kernels.reduce_times` explains which times matter for a key, and why.

Built-in reductions run in one kernel call for each activation. A reduction written in Python is called once for each
round, with all groups that have an interesting time in it; mostly there is one round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

import numpy as np

from differential.arrangement.arrange import Sealer, new_trace
from differential.arrangement.core import ArrangementCore, C
from differential.data.codes import Codes, ColumnKind, Encoder
from differential.data.interning import hold_columns, interner_of
from differential.data.negative import negative_count, negative_total
from differential.data.overflow import named, naming, too_large
from differential.kernels.compile import Batches, Table, Times
from differential.kernels.reduce import reduce
from differential.kernels.reduce_fold import COUNT, DISTINCT, SUM, SUM_FLOAT
from differential.kernels.reduce_layers import PENDING_KEY, PENDING_TIME, PENDING_VAL
from differential.kernels.times import minimal
from differential.kernels.wide import Overflow
from differential.trace.batch import Batch, frontier_table, table_of
from differential.trace.batcher import Batcher
from differential.trace.columns import UpdateColumns
from differential.trace.cursor import accumulate
from differential.trace.handle import TraceHandle
from differential.trace.spine import Spine
from timely.errors import DataError
from timely.lowlevel import CLOSED, Antichain, InputPort, OperatorBuilder, Pipeline, Time

Pending = Table
"""Groups and the times at which they are to be reduced again.

A row is a key, a value (0 unless groups are by value), and the coordinates of the time.
"""


class GroupFault(Exception):
    """The values of a key (a code) have no reduction at a time.

    A record occurs a negative number of times, or the key has a negative number of records; or, for a reduction that
    `adds`, the sum does not fit into 64 bits. The last `hidden` columns of a record are not the program's.
    """

    def __init__(self, fault: Codes, by_value: bool = False, hidden: int = 0, kind: int = DISTINCT) -> None:
        """Take what a kernel returns: the key, the value if the reduction is by value, then the time."""
        key, *rest = fault.tolist()
        self.key: int = key
        self.time: Time = tuple(rest[by_value:])
        self.hidden = hidden
        self.counts = kind == COUNT
        self.adds = kind in (COUNT, SUM, SUM_FLOAT)


class Reduction(Protocol):
    """How one activation turns new batches and the past into updates of the output."""

    by_value: bool

    def __call__(
        self, new: Batches, pending: Pending, input: Batches, output: Batches, upper: Times
    ) -> tuple[list[UpdateColumns], Pending]: ...


def reduce_arrangement(
    source: ArrangementCore[C],
    make: Callable[[Encoder, Encoder, Encoder], Reduction],
    value_kinds: tuple[ColumnKind, ...] | None = None,
    *,
    name: str,
) -> ArrangementCore[C]:
    """Return the arrangement of the reduced values by the same keys.

    `make` receives the encoders of key, input value and output value, and returns the reduction.
    """
    scope = source.scope
    builder = OperatorBuilder(scope, name, static=True)
    input = builder.add_input(source.stream, Pipeline(), frontier=True, drains=True)
    output, stream = builder.add_output()
    value = Encoder(interner_of(scope.dataflow.host), "value", value_kinds)
    spine = new_trace(output, source.key, value)
    sealer = Sealer(output, spine)
    reducer = Reducer(input, source, spine, sealer, make(source.key, source.value, value), value)
    builder.build_from(reducer.run, naming(source.key, source.value, sealer.held, input))
    scope.dataflow.when_complete(reducer.drop)
    return source.derived(stream, TraceHandle(spine), value)


class Reducer:
    """The operator.

    Invariant: at every time not in advance of the `upper` of the last run, the output's trace is the reduction of the
    input's. Each pending time, and each of a new batch, is in advance of that `upper`, and of a capability held. While
    none of these is due there is nothing to do. New batches wait until then: before, more may arrive at their times,
    and all their rows would only become pending.
    """

    def __init__(
        self,
        input: InputPort,
        source: ArrangementCore[Any],
        spine: Spine,
        sealer: Sealer,
        reduction: Reduction,
        value: Encoder,
    ) -> None:
        self._input = input
        self._source = source.reader()
        self._written = TraceHandle(spine)
        self._batcher = Batcher(spine.depth)
        self._sealer = sealer
        self._reduction = reduction
        self._new: list[Batch] = []
        self._pending: Pending = np.empty((0, PENDING_TIME + spine.depth), np.int64)
        self._meanings = source.key, source.value, value
        hold_columns(input.dataflow, self.held_codes)

    def held_codes(self) -> list[tuple[Encoder, Codes]]:
        """Return the columns of codes held between runs, and what they mean."""
        # Not those of the batches that wait: the trace that they come from has announced their columns.
        key, value, result = self._meanings
        held: list[tuple[Encoder, Codes]] = [(key, self._pending[:, PENDING_KEY].copy())]
        if self._reduction.by_value:
            held.append((value, self._pending[:, PENDING_VAL].copy()))
        for keys, vals in self._batcher.columns():
            held += [(key, keys), (result, vals)]
        return held

    def run(self) -> None:
        held = self._sealer.held
        only = None if len(held) else self._input.take_only()
        if only is not None:
            self._answer(only[0], only[1])
            self._input.operator.waits = bool(held)
            return
        for time, batch in self._input.drain():
            held.hold(time)
            self._new.append(cast(Batch, batch))
        upper = self._closed()  # after the queue: the frontier of an input that drains does not cover it
        if held.is_any_due(upper):
            for chunk in self._reduced(upper):
                self._batcher.push_columns(chunk)
            self._seal(upper)
            self._source.allow_compaction(upper)
            self._written.allow_compaction(upper)
        self._input.operator.waits = bool(held)

    def _answer(self, time: Time, message: object) -> None:
        """Do the same for one message while nothing is held: mostly what it changes is final, and is the answer.

        Then no capability is held: the message itself is the right to send at its time in this activation.
        """
        self._new.append(cast(Batch, message))
        upper = self._closed()
        if upper.admits(time):  # more may arrive at this time
            self._sealer.held.hold(time)
            return
        chunks = self._reduced(upper)
        is_final = not len(self._pending)
        # No capability is held, so the batcher is empty, and what is sealed already may pass it by.
        if is_final and len(chunks) == 1 and chunks[0].is_sealed and not upper.admits(chunks[0].time()):
            self._sealer.answer(time, self._batcher.sealed(chunks[0], upper))
        elif chunks or not is_final:
            self._sealer.held.hold(time)
            for chunk in chunks:
                self._batcher.push_columns(chunk)
            chunks.clear()  # sealing frees each part once it is packed
            self._seal(upper)
        self._source.allow_compaction(upper)
        self._written.allow_compaction(upper)

    def _closed(self) -> Antichain:
        """Return the frontier up to which everything has arrived.

        The operator that seals appends a batch to the trace and to our queue in one step, so every batch below the
        trace's upper has arrived. That upper lags where nothing was sealed; the input's own frontier does not.
        """
        return self._source.upper.join(self._input.frontier)

    def _seal(self, upper: Antichain) -> None:
        """Seal what is not in advance of `upper`; hold capabilities for what is left, and for what is pending."""
        # A pending time may be one at which the batcher holds nothing, and what is emitted there needs a capability.
        least = CLOSED
        if len(self._pending):
            least = Antichain(map(tuple, minimal(self._pending[:, PENDING_TIME:].copy()).tolist()))
        self._sealer.seal(self._batcher, upper, least)

    def drop(self) -> None:
        """Stop reading."""
        self._source.drop()
        self._written.drop()

    def _reduced(self, upper: Antichain) -> list[UpdateColumns]:
        """Reduce the new batches; return the updates that this emits."""
        try:
            # The source's trace already holds the new batches, because they are added to it before they are sent.
            chunks, self._pending = self._reduction(
                table_of(self._new),
                self._pending,
                self._source.table(self._source.batches()),
                self._written.table(self._written.batches()),
                frontier_table(upper, self._batcher.depth),
            )
        except GroupFault as fault:
            raise self._named(fault) from None
        self._new.clear()
        return chunks

    def _named(self, fault: GroupFault) -> DataError:
        """Return the error that names a record at fault."""
        key, value, _ = self._meanings
        try:
            keys, vals, counts = accumulate(self._source.batches(), fault.time)
        except Overflow as overflow:
            return named(overflow, key, value, fault.time)
        if fault.counts and -1 << 63 <= (total := sum(counts[keys == fault.key].tolist())) < 0:
            return negative_total(key.decode(np.array([fault.key]), 1), total, fault.time)
        row = np.flatnonzero((keys == fault.key) & (counts < 0))[:1]
        if fault.adds or not len(row):
            return too_large(key.decode(np.array([fault.key]), 1), fault.time)
        columns = (*key.decode(keys[row], 1), *value.decode(vals[row], 1))
        return negative_count(columns[: len(columns) - fault.hidden], int(counts[row[0]]), fault.time)


class BuiltIn:
    """A reduction that runs wholly in a kernel."""

    def __init__(self, kind: int, parameter: int) -> None:
        self._kind = kind
        self._parameter = parameter
        self.by_value = kind == DISTINCT

    def __call__(
        self, new: Batches, pending: Pending, input: Batches, output: Batches, upper: Times
    ) -> tuple[list[UpdateColumns], Pending]:
        block, rows, times, is_sealed, pending, fault = reduce(
            self._kind, self._parameter, new, pending, input, output, upper
        )
        if len(fault):
            raise GroupFault(fault, self.by_value, kind=self._kind)
        chunks = []
        if rows:
            columns = UpdateColumns(rows, times, pending.shape[1] - PENDING_TIME, block, None)
            columns.is_sealed = is_sealed
            chunks.append(columns)
        return chunks, pending
