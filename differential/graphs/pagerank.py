"""PageRank in whole numbers, so that every change leads to exactly the ranks that a computation from scratch gives."""

from __future__ import annotations

from differential import Collection


def pagerank(edges: Collection, rounds: int = 20, *, unit: int = 1_000_000) -> Collection:
    """Return (node, rank) after so many rounds, for every node at the end of an edge, ranks in millionths.

    Each node begins with `unit`; in each round it passes five sixths of what it has on to its targets, in equal parts
    rounded down, and is given a sixth of `unit`. Ranks are counts of a node's occurrences, so a round is linear but
    for the division. Rounds follow each other instead of being the turns of a loop: times stay totally ordered. (Page,
    Brin, Motwani and Winograd, 1999; differential dataflow's example does the same sums.)

    >>> edges = np.array([[1, 2], [2, 1], [3, 1]]).T
    >>> example(lambda scope: pagerank(Collection.of(scope, *edges), 3, unit=600))
    [((1, 1029), 1), ((2, 669), 1), ((3, 100), 1)]
    """
    degrees = edges.count()
    ends = edges.concat(edges.map(lambda source, target: (target, source)))
    nodes = ends.map(lambda node, _: node).distinct()
    given = nodes.explode(lambda node: (node, unit // 6))
    ranks = nodes.explode(lambda node: (node, unit))
    for _ in range(rounds):
        totals = ranks.count().join(degrees)
        parts = totals.explode(lambda node, rank, degree: (node, 5 * rank // (6 * degree)))
        ranks = parts.join_map(edges, lambda _, target: target).concat(given)
    return ranks.count()
