"""Vertex programs of `timely.graphlinq` on a random graph, compared with SciPy or NumPy.

The first answer is measured from sending the edges: they are distributed to the workers and indexed, and the program
runs. Then one edge arrives that exists already, and the program runs again from the beginning, on the loaded graph. For
SciPy the time is given with and without building its matrix of the edges. The process has touched the memory that
either needs beforehand, so the time that a machine takes to provide memory is not part of the figures.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import scratch
from benchmarks.graphs import Ints, RandomGraph
from benchmarks.harness import Case, Figures, check
from timely import Stream, Worker, execute, new_input
from timely.data.container import Array, of_columns
from timely.graphlinq import (
    Graph,
    landmark_distances,
    pagerank,
    strongly_connected_components,
    weakly_connected_components,
)

FIRST, AGAIN = "first answer s", "second run s"
SCIPY, SCIPY_AGAIN, RATIO, RATIO_AGAIN = (
    "SciPy s",
    "SciPy without its matrix s",
    "first answer / SciPy",
    "second run / SciPy without its matrix",
)
NUMPY = "NumPy label propagation s"
LANDMARKS = list(range(8))
SUPERSTEPS = 20

Columns = tuple[Array, ...]

DEFINITIONS: dict[str, Callable[[Graph], Stream]] = {
    "pagerank": lambda graph: pagerank(graph, rounds=SUPERSTEPS),
    "wcc": weakly_connected_components,
    "scc": strongly_connected_components,
    "asp": lambda graph: landmark_distances(graph, LANDMARKS),
}

CASES = [
    Case(
        f"graphlinq_{algorithm} 100k/1M{suffix}",
        "graphlinq",
        {"algorithm": algorithm, "nodes": 100_000, "edges": 1_000_000},
        processes=processes,
        quick=processes == 1,
        limits={RATIO: 5, RATIO_AGAIN: 5} if processes == 1 else {},
    )
    for suffix, processes in (("", 1), (", 2 processes", 2))
    for algorithm in DEFINITIONS
]


def measure(algorithm: str, nodes: int, edges: int) -> Figures:
    """Return the figures of the first worker of this process. Raises `WrongAnswer` if SciPy's answer differs."""
    small, graph = RandomGraph(20, 60), RandomGraph(nodes, edges)
    execute(lambda worker: _seconds(worker, algorithm, graph))
    worker, first, again, found = execute(lambda worker: _seconds(worker, algorithm, graph))[0]
    figures = {FIRST: first, AGAIN: again}
    if worker.index:
        return figures
    BY_SCIPY[algorithm](_matrix(*small.initial, small.nodes))  # loads SciPy's modules
    begun = clock.perf_counter()
    matrix = _matrix(*graph.initial, nodes)
    built = clock.perf_counter() - begun
    begun = clock.perf_counter()
    expected = BY_SCIPY[algorithm](matrix)
    figures[SCIPY_AGAIN] = clock.perf_counter() - begun
    figures[SCIPY] = built + figures[SCIPY_AGAIN]
    figures |= {RATIO: first / figures[SCIPY], RATIO_AGAIN: again / figures[SCIPY_AGAIN]}
    node, *answers = found
    # A single worker has all nodes with edges; with several workers, the first has a part.
    check(worker.peers > 1 or np.array_equal(np.sort(node), np.union1d(*graph.initial)), "not one answer for each node")
    for answer, column in zip(answers, expected, strict=True):
        check(np.allclose(answer, column[node], rtol=1e-9), f"the answer of {algorithm} differs from SciPy's")
    if algorithm == "wcc":
        begun = clock.perf_counter()
        scratch.numpy_labels(*graph.initial, nodes)
        figures[NUMPY] = clock.perf_counter() - begun
    return figures


def _seconds(worker: Worker, algorithm: str, graph: RandomGraph) -> tuple[Worker, float, float, Columns]:
    """Return the worker, the seconds of the first and the second run, and the worker's part of the first answer."""
    answers: dict[int, list[Columns]] = {0: [], 1: []}
    with worker.dataflow(algorithm) as scope:
        session, stream = new_input(scope, name="edges")
        answer = DEFINITIONS[algorithm](Graph(stream))
        probe = answer.inspect_batch(lambda time, batch: answers[time[0]].append(of_columns(batch))).probe()
    source, target = (column[worker.index :: worker.peers] for column in graph.initial)
    seconds = []
    for rows in (slice(None), slice(0, 1)):
        begun = clock.perf_counter()
        session.send(source[rows], target[rows])
        session.advance_to(session.epoch + 1)
        worker.step_while(lambda: probe.less_than(session.time))
        seconds.append(clock.perf_counter() - begun)
    session.close()
    worker.step_while(lambda: not probe.done())
    first = tuple(np.concatenate(parts) for parts in zip(*answers[0]))
    return worker, seconds[0], seconds[1], first


def _matrix(source: Ints, target: Ints, nodes: int) -> Any:
    from scipy.sparse import csr_matrix

    return csr_matrix((np.ones(len(source)), (source, target)), shape=(nodes, nodes))


def _ranks(matrix: Any) -> Columns:
    """Return the ranks, computed by products of a matrix and a vector."""
    backward = matrix.T.tocsr()
    degrees = np.asarray(matrix.sum(axis=1)).ravel()
    present = (degrees > 0) | (np.asarray(matrix.sum(axis=0)).ravel() > 0)
    ranks = present.astype(float)
    for _ in range(SUPERSTEPS):
        lost = ranks[degrees == 0].sum() / present.sum()
        ranks = np.where(present, 0.15 + 0.85 * (backward @ (ranks / np.maximum(degrees, 1)) + lost), 0.0)
    return (ranks,)


def _components(matrix: Any, connection: str) -> Columns:
    """Return, for each node, the smallest node of its component."""
    from scipy.sparse.csgraph import connected_components

    number, labels = connected_components(matrix, connection=connection)
    chosen = np.zeros(number, np.int64)
    nodes = np.arange(matrix.shape[0])[::-1]
    chosen[labels[nodes]] = nodes
    return (chosen[labels],)


def _hops(matrix: Any) -> Columns:
    from scipy.sparse.csgraph import dijkstra

    hops = dijkstra(matrix, unweighted=True, indices=LANDMARKS)
    return tuple(np.where(np.isinf(hops), -1, hops))


BY_SCIPY: dict[str, Callable[[Any], Columns]] = {
    "pagerank": _ranks,
    "wcc": lambda matrix: _components(matrix, "weak"),
    "scc": lambda matrix: _components(matrix, "strong"),
    "asp": _hops,
}
