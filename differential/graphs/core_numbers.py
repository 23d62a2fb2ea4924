"""The largest core of a graph that each node is in."""

from __future__ import annotations

from typing import Any

import numpy as np

from differential import Collection, Groups, Variable
from differential.graphs.directions import neighbours
from differential.graphs.inputs import check_records


def core_numbers(edges: Collection) -> Collection:
    """Return (node, the largest k whose k-core it is in) for every node that has a neighbour other than itself.

    Edges count in both directions, once however often they occur; edges from a node to itself do not count. Each
    node's number is the largest h such that h of its neighbours have h or more: in the first round by bounds of their
    degrees, then by their numbers in the round before. Numbers only fall, so they settle, and they settle on the core
    numbers. (Lü, Zhou, Zhang and Stanley, "The H-index of a network node and its relation to degree and coreness",
    Nature Communications 7, 2016.) A few rounds suffice on most graphs; a path takes half as many as it has nodes.

    A node's bound is the least power of two that is not less than its degree. So an edge more or less at a node of many
    neighbours changes what these receive only if the degree passes a power of two, or if the node's number changes.

    >>> edges = np.array([[1, 2], [2, 3], [3, 1], [3, 4]]).T
    >>> example(lambda scope: core_numbers(Collection.of(scope, *edges)))
    [((1, 2), 1), ((2, 2), 1), ((3, 2), 1), ((4, 1), 1)]
    """
    check_records("core_numbers", edges=edges)
    joined = neighbours(edges)
    bounds = joined.count().map(lambda node, degree: (node, _power_of_two(degree)), name="bound")
    # The rule is monotone, core numbers are its largest fixed point, and no bound is below a degree: core numbers <=
    # rule(bounds) <= degrees <= bounds. So numbers only fall from the bounds, and settle on the largest fixed point.
    first = joined.join_map(bounds, lambda node, neighbour, bound: (neighbour, bound))
    with edges.scope.iterative("core_numbers") as inner:
        received = Variable(inner, first)
        numbers = received.collection.reduce(_h_index)
        received.set(numbers.join_map(joined, lambda node, number, neighbour: (neighbour, number)))
        return numbers.leave()


def _power_of_two(degrees: Any) -> Any:
    """Return the least powers of two that are not less than the given numbers, which are from 1 to 2 ** 53."""
    # A number is fraction · 2 ** exponent with 1/2 <= fraction < 1, and a power of two has the fraction 1/2.
    fractions, exponents = np.frexp(degrees)
    return np.left_shift(1, exponents.astype(np.int64) - (fractions == 0.5))


def _h_index(groups: Groups) -> tuple[Any, Any]:
    """Return, of each group, the largest h such that h of its numbers are h or more."""
    # In descending order, the numbers up to each one are those that are as large. So h is the greatest of all
    # min(number, how many there are up to it).
    order = np.lexsort((-groups.values[0], groups.index))
    starts = groups.offsets[:-1]
    so_far = np.cumsum(groups.counts[order])
    before = so_far[starts] - groups.counts[order][starts]
    as_large = so_far - np.repeat(before, np.diff(groups.offsets))
    return np.arange(len(groups)), np.maximum.reduceat(np.minimum(groups.values[0][order], as_large), starts)
