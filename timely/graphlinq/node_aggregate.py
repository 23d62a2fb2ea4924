"""One record for each node: its values combined at each time, its occurrences, its edges, or the node alone."""

from __future__ import annotations

import numpy as np

from timely import Broadcast, Columns, Stream
from timely.graphlinq.grouping import Combination, group_nodes
from timely.graphlinq.in_order import Given, by_node, in_order
from timely.graphlinq.index import Index, as_nodes, distinct
from timely.graphlinq.table import NodeTable
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


def degrees(edges: Stream, *, name: str = "degrees") -> Stream:
    """Return (node, number of edges out of it) for all nodes of edges so far, at each time at which edges arrive.

    Edges are counted on each worker first; the record of a node is on the worker that the node hashes to. Every batch
    of edges sends a tick to all workers, since at its time all nodes have records, not only those of its edges.

    >>> example(lambda scope: degrees(scope.to_stream((np.array([4, 4]), np.array([2, 4])))))
    [(2, 0), (4, 2)]
    """
    table = NodeTable(lambda new: np.zeros(len(new), np.int64))

    def compute(given: Given, _: Given) -> Given:
        if given is not None:
            nodes, more = group_nodes(np.add, given[0], given[1:])
            slots = table.include(nodes)
            table.put(slots, (table.rows(slots)[0] + more[0],))
        order = np.argsort(table.index.nodes, kind="stable")
        return table.index.nodes[order], *table.rows(order)

    ends = edges.map_batch(_ends, name=f"{name} locally")
    ticks = edges.map_batch(lambda *_: np.zeros(1, np.int64), name=f"{name} ticks")
    return in_order([(ends, by_node()), (ticks, Broadcast())], compute, name)


def _ends(source: Array, target: Array, *_: Array) -> tuple[Array, ...]:
    nodes = np.append(as_nodes(source), as_nodes(target))
    ones = np.arange(len(nodes)) < len(source)
    found, (counts,) = group_nodes(np.add, nodes, [ones.astype(np.int64)])
    return found, counts
