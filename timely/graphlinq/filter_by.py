"""Select nodes by another stream."""

from __future__ import annotations

from timely import Stream
from timely.graphlinq.in_order import Given, by_node, in_order
from timely.graphlinq.index import Index, as_nodes


def filter_by(nodes: Stream, chosen: Stream, *, name: str = "filter_by") -> Stream:
    """Return the records of `nodes` whose node has arrived on `chosen`, at their time or before.

    Edges may be selected as well, by their sources: their first column is a node, too.

    >>> values, chosen = (np.array([1, 2, 3]), np.array([10, 20, 30])), np.array([3, 1])
    >>> example(lambda scope: filter_by(scope.to_stream(values), scope.to_stream(chosen)))
    [(1, 10), (3, 30)]
    """
    index = Index()

    def compute(given: Given, more: Given) -> Given:
        if more is not None:
            index.include(as_nodes(more[0]))
        if given is None:
            return None
        is_chosen = index.slots(as_nodes(given[0])) >= 0
        return tuple(column[is_chosen] for column in given)

    return in_order([(nodes, by_node()), (chosen, by_node())], compute, name)
