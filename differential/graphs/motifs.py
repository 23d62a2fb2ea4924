"""Motifs: all places where a small pattern occurs in a graph, kept up to date by delta queries.

A pattern is a list of edges (i, j) between variables numbered from 0; an occurrence gives each variable a node, so that
each edge of the pattern is an edge of the graph. Each edge of the pattern is a relation of one join. When an edge of
the graph changes, it takes the place of each edge of the pattern in turn, and the other variables are found one by one:
each extends the nodes found so far by all edges that bind it (worst-case-optimal; see `differential.delta`).

Different variables may be the same node, and an occurrence counts as often as the product of its edges' occurrences:
where that is not wanted, use `distinct` before and `filter` after.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from differential import Collection
from differential.delta import AltNeu, CollectionIndex, Prefixes, extend
from differential.graphs.directions import transpose
from differential.graphs.inputs import check_records
from timely.lowlevel import refusal

Pattern = Sequence[tuple[int, int]]

TRIANGLE: Pattern = ((0, 1), (1, 2), (0, 2))
CLIQUE_OF_4: Pattern = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))


def triangles(edges: Collection) -> Collection:
    """Return (a, b, c) for all edges (a, b), (b, c) and (a, c).

    >>> edges = np.array([[1, 2], [2, 3], [1, 3], [3, 4]]).T
    >>> example(lambda scope: triangles(Collection.of(scope, *edges)))
    [((1, 2, 3), 1)]
    """
    check_records("triangles", edges=edges)
    return motif(edges, TRIANGLE)


def triangles_by_joins(edges: Collection) -> Collection:
    """Return the same as `triangles`, by two joins: all paths (a, b, c), then those whose ends are joined, too.

    >>> edges = np.array([[1, 2], [2, 3], [1, 3], [3, 4]]).T
    >>> example(lambda scope: triangles_by_joins(Collection.of(scope, *edges)))
    [((1, 2, 3), 1)]
    """
    check_records("triangles_by_joins", edges=edges)
    paths = transpose(edges).join_map(edges, lambda b, a, c: (a, c, b), keys=2)
    closing = edges.map(lambda source, target: (source, target), keys=2)
    return paths.join_map(closing, lambda a, c, b: (a, b, c))


def cliques4(edges: Collection) -> Collection:
    """Return (a, b, c, d) for all nodes with an edge from each of them to each after it.

    >>> edges = np.array([[1, 2], [1, 3], [1, 4], [2, 3], [2, 4], [3, 4], [4, 5]]).T
    >>> example(lambda scope: cliques4(Collection.of(scope, *edges)))
    [((1, 2, 3, 4), 1)]
    """
    check_records("cliques4", edges=edges)
    return motif(edges, CLIQUE_OF_4)


def motif(edges: Collection, pattern: Pattern) -> Collection:
    """Return the nodes (v0, v1, ...) of all occurrences of `pattern` among the edges.

    Raises BuildError unless `pattern` is a list of pairs of numbers that is connected and has no loop.

    >>> edges = np.array([[1, 2], [2, 1], [2, 3]]).T
    >>> example(lambda scope: motif(Collection.of(scope, *edges), [(0, 1), (1, 0)]))
    [((1, 2), 1), ((2, 1), 1)]
    """
    check_records("motif", edges=edges)
    variables = _checked(pattern)
    forward = CollectionIndex(edges)
    backward = CollectionIndex(transpose(edges))
    changes = Prefixes.of(edges)
    found = [_begun_by(changes, place, pattern, variables, forward, backward) for place in range(len(pattern))]
    return found[0].concat(*found[1:]).results()


def _begun_by(
    changes: Prefixes, place: int, pattern: Pattern, variables: int, forward: CollectionIndex, backward: CollectionIndex
) -> Prefixes:
    """Return the changes of occurrences that changed edges make in the place of one edge of the pattern."""
    bound = list(pattern[place])
    others = [(number, edge) for number, edge in enumerate(pattern) if number != place]
    # Edges between the same two variables bind no other one, so no extension would look at them.
    for number, (source, target) in others:
        if {source, target} == set(bound):
            relation = forward if source == bound[0] else backward
            changes = relation.extension(0, AltNeu.of(number, place)).validate(changes)
    while len(bound) < variables:
        # Next is the variable that most edges bind, the first of them.
        ends = [b if a in bound else a for a, b in pattern if (a in bound) != (b in bound)]
        bound.append(max(sorted(set(ends)), key=ends.count))
        extensions = []
        for number, (source, target) in others:
            if bound[-1] in (source, target) and {source, target} <= set(bound):
                known = source if target == bound[-1] else target
                relation = forward if known == source else backward
                extensions.append(relation.extension(bound.index(known), AltNeu.of(number, place)))
        changes = extend(changes, extensions)
    order = [bound.index(variable) for variable in range(variables)]
    return changes.map(lambda *columns: tuple(columns[column] for column in order))


def _checked(pattern: Pattern) -> int:
    """Return the number of variables of a pattern, or raise BuildError."""
    if not isinstance(pattern, Sequence) or not all(_is_edge(each) for each in pattern):
        raise refusal(
            "motif",
            "`pattern` must be a list of edges between variables numbered from 0, "
            f"such as [(0, 1), (1, 2)], not {pattern!r:.80}",
        )
    variables = 1 + max((max(edge) for edge in pattern), default=-1)
    reached = set(pattern[0]) if pattern else set()
    # Each pass reaches the ends of another edge, or nothing is left to reach.
    for _ in pattern:
        for edge in pattern:
            if reached & set(edge):
                reached |= set(edge)
    if not pattern or reached != set(range(variables)):
        raise refusal("motif", f"the pattern {list(pattern)} must be connected, with variables numbered from 0")
    if any(source == target for source, target in pattern):
        raise refusal("motif", f"the pattern {list(pattern)} has a loop: filter the edges for source == target instead")
    return variables


def _is_edge(edge: Any) -> bool:
    """Return whether an edge of a pattern is a pair of whole numbers."""
    is_pair = isinstance(edge, Sequence) and len(edge) == 2
    return is_pair and all(isinstance(end, Integral) and not isinstance(end, bool) for end in edge)
