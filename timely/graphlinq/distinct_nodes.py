"""Each node once, and the number of its occurrences."""

from __future__ import annotations

import numpy as np

from timely import Stream
from timely.graphlinq.in_order import Given, by_node, in_order
from timely.graphlinq.index import Index, as_nodes, distinct
from timely.graphlinq.node_aggregate import aggregate
from timely.lowlevel import check_streams


def distinct_nodes(nodes: Stream, *, name: str = "distinct_nodes") -> Stream:
    """Return each node of the first column once, at the first time at which it arrives.

    >>> example(lambda scope: distinct_nodes(scope.to_stream(np.array([3, 1, 3]))))
    [1, 3]
    """
    check_streams(name, nodes=nodes)
    index = Index()

    def compute(given: Given) -> Given:
        assert given is not None
        known = len(index)
        index.include(as_nodes(given[0]))
        return (index.nodes[known:],)

    local = nodes.map_batch(lambda node, *_: distinct(as_nodes(node)), name=f"{name} locally")
    return in_order([(local, by_node())], compute, name)


def count_nodes(nodes: Stream, *, name: str = "count_nodes") -> Stream:
    """Return (node, number of its occurrences in the first column) for each time.

    >>> example(lambda scope: count_nodes(scope.to_stream(np.array([3, 1, 3]))))
    [(1, 1), (3, 2)]
    """
    check_streams(name, nodes=nodes)
    return aggregate(nodes.map(lambda node, *_: (node, 1), name=f"{name} as ones"), np.add, name=name)
