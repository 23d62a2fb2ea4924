"""Weakly connected components."""

from __future__ import annotations

from typing import Any

import numpy as np

from differential import Collection
from differential.arguments import check_rows
from differential.graphs.directions import both_ways, starts
from differential.graphs.propagate import propagate

ROUNDS_PER_CLASS = 128
"""How many rounds pass between labels of one magnitude and those of the next.

The last labels enter at round 8064, before loops are reported (`Config.report_rounds`).
"""


def weakly_connected_components(edges: Collection) -> Collection:
    """Return (node, smallest node of its component) for every node that has an edge, whatever the edges' directions.

    Nodes are integers, 0 or more, or text. Labels are propagated with priority: the label n enters together with those
    that have as many binary digits, so that the smallest labels spread through a component before the others enter.
    (Differential dataflow's `propagate_at` does the same.)

    >>> example(lambda scope: weakly_connected_components(Collection.of(scope, np.array([2, 5]), np.array([1, 6]))))
    [((1, 1), 1), ((2, 1), 1), ((5, 5), 1), ((6, 5), 1)]
    """
    check_rows("weakly_connected_components", edges=edges)
    ends = both_ways(edges)
    # Without `distinct`, inserting or removing an edge would insert or remove its ends' labels in their rounds, too.
    nodes = starts(ends)
    return propagate(ends, nodes.map(lambda node: (node, node)), rounds=by_magnitude)


def by_magnitude(node: Any, label: Any) -> Any:
    """Return the round at which a label enters: later the larger it is, or at once if it has no magnitude (text)."""
    if label.dtype.kind not in "iu":
        return 0
    return ROUNDS_PER_CLASS * np.frexp(np.maximum(label, 0).astype(np.float64))[1]
