"""A graph: a stream of edges, and an index of the edges on each worker.

Edges are columns (source, target, values of the edge, if any). An edge exists from its time on: what nodes send at a
time travels along all edges of that time and earlier ones. Edges are only added; for graphs that lose edges, see
`differential`.

A partition determines which worker has an edge. By *source*, all edges out of a node are on the worker that the node
hashes to, where its value is, too: a value is sent only to the workers of its neighbours. By *edge*, edges are spread
by both ends: a node with a large share of all edges does not overload one worker, but each value is sent to all
workers. In both cases values for the same neighbour can be combined before they are sent.

Each worker indexes its edges once for all operators, when their time is complete. `loaded` is a stream without any
messages; its frontier shows for which times the index is complete.
"""

from __future__ import annotations

from timely.graphlinq.core import GraphCore
from timely.graphlinq.graph_reduce import graph_reduce as _graph_reduce
from timely.graphlinq.pregel import pregel as _pregel
from timely.graphlinq.transmit import graph_join as _graph_join, transmit as _transmit
from timely.lowlevel import check_kind


class Graph(GraphCore):
    """A graph whose edges arrive on a stream.

    >>> edges = (np.array([0, 0, 1]), np.array([1, 2, 2]))
    >>> example(lambda scope: Graph(scope.to_stream(edges)).degrees())
    [(0, 2), (1, 1), (2, 0)]
    """

    # Along edges
    transmit = _transmit
    join = _graph_join
    reduce = _graph_reduce

    # Superstep by superstep
    pregel = _pregel


def check_graph(name: str, graph: object) -> None:
    """Raise BuildError unless an algorithm is given a graph."""
    check_kind(name, Graph, "a graph, such as Graph(edges)", graph=graph)
