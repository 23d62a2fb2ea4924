"""Which nodes there are, and how many edges go out of each."""

from __future__ import annotations

import numpy as np

from timely import Columns, Exchange, InputPort, Notificator, OutputPort, Stream, Time
from timely.container import Array, concatenate, of_columns
from timely.graphlinq.grouping import group_nodes, grouped
from timely.graphlinq.index import Index, Ints, as_nodes, is_increasing


def degrees(edges: Stream, *, name: str = "degrees") -> Stream:
    """Return (node, number of edges out of it) for every end of an edge so far, at each time at which edges come.

    Counted on each worker first; a node's record is on the worker that the node hashes to.

    >>> example(lambda scope: degrees(scope.to_stream((np.array([4, 4]), np.array([2, 4])))))
    [(2, 0), (4, 2)]
    """
    index = Index()
    counts: Ints = np.empty(0, np.int64)
    waiting: dict[Time, list[Columns]] = {}

    def logic(input: InputPort, output: OutputPort, notificator: Notificator) -> None:
        nonlocal counts
        for capability, batch in input:
            waiting.setdefault(capability.time, []).append(Columns(of_columns(batch)))
            notificator.notify_at(capability)
        for time, due in notificator:
            assert due is not None
            nodes, more = concatenate(waiting.pop(time)).columns
            slots, (totals,) = grouped(np.add, index.include(nodes), [more], len(index))
            counts = np.append(counts, np.zeros(len(index) - len(counts), np.int64))
            counts[slots] += totals
            order = slice(None) if is_increasing(index.nodes) else np.argsort(index.nodes)
            output.give(due, Columns((index.nodes[order], counts[order].copy())))

    return edges.flat_map(_ends, name=f"{name} locally").unary_notify(Exchange(lambda node, _: node), logic, name=name)


def _ends(source: Array, target: Array, *_: Array) -> tuple[Array, ...]:
    nodes = np.append(as_nodes(source), as_nodes(target))
    ones = np.arange(len(nodes)) < len(source)
    found, (counts,) = group_nodes(np.add, nodes, [ones.astype(np.int64)])
    return found, counts
