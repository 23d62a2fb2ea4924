"""Every node learns the smallest label that reaches it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from differential import Collection, Variable, innermost
from differential.graphs.inputs import check_columns, check_inputs, check_records
from timely.lowlevel import check_functions


def propagate(edges: Collection, labels: Collection, *, rounds: Callable[..., Any] | None = None) -> Collection:
    """Return (node, smallest label) over all labels of nodes from which the node can be reached, its own included.

    `labels` holds (node, label). This is label propagation: in each round, each node whose label fell sends it to its
    neighbours. With `rounds`, a function of (node, label), a label takes part only from that round on. If the smallest
    labels enter first, most nodes receive their final label before they would have passed on any other. The result is
    the same.

    >>> def program(scope):
    ...     edges = Collection.of(scope, np.array([2, 1]), np.array([1, 3]))
    ...     return propagate(edges, Collection.of(scope, np.array([1, 2, 3]), np.array([10, 5, 7])))
    >>> example(program)
    [((1, 5), 1), ((2, 5), 1), ((3, 5), 1)]
    """
    if rounds is not None:
        check_functions("propagate", rounds=rounds)
    check_inputs("propagate", edges=edges)
    check_records("propagate", labels=labels)
    check_columns("propagate", edges=edges, labels=labels)
    edges, labels = innermost(edges, labels)
    with labels.scope.iterative("propagate") as inner:
        own = labels.enter(inner) if rounds is None else labels.enter_at(inner, rounds)
        received = Variable(inner)
        smallest = received.collection.concat(own).min()
        received.set(smallest.join_map(edges, lambda node, label, neighbour: (neighbour, label)))
        return smallest.leave()
