"""Communities: labels spread until neighbours mostly agree."""

from __future__ import annotations

from differential import Collection
from differential.graphs.directions import both_ways, starts
from differential.graphs.inputs import check_records
from timely.lowlevel import check_whole


def label_propagation(edges: Collection, *, rounds: int = 10) -> Collection:
    """Return (node, label of its community) after a number of rounds, for every node that has an edge.

    Each node begins with itself as its label. In each round it takes the label that most of its neighbours have, the
    smallest of several. All nodes do so at once, and an edge counts from both ends, as often as it occurs. So the
    answer is always the same, though it need not settle: two nodes joined by one edge swap their labels for ever.
    (Raghavan, Albert and Kumara, "Near linear time algorithm to detect community structures in large-scale networks",
    Physical Review E 76, 2007; in this form in the LDBC Graphalytics benchmark.) Rounds follow each other instead of
    being the turns of a loop: times stay totally ordered.

    Raises BuildError where `rounds` is negative.

    >>> edges = np.array([[1, 2], [2, 3], [3, 1], [3, 4], [4, 5], [5, 6], [6, 4]]).T
    >>> example(lambda scope: label_propagation(Collection.of(scope, *edges), rounds=4))
    [((1, 1), 1), ((2, 1), 1), ((3, 1), 1), ((4, 3), 1), ((5, 3), 1), ((6, 3), 1)]
    """
    check_records("label_propagation", edges=edges)
    check_whole("label_propagation", 0, rounds=rounds)
    ends = both_ways(edges)
    labels = starts(ends).map(lambda node: (node, node))
    for _ in range(rounds):
        votes = labels.join_map(ends, lambda _, label, neighbour: (neighbour, label), keys=2).count()
        # The least of these has the most votes and, of several labels, is the smallest.
        best = votes.map(lambda node, label, count: (node, -count, label)).min()
        labels = best.map(lambda node, _, label: (node, label))
    return labels
