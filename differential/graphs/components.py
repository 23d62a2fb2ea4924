"""Weakly connected components."""

from __future__ import annotations

from typing import Any

import numpy as np

from differential import Collection
from differential.graphs.directions import both_ways, starts
from differential.graphs.inputs import check_records
from differential.graphs.labels import labelled, with_least_nodes
from differential.graphs.propagate import propagate

ROUNDS_PER_CLASS = 128
"""How many rounds pass between labels of one magnitude and those of the next.

The last labels enter at round 8192, before loops are reported (`Config.report_rounds`).
"""


def weakly_connected_components(edges: Collection) -> Collection:
    """Return (node, smallest node of its component) for every node that has an edge, whatever the edges' directions.

    Labels are propagated with priority: a label enters together with those that have as many binary digits, so that the
    smallest labels spread through a component before the others enter. (Differential dataflow's `propagate_at` does the
    same.) Integers below 2**24 are their own labels. All other nodes, such as text, have labels by their hash, of which
    few have few digits, however alike the nodes are.

    >>> example(lambda scope: weakly_connected_components(Collection.of(scope, np.array([2, 5]), np.array([1, 6]))))
    [((1, 1), 1), ((2, 1), 1), ((5, 5), 1), ((6, 5), 1)]
    """
    check_records("weakly_connected_components", edges=edges)
    ends = both_ways(edges)
    # Without `distinct`, inserting or removing an edge would insert or remove its ends' labels in their rounds, too.
    nodes = starts(ends)
    return with_least_nodes(propagate(ends, labelled(nodes), rounds=by_magnitude))


def by_magnitude(node: Any, label: Any) -> Any:
    """Return the round at which a label enters: later the larger it is.

    A round depends on the label alone, and must: an edge that is removed retracts labels in the rounds of their entry,
    on whichever worker that is.
    """
    return ROUNDS_PER_CLASS * np.frexp(np.maximum(label, 0).astype(np.float64))[1]
