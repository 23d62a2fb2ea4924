"""Streams and scopes as programs use them: a table of contents of `operators/`.

The two are defined together, for each leads to the other: a scope begins streams, and a stream is in a scope.
"""

from __future__ import annotations

from timely.dataflow.operators import (
    accumulate as _accumulate,
    aggregate as _aggregate,
    all_reduce as _all_reduce,
    branch as _branch,
    broadcast as _broadcast,
    capture as _capture,
    concat as _concat,
    count as _count,
    delay as _delay,
    empty as _empty,
    enter as _enter,
    exchange as _exchange,
    feedback as _feedback,
    filter as _filter,
    flat_map as _flat_map,
    generic as _generic,
    inspect as _inspect,
    iterator_source as _iterator_source,
    leave as _leave,
    map as _map,
    map_batch as _map_batch,
    ok_err as _ok_err,
    partition as _partition,
    probe as _probe,
    reclock as _reclock,
    state_machine as _state_machine,
    to_stream as _to_stream,
)
from timely.dataflow.streams import ScopeCore, StreamCore
from timely.dataflow.tee import Tee


class Stream(StreamCore):
    """A stream of batches in a scope. Immutable; using it twice sends every batch to both uses."""

    __slots__ = ()

    scope: Scope

    # Record by record
    map = _map.map
    map_batch = _map_batch.map_batch
    flat_map = _flat_map.flat_map
    filter = _filter.filter
    inspect = _inspect.inspect
    inspect_batch = _inspect.inspect_batch
    inspect_time = _inspect.inspect_time

    # Into several streams
    partition = _partition.partition
    branch = _branch.branch
    branch_when = _branch.branch_when
    ok_err = _ok_err.ok_err

    # Time by time
    accumulate = _accumulate.accumulate
    count = _count.count
    aggregate = _aggregate.aggregate
    combine = _aggregate.combine
    combine_everywhere = _aggregate.combine_everywhere
    all_reduce = _all_reduce.all_reduce
    all_reduce_by_tree = _all_reduce.all_reduce_by_tree
    state_machine = _state_machine.state_machine
    delay = _delay.delay
    reclock = _reclock.reclock

    # Between streams and workers
    concat = _concat.concat
    exchange = _exchange.exchange
    broadcast = _broadcast.broadcast

    # Loops
    enter = _enter.enter
    leave = _leave.leave
    connect_loop = _feedback.connect_loop

    # Progress
    probe = _probe.probe
    probe_with = _probe.probe_with

    # Out of the dataflow
    capture_into = _capture.capture_into

    # Anything else
    unary = _generic.unary
    unary_frontier = _generic.unary_frontier
    binary = _generic.binary
    binary_frontier = _generic.binary_frontier
    unary_notify = _generic.unary_notify
    binary_notify = _generic.binary_notify
    sink = _generic.sink


class Scope(ScopeCore[Stream]):
    """A scope of a dataflow; made by `Worker.dataflow`, `Scope.iterative` and `Scope.region`.

    >>> def program(worker):
    ...     with worker.dataflow("counting") as scope:
    ...         with scope.region("cleaning") as cleaning:
    ...             print(cleaning, cleaning.is_within(scope))
    >>> execute_directly(program)
    scope 'counting/cleaning' True
    """

    # Into the dataflow
    to_stream = _to_stream.to_stream
    iterator_source = _iterator_source.iterator_source
    empty = _empty.empty

    # Loops
    feedback = _feedback.feedback
    loop_variable = _feedback.loop_variable

    def stream(self, location: int, tee: Tee) -> Stream:
        return Stream(self, location, tee)
