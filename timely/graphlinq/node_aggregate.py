"""One value for each node and time: the values of a node, combined."""

from __future__ import annotations

from timely import Columns, InputPort, Notificator, OutputPort, Stream, Time
from timely.data.container import Array, concatenate, of_columns
from timely.graphlinq.grouping import Combination, group_nodes
from timely.graphlinq.in_order import by_node
from timely.graphlinq.index import as_nodes


def aggregate(nodes: Stream, combine: Combination, *, name: str = "aggregate") -> Stream:
    """Return each node with the combination of its values at each time, on the worker that the node hashes to.

    `combine` is a ufunc, or one for each column of values. Values are combined batch by batch on each worker, sent, and
    combined again when the time is complete.

    >>> values = (np.array([7, 3, 7]), np.array([1, 5, 2]))
    >>> example(lambda scope: aggregate(scope.to_stream(values), np.add))
    [(3, 5), (7, 3)]
    """
    waiting: dict[Time, list[Columns]] = {}

    def local(node: Array, *values: Array) -> tuple[Array, ...]:
        found, totals = group_nodes(combine, as_nodes(node), values)
        return (found, *totals)

    def logic(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
        for capability, batch in input:
            waiting.setdefault(capability.time, []).append(Columns(of_columns(batch)))
            notificator.notify_at(capability)
        for time, due in notificator:
            assert due is not None
            output.give(due, Columns(local(*concatenate(waiting.pop(time)).columns)))

    first = nodes.map_batch(local, name=f"{name} locally")
    return first.unary_notify(by_node(), logic, name=name)
