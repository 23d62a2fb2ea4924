"""Graph algorithms, each a definition over the public operators.

A graph is a collection of edges (source, target); a node is an integer (or text) at the end of an edge.
"""

from differential.graphs.bfs import bfs
from differential.graphs.components import connected_components
from differential.graphs.propagate import propagate
from differential.graphs.reachability import reachability
from differential.graphs.strong_components import cyclic_edges, strongly_connected_components

__all__ = [
    "bfs",
    "connected_components",
    "cyclic_edges",
    "propagate",
    "reachability",
    "strongly_connected_components",
]
