"""Strongly connected components, by colours.

In a round, the largest node spreads forward as a colour, to all that it reaches; then, from each node that has kept
its own colour, membership spreads backward, among nodes of the same colour. Who becomes a member reaches the node and
is reached by it: these are components, one for each colour. All others go on to the next round. A round takes at
least one component for each colour; there are as many rounds as it takes.
"""

from __future__ import annotations

import numpy as np

from timely import Stream
from timely.container import Array
from timely.graphlinq.graph import Graph
from timely.graphlinq.run import Superstep


def strongly_connected_components(graph: Graph) -> Stream:
    """Return (node, largest node of its component).

    >>> edges = (np.array([1, 2, 3, 2]), np.array([2, 1, 3, 3]))
    >>> sorted(example(lambda scope: strongly_connected_components(Graph(scope.to_stream(edges)))))
    [(1, 2), (2, 2), (3, 3)]
    """
    with graph.scope.iterative("strongly_connected_components") as rounds:
        handle, left = rounds.feedback(name="nodes left")
        inside = graph.enter(rounds)
        nodes = inside.nodes().concat(left)
        unassigned, found = _members(inside.reversed(), _colours(inside, nodes)).branch(
            lambda node, colour, is_member: is_member
        )
        unassigned.map(lambda node, colour, is_member: node).connect_loop(handle)
        return found.map(lambda node, colour, is_member: (node, colour)).leave()


def _colours(graph: Graph, nodes: Stream) -> Stream:
    """Return (node, largest node that reaches it) among nodes."""
    return graph.pregel(
        nodes,
        init=lambda node: node,
        message=lambda colour: colour,
        combine=np.maximum,
        update=lambda superstep, colour, received: np.maximum(colour, received),
        name="colours",
    )


def _members(backward: Graph, colours: Stream) -> Stream:
    """Return (node, colour, whether it reaches the node of its colour)."""

    def update(superstep: Superstep, colour: Array, is_member: Array, received: Array) -> tuple[Array, Array]:
        # What a node reaches has its colour or a larger one, so of the members' the least is its own, if any is.
        return colour, is_member | (received == colour)

    return backward.pregel(
        colours,
        init=lambda node, colour: (colour, node == colour),
        message=lambda colour, is_member: colour,
        combine=np.minimum,
        update=update,
        sends=lambda colour, is_member: is_member,
        name="members",
    )
