"""A state for each node, changed by the records that arrive for the node.

Transitions are functions of whole columns, with one row per node. If nodes have several records at a time, the first
records of all nodes are processed together, then the second ones, and so on. So a node with very many records causes as
many calls; use `aggregate` first if that has the same meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from timely import Columns, Stream
from timely.errors import DataError
from timely.graphlinq.in_order import Given, by_node, in_order
from timely.graphlinq.index import Ints, as_nodes, is_increasing
from timely.graphlinq.table import NodeTable
from timely.lowlevel import as_columns, as_mask, call, check_functions, concatenate

Transition = Callable[..., Any]
"""`transition(*state, *values)` returns (state, output), or (state, output, whether to output)."""


def state_machine(
    nodes: Stream, init: Callable[..., Any], transition: Transition, *, name: str = "state_machine"
) -> Stream:
    """Return (node, output) for each transition of a node, in the order of times.

    `init(node)` is the state of a node before its first record. `transition(*state, *values)` returns the new state and
    the output, each a column or a tuple of columns, and optionally a boolean column that selects the rows to output.

    >>> values = (np.array([7, 3, 7]), np.array([5, 1, 4]))
    >>> def running_total(total, value):
    ...     return total + value, total + value
    >>> sorted(example(lambda scope: state_machine(scope.to_stream(values), lambda node: 0, running_total)))
    [(3, 1), (7, 5), (7, 9)]
    """
    check_functions(name, init=init, transition=transition)
    table = NodeTable(init)
    return in_order([(nodes, by_node())], lambda given: _moved(table, given, transition), name)


def binary_state_machine(
    left: Stream,
    right: Stream,
    init: Callable[..., Any],
    on_left: Transition,
    on_right: Transition,
    *,
    name: str = "binary_state_machine",
) -> Stream:
    """Return what `state_machine` returns, for a state that the records of two streams change.

    At each time, all records of `left` precede those of `right`. Both transitions return the same columns of output. If
    `left` only sets the initial states, its transition returns `(value, value, False)`.

    >>> paid, used = (np.array([1, 2]), np.array([10, 20])), (np.array([2]), np.array([5]))
    >>> example(lambda scope: binary_state_machine(
    ...     scope.to_stream(paid), scope.to_stream(used), lambda node: 0,
    ...     lambda balance, amount: (balance + amount, balance + amount),
    ...     lambda balance, amount: (balance - amount, balance - amount)))
    [(1, 10), (2, 20), (2, 15)]
    """
    check_functions(name, init=init, on_left=on_left, on_right=on_right)
    table = NodeTable(init)

    def compute(first: Given, second: Given) -> Given:
        parts = [_moved(table, first, on_left), _moved(table, second, on_right)]
        found = [Columns(part) for part in parts if part is not None]
        return concatenate(found).columns if found else None

    return in_order([(left, by_node()), (right, by_node())], compute, name)


def _moved(table: NodeTable, given: Given, transition: Transition) -> Given:
    """Change the states of the given nodes; return the output, if there is any."""
    if given is None:
        return None
    slots = table.include(as_nodes(given[0]))
    outputs = []
    for rows in one_each(slots):
        at = slots[rows]
        state, output, *where = _result(call(transition, (*table.rows(at), *(column[rows] for column in given[1:]))))
        table.put(at, as_columns(state, len(at)))
        moved = (table.index.nodes[at], *as_columns(output, len(at)))
        if where:
            mask = as_mask(where[0], len(at))
            moved = tuple(column[mask] for column in moved)
        outputs.append(moved)
    return concatenate(list(map(Columns, outputs))).columns


def _result(given: Any) -> tuple[Any, ...]:
    if not isinstance(given, tuple) or not 2 <= len(given) <= 3:
        raise DataError("a transition must return (state, output), or (state, output, whether to output)")
    return given


def one_each(slots: Ints) -> Iterator[Ints | slice]:
    """Yield rows in which each slot occurs at most once: the first row of every slot, then the second ones, ...

    >>> [rows.tolist() for rows in one_each(np.array([4, 2, 4, 4]))]
    [[1, 0], [2], [3]]
    """
    if is_increasing(slots):
        yield slice(None)
        return
    order = np.argsort(slots, kind="stable")
    is_first = np.append(True, slots[order][1:] != slots[order][:-1])
    starts = np.flatnonzero(is_first)
    # How many rows before each row, in the order of slots, are of the same slot.
    turns = np.arange(len(slots)) - np.repeat(starts, np.diff(starts, append=len(slots)))
    by_turn = np.argsort(turns, kind="stable")
    yield from np.split(order[by_turn], np.cumsum(np.bincount(turns))[:-1])
