"""Changing graphs that are the same in every run.

The random graph has `edges` pairs of a uniform source and a uniform target among `nodes`, and keeps multiple edges and
loops: edge i is (h(2i) mod nodes, h(2i+1) mod nodes), where h(k) is the k-th output of SplitMix64 seeded with 0.
Change j removes edge j and adds edge `edges` + j. The Debian graph is that of `examples/upgrade.py`; change j is the
j-th insertion or removal of the upgrade.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import example

Ints = NDArray[np.int64]
Edges = tuple[Ints, Ints]


class ChangingGraph(Protocol):
    """A graph and its successive changes."""

    nodes: int
    initial: Edges

    def changes(self, first: int, count: int) -> tuple[Ints, Ints, Ints]:
        """Return source, target and diff of `count` changes."""
        ...

    def after(self, changes: int) -> Edges:
        """Return the edges of the graph after that many changes."""
        ...


class RandomGraph:
    """The random graph with that many nodes and edges."""

    def __init__(self, nodes: int, edges: int) -> None:
        self.nodes = nodes
        self._edges = edges
        self.initial = self.after(0)

    def changes(self, first: int, count: int) -> tuple[Ints, Ints, Ints]:
        """Return source, target and diff of `count` changes: removals, then insertions."""
        gone, new = self._range(first, count), self._range(self._edges + first, count)
        diffs = np.repeat(np.array([-1, 1]), count)
        return np.append(gone[0], new[0]), np.append(gone[1], new[1]), diffs

    def after(self, changes: int) -> Edges:
        """Return the edges of the graph after that many changes."""
        return self._range(changes, self._edges)

    def _range(self, first: int, count: int) -> Edges:
        ends = (splitmix(np.arange(2 * first, 2 * (first + count))) % np.uint64(self.nodes)).astype(np.int64)
        return ends[0::2].copy(), ends[1::2].copy()


class DebianGraph:
    """The dependencies of Debian's packages, before and during an upgrade from one release to the next."""

    def __init__(self) -> None:
        upgrade = example("debian").load()
        self._source, self._target, self._diff = upgrade.source, upgrade.target, upgrade.diff
        self._first = int(upgrade.starts[1])
        self.nodes = len(upgrade.names)
        self.initial = self.after(0)

    def changes(self, first: int, count: int) -> tuple[Ints, Ints, Ints]:
        """Return source, target and diff of `count` changes."""
        rows = slice(self._first + first, self._first + first + count)
        return self._source[rows], self._target[rows], self._diff[rows]

    def after(self, changes: int) -> Edges:
        """Return the edges of the graph after that many changes."""
        end = self._first + changes
        edges, which = np.unique(self._source[:end] * self.nodes + self._target[:end], return_inverse=True)
        present = edges[np.bincount(which, self._diff[:end]) > 0]
        return present // self.nodes, present % self.nodes


def splitmix(numbers: Ints) -> NDArray[np.uint64]:
    """Return the outputs of SplitMix64, seeded with 0, at the given positions."""
    return mixed((numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))


def mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return SplitMix64's finaliser of each word."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
