"""The values of a node's neighbours, combined into one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timely import Stream
from timely.graphlinq.core import GraphCore
from timely.graphlinq.grouping import Combination
from timely.graphlinq.node_aggregate import aggregate
from timely.graphlinq.transmit import transmit


def graph_reduce(
    graph: GraphCore,
    nodes: Stream,
    combine: Combination,
    *,
    along: Callable[..., Any] | None = None,
    name: str = "graph_reduce",
) -> Stream:
    """Return each target of an edge out of `nodes`, with the combination of the values sent along these edges.

    That is `transmit`, combining values where they are sent, followed by `aggregate` where they arrive, at each time.

    >>> edges, values = (np.array([0, 1]), np.array([2, 2])), (np.array([0, 1]), np.array([10, 20]))
    >>> example(lambda scope: Graph(scope.to_stream(edges)).reduce(scope.to_stream(values), np.maximum))
    [(2, 20)]
    """
    return aggregate(transmit(graph, nodes, combine=combine, along=along, name=name), combine, name=f"{name} at nodes")
