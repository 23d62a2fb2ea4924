"""Strongly connected components: first that of a hub, a node with many edges, then the others by colours.

The hub is the node with the most paths of two edges through it: the largest product of its numbers of incoming and
outgoing edges. Its component consists of the nodes that it reaches and that reach it, which two searches find while
passing each edge once. In many graphs this is nearly everything, and colours would pass through it again and again.

The other nodes are assigned in rounds. First, nodes without incoming edges are removed repeatedly: each is a component
of its own. Then the same is done for nodes without outgoing edges. Of the remaining nodes, the smallest spreads forward
as a colour to all nodes that it reaches. Then membership spreads backward from each node that has kept its own colour,
among nodes of the same colour. A member reaches this node and is reached by it, so the members of one colour are a
component. All other nodes go on to the next round.

The number of rounds is small for most graphs; but a chain of components of several nodes each, in increasing order,
needs one round per component.
"""

from __future__ import annotations

import numpy as np

from timely import Broadcast, Pipeline, Stream
from timely.graphlinq.algorithms.wcc import SMALLEST_NODE
from timely.graphlinq.graph import Graph, check_graph
from timely.graphlinq.in_order import Given, in_order
from timely.graphlinq.node_aggregate import aggregate
from timely.graphlinq.node_join import node_join
from timely.graphlinq.run import Superstep, VertexProgram
from timely.lowlevel import Array


def strongly_connected_components(graph: Graph) -> Stream:
    """Return (node, smallest node of its component).

    >>> edges = (np.array([1, 2, 3, 2]), np.array([2, 1, 3, 3]))
    >>> sorted(example(lambda scope: strongly_connected_components(Graph(scope.to_stream(edges)))))
    [(1, 1), (2, 1), (3, 3)]
    """
    check_graph("strongly_connected_components", graph)
    of_hub, others = _around(graph, _hub(graph)).branch(lambda node, is_member: ~is_member)
    with graph.scope.iterative("strongly_connected_components") as rounds:
        handle, left = rounds.feedback(name="nodes left")
        inside = graph.enter(rounds)
        nodes = others.map(lambda node, is_member: node).enter(rounds).concat(left)
        first, nodes = _without_edges_in(inside, nodes)
        last, nodes = _without_edges_in(inside.transpose(), nodes)
        colours = inside.pregel(SMALLEST_NODE, nodes, name="colours")
        unassigned, found = _members(inside.transpose(), colours).branch(lambda node, colour, is_member: is_member)
        unassigned.map(lambda node, colour, is_member: node).connect_loop(handle)
        alone = first.concat(last).map(lambda node: (node, node))
        by_colours = found.map(lambda node, colour, is_member: (node, colour)).concat(alone).leave()
    named = _with_greatest(of_hub, name="component of the hub")
    return named.concat(by_colours)


def _hub(graph: Graph) -> Stream:
    """Return (node, whether it is the hub) for each node."""
    through = node_join(graph.degrees(), graph.transpose().degrees(), np.multiply, name="ways through")
    return _with_greatest(through, name="hub").map(lambda node, hub: (node, node == hub))


def _around(graph: Graph, hub: Stream) -> Stream:
    """Return (node, whether the hub reaches it and it reaches the hub)."""
    ahead = graph.pregel(
        VertexProgram(
            init=lambda node, is_hub: (is_hub, is_hub),
            message=lambda is_hub, is_ahead: is_ahead,
            combine=np.logical_or,
            update=lambda superstep, is_hub, is_ahead, received: (is_hub, is_ahead | received),
            sends=lambda is_hub, is_ahead: is_ahead,
        ),
        hub,
        name="ahead of the hub",
    )
    return (
        graph.transpose()
        .pregel(
            VertexProgram(
                init=lambda node, is_hub, is_ahead: (is_ahead, is_hub),
                message=lambda is_ahead, is_member: is_member,
                combine=np.logical_or,
                update=lambda superstep, is_ahead, is_member, received: (is_ahead, is_member | (is_ahead & received)),
                sends=lambda is_ahead, is_member: is_member,
            ),
            ahead,
            name="around the hub",
        )
        .map(lambda node, is_ahead, is_member: (node, is_member))
    )


def _with_greatest(ranked: Stream, *, name: str) -> Stream:
    """Return (node, the smallest node with the greatest rank on any worker) for each (node, rank)."""

    def compute(given: Given, candidates: Given) -> Given:
        assert candidates is not None  # the broadcast includes this worker's own candidate
        return None if given is None else (given[0], np.full(len(given[0]), _greatest(*candidates)[0][0]))

    return in_order(
        [(ranked, Pipeline()), (ranked.map_batch(_greatest, name=f"{name} here"), Broadcast())], compute, name
    )


def _greatest(node: Array, rank: Array) -> tuple[Array, Array]:
    best = np.flatnonzero(rank == rank.max())
    chosen = best[[node[best].argmin()]]
    return node[chosen], rank[chosen]


def _without_edges_in(graph: Graph, nodes: Stream) -> tuple[Stream, Stream]:
    """Return the nodes that are removed when those without edges from remaining nodes go repeatedly, and the others."""
    both = (np.add, np.add)
    ends = graph.transmit(nodes.map(lambda node: (node, 1, 0)), combine=both)
    counted = aggregate(ends.concat(nodes.map(lambda node: (node, 0, 1))), both)
    stays, goes = graph.pregel(
        VertexProgram(
            init=lambda node, edges, is_left: edges,
            message=lambda edges: 1,
            combine=np.add,
            update=lambda superstep, edges, received: edges - received,
            sends=lambda edges: edges == 0,
        ),
        counted.filter(lambda node, edges, is_left: is_left > 0),
        name="without_edges_in",
    ).branch(lambda node, edges: edges == 0)
    return goes.map(lambda node, edges: node), stays.map(lambda node, edges: node)


def _members(backward: Graph, colours: Stream) -> Stream:
    """Return (node, colour, whether it reaches the node of its colour)."""

    def update(superstep: Superstep, colour: Array, is_member: Array, received: Array) -> tuple[Array, Array]:
        # A node's successors have its colour or a smaller one, so if a member has the node's own colour, it is the
        # greatest that the node receives.
        return colour, is_member | (received == colour)

    return backward.pregel(
        VertexProgram(
            init=lambda node, colour: (colour, node == colour),
            message=lambda colour, is_member: colour,
            combine=np.maximum,
            update=update,
            sends=lambda colour, is_member: is_member,
        ),
        colours,
        name="members",
    )
