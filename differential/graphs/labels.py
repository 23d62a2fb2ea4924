"""Labels of nodes: what components propagate in place of nodes that are not small integers.

Propagation is fast if a few labels, the smallest, enter first (`differential.graphs.components`). The round in which a
label enters must follow from the label alone. For integers from 0 on, their magnitude serves. For names, no rule about
characters does: those of one graph often begin alike, as addresses on the web do, and then most would enter at once.
So would most of the large integers of one graph, if they are numbers of accounts or contain a date, say. So any other
node is labelled by a hash: half of all hashes have the largest magnitude, a quarter the next one, and so on.
Propagating yields the smallest label of each component, and `with_least_nodes` its least node.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from differential import Arrangement, Collection, Groups
from timely.errors import DataError
from timely.lowlevel import Typed, hash_columns

_FIRST_HASH = 1 << 24
"""The least label that is a hash. Integers below it are their own labels, and so less than all hashes."""
_ALIKE = 8
"""How many nodes may have one hash of 59 bits: they are numbered."""


def labelled(nodes: Collection, names: Collection | Arrangement | None = None) -> Collection:
    """Return (node, label) for each of some nodes: integers that differ. A small integer is its own label.

    `names` are the `labels_of_names` of these nodes and perhaps of others; without them the nodes must be distinct.

    >>> example(lambda scope: labelled(Collection.of(scope, np.array([7, 5]))))
    [((5, 5), 1), ((7, 7), 1)]
    """
    small = nodes.filter(_is_small).map(lambda node: (node, node))
    others = nodes.filter(lambda node: ~_is_small(node))
    if names is None:
        return small.concat(_labels(others))
    return small.concat(others.join_map(names, lambda node, label: (node, label)))


def labels_of_names(nodes: Collection) -> Collection:
    """Return (node, label) for each node that is not a small integer, once however often it occurs.

    >>> example(lambda scope: labels_of_names(Collection.of(scope, np.array([7, 5]))))
    []
    """
    return _labels(nodes.filter(lambda node: ~_is_small(node)).distinct())


def _labels(names: Collection) -> Collection:
    """Return (node, label) for each of distinct nodes, by hashes."""
    hashed = names.map(lambda node: (_FIRST_HASH + _hash(node), node))
    moved = hashed.reduce(_numbered, name="alike")  # hardly ever a row: two nodes seldom have one hash
    return hashed.map(lambda label, node: (node, label)).concat(
        moved.map(lambda label, node, number: (node, label)).negate(),
        moved.map(lambda label, node, number: (node, label + number)),
    )


def with_least_nodes(reached: Collection) -> Collection:
    """Return (node, least node of those with the same label), given (node, label) with labels of `labelled`.

    >>> example(lambda scope: with_least_nodes(Collection.of(scope, np.array(["b", "a"]), np.array([2**30, 2**30]))))
    [(('a', 'a'), 1), (('b', 'a'), 1)]
    """
    # A label that is not a hash is the least node: the other nodes with it are larger, or it would not be their label.
    hashed = reached.filter(lambda _, label: label >= _FIRST_HASH)
    members = hashed.map(lambda node, label: (label, node)).arrange_by_key()
    least = members.min()
    return reached.filter(lambda _, label: label < _FIRST_HASH).concat(
        members.join_map(least, lambda label, node, least: (node, least))
    )


def _is_small(node: Any) -> Any:
    """Return a mask: which nodes are integers below all hashes."""
    if node.dtype.kind not in "iu" or isinstance(node, Typed):
        return np.zeros(len(node), bool)
    return node < _FIRST_HASH


def _hash(node: Any) -> Any:
    """Return a multiple of `_ALIKE`, from 0 on, for each node."""
    # 59 bits times 8 take 62, so no label overflows. A number below 8 added to one hash does not reach the next.
    return (hash_columns((node,)) >> np.uint64(5)).astype(np.int64) * _ALIKE


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
