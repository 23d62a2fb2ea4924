"""One record for each node: the values of a node combined at each time, its occurrences, or the node alone."""

from __future__ import annotations

import numpy as np

from timely import Columns, Stream
from timely.graphlinq.grouping import Combination, group_nodes
from timely.graphlinq.in_order import Given, by_node, in_order
from timely.graphlinq.index import Index, as_nodes, distinct
from timely.lowlevel import Array, check_streams, map_each_time


def aggregate(nodes: Stream, combine: Combination, *, name: str = "aggregate") -> Stream:
    """Return each node with the combination of its values at each time, on the worker that the node hashes to.

    `combine` is a ufunc, or one for each column of values. Values are combined batch by batch on each worker, sent, and
    combined again when the time is complete.

    >>> values = (np.array([7, 3, 7]), np.array([1, 5, 2]))
    >>> example(lambda scope: aggregate(scope.to_stream(values), np.add))
    [(3, 5), (7, 3)]
    """

    check_streams(name, nodes=nodes)

    def local(node: Array, *values: Array) -> tuple[Array, ...]:
        found, totals = group_nodes(combine, as_nodes(node), values)
        return (found, *totals)

    first = nodes.map_batch(local, name=f"{name} locally")
    return map_each_time(first, by_node(), lambda batch: Columns(local(*batch.columns)), name=name)


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
