"""Labels of nodes: what components propagate in place of nodes that are not integers.

Propagation is fast if a few labels, the smallest, enter first (`differential.graphs.components`). The round in which a
label enters must follow from the label alone. For integers from 0 on, their magnitude serves. For names, no rule about
characters does: those of one graph often begin alike, as addresses on the web do, and then most would enter at once.
So a node that is not an integer is labelled by a hash: half of all hashes have the largest magnitude, a quarter the
next one, and so on. Propagating yields the smallest label of each component, and `with_least_nodes` its least node.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from differential import Arrangement, Collection, Groups
from timely.errors import DataError
from timely.lowlevel import Typed, hash_columns

_ALIKE = 8
"""How many nodes may have one hash of 60 bits: they are numbered."""


def labelled(nodes: Collection, names: Collection | Arrangement | None = None) -> Collection:
    """Return (node, label) for each of some nodes: integers that differ. An integer is its own label.

    `names` are the `labels_of_names` of these nodes and perhaps of others; without them the nodes must be distinct.

    >>> example(lambda scope: labelled(Collection.of(scope, np.array([7, 5]))))
    [((5, 5), 1), ((7, 7), 1)]
    """
    integers = nodes.filter(_is_integer).map(lambda node: (node, node))
    if names is None:
        return integers.concat(_labels(nodes.filter(_is_other)))
    return integers.concat(nodes.filter(_is_other).join_map(names, lambda node, label: (node, label)))


def labels_of_names(nodes: Collection) -> Collection:
    """Return (node, label) for each node that is not an integer, once however often it occurs.

    >>> example(lambda scope: labels_of_names(Collection.of(scope, np.array([7, 5]))))
    []
    """
    return _labels(nodes.filter(_is_other).distinct())


def _labels(names: Collection) -> Collection:
    """Return (node, label) for each of distinct nodes, by hashes."""
    hashed = names.map(lambda node: (_hash(node), node))
    moved = hashed.reduce(_numbered, name="alike")  # hardly ever a row: two nodes seldom have one hash
    return hashed.map(lambda label, node: (node, label)).concat(
        moved.map(lambda label, node, number: (node, label)).negate(),
        moved.map(lambda label, node, number: (node, label + number)),
    )


def with_least_nodes(reached: Collection) -> Collection:
    """Return (node, least node of those with the same label), given (node, label) with labels of `labelled`.

    An integer is its own label, and the label is the least node already.

    >>> example(lambda scope: with_least_nodes(Collection.of(scope, np.array(["b", "a"]), np.array([8, 8]))))
    [(('a', 'a'), 1), (('b', 'a'), 1)]
    """
    members = reached.filter(lambda node, _: _is_other(node)).map(lambda node, label: (label, node)).arrange_by_key()
    least = members.min()
    return reached.filter(lambda node, _: _is_integer(node)).concat(
        members.join_map(least, lambda label, node, least: (node, least))
    )


def _is_integer(node: Any) -> Any:
    """Return a mask for all rows: whether the nodes are integers, which is the same for all nodes of a graph."""
    return np.full(len(node), node.dtype.kind in "iu" and not isinstance(node, Typed))


def _is_other(node: Any) -> Any:
    return ~_is_integer(node)


def _hash(node: Any) -> Any:
    """Return a multiple of `_ALIKE`, from 0 on, for each node."""
    # 60 bits times 8 take 63, so no label is negative. A number below 8 added to one hash does not reach the next.
    return (hash_columns((node,)) >> np.uint64(4)).astype(np.int64) * _ALIKE


def _numbered(groups: Groups) -> Any:
    """Return (group, node, number) for the nodes that have the same hash as another one, but for the first of these."""
    size = np.diff(groups.offsets)
    group = np.flatnonzero(size > 1)
    if len(group) and size.max() > _ALIKE:
        alike = groups.values[0][groups.offsets[size.argmax()] :][: _ALIKE + 1]
        raise DataError(f"more than {_ALIKE} nodes have the same hash: {', '.join(map(repr, alike.tolist()))}")
    more = size[group] - 1
    number = np.arange(1, 1 + more.sum()) - np.repeat(np.cumsum(more) - more, more)
    group = np.repeat(group, more)
    return group, groups.values[0][groups.offsets[group] + number], number
