"""What neighbours have, as one value for each node."""

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
    """Return each node to which an edge leads from one of `nodes`, with the combination of what comes along them.

    That is `transmit`, combined where it is sent, and `aggregate` where it arrives, at each time.

    >>> edges, values = (np.array([0, 1]), np.array([2, 2])), (np.array([0, 1]), np.array([10, 20]))
    >>> example(lambda scope: Graph(scope.to_stream(edges)).reduce(scope.to_stream(values), np.maximum))
    [(2, 20)]
    """
    return aggregate(transmit(graph, nodes, combine=combine, along=along, name=name), combine, name=f"{name} at nodes")
