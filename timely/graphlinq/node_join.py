"""Join nodes with the latest values known for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timely import Stream
from timely.graphlinq.in_order import Given, by_node, in_order
from timely.graphlinq.index import as_nodes
from timely.graphlinq.table import NodeTable
from timely.lowlevel import Array, as_columns, call, check_functions


def node_join(
    nodes: Stream, values: Stream, function: Callable[..., Any] | None = None, *, name: str = "node_join"
) -> Stream:
    """Return (node, values of `nodes`, values of `values`) for the nodes that have a value at that time.

    A node's value is the latest that has arrived, at the time or before; `values` should have one record per node and
    time. `function` receives the columns of values, first those of `nodes`, and returns the columns to output instead.

    >>> ranks, degrees = (np.array([1, 2]), np.array([0.5, 1.0])), (np.array([1, 3]), np.array([2, 4]))
    >>> example(lambda scope: node_join(
    ...     scope.to_stream(ranks), scope.to_stream(degrees), lambda rank, degree: rank / degree))
    [(1, 0.25)]
    """
    if function is not None:
        check_functions(name, function=function)
    latest: tuple[Array, ...] = ()
    # New rows only need the right types: `compute` overwrites them at once.
    table = NodeTable(lambda new: tuple(np.repeat(column[:1], len(new)) for column in latest))

    def compute(asked: Given, changed: Given) -> Given:
        nonlocal latest
        if changed is not None:
            latest = changed[1:]
            table.put(table.include(as_nodes(changed[0])), latest)
        if asked is None:
            return None
        slots = table.index.slots(as_nodes(asked[0]))
        rows = np.flatnonzero(slots >= 0)
        if not len(rows):
            return None
        node, *left = (column[rows] for column in asked)
        values = [*left, *table.rows(slots[rows])]
        return (node, *(values if function is None else as_columns(call(function, tuple(values)), len(rows))))

    return in_order([(nodes, by_node()), (values, by_node())], compute, name)
