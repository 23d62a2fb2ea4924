"""Index a collection by key."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from differential.arrangement.arranged import Arranged, watcher
from differential.data.codes import Codes, Encoder
from differential.data.interning import hold_columns, interner_of
from differential.data.overflow import named, naming
from differential.data.pact import Parts, Spreading, hash_of_keys
from differential.data.updates import Updates, updates_of
from differential.kernels.route import partition
from differential.kernels.wide import Overflow
from differential.keys import EVERY, described
from differential.trace.batch import Batch
from differential.trace.batcher import NOT_DUE, Batcher
from differential.trace.columns import FEW
from differential.trace.handle import TraceHandle
from differential.trace.log import log_trace
from differential.trace.spine import Spine
from differential.trace.storage import Storage
from timely import Stream
from timely.errors import DataError, TimelyError
from timely.lowlevel import (
    CLOSED,
    Antichain,
    CapabilitySet,
    InputPort,
    OperatorBuilder,
    OperatorCore,
    OutputPort,
    Time,
    destinations,
    scatter,
)


class ByKey(Spreading):
    """A pact: each update goes to the worker that its key's hash names."""

    def __init__(self, keys: int) -> None:
        super().__init__()
        self.name = f"by {described(keys)}"
        self._keys = keys

    def spread(self, updates: Updates, peers: int) -> Parts:
        keys = updates.columns[: self._keys]
        if len(keys) == 1 and keys[0].dtype == np.int64:
            return _spread(updates, keys[0], peers)
        return scatter(updates, destinations(hash_of_keys(keys), peers))


def _spread(batch: Updates, keys: Codes, peers: int) -> Parts:
    """Yield what `scatter` does, for a key of one column of integers."""
    order, offsets = partition(keys if keys.flags.carray else keys.copy(), peers)
    bounds = offsets.tolist()
    for worker in range(peers):
        first, last = bounds[worker], bounds[worker + 1]
        if last - first == len(batch):
            yield worker, batch
        elif last > first:
            yield worker, batch.take(order[first:last])


def arrange(updates: Stream, keys: int, *, name: str = "arrange") -> Arranged:
    """Return the updates of a collection, indexed by its first `keys` columns (see `Collection.arrange_by_key`)."""
    scope = updates.scope
    builder = OperatorBuilder(scope, name, cancels=True, static=True)
    input = builder.add_input(updates, ByKey(keys), frontier=True, drains=True)
    output, stream = builder.add_output()
    interner = interner_of(scope.dataflow.host)
    key, value = Encoder(interner, "key"), Encoder(interner, "value")
    spine = new_trace(output, key, value)
    writer = Arranger(input, output, spine, key, value, keys)
    builder.build_from(writer.run, naming(key, value, writer.held, input))
    return Arranged(stream, TraceHandle(spine), key, value, keys)


def new_trace(output: OutputPort, key: Encoder, value: Encoder) -> Spine:
    """Return an empty trace for the operator with that output, which writes codes of `key` and `value`.

    Its times are those of the operator's scope; its batches are in memory or in files, as the worker is configured. The
    worker logs what happens to the trace, and keeps it tidy.
    """
    spine = Spine(output.operator.scope.width, Storage.of(output.dataflow.host.config))
    # Before the first batch: the interner knows which codes are in use from the batches that the spine announces.
    spine.watch = watcher(key, value)
    log_trace(spine, output)
    Upkeep(spine, output, key, value)
    return spine


class Upkeep:
    """Keeps a trace tidy in steps of the worker that run no operator. Its errors name the operator that writes it."""

    def __init__(self, spine: Spine, output: OutputPort, key: Encoder, value: Encoder) -> None:
        self._trace: tuple[Spine, Encoder, Encoder] | None = (spine, key, value)
        self._host = output.dataflow.host
        self._operator: OperatorCore | None = output.operator
        spine.wake, spine.rest = self._wake, self._rest
        output.dataflow.when_complete(self._part)

    def _wake(self) -> None:
        self._host.when_idle(self._tend)

    def _tend(self) -> bool:
        if self._trace is None:
            return False
        spine, key, value = self._trace
        try:
            return spine.tend()
        except Overflow as fault:
            raise self._named(named(fault, key, value)) from None
        except TimelyError as error:
            raise self._named(error) from error

    def _named(self, error: TimelyError) -> TimelyError:
        return error if self._operator is None else self._operator.failure(error, None)

    def _part(self) -> None:
        """Keep no reference to a dataflow that is complete: readers of the trace may outlive it."""
        self._operator = None

    def _rest(self) -> None:
        """Keep no reference to a trace without readers: a worker that is never idle does not call `_tend`."""
        self._trace = None


class Arranger:
    """Gathers updates, and seals them into batches as the input frontier passes their times.

    It holds capabilities for the least times gathered, an antichain. When the frontier moves, each capability that it
    has passed carries one batch: the updates at its time or later that the frontier has passed and no capability before
    it has carried. So all epochs that complete their fourth round of a loop together leave in one batch.
    """

    def __init__(
        self, input: InputPort, output: OutputPort, spine: Spine, key: Encoder, value: Encoder, keys: int
    ) -> None:
        self._input = input
        self._key = key
        self._value = value
        self._keys = keys
        self._batcher = Batcher(spine.depth)
        self._sealer = Sealer(output, spine)
        self.held = self._sealer.held
        self._interner = key.interner
        hold_columns(input.dataflow, self.held_codes)

    def held_codes(self) -> list[tuple[Encoder, Codes]]:
        """Return the columns of codes held between runs, and what they mean."""
        held: list[tuple[Encoder, Codes]] = []
        for keys, vals in self._batcher.columns():
            held += [(self._key, keys), (self._value, vals)]
        return held

    def run(self) -> None:
        # Before a message is taken: all codes are in columns that the interner knows, so a collection may begin.
        if self._interner.has_work:
            self._interner.collect()
        # The operator waits exactly while it holds a capability, without which nothing is gathered.
        only = None if self._input.operator.waits else self._input.take_only()
        if only is not None:
            self._answer(only[0], only[1])
            return
        # First: the frontier of an input that drains does not cover the messages in its queue.
        self._gather()
        self._sealer.seal(self._batcher, self._input.frontier)
        self._input.operator.waits = bool(self._sealer.held)

    def _gather(self) -> None:
        """Move the messages into the batcher."""
        # No reference to a message outlives its turn of the loop: sealing frees each part once it is packed.
        held = self._sealer.held
        for time, batch in self._input.drain():
            updates = updates_of(batch)
            codes = self._encoded(updates)
            if codes is not None:
                held.hold(time)
                self._batcher.push(*codes, updates.times, updates.time_index, updates.diffs)

    def _answer(self, time: Time, message: object) -> None:
        """Do the same for one message while nothing is gathered: mostly it is complete, and its batch is the answer.

        Then no capability is held: the message itself is the right to send at its time in this activation.
        """
        updates, frontier = updates_of(message), self._input.frontier
        codes = self._encoded(updates)
        if codes is not None:
            keys, vals = codes
            if len(keys) <= FEW and not len(updates.time_index):
                # No capability is held, so the batcher is empty (`Sealer`).
                due = self._batcher.seal_at_once(keys, vals, updates.times, updates.diffs, frontier)
                if due is not NOT_DUE:
                    if due is not None:
                        self._sealer.answer(time, due)
                    return
            self._sealer.held.hold(time)
            self._batcher.push(keys, vals, updates.times, updates.time_index, updates.diffs)
            del updates, message, codes, keys, vals  # sealing frees each part once it is packed
            self._sealer.seal(self._batcher, frontier)
        self._input.operator.waits = bool(self._sealer.held)

    def _encoded(self, updates: Updates) -> tuple[Codes, Codes] | None:
        """Return the codes of keys and values, or None where only the kinds of columns are to be learned."""
        columns, keys, hidden = updates.columns, self._keys, self._value.hidden
        if len(columns) - hidden < keys < EVERY:
            raise DataError(f"a record has {len(columns) - hidden} column(s), but its key has {keys}")
        if not len(updates):  # other workers have the rows, this one learns their kinds
            self._key.learn(columns[:keys])
            self._value.learn(columns[keys:])
            return None
        return self._key.encode(columns[:keys]), self._value.encode(columns[keys:])


class Sealer:
    """Seals the updates of a batcher into batches: for the trace and, with a capability each, for the output.

    Invariant: every update that the batcher holds is in advance of a capability held. The upper of the trace is the
    frontier of the last batch. It lags where nothing was sealed, and the next batch then covers the whole interval.
    """

    def __init__(self, output: OutputPort, spine: Spine) -> None:
        self._output = output
        self._spine = spine
        self.held = CapabilitySet(output)

    def answer(self, time: Time, batch: Batch) -> None:
        """Add the batch, and send it at the time of a message that was taken in this activation."""
        self._output.answer(time, cast(Any, self._spine.insert(batch)))

    def seal(self, batcher: Batcher, frontier: Antichain, pending: Antichain = CLOSED) -> None:
        """Seal everything not in advance of `frontier`; hold capabilities for what is left, and for `pending` times."""
        # Every update is in advance of a held time, so if the frontier has passed none of these, nothing is due.
        passed = [time for time in self.held.times if not frontier.admits(time)]
        if not passed:
            return
        if len(batcher):
            for position, time in enumerate(passed):
                # Each update goes with the last passed time that it is in advance of: for those before, it is not due.
                upper = Antichain((*frontier, *passed[position + 1 :])) if position + 1 < len(passed) else frontier
                batch = batcher.seal(upper)
                if batch is not None:
                    # Readers of the stream share the batch with the trace, and find it there when they receive it.
                    batch = self._spine.insert(batch)
                    self._output.give(self.held[time], cast(Any, batch))
        # Also after no batch: what was gathered may have cancelled, and would hold the frontier back for nothing.
        self.held.downgrade(batcher.frontier().meet(pending))
