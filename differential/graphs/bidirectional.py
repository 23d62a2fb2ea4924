"""Distances from sources to targets, by two waves that start from both ends and stop where they meet."""

from __future__ import annotations

from differential import Collection, Variable, innermost
from differential.graphs.directions import transpose
from differential.graphs.inputs import check_records


def bidirectional_search(edges: Collection, goals: Collection) -> Collection:
    """Return (source, target, distance) for each pair of `goals`, (source, target), with a path from one to the other.

    In each round, each goal whose waves have not met advances both by one edge: forward from the source, backward from
    the target. Each wave reaches about the square root of the nodes that a search from one end would; for a goal
    without a path the waves reach all nodes that either end can. Goals share nothing but the edges. (Pohl,
    "Bi-directional search", 1971; differential dataflow's `bidijkstra` computes the same.)

    The loop settles, although a result ends its own search. In each round a wave is the nearest of itself and the nodes
    one edge further, so a wave that no longer advances keeps the nodes that it has reached. It only grows, among
    finitely many nodes at their distances; so goals that have met remain so, and some round adds nothing. The result is
    right: waves that first meet in round i have all nodes within i of the source and of the target. So the path has
    2i - 1 or 2i edges, and the middle of every such path is in both waves. All this is about the graph at one time.
    Removals need no more, because at each time the loop has the rounds that this time's graph needs.

    >>> def program(scope):
    ...     edges = Collection.of(scope, np.array([0, 1, 2, 3]), np.array([1, 2, 3, 4]))
    ...     return bidirectional_search(edges, Collection.of(scope, np.array([0, 4]), np.array([3, 0])))
    >>> example(program)
    [((0, 3, 3), 1)]
    """
    check_records("bidirectional_search", edges=edges, goals=goals)
    edges, goals = innermost(edges, goals.map(lambda source, target: (source, target), keys=2).distinct())
    sources = goals.map(lambda source, target: (source, source, target, 0), keys=3)
    targets = goals.map(lambda source, target: (target, source, target, 0), keys=3)
    with goals.scope.iterative("bidirectional_search") as inner:
        ahead, behind = Variable(inner, sources), Variable(inner, targets)
        forward, backward = ahead.collection.min(), behind.collection.min()
        # By way of each node that both waves of a goal have reached.
        met = forward.join_map(
            backward, lambda node, source, target, behind, ahead: (source, target, behind + ahead), keys=2
        ).min()
        searching = goals.enter(inner).antijoin(met.map(lambda source, target, _: (source, target), keys=2))
        ahead.set(forward.concat(_pushed(forward, searching, edges)))
        behind.set(backward.concat(_pushed(backward, searching, transpose(edges))))
        return met.leave()


def _pushed(wave: Collection, searching: Collection, edges: Collection) -> Collection:
    """Return (node, source, target, distance) for the nodes one edge further than a wave has reached."""
    by_goal = wave.map(lambda node, source, target, distance: (source, target, node, distance), keys=2)
    pushed = by_goal.semijoin(searching).map(
        lambda source, target, node, distance: (node, source, target, distance + 1)
    )
    return pushed.join_map(
        edges, lambda node, source, target, distance, neighbour: (neighbour, source, target, distance), keys=3
    )
