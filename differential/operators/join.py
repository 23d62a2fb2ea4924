"""Match the records of two collections that have equal keys."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from differential.arrangement import Arrangement
from differential.kernels.join import join as join_kernel
from differential.keys import described
from differential.trace.batch import Batch, table_of
from differential.updates import Updates
from timely.container import as_columns
from timely.dataflow.builder import OperatorBuilder
from timely.dataflow.capability import Capability
from timely.dataflow.operator import Logic
from timely.dataflow.pact import Pipeline
from timely.dataflow.ports import InputPort
from timely.errors import BuildError, DataError
from timely.progress.antichain import Antichain

if TYPE_CHECKING:
    from differential.collection import Collection
    from timely.dataflow.stream import Stream


def join_map(
    left: Collection,
    right: Collection | Arrangement,
    function: Callable[..., Any],
    *,
    keys: int = 1,
    name: str = "join_map",
) -> Collection:
    """Return `function(*key, *left value, *right value)` for all pairs of records with equal keys.

    `function` receives whole columns, and the first `keys` columns it returns are the key of the result.

    >>> def grandchildren(scope):
    ...     parents = Collection.of(scope, np.array([1, 2, 2]), np.array([2, 3, 4]))
    ...     children = parents.map(lambda parent, child: (child, parent))
    ...     return children.join_map(parents, lambda middle, parent, child: (parent, child))
    >>> example(grandchildren)
    [((1, 3), 1), ((1, 4), 1)]
    """
    from differential.collection import Collection, arrangements

    first, second = arrangements(left, right)
    return Collection(join_arrangements(first, second, function, name=name), keys)


def join(left: Collection, right: Collection | Arrangement, *, name: str = "join") -> Collection:
    """Return the records (key, left value, right value) for all pairs of records with equal keys.

    >>> def program(scope):
    ...     ages = Collection.of(scope, np.array(["ann", "bob"]), np.array([30, 40]))
    ...     towns = Collection.of(scope, np.array(["ann"]), np.array(["Rome"]))
    ...     return ages.join(towns)
    >>> example(program)
    [(('ann', 30, 'Rome'), 1)]
    """
    return join_map(left, right, lambda *columns: columns, keys=left.keys, name=name)


def semijoin(collection: Collection, keys: Collection, *, name: str = "semijoin") -> Collection:
    """Return the records whose key is in `keys`, a collection of keys without values: as often as the key occurs there.

    >>> def program(scope):
    ...     edges = Collection.of(scope, np.array([1, 1, 2]), np.array([2, 3, 3]))
    ...     return edges.semijoin(Collection.of(scope, np.array([1])))
    >>> example(program)
    [((1, 2), 1), ((1, 3), 1)]
    """
    return join_map(collection, keys, lambda *columns: columns, keys=collection.keys, name=name)


def antijoin(collection: Collection, keys: Collection, *, name: str = "antijoin") -> Collection:
    """Return the records whose key is not in `keys`, a collection of distinct keys without values.

    >>> def program(scope):
    ...     edges = Collection.of(scope, np.array([1, 1, 2]), np.array([2, 3, 3]))
    ...     return edges.antijoin(Collection.of(scope, np.array([1])))
    >>> example(program)
    [((2, 3), 1)]
    """
    return collection.concat(semijoin(collection, keys, name=name).negate())


ROWS_PER_BATCH = 1 << 18
"""About how many pairs an activation produces before other operators get a turn."""


class Pairing(NamedTuple):
    """New batches of one side still to be matched with the other side's past, and the right to say what comes of it."""

    capability: Capability
    new: tuple[Batch, ...]
    past: tuple[Batch, ...]
    new_is_left: bool


def join_arrangements(left: Arrangement, right: Arrangement, function: Callable[..., Any], *, name: str) -> Stream:
    """Return the updates `function(*key, *left value, *right value)` for all pairs of records with equal keys.

    Each new batch of one side meets the other side's trace as of what that side had shown when the batch arrived; so
    every pair meets exactly once, at the lattice join of its times.
    """
    if left.scope is not right.scope:
        raise BuildError(f"{name}: one side is in {left.scope}, the other in {right.scope}")
    if left.keys != right.keys:
        raise BuildError(f"{name}: the left key is {described(left.keys)}, the right one {described(right.keys)}")
    builder = OperatorBuilder(left.scope, name)
    first = builder.add_input(left.stream, Pipeline(), frontier=True, drains=True)
    second = builder.add_input(right.stream, Pipeline(), frontier=True, drains=True)
    output, stream = builder.add_output()
    operator, dataflow = builder.operator, left.scope.dataflow
    # New batches are all there is to react to; frontiers only say what may be forgotten, and are looked at then.
    operator.waits = False
    mine, theirs = Side(first, left), Side(second, right)
    todo: deque[Pairing] = deque()
    position = 0

    def logic() -> None:
        nonlocal position
        for side, other, is_left in ((mine, theirs, True), (theirs, mine, False)):
            for time, batch in side.input.drain():
                side.admit(cast(Any, batch))
                past = other.past()
                if past:
                    todo.append(Pairing(Capability(output, time), (cast(Any, batch),), past, is_left))
            side.acknowledge()
        mine.compact(second)
        theirs.compact(first)
        if todo and not dataflow.holds_back(operator):
            _check_kinds(left, right)
            pairs, position = _matched(todo[0], position, left, right, function)
            if pairs is not None:
                output.give(todo[0].capability, cast(Any, pairs))
            if position < 0:
                todo.popleft().capability.drop()
                position = 0
            if todo:
                dataflow.resume_later(operator)

    def constructor(_: list[Capability]) -> Logic:
        return logic

    builder.build(constructor)
    dataflow.when_complete(mine.drop)
    dataflow.when_complete(theirs.drop)
    return stream


def _matched(
    pairing: Pairing, start: int, left: Arrangement, right: Arrangement, function: Callable[..., Any]
) -> tuple[Updates | None, int]:
    """Return what comes of up to a batch of pairs, and where to go on, or -1."""
    keys, new_vals, past_vals, times, time_index, diffs, onward = join_kernel(
        table_of(pairing.new), start, ROWS_PER_BATCH, table_of(pairing.past)
    )
    length = len(keys)
    if not length:
        return None, onward
    left_vals, right_vals = (new_vals, past_vals) if pairing.new_is_left else (past_vals, new_vals)
    columns = function(
        *left.key.decode(keys, length),
        *left.value.decode(left_vals, length),
        *right.value.decode(right_vals, length),
    )
    return Updates(as_columns(columns, length), times, time_index, diffs), onward


class Side:
    """One input of a join: its batches, and its trace up to what has been seen of it.

    `acknowledged` is the upper of the trace when the operator last looked; at first, the least frontier. All batches up
    to it have come in by the queue, for a batch enters the trace and the queue in the same activation of whoever seals
    it; and none has that comes later. So what the trace may merge, cut and compact for this reader never reaches a
    batch that is still on its way here, which would be matched twice or not at all.
    """

    def __init__(self, input: InputPort, arrangement: Arrangement) -> None:
        self.input = input
        self._trace = arrangement.reader()
        self.acknowledged = Antichain([arrangement.scope.minimum])
        self._released = False

    def past(self) -> tuple[Batch, ...]:
        """Return the batches acknowledged so far that hold anything."""
        if self._released:
            return ()
        return tuple(batch for batch in self._trace.batches_through(self.acknowledged) if len(batch))

    def admit(self, batch: Batch) -> None:
        """Check that the past of this side does not hold a batch that arrives only now."""
        assert self._released or self.acknowledged.dominates(batch.lower), (
            f"{batch} comes after everything up to {self.acknowledged} was taken for the past of {self.input}"
        )

    def acknowledge(self) -> None:
        """Take note of everything that has been drained from the input."""
        if not self._released:
            self.acknowledged = self._trace.upper

    def compact(self, other: InputPort) -> None:
        """Let the trace forget what no batch still to come on the other input can tell apart."""
        if self._released:
            return
        frontier = other.frontier
        if frontier:
            self._trace.set_logical_compaction(frontier)
            self._trace.set_physical_compaction(self.acknowledged)
        else:
            self.drop()

    def drop(self) -> None:
        """Stop reading the trace."""
        if not self._released:
            self._released = True
            self._trace.drop()


def _check_kinds(left: Arrangement, right: Arrangement) -> None:
    ours, theirs = left.key.kinds, right.key.kinds
    if ours is not None and theirs is not None and not left.key.agrees(right.key):
        raise DataError(
            f"the keys joined are of different kinds: {left.key.describe()} on the left, {right.key.describe()} on the "
            "right, so that none could ever be equal"
        )
