"""PageRank in whole numbers, so that every change leads to exactly the ranks that a computation from scratch gives."""

from __future__ import annotations

from typing import Any

from differential import Collection
from differential.arguments import check_rows, check_whole
from differential.graphs.directions import both_ways, starts
from timely.errors import BuildError

_LARGEST_UNIT = 1 << 40


def pagerank(edges: Collection, rounds: int = 20, *, unit: int = 1_000_000, tolerance: int = 1) -> Collection:
    """Return (node, rank) after so many rounds, for every node at the end of an edge; a rank of 1 is `unit`.

    Each node begins with `unit`; in each round it passes five sixths of what it has on to its targets, in equal parts
    rounded down, and is given a sixth of `unit`. Ranks are counts of a node's occurrences, so a round is linear but
    for the division. Rounds follow each other instead of being the turns of a loop: times stay totally ordered. (Page,
    Brin, Motwani and Winograd, 1999; differential dataflow's example does the same sums.)

    A changed edge moves some rank, and in the end a unit or two of nearly every node's. With a `tolerance` of more than
    one unit a node passes on its rank as rounded to a multiple of it, and a change within that is not passed on at all:
    the changes caused die out, five sixths as many in each round as in the one before. The answer depends only on the
    graph, as before. Rounding is off by up to half of `tolerance`; five sixths of that get to others, as do five sixths
    of it in the round after, and so on. So all ranks together are off by up to 5/2 `tolerance` a node, besides up to 6
    units for each edge and node for the parts rounded down. (Where nodes have ten edges the errors, of either sign,
    mostly cancel: in the mean a rank is off by a fifteenth of `tolerance`.)

    Raises BuildError where `unit` is less than 6, of which nodes that nobody links to would have nothing, or more than
    2 ** 40, of which a million would not fit in 64 bits, or `tolerance` less than 1 or more than `unit`, or `rounds`
    negative.

    >>> edges = np.array([[1, 2], [2, 1], [3, 1]]).T
    >>> example(lambda scope: pagerank(Collection.of(scope, *edges), 3, unit=600))
    [((1, 1029), 1), ((2, 669), 1), ((3, 100), 1)]
    >>> example(lambda scope: pagerank(Collection.of(scope, *edges), 3, unit=600, tolerance=20))
    [((1, 1033), 1), ((2, 666), 1), ((3, 100), 1)]
    """
    check_rows("pagerank", edges=edges)
    check_whole("pagerank", 0, rounds=rounds, unit=unit, tolerance=tolerance)
    if not (6 <= unit <= _LARGEST_UNIT and 1 <= tolerance <= unit):
        raise BuildError(
            f"pagerank: unit must be from 6 to 2 ** 40, not {unit}, and tolerance from 1 to unit, not {tolerance}"
        )

    def part(node: Any, rank: Any, degree: Any) -> tuple[Any, Any]:
        passed = (rank + tolerance // 2) // tolerance * tolerance
        return node, 5 * passed // (6 * degree)

    degrees = edges.count()
    nodes = starts(both_ways(edges))
    given = nodes.explode(lambda node: (node, unit // 6))
    ranks = nodes.explode(lambda node: (node, unit))
    for _ in range(rounds):
        parts = ranks.count().join(degrees).explode(part)
        ranks = parts.join_map(edges, lambda _, target: target).concat(given)
    return ranks.count()
