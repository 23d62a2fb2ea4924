"""Strongly connected components, by doubly nested iteration.

An edge lies in a strongly connected component if both its ends do. Labels flow along the edges that may still lie in
one. An edge whose ends receive different smallest labels cannot, and is removed. Then labels flow against the edges'
directions, and so on, until no edge is removed. The remaining edges lie within components. (Naiad, SOSP 2013,
section 6.1; the formulation is that of differential dataflow, CIDR 2013.)
"""

from __future__ import annotations

from differential import Arrangement, Collection
from differential.graphs.components import by_magnitude
from differential.graphs.directions import starts, transpose
from differential.graphs.inputs import check_records
from differential.graphs.labels import labelled, labels_of_names, with_least_nodes
from differential.graphs.order import is_same
from differential.graphs.propagate import propagate


def cyclic_edges(edges: Collection) -> Collection:
    """Return the edges that lie on a cycle: those with both ends in one strongly connected component.

    >>> example(lambda scope: cyclic_edges(Collection.of(scope, np.array([1, 2, 2]), np.array([2, 1, 3]))))
    [((1, 2), 1), ((2, 1), 1)]
    """
    check_records("cyclic_edges", edges=edges)
    # On the way every node has an edge from it, so the starts are all nodes.
    edges = on_the_way(edges)
    return _cyclic(edges, labels_of_names(edges.map(lambda source, _: source)))


def on_the_way(edges: Collection) -> Collection:
    """Return the edges that lie on a path from a cycle to a cycle.

    Edges from nodes without incoming edges, and to nodes without outgoing ones, are removed until there are none.

    >>> example(lambda scope: on_the_way(Collection.of(scope, np.array([1, 2, 2, 3]), np.array([2, 1, 3, 4]))))
    [((1, 2), 1), ((2, 1), 1)]
    """
    by_target = transpose(edges)

    def without_dead_ends(inner: Collection) -> Collection:
        sources = starts(inner)
        targets = inner.map(lambda _, target: target).distinct()
        return by_target.semijoin(sources).map(lambda target, source: (source, target)).semijoin(targets)

    return edges.iterate(without_dead_ends)


def strongly_connected_components(edges: Collection) -> Collection:
    """Return (node, smallest node of its component) for every node of a component of more than one node.

    >>> example(lambda scope: strongly_connected_components(
    ...     Collection.of(scope, np.array([1, 2, 2, 4]), np.array([2, 1, 3, 4]))))
    [((1, 1), 1), ((2, 1), 1)]
    """
    check_records("strongly_connected_components", edges=edges)
    edges = on_the_way(edges.filter(lambda source, target: ~is_same(source, target)))
    names = labels_of_names(edges.map(lambda source, _: source))
    cyclic = _cyclic(edges, names)
    labels = labelled(cyclic.map(lambda source, _: source), names)
    return with_least_nodes(propagate(cyclic, labels, rounds=by_magnitude))


def _cyclic(edges: Collection, names: Collection) -> Collection:
    """Return those on a cycle of edges that are on the way, where `names` are the labels of nodes that have names."""
    arranged = names.arrange_by_key()
    # `_trim` reverses the edges that remain, so the second one restores the direction that the first has reversed.
    return edges.iterate(lambda inner: _trim(_trim(inner, arranged), arranged))


def _trim(edges: Collection, names: Arrangement) -> Collection:
    """Return the edges whose ends get the same label when labels flow along them, reversed."""
    # Each label once, so that an edge that comes or goes beside others to its target changes no label.
    targets = starts(transpose(edges))
    labels = propagate(edges, labelled(targets, names), rounds=by_magnitude)
    return (
        edges.join_map(labels, lambda source, target, label: (target, source, label))
        .join_map(labels, lambda target, source, label, other: (target, source, is_same(label, other)))
        .filter(lambda target, source, same: same)
        .map(lambda target, source, _: (target, source))
    )
