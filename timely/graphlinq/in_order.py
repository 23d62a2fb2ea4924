"""One time after another: the basis of all operators that keep state for nodes.

Times are processed in lexicographic order: all rounds of the loops of an epoch precede everything of the next epoch,
even if the next epoch is complete earlier. So the state at a time is what all earlier times have left, regardless of
the number of workers and their speed. The lexicographic order extends the product order, and nothing that a time
results in precedes it lexicographically. So waiting for this order always ends.

Within a time, batches keep the order in which they arrived on this worker, which is not always the same if they come
from several workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from timely import Broadcast, Capability, Columns, Exchange, OperatorBuilder, Pipeline, Stream, Time
from timely.lowlevel import Array, check_streams, concatenate, of_columns

Pacts = Broadcast | Exchange | Pipeline

Given = tuple[Array, ...] | None
"""The columns of all records that arrived on an input at a time; None if there were none."""


def by_node() -> Exchange:
    """Return the pact that sends each record to the worker that its first column hashes to.

    >>> example(lambda scope: scope.to_stream((np.array([1]), np.array([2]))).unary(by_node(), lambda input, output:
    ...     [output.give(right, batch) for right, batch in input]))
    [(1, 2)]
    """
    return Exchange(lambda node, *_: node)


def in_order(inputs: Sequence[tuple[Stream, Pacts]], compute: Callable[..., Given], name: str) -> Stream:
    """Return the stream of the results of `compute`, which is called once per time with input, in the order of times.

    `compute` receives the columns of each input, or None, and returns columns, or None.

    >>> seen = []
    >>> def before(numbers):
    ...     seen.extend(numbers[0].tolist())
    ...     return (np.array([len(seen)]),)
    >>> example(lambda scope: in_order([(scope.to_stream(range(3)), Pipeline())], before, "before"))
    [3]
    """
    for stream, _ in inputs:
        check_streams(name, stream=stream)
    builder = OperatorBuilder(inputs[0][0].scope, name)
    ports = [builder.add_input(stream, pact, frontier=True, drains=True) for stream, pact in inputs]
    output, result = builder.add_output()
    waiting: dict[Time, tuple[Capability, list[list[Columns]]]] = {}
    order: list[Time] = []  # a heap of the same times

    def logic() -> None:
        for place, port in enumerate(ports):
            for capability, batch in port:
                if capability.time not in waiting:
                    waiting[capability.time] = capability.retain(), [[] for _ in ports]
                    heappush(order, capability.time)
                waiting[capability.time][1][place].append(Columns(of_columns(batch)))
        if not waiting:
            return
        # Only now: a frontier may have passed times of messages that were still queued, all of which were taken above.
        fronts = [port.frontier.elements for port in ports]
        first = min((elements[0] for elements in fronts if elements), default=None)
        # Whatever arrives later is at or after an element of a frontier, hence lexicographically at or after the first
        # of all elements.
        while order and (first is None or order[0] < first):
            time = heappop(order)
            held, given = waiting.pop(time)
            ports[0].handle(time)
            with held:
                columns = compute(*(concatenate(batches).columns if batches else None for batches in given))
                if columns is not None:
                    output.give(held, Columns(columns))

    builder.build_from(logic)
    return result
