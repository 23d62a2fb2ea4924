"""Vertex-oriented graph programs over timely streams: Naiad's GraphLINQ, on columns.

A stream of *nodes* has columns (node, values of the node); a `Graph` has edges (source, target, values of the edge).
Nodes are whole numbers, best not much larger than there are nodes. What belongs to a node is on the worker that the
node hashes to, in dense arrays; each operator makes a few NumPy calls a batch.

>>> edges = (np.array([1, 2, 5]), np.array([2, 3, 6]))
>>> example(lambda scope: weakly_connected_components(Graph(scope.to_stream(edges))))
[(1, 1), (2, 1), (3, 1), (5, 5), (6, 5)]
"""

from timely.graphlinq.algorithms.asp import approximate_shortest_paths
from timely.graphlinq.algorithms.pagerank import pagerank
from timely.graphlinq.algorithms.scc import strongly_connected_components
from timely.graphlinq.algorithms.wcc import weakly_connected_components
from timely.graphlinq.graph import Graph
from timely.graphlinq.node_aggregate import aggregate
from timely.graphlinq.pregel import pregel
from timely.graphlinq.run import Aggregator, Superstep

__all__ = [
    "Aggregator",
    "Graph",
    "Superstep",
    "aggregate",
    "approximate_shortest_paths",
    "pagerank",
    "pregel",
    "strongly_connected_components",
    "weakly_connected_components",
]
