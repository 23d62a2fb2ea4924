"""Along edges: the values of nodes are sent to their neighbours.

A batch of nodes is sent as soon as all edges of its time are indexed, without waiting for more nodes. With `combine`,
the values that a batch sends to the same neighbour are combined where they are sent, so no worker sends another more
than one row per neighbour and batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from timely import Broadcast, Capability, OperatorBuilder, Pipeline, Stream
from timely.graphlinq.adjacency import Adjacency
from timely.graphlinq.core import GraphCore
from timely.graphlinq.grouping import Combination, group_nodes
from timely.graphlinq.in_order import Pacts, by_node
from timely.graphlinq.index import as_nodes
from timely.lowlevel import (
    Array,
    Batch,
    Columns,
    as_columns,
    call,
    check_functions,
    check_streams,
    concatenate,
    of_columns,
)

Send = Callable[[Adjacency, tuple[Array, ...]], tuple[Array, ...]]
"""Returns (neighbour, values): what a batch of (node, values) sends along a worker's edges."""


def transmit(
    graph: GraphCore,
    nodes: Stream,
    *,
    combine: Combination | None = None,
    along: Callable[..., Any] | None = None,
    is_placed: bool = False,
    name: str = "transmit",
) -> Stream:
    """Return (neighbour, values) for each (node, values) of `nodes` and each edge out of the node.

    `combine` (a ufunc, or one for each column) combines the values for the same neighbour on each worker and in each
    batch; `aggregate` combines the results. `along` receives the columns of values of nodes, then of edges, with one
    row per edge, and returns the columns to send instead. With `is_placed`, each node must already be on the worker
    that it hashes to.

    >>> edges = (np.array([0, 0, 1]), np.array([1, 2, 2]))
    >>> values = (np.array([0, 1]), np.array([10, 20]))
    >>> example(lambda scope: Graph(scope.to_stream(edges)).transmit(scope.to_stream(values), combine=np.add))
    [(1, 10), (2, 30)]
    """
    check_streams(name, nodes=nodes)
    if along is not None:
        check_functions(name, along=along)

    def send(adjacency: Adjacency, columns: tuple[Array, ...]) -> tuple[Array, ...]:
        rows, counts, edges = adjacency.out_of(as_nodes(columns[0]))
        if not len(rows):
            return ()
        values = tuple(np.repeat(column[rows], counts) for column in columns[1:])
        if along is not None:
            values = as_columns(call(along, (*values, *(column[edges] for column in adjacency.values))), len(values[0]))
        if combine is None:
            return (adjacency.targets_of(edges), *values)
        targets, totals = adjacency.combined(edges, combine, values)
        return (targets, *totals)

    return _along(graph, nodes, send, is_placed, name)


def graph_join(
    graph: GraphCore,
    nodes: Stream,
    function: Callable[..., Any],
    *,
    combine: Combination | None = None,
    name: str = "graph_join",
) -> Stream:
    """Return `function` of each (node, values) of `nodes` and each edge out of the node.

    `function` receives columns with one row per edge: source, target, values of the node, values of the edge. With
    `combine`, the first column that it returns is a node, and the other columns are combined for each node.

    >>> edges = (np.array([0, 0]), np.array([1, 2]), np.array([0.5, 2.0]))
    >>> def weighed(source, target, value, weight):
    ...     return target, source, value * weight
    >>> example(lambda scope: Graph(scope.to_stream(edges)).join(
    ...     scope.to_stream((np.array([0]), np.array([10]))), weighed))
    [(1, 0, 5.0), (2, 0, 20.0)]
    """
    check_streams(name, nodes=nodes)
    check_functions(name, function=function)

    def send(adjacency: Adjacency, columns: tuple[Array, ...]) -> tuple[Array, ...]:
        rows, counts, edges = adjacency.out_of(as_nodes(columns[0]))
        if not len(rows):
            return ()
        source, *values = (np.repeat(column[rows], counts) for column in columns)
        target = adjacency.targets_of(edges)
        given = call(function, (source, target, *values, *(column[edges] for column in adjacency.values)))
        results = as_columns(given, len(target))
        if combine is None:
            return results
        found, totals = group_nodes(combine, as_nodes(results[0]), results[1:])
        return (found, *totals)

    return _along(graph, nodes, send, False, name)


def _along(graph: GraphCore, nodes: Stream, send: Send, is_placed: bool, name: str) -> Stream:
    """Return the results of `send` for each batch, computed once the edges of its time are indexed."""
    pact: Pacts = Broadcast()
    if graph.partition == "source":
        pact = Pipeline() if is_placed else by_node()
    builder = OperatorBuilder(graph.scope, name)
    batches = builder.add_input(nodes, pact)
    loaded = builder.add_input(graph.loaded, Pipeline(), frontier=True, drains=True)
    output, result = builder.add_output()
    layers = graph.layers
    waiting: list[tuple[Capability, Batch]] = []

    def give(capability: Any, batch: Batch) -> None:
        columns = of_columns(batch)
        parts = [Columns(sent) for layer in layers.at(capability.time) if (sent := send(layer, columns))]
        if parts:
            output.give(capability, concatenate(parts))

    def logic() -> None:
        # `loaded` has no messages, and its frontier does not move during an activation.
        frontier = loaded.frontier
        for capability, batch in batches:
            if frontier.admits(capability.time):
                waiting.append((capability.retain(), batch))
            else:
                give(capability, batch)
        for held, batch in waiting:
            if not frontier.admits(held.time):
                batches.handle(held.time)
                with held:
                    give(held, batch)
        # `with held` has dropped the capability of each batch that was sent.
        waiting[:] = [each for each in waiting if each[0].output is not None]

    builder.build_from(logic)
    outer = graph.outermost.scope
    # A batch that waits holds a capability at this output, so the frontier of `result` shows at which times edges may
    # still be read.
    layers.watch(result if graph.scope is outer else result.leave(outer))
    return result
