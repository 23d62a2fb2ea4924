"""Approximate shortest paths: the distances from and to a few landmarks bound those between all nodes.

The state is two distances for each node and landmark, whatever the pairs. (Das Sarma, Gollapudi, Najork and Panigrahy,
"A sketch-based distance oracle for web-scale graphs", WSDM 2010.)
"""

from __future__ import annotations

from differential import Collection, Variable, innermost
from differential.graphs.directions import transpose
from differential.graphs.inputs import Nodes, check_inputs, check_records, nodes_of


def landmark_distances(edges: Collection, landmarks: Collection | Nodes) -> Collection:
    """Return (node, landmark, number of edges between them) for every node that can be reached from each landmark.

    `landmarks` is a collection, or a node or some nodes that do not change.

    >>> def program(scope):
    ...     edges = Collection.of(scope, np.array([0, 1, 3]), np.array([1, 2, 2]))
    ...     return landmark_distances(edges, Collection.of(scope, np.array([0, 3])))
    >>> example(program)
    [((0, 0, 0), 1), ((1, 0, 1), 1), ((2, 0, 2), 1), ((2, 3, 1), 1), ((3, 3, 0), 1)]
    >>> example(lambda scope: landmark_distances(Collection.of(scope, np.array([0, 1]), np.array([1, 2])), [0, 2]))
    [((0, 0, 0), 1), ((1, 0, 1), 1), ((2, 0, 2), 1), ((2, 2, 0), 1)]
    """
    check_inputs("landmark_distances", edges=edges)
    landmarks = nodes_of("landmark_distances", edges, landmarks)
    edges, start = innermost(edges, landmarks.map(lambda landmark: (landmark, landmark, 0), keys=2))
    with start.scope.iterative("landmarks") as inner:
        found = Variable(inner, keys=2)
        nearest = found.collection.concat(start).min()
        by_node = nearest.map(lambda node, landmark, distance: (node, landmark, distance + 1))
        found.set(by_node.join_map(edges, lambda _, landmark, distance, node: (node, landmark, distance), keys=2))
        return nearest.leave()


def approximate_distances(edges: Collection, landmarks: Collection | Nodes, pairs: Collection) -> Collection:
    """Return (source, target, distance) for each of `pairs` that a path through a landmark joins.

    The distance is the least number of edges of such a path: exact where a shortest path passes a landmark, and
    otherwise too large.

    >>> def program(scope):
    ...     edges = Collection.of(scope, np.array([0, 1, 0, 3]), np.array([1, 2, 3, 2]))
    ...     return approximate_distances(edges, 3, Collection.of(scope, 0, np.array([1, 2])))
    >>> example(program)
    [((0, 2, 2), 1)]
    """
    check_records("approximate_distances", edges=edges, pairs=pairs)
    landmarks = nodes_of("approximate_distances", edges, landmarks)
    there = landmark_distances(transpose(edges), landmarks).map(lambda *columns: columns)  # with the node as the key
    onward = landmark_distances(edges, landmarks)
    wanted = pairs.map(lambda source, target: (source, target), keys=2).distinct().map(lambda *pair: pair)
    to_landmarks = wanted.join_map(
        there, lambda source, target, landmark, distance: (target, landmark, source, distance), keys=2
    )
    by_way = to_landmarks.join_map(
        onward, lambda target, landmark, source, before, after: (source, target, before + after), keys=2
    )
    return by_way.min()
