"""One value for each node and time: the values of a node, combined."""

from __future__ import annotations

from timely import Columns, Stream
from timely.graphlinq.grouping import Combination, group_nodes
from timely.graphlinq.in_order import by_node
from timely.graphlinq.index import as_nodes
from timely.lowlevel import Array, check_streams, map_each_time


def aggregate(nodes: Stream, combine: Combination, *, name: str = "aggregate") -> Stream:
    """Return each node with the combination of its values at each time, on the worker that the node hashes to.

    `combine` is a ufunc, or one for each column of values. Values are combined batch by batch on each worker, sent, and
    combined again when the time is complete.

    >>> values = (np.array([7, 3, 7]), np.array([1, 5, 2]))
    >>> example(lambda scope: aggregate(scope.to_stream(values), np.add))
    [(3, 5), (7, 3)]
    """

    check_streams(name, nodes=nodes)

    def local(node: Array, *values: Array) -> tuple[Array, ...]:
        found, totals = group_nodes(combine, as_nodes(node), values)
        return (found, *totals)

    first = nodes.map_batch(local, name=f"{name} locally")
    return map_each_time(first, by_node(), lambda batch: Columns(local(*batch.columns)), name=name)
