"""Approximate shortest paths: distances in hops from a few landmarks, all searched at once.

The searches share their messages: a node sends one word, with a bit for each landmark that reached the node in the last
superstep. So the number of supersteps is that of the longest search, regardless of the number of landmarks. The
distance between two nodes is at most the sum of their distances from any landmark.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

import numpy as np

from timely import Stream
from timely.graphlinq.graph import Graph, check_graph
from timely.graphlinq.run import Superstep, VertexProgram
from timely.lowlevel import Array, refusal

MOST = 62
"""The number of landmarks that fit into a word."""

UNREACHED = -1


def landmark_distances(graph: Graph, landmarks: Sequence[int] | int) -> Stream:
    """Return (node, hops from the first landmark, hops from the second, ...) for every node; -1 if there is no path.

    `landmarks` is a node, or a list of nodes. They decide how many columns there are, so they are not a stream.

    Raises BuildError unless there are 1 to 62 landmarks, whole numbers.

    >>> edges = (np.array([1, 2, 3]), np.array([2, 3, 1]))
    >>> example(lambda scope: landmark_distances(Graph(scope.to_stream(edges)), [1, 3]))
    [(1, 0, 1), (2, 1, 2), (3, 2, 0)]
    """
    check_graph("landmark_distances", graph)
    landmarks = [int(landmarks)] if isinstance(landmarks, Integral) else landmarks
    if not isinstance(landmarks, (Sequence, np.ndarray)) or not all(isinstance(each, Integral) for each in landmarks):
        raise refusal(
            "landmark_distances", f"`landmarks` must be a list of nodes, whole numbers, not {landmarks!r:.80}"
        )
    if not 1 <= len(landmarks) <= MOST:
        raise refusal(
            "landmark_distances", f"{len(landmarks)} landmarks were given: 1 to {MOST} can be searched from at once"
        )
    bits = [1 << place for place in range(len(landmarks))]

    def init(node: Array) -> tuple[Array, ...]:
        new = np.zeros(len(node), np.int64)
        for bit, landmark in zip(bits, landmarks):
            new[node == landmark] |= bit
        return (new, new, *(np.where(new & bit, 0, UNREACHED) for bit in bits))

    def update(superstep: Superstep, reached: Array, new: Array, *columns: Array) -> tuple[Array, ...]:
        *distances, received = columns
        new = received & ~reached
        after = [np.where(new & bit, superstep.number, hops) for bit, hops in zip(bits, distances)]
        return (reached | new, new, *after)

    return graph.pregel(
        VertexProgram(
            init=init,
            message=lambda reached, new, *distances: new,
            combine=np.bitwise_or,
            update=update,
            sends=lambda reached, new, *distances: new != 0,
        ),
        name="landmark_distances",
    ).map(lambda node, reached, new, *distances: (node, *distances), name="distances")
