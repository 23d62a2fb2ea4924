"""Streams: what flows between operators of one scope. The methods are the table of contents of `operators/`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timely.dataflow.operators import (
    accumulate as _accumulate,
)
from timely.dataflow.operators import (
    aggregate as _aggregate,
)
from timely.dataflow.operators import (
    all_reduce as _all_reduce,
)
from timely.dataflow.operators import (
    branch as _branch,
)
from timely.dataflow.operators import (
    broadcast as _broadcast,
)
from timely.dataflow.operators import (
    capture as _capture,
)
from timely.dataflow.operators import (
    concat as _concat,
)
from timely.dataflow.operators import (
    count as _count,
)
from timely.dataflow.operators import (
    delay as _delay,
)
from timely.dataflow.operators import (
    enter as _enter,
)
from timely.dataflow.operators import (
    exchange as _exchange,
)
from timely.dataflow.operators import (
    feedback as _feedback,
)
from timely.dataflow.operators import (
    filter as _filter,
)
from timely.dataflow.operators import (
    flat_map as _flat_map,
)
from timely.dataflow.operators import (
    generic as _generic,
)
from timely.dataflow.operators import (
    inspect as _inspect,
)
from timely.dataflow.operators import (
    leave as _leave,
)
from timely.dataflow.operators import (
    map as _map,
)
from timely.dataflow.operators import (
    map_batch as _map_batch,
)
from timely.dataflow.operators import (
    ok_err as _ok_err,
)
from timely.dataflow.operators import (
    partition as _partition,
)
from timely.dataflow.operators import (
    probe as _probe,
)
from timely.dataflow.operators import (
    reclock as _reclock,
)
from timely.dataflow.operators import (
    state_machine as _state_machine,
)

if TYPE_CHECKING:
    from timely.dataflow.ports import Tee
    from timely.dataflow.scope import Scope


class Stream:
    """A stream of batches in a scope. Immutable; using it twice sends every batch to both uses."""

    __slots__ = ("location", "scope", "tee")

    def __init__(self, scope: Scope, location: int, tee: Tee) -> None:
        self.scope = scope
        self.location = location
        self.tee = tee

    def __repr__(self) -> str:
        return f"<stream in {self.scope}>"

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
