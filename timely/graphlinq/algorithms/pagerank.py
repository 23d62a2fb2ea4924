"""PageRank: how often a random walk along edges, which sometimes jumps to any node, visits each node."""

from __future__ import annotations

from numbers import Real

import numpy as np

from timely import Stream
from timely.errors import DataError
from timely.graphlinq.graph import Graph, check_graph
from timely.graphlinq.node_aggregate import aggregate
from timely.graphlinq.run import Aggregator, Superstep, VertexProgram
from timely.lowlevel import Array, check_streams, check_whole, refusal


def pagerank(
    graph: Graph,
    *,
    damping: float = 0.85,
    rounds: int = 20,
    personalisation: Stream | None = None,
    tolerance: float | None = None,
) -> Stream:
    """Return (node, rank) after `rounds` rounds, scaled so that the mean of all ranks is 1.

    In each round a node sends the share `damping` of its rank along its edges, in equal parts; the rest jumps. A jump
    leads to every node with the same probability. With `personalisation`, a stream of (node, weight) at the times at
    which edges arrive, it leads to each node in proportion to its weight. A node without outgoing edges lets all of its
    rank jump. Weights of the same node are added, and weights of nodes without edges are ignored; if no node has a
    weight, the rank that jumps is lost. Multiple edges count as often as they occur. With a `tolerance`, as a share of
    the mean rank, the run ends as soon as the ranks of all nodes together change by less than this.

    Raises DataError if a weight is negative or not a number, and BuildError unless 0 <= `damping` < 1, `tolerance` is
    a number of at least 0 or None, and `rounds` is a whole number of at least 0.

    >>> edges = (np.array([0, 1]), np.array([2, 2]))
    >>> example(lambda scope: pagerank(Graph(scope.to_stream(edges))).map(lambda node, rank: (node, rank.round(3))))
    [(0, 0.638), (1, 0.638), (2, 1.723)]
    >>> def from_one(scope):
    ...     weights = scope.to_stream((np.array([1]), np.array([1])))
    ...     ranks = pagerank(Graph(scope.to_stream(edges)), personalisation=weights)
    ...     return ranks.map(lambda node, rank: (node, rank.round(3)))
    >>> example(from_one)
    [(0, 0.0), (1, 1.636), (2, 1.364)]
    """

    check_graph("pagerank", graph)
    if not isinstance(damping, Real) or not 0 <= damping < 1:
        raise refusal("pagerank", f"`damping` must be a number of at least 0 and less than 1, not {damping!r:.80}")
    check_whole("pagerank", 0, rounds=rounds)
    if personalisation is not None:
        check_streams("pagerank", personalisation=personalisation)
    if tolerance is not None and not (isinstance(tolerance, Real) and tolerance >= 0):
        raise refusal("pagerank", f"`tolerance` must be a number of at least 0, or None, not {tolerance!r:.80}")

    def update(
        superstep: Superstep, rank: Array, degree: Array, weight: Array, change: Array, received: Array
    ) -> tuple[Array, ...]:
        total = superstep.aggregates
        # All rank starts as the number of nodes. Of it the share 1 - damping jumps, and all of that of nodes without
        # edges.
        jumping = (1 - damping) * total["nodes"] + damping * total["lost"]
        new = weight * (jumping / total["weight"] if total["weight"] else 0.0) + damping * received
        return new, degree, weight, abs(new - rank)

    return graph.pregel(
        VertexProgram(
            init=lambda node, degree, weight: (1.0, degree, weight, 1.0),
            message=lambda rank, degree, weight, change: rank / np.maximum(degree, 1),
            combine=np.add,
            update=update,
            everyone=True,
            aggregators={
                "lost": Aggregator(np.add, lambda rank, degree, weight, change: np.where(degree == 0, rank, 0.0)),
                "nodes": Aggregator(np.add, lambda rank, degree, weight, change: 1),
                "weight": Aggregator(np.add, lambda rank, degree, weight, change: weight),
                "change": Aggregator(np.add, lambda rank, degree, weight, change: change),
            },
            until=None if tolerance is None else lambda superstep: superstep.aggregates["change"] < tolerance,
            supersteps=rounds,
        ),
        graph.degrees().map(lambda node, degree: (node, degree, 1.0), name="weights")
        if personalisation is None
        else _with_weights(graph, personalisation),
        name="pagerank",
    ).map(lambda node, rank, degree, weight, change: (node, rank), name="ranks")


def _with_weights(graph: Graph, personalisation: Stream) -> Stream:
    """Return (node, degree, weight) for every node of the graph; nodes without a weight have 0."""
    given = personalisation.map(_weighed, name="weights")
    ends = graph.degrees().map(lambda node, degree: (node, degree, 0.0, 1), name="degrees")
    every = aggregate(ends.concat(given), (np.add, np.add, np.add), name="nodes with weights")
    return every.filter(lambda node, degree, weight, is_here: is_here > 0).map(
        lambda node, degree, weight, is_here: (node, degree, weight)
    )


def _weighed(node: Array, weight: Array) -> tuple[Array, ...]:
    weight = weight.astype(np.float64)
    if not (weight >= 0).all() or np.isinf(weight).any():
        first = np.flatnonzero(~(weight >= 0) | np.isinf(weight))[0]
        raise DataError(f"pagerank: a weight must be a number of at least 0; node {node[first]} has {weight[first]}")
    return node, np.zeros(len(node), np.int64), weight, np.zeros(len(node), np.int64)
