"""One time after another: what all operators that remember something about nodes are made of.

Times are taken in lexicographic order: all rounds of an epoch's loops come before anything of the next epoch, though
the next epoch may be complete earlier. So what is remembered at a time is what all times before it left, whatever the
number of workers and whoever is slow. The order is a linear extension of the product order, and nothing that a time
results in comes lexicographically before it: so waiting for it ends.

Within a time, batches come in the order in which they arrived here, which from several workers is not always the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from timely import Broadcast, Capability, Columns, Exchange, OperatorBuilder, Pipeline, Stream, Time
from timely.data.container import Array, concatenate, of_columns

Pacts = Broadcast | Exchange | Pipeline

Given = tuple[Array, ...] | None
"""The columns of what came on an input at a time; None if nothing did."""


def by_node() -> Exchange:
    """Return the pact that brings each record to the worker that its first column hashes to.

    >>> example(lambda scope: scope.to_stream((np.array([1]), np.array([2]))).unary(by_node(), lambda input, output:
    ...     [output.give(right, batch) for right, batch in input]))
    [(1, 2)]
    """
    return Exchange(lambda node, *_: node)


def in_order(inputs: Sequence[tuple[Stream, Pacts]], compute: Callable[..., Given], name: str) -> Stream:
    """Return the stream of what `compute` gives, called once for each time at which something came, in their order.

    `compute` receives the columns of each input, or None, and returns columns, or None.

    >>> seen = []
    >>> def before(numbers):
    ...     seen.extend(numbers[0].tolist())
    ...     return (np.array([len(seen)]),)
    >>> example(lambda scope: in_order([(scope.to_stream(range(3)), Pipeline())], before, "before"))
    [3]
    """
    builder = OperatorBuilder(inputs[0][0].scope, name)
    ports = [builder.add_input(stream, pact, frontier=True, drains=True) for stream, pact in inputs]
    output, result = builder.add_output()
    waiting: dict[Time, tuple[Capability, list[list[Columns]]]] = {}

    def logic() -> None:
        for place, port in enumerate(ports):
            for capability, batch in port:
                if capability.time not in waiting:
                    waiting[capability.time] = capability.retain(), [[] for _ in ports]
                waiting[capability.time][1][place].append(Columns(of_columns(batch)))
        if not waiting:
            return
        fronts = [port.frontier.elements for port in ports]
        first = min((elements[0] for elements in fronts if elements), default=None)
        for time in sorted(waiting):
            if first is not None and first <= time:
                return
            held, given = waiting.pop(time)
            ports[0].handle(time)
            with held:
                columns = compute(*(concatenate(batches).columns if batches else None for batches in given))
                if columns is not None:
                    output.give(held, Columns(columns))

    builder.build(lambda _: logic)
    return result
