"""PageRank: how often a walk along edges, that now and then jumps to any node, is at each node."""

from __future__ import annotations

import numpy as np

from timely import Stream
from timely.container import Array
from timely.graphlinq.graph import Graph
from timely.graphlinq.run import Aggregator, Superstep


def pagerank(graph: Graph, *, damping: float = 0.85, supersteps: int = 20, tolerance: float | None = None) -> Stream:
    """Return (node, rank) after so many supersteps, scaled so that the mean of all ranks is 1.

    A walk at a node without edges out of it jumps to any node. With `tolerance`, the run is over as soon as the ranks
    change by less than so much, all nodes taken together. Multiple edges count as often as they are there.

    >>> edges = (np.array([0, 1]), np.array([2, 2]))
    >>> example(lambda scope: pagerank(Graph(scope.to_stream(edges))).map(lambda node, rank: (node, rank.round(3))))
    [(0, 0.638), (1, 0.638), (2, 1.723)]
    """

    def update(superstep: Superstep, rank: Array, degree: Array, change: Array, received: Array) -> tuple[Array, ...]:
        told = superstep.aggregates
        new = 1 - damping + damping * (received + told["lost"] / told["nodes"])
        return new, degree, abs(new - rank)

    return graph.pregel(
        graph.degrees(),
        init=lambda node, degree: (1.0, degree, 1.0),
        message=lambda rank, degree, change: rank / np.maximum(degree, 1),
        combine=np.add,
        update=update,
        everyone=True,
        aggregators={
            "lost": Aggregator(np.add, lambda rank, degree, change: np.where(degree == 0, rank, 0.0)),
            "nodes": Aggregator(np.add, lambda rank, degree, change: 1),
            "change": Aggregator(np.add, lambda rank, degree, change: change),
        },
        until=None if tolerance is None else lambda superstep: superstep.aggregates["change"] < tolerance,
        supersteps=supersteps,
        name="pagerank",
    ).map(lambda node, rank, degree, change: (node, rank), name="ranks")
