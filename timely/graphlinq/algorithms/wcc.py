"""Weakly connected components: the smallest node of each spreads along all edges, in both directions."""

from __future__ import annotations

import numpy as np

from timely import Stream
from timely.graphlinq.graph import Graph, check_graph
from timely.graphlinq.run import VertexProgram

SMALLEST_NODE = VertexProgram(
    init=lambda node: node,
    message=lambda label: label,
    combine=np.minimum,
    update=lambda superstep, label, received: np.minimum(label, received),
)
"""The label of each node is the smallest node that reaches it, which may be itself."""


def weakly_connected_components(graph: Graph) -> Stream:
    """Return (node, smallest node of its component).

    >>> edges = (np.array([3, 5]), np.array([4, 4]))
    >>> example(lambda scope: weakly_connected_components(Graph(scope.to_stream(edges))))
    [(3, 3), (4, 3), (5, 3)]
    """
    check_graph("weakly_connected_components", graph)
    return graph.both_ways().pregel(SMALLEST_NODE, name="weakly_connected_components")
