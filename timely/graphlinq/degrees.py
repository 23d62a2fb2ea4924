"""The nodes of a graph, and the number of edges out of each."""

from __future__ import annotations

import numpy as np

from timely import Broadcast, Stream
from timely.graphlinq.grouping import group_nodes
from timely.graphlinq.in_order import Given, by_node, in_order
from timely.graphlinq.index import as_nodes
from timely.graphlinq.table import NodeTable
from timely.lowlevel import Array


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
