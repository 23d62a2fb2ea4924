"""Connected components of a graph to which edges are only added, by union-find: `examples/union_find.py`.

The nodes are integers, and the forest is an array. If it does not fit into the processor's cache, the figure is
that of the memory.
"""

from __future__ import annotations

import numpy as np

from benchmarks.graphs import Ints, RandomGraph
from benchmarks.harness import Case, Figures, check, example
from timely import execute

RATE = "M edges/s"


def _case(name: str, nodes: int, edges: int, processes: int, quick: bool, least: float) -> Case:
    parameters = {"nodes": nodes, "edges": edges}
    return Case(f"unionfind {name}", "unionfind", parameters, processes, quick=quick, limits={RATE: least})


CASES = [
    _case("100k/1M", 100_000, 1_000_000, 1, True, 8.8),
    _case("1M/10M", 1_000_000, 10_000_000, 1, False, 8.8),
    _case("1M/10M, 2 processes", 1_000_000, 10_000_000, 2, False, 12.2),
    _case("10M/10M", 10_000_000, 10_000_000, 1, False, 8.8),
]


def measure(nodes: int, edges: int, batch: int = 100_000) -> Figures:
    """Return the figures of adding the random graph's edges, `batch` at a time."""
    program = example("union_find").program
    workers = execute(lambda worker: (worker.index, *program(worker, nodes, edges, batch)))
    index, source, target, seconds = workers[0]
    if not index:
        _check(nodes, edges, source, target)
    return {RATE: 1e-6 * edges / seconds}


def _check(nodes: int, edges: int, source: Ints, target: Ints) -> None:
    """Compare the components of a forest with those of all edges."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    def labels(source: Ints, target: Ints) -> tuple[int, Ints]:
        graph = csr_matrix((np.ones(len(source), np.int8), (source, target)), shape=(nodes, nodes))
        number, found = connected_components(graph, directed=False)
        return number, found

    number, whole = labels(*RandomGraph(nodes, edges).initial)
    found, part = labels(source, target)
    check(len(source) == nodes - number, f"a forest of {len(source)} edges cannot make {number} components")
    # Labels are numbered in the order of each component's smallest node, so equal partitions have equal labels.
    check(
        found == number and bool((whole == part).all()),
        "the forest connects different nodes from those that the edges connect",
    )
