"""Vertex-oriented graph programs over timely streams: Naiad's GraphLINQ, on columns.

A stream of *nodes* has the columns (node, values of the node). A `Graph` has edges with the columns (source, target,
values of the edge). Nodes are whole numbers, preferably not much larger than the number of nodes; `renamed` assigns
such numbers to nodes with arbitrary names. The state of a node is on the worker that the node hashes to, in dense
arrays. Each operator makes a few NumPy calls per batch.

>>> edges = (np.array([1, 2, 5]), np.array([2, 3, 6]))
>>> example(lambda scope: weakly_connected_components(Graph(scope.to_stream(edges))))
[(1, 1), (2, 1), (3, 1), (5, 5), (6, 5)]
"""

from timely.graphlinq.algorithms.asp import landmark_distances
from timely.graphlinq.algorithms.pagerank import pagerank
from timely.graphlinq.algorithms.scc import strongly_connected_components
from timely.graphlinq.algorithms.wcc import weakly_connected_components
from timely.graphlinq.dense_renaming import dense_renaming, renamed
from timely.graphlinq.distinct_nodes import count_nodes, distinct_nodes
from timely.graphlinq.filter_by import filter_by
from timely.graphlinq.graph import Graph
from timely.graphlinq.graph_reduce import graph_reduce
from timely.graphlinq.node_aggregate import aggregate
from timely.graphlinq.node_join import node_join
from timely.graphlinq.pregel import pregel
from timely.graphlinq.run import Aggregator, Superstep, VertexProgram
from timely.graphlinq.state_machine import binary_state_machine, state_machine
from timely.graphlinq.transmit import graph_join, transmit

__all__ = [
    "Aggregator",
    "Graph",
    "Superstep",
    "VertexProgram",
    "aggregate",
    "binary_state_machine",
    "count_nodes",
    "dense_renaming",
    "distinct_nodes",
    "filter_by",
    "graph_join",
    "graph_reduce",
    "landmark_distances",
    "node_join",
    "pagerank",
    "pregel",
    "renamed",
    "state_machine",
    "strongly_connected_components",
    "transmit",
    "weakly_connected_components",
]
