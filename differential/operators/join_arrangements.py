"""Match the records of two arrangements that have equal keys.

Each new batch of one side meets those batches of the other side that had arrived before it. So every pair of updates
meets exactly once, when the later of the two arrives, and its output is at the lattice join of both times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from differential.arrangement.arranged import watcher
from differential.arrangement.core import ArrangementCore
from differential.data.codes import Codes
from differential.data.overflow import too_often
from differential.data.updates import Updates
from differential.kernels.compile import Batches
from differential.kernels.join import DONE, join as join_kernel
from differential.kernels.wide import Overflow
from differential.keys import described
from differential.operators.catching_up import CatchingUp
from differential.operators.histories import CodeWatchers, Product, products
from differential.trace.batch import Batch, table_of
from differential.trace.parts import first_wide_pair
from timely import Stream
from timely.errors import BuildError, DataError
from timely.lowlevel import (
    CLOSED,
    Antichain,
    Capability,
    InputPort,
    OperatorBuilder,
    OutputPort,
    Pipeline,
    as_columns,
    call,
    is_null,
)

ROWS_PER_BATCH = 1 << 18
"""An activation yields to other operators after about this many pairs."""

CUT = -2
"""The position after pairs that are many because histories are long: these are cut first."""

ROWS_PER_CALL = 1 << 8
"""About this many pairs take as long as a call that finds none."""


class Pairing(NamedTuple):
    """A batch of one side still to be matched with the other side's past, and a capability for the output."""

    capability: Capability
    new: Batch
    past: tuple[Batch, ...]
    new_is_left: bool
    following: Iterator[Product] | None = None
    """What is to be matched next with the same capability, if this is a part of two long histories."""


def join_arrangements(
    left: ArrangementCore[Any], right: ArrangementCore[Any], function: Callable[..., Any], *, name: str
) -> Stream:
    """Return the updates `function(*key, *left value, *right value)` for all pairs of records with equal keys."""
    if left.scope is not right.scope:
        raise BuildError(f"{name}: one side is in {left.scope}, the other in {right.scope}")
    if left.keys != right.keys:
        raise BuildError(f"{name}: the left key is {described(left.keys)}, the right one {described(right.keys)}")
    builder = OperatorBuilder(left.scope, name, static=True)
    first = builder.add_input(left.stream, Pipeline(), frontier=True, drains=True)
    second = builder.add_input(right.stream, Pipeline(), frontier=True, drains=True)
    output, stream = builder.add_output()
    # Only new batches produce output. Frontiers only allow compaction, so the operator looks at them when a batch
    # arrives, and when the worker has nothing else to do.
    builder.operator.waits = False
    joiner = Joiner(first, second, output, left, right, function)
    builder.build_from(joiner.run)
    left.scope.dataflow.when_complete(joiner.drop)
    return stream


class Joiner:
    """The operator: both sides, and the pairings left to do. The first of these is done up to `_position`."""

    def __init__(
        self,
        first: InputPort,
        second: InputPort,
        output: OutputPort,
        left: ArrangementCore[Any],
        right: ArrangementCore[Any],
        function: Callable[..., Any],
    ) -> None:
        self._output = output
        self._left = left
        self._right = right
        self._function = function
        self._mine = Side(first, left)
        self._theirs = Side(second, right)
        self._todo: deque[Pairing] = deque()
        self._position = 0
        self._products: Iterator[Product] | None = None
        self._are_unlike = False
        self._one_sided: tuple[int, ...] = ()
        self._report = self._note_unlike  # a bound method is a new object each time; this one is the comparison's key
        left.key.compare_with(right.key, self._report)
        self._refuse_unlike()
        self._catching_up = CatchingUp((first, second), self._compact)

    def run(self) -> None:
        self._refuse_unlike()
        mine, theirs = self._mine, self._theirs
        is_answered = self._answer(mine, theirs, True) or self._answer(theirs, mine, False)
        if not is_answered:
            self._take_in(mine, theirs, True)
            self._take_in(theirs, mine, False)
        # After both queues were taken: the frontier of an input that drains does not cover the messages in its queue.
        mine.compact(theirs.input)
        theirs.compact(mine.input)
        operator = self._output.operator
        operator.waits = False
        self._catching_up.expect()
        left = 0 if is_answered else ROWS_PER_BATCH
        while self._todo:
            if left <= 0:
                operator.resume_later()
                break
            if operator.must_wait():
                break
            left -= self._match()

    def drop(self) -> None:
        """Stop reading both traces."""
        self._left.key.stop_comparing(self._report)
        self._mine.drop()
        self._theirs.drop()

    def _note_unlike(self) -> None:
        # The dataflow of the arrangement that learns the kinds of its keys may be another one, which is not to blame.
        # Rows follow on some worker, and this operator receives them.
        self._are_unlike = True

    def _refuse_unlike(self) -> None:
        """Raise DataError if the keys are of different kinds, unless one side has nulls where the other has none."""
        if not self._are_unlike:
            return
        ours, theirs = self._left.key, self._right.key
        self._one_sided = ours.nulls_on_one_side(theirs)
        self._are_unlike = not self._one_sided
        if self._are_unlike:
            raise DataError(
                f"{self._output.operator}: the keys joined are of different kinds: {ours.describe()} on the left, "
                f"{theirs.describe()} on the right, so that none could ever be equal; convert one side, as "
                "typed(column, name) of differential.frames does"
            )

    def _nulls(self, keys: Codes) -> NDArray[np.bool_]:
        """Return for each row whether its key has a null in a column that has none on the other side.

        The code of a null is also that of a value of the other side, which is not equal to it.
        """
        found = np.zeros(len(keys), np.bool_)
        for side in (self._left, self._right):
            columns = side.key.decode(keys, len(keys))
            for position in self._one_sided:
                found |= is_null(columns[position])
        return found

    def _compact(self) -> bool:
        self._mine.compact(self._theirs.input)
        self._theirs.compact(self._mine.input)
        return self._mine.lags(self._theirs.input) or self._theirs.lags(self._mine.input)

    def _take_in(self, side: Side, other: Side, is_left: bool) -> None:
        """Pair each new batch of one side with the past of the other."""
        for time, message in side.input.drain():
            batch = cast(Batch, message)
            side.admit(batch)
            # Without the batches of the other side that have arrived and are not acknowledged: these are new, too, and
            # meet this one when they are taken in, since `acknowledge` below includes it in the past of its side.
            past = other.past()
            if past:
                self._todo.append(Pairing(Capability(self._output, time), batch, past, is_left))
        side.acknowledge()

    def _answer(self, side: Side, other: Side, is_left: bool) -> bool:
        """Do the same for one message while nothing is left to do: mostly its pairs are few, and emitted at once.

        Then no capability is held: the message itself is the right to send at its time in this activation.
        """
        if self._todo or len(side.input.queue) != 1 or other.input.queue:
            return False
        past = other.past()
        if past and self._output.operator.must_wait():
            return False
        only = side.input.take_only()
        assert only is not None
        time, batch = only[0], cast(Batch, only[1])
        side.admit(batch)
        if past:
            # Nothing was left to do, so `_position` is 0.
            pairs, position = self._matched(batch, past, other.table(past), is_left, is_whole=True)
            if pairs is not None:
                self._output.answer(time, cast(Any, pairs))
            if position != DONE:
                self._todo.append(Pairing(Capability(self._output, time), batch, past, is_left))
                self._go_on(position)
        side.acknowledge()
        other.acknowledge()  # its queue is empty, so all that its trace holds has arrived
        return True

    def _match(self) -> int:
        """Emit about a batch of pairs of the first pairing; return how many pairs take as long, at least."""
        pairing = self._todo[0]
        new, past, is_left = pairing.new, pairing.past, pairing.new_is_left
        pairs, position = self._matched(new, past, table_of(past), is_left, is_whole=pairing.following is None)
        if pairs is not None:
            self._output.give(pairing.capability, cast(Any, pairs))
        self._go_on(position)
        return ROWS_PER_CALL + (0 if pairs is None else len(pairs))

    def _go_on(self, position: int) -> None:
        """Go on with the first pairing at a position of it, or with what follows it."""
        self._position = max(position, 0)
        if position >= 0:
            return
        pairing = self._todo[0]
        following = pairing.following
        if position == CUT:
            following, self._products = self._products, None
        product = None if following is None else next(following, None)
        if product is None:
            self._todo.popleft().capability.drop()
        else:
            self._todo[0] = pairing._replace(new=product[0], past=product[1], following=following)

    def _matched(
        self, new: Batch, past: tuple[Batch, ...], table: Batches, new_is_left: bool, is_whole: bool
    ) -> tuple[Updates | None, int]:
        """Return about a batch of pairs from `_position` on, and where to go on: `DONE` if these were the last.

        It is `CUT` if there are many pairs because histories are long: none are returned, and `_products` is what to
        match instead. Histories that are not a `whole` were cut already. `table` is what kernels take for `past`.
        """
        try:
            keys, new_vals, past_vals, times, time_index, diffs, onward = join_kernel(
                table_of((new,)), self._position, ROWS_PER_BATCH, table
            )
        except Overflow as fault:
            raise self._too_often(fault.args[0], *(((new,), past) if new_is_left else (past, (new,)))) from None
        # Only at the beginning: the products stand for all pairs, so none of these may have been emitted.
        if onward >= 0 and is_whole and not self._position:
            mine, theirs = (self._left, self._right) if new_is_left else (self._right, self._left)
            watches = CodeWatchers(watcher(mine.key, mine.value), watcher(theirs.key, theirs.value))
            self._products = products(new, past, watches)
            if self._products is not None:
                return None, CUT
        length = len(keys)
        if not length:
            return None, onward
        left, right = self._left, self._right
        left_vals, right_vals = (new_vals, past_vals) if new_is_left else (past_vals, new_vals)
        if self._one_sided and (nulls := self._nulls(keys)).any():
            keys, left_vals, right_vals, time_index, diffs = [
                each[~nulls] if len(each) else each for each in (keys, left_vals, right_vals, time_index, diffs)
            ]
            length = len(keys)
            if not length:
                return None, onward
        columns = left.key.decode(keys, length)
        columns += left.value.decode(left_vals, length) + right.value.decode(right_vals, length)
        return Updates(as_columns(call(self._function, columns), length), times, time_index, diffs), onward

    def _too_often(self, key: int, left: tuple[Batch, ...], right: tuple[Batch, ...]) -> DataError:
        """Return the error for the first pair of records with that key that occurs too often."""
        time, *vals = first_wide_pair(key, *[[batch.columns.rows for batch in side] for side in (left, right)])
        encoders = self._left.key, self._left.value, self._right.value
        columns = [encoder.decode(np.array([code]), 1) for encoder, code in zip(encoders, (key, *vals))]
        shown = [each[: len(each) - encoder.hidden] for each, encoder in zip(columns, encoders)]
        return too_often(tuple(chain.from_iterable(shown)), time)


class Side:
    """One input of a join: its batches, and its trace as far as the batches have arrived.

    `acknowledged` is the upper of the trace when the operator last drained the input; at first, the least frontier. All
    batches up to it have arrived, because the operator that seals a batch adds it to the trace and to the queue in one
    activation; and no batch beyond it has arrived. The physical frontier of this reader stays at it. So no merge takes
    in a batch that has yet to arrive, which would then be matched twice or not at all.
    """

    def __init__(self, input: InputPort, arrangement: ArrangementCore[Any]) -> None:
        self.input = input
        self._trace = arrangement.reader()
        self.acknowledged = Antichain([arrangement.scope.minimum])
        self._promised = self._cut = CLOSED
        self._released = False

    def past(self) -> tuple[Batch, ...]:
        """Return the batches acknowledged so far, none if none has rows."""
        if self._released:
            return ()
        # Not all that the trace holds: what is beyond is in the queue, and meets the other side when it is taken in.
        batches = self._trace.batches_through(self.acknowledged)
        for batch in batches:
            if len(batch):
                return batches
        return ()

    def table(self, batches: tuple[Batch, ...]) -> Batches:
        """Return what `past` has returned as kernels take a table of it."""
        return self._trace.table(batches)

    def admit(self, batch: Batch) -> None:
        """Check that the past of this side does not hold a batch that arrives only now."""
        assert self._released or self.acknowledged.dominates(batch.lower), (
            f"{batch} comes after everything up to {self.acknowledged} was taken for the past of {self.input}"
        )

    def acknowledge(self) -> None:
        """Acknowledge everything that has been drained from the input."""
        if not self._released:
            self.acknowledged = self._trace.upper

    def compact(self, other: InputPort) -> None:
        """Allow compaction up to the other input's frontier, at or after which all times of its batches to come are."""
        if self._released:
            return
        frontier = other.frontier
        if frontier is self._promised and self.acknowledged is self._cut:
            return
        self._promised, self._cut = frontier, self.acknowledged
        if frontier:
            self._trace.set_logical_compaction(frontier)
            self._trace.set_physical_compaction(self.acknowledged)
        else:
            # No batch follows on the other side that would meet this past. Pairings left to do hold their batches.
            self.drop()

    def lags(self, other: InputPort) -> bool:
        """Return whether the trace may hold updates at a time that the other input has not passed."""
        return not self._released and not self.acknowledged.dominates(other.frontier)

    def drop(self) -> None:
        """Stop reading the trace."""
        if not self._released:
            self._released = True
            self._trace.drop()
