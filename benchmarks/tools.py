"""Other Python tools for graphs, networkx and igraph: how each builds its graph from columns, and answers questions.

Both steps are timed apart, because a program that keeps its graph need not build it again after a change. Answers are
arrays: the smallest node of each node's component, the rank of each node, or distances from landmarks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.graphs import Ints

# One worker is measured, so a tool has one thread, too: igraph's others would only spin while they wait for a core.
os.environ.setdefault("OMP_NUM_THREADS", "1")

DAMPING = 0.85
LANDMARKS = 8
"""The nodes 0 to 7 are landmarks."""
UNREACHED = -1
PRECISION = 1e-10


@dataclass(frozen=True)
class Tool:
    """A library, called by its module: a function that builds a graph, and one that answers each question."""

    module: str
    build: Callable[[Ints, Ints, int, str], Any]
    """From sources, targets, number of nodes, and question."""
    answers: Mapping[str, Callable[[Any, int], NDArray[Any]]]
    """From the graph and its number of nodes, by question."""


def _networkx_graph(source: Ints, target: Ints, nodes: int, question: str) -> Any:
    import networkx

    graph = networkx.Graph() if question == "wcc" else networkx.DiGraph()
    graph.add_nodes_from(range(nodes))
    if question == "pagerank":
        edges, times = np.unique(source * nodes + target, return_counts=True)
        graph.add_weighted_edges_from(zip((edges // nodes).tolist(), (edges % nodes).tolist(), times.tolist()))
    else:
        graph.add_edges_from(zip(source.tolist(), target.tolist()))
    return graph


def _networkx_weak(graph: Any, nodes: int) -> Ints:
    import networkx

    return _smallest_of_sets(networkx.connected_components(graph), nodes)


def _networkx_strong(graph: Any, nodes: int) -> Ints:
    import networkx

    return _smallest_of_sets(networkx.strongly_connected_components(graph), nodes)


def _smallest_of_sets(components: Any, nodes: int) -> Ints:
    labels = np.arange(nodes)
    for component in components:
        labels[list(component)] = min(component)
    return labels


def _networkx_ranks(graph: Any, nodes: int) -> NDArray[Any]:
    import networkx

    ranks = networkx.pagerank(graph, alpha=DAMPING, tol=PRECISION, max_iter=200)
    return np.fromiter(map(ranks.__getitem__, range(nodes)), np.float64, nodes)


def _networkx_distances(graph: Any, nodes: int) -> Ints:
    import networkx

    distances = np.full((LANDMARKS, nodes), UNREACHED)
    for landmark in range(LANDMARKS):
        found = networkx.single_source_shortest_path_length(graph, landmark)
        distances[landmark, list(found)] = list(found.values())
    return distances


def _igraph_graph(source: Ints, target: Ints, nodes: int, question: str) -> Any:
    import igraph

    return igraph.Graph(nodes, np.column_stack((source, target)), directed=question != "wcc")


def _igraph_components(graph: Any, nodes: int) -> Ints:
    members = np.array(graph.connected_components().membership)
    _, first, which = np.unique(members, return_index=True, return_inverse=True)
    return first[which]


def _igraph_ranks(graph: Any, _: int) -> NDArray[Any]:
    return np.array(graph.pagerank(damping=DAMPING))


def _igraph_distances(graph: Any, _: int) -> Ints:
    distances = np.array(graph.distances(source=range(LANDMARKS)))
    return np.where(np.isfinite(distances), distances, UNREACHED).astype(np.int64)


NETWORKX = Tool(
    "networkx",
    _networkx_graph,
    {
        "wcc": _networkx_weak,
        "scc": _networkx_strong,
        "pagerank": _networkx_ranks,
        "landmarks": _networkx_distances,
    },
)
IGRAPH = Tool(
    "igraph",
    _igraph_graph,
    {
        "wcc": _igraph_components,
        "scc": _igraph_components,
        "pagerank": _igraph_ranks,
        "landmarks": _igraph_distances,
    },
)
TOOLS = (NETWORKX, IGRAPH)
