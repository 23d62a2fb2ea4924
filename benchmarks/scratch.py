"""Answers from scratch by other Python tools: SciPy, NumPy, plain Python and networkx, on the same graphs.

The graphs are Debian's and a random one. The tools are SciPy, label propagation in NumPy, union-find in plain Python,
networkx (including the time to build its graph), and the first answer of a dataflow, which then follows changes. Each
answers `TIMES` times in succession, and the median counts, so that each uses memory that its process has touched.
"""

from __future__ import annotations

import statistics
import time as clock
from importlib.util import find_spec

import numpy as np

from benchmarks import scc, wcc
from benchmarks.graphs import ChangingGraph, DebianGraph, Ints, RandomGraph
from benchmarks.harness import WARM_UP, Case, Figures, check
from benchmarks.incremental import Definition, Fingerprint, FromScratch, Session, warm_up
from differential.graphs import cyclic_edges, weakly_connected_components
from timely import Worker, execute_directly

TIMES = 3
OURS, SCIPY_RATIO = "this library, first answer s", "this library / SciPy"

CASES = [
    Case(
        f"scratch {algorithm} {size}",
        "scratch",
        {"algorithm": algorithm, "nodes": nodes, "edges": edges},
        limits={SCIPY_RATIO: 10},
    )
    for algorithm in ("wcc", "scc")
    for size, nodes, edges in (("Debian 59k/279k", 0, 0), ("10k/20k", 10_000, 20_000))
]


def numpy_labels(source: Ints, target: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Return (node, smallest node of its component) for nodes with edges, by label propagation in NumPy."""
    labels = np.arange(nodes)
    while True:
        before = labels.copy()
        np.minimum.at(labels, target, labels[source])
        np.minimum.at(labels, source, labels[target])
        labels = labels[labels]
        if (labels == before).all():
            return wcc.of_present(labels, source, target)


def union_find(source: Ints, target: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Return the same, by union-find in plain Python."""
    parent = list(range(nodes))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    for a, b in zip(source.tolist(), target.tolist()):
        a, b = root(a), root(b)
        if a != b:
            parent[max(a, b)] = min(a, b)
    return wcc.of_present(np.array([root(node) for node in range(nodes)]), source, target)


def networkx_components(source: Ints, target: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Return the same, computed by networkx."""
    return wcc.of_present(_networkx_labels(source, target, nodes, is_directed=False), source, target)


def networkx_cycles(source: Ints, target: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Return the edges within strongly connected components, computed by networkx."""
    labels = _networkx_labels(source, target, nodes, is_directed=True)
    within = labels[source] == labels[target]
    return source[within], target[within]


def _networkx_labels(source: Ints, target: Ints, nodes: int, is_directed: bool) -> Ints:
    """Return, for each node, the smallest node of its component, which is a strong one if edges are directed."""
    import networkx

    graph = networkx.DiGraph() if is_directed else networkx.Graph()
    graph.add_edges_from(zip(source.tolist(), target.tolist()))
    labels = np.arange(nodes)
    components = networkx.strongly_connected_components if is_directed else networkx.connected_components
    for component in components(graph):
        labels[list(component)] = min(component)
    return labels


ALGORITHMS: dict[str, tuple[Definition, dict[str, FromScratch]]] = {
    "wcc": (
        weakly_connected_components,
        {
            "SciPy s": wcc.from_scratch,
            "NumPy label propagation s": numpy_labels,
            "union-find in plain Python s": union_find,
            "networkx, with its graph, s": networkx_components,
        },
    ),
    "scc": (cyclic_edges, {"SciPy s": scc.from_scratch, "networkx, with its graph, s": networkx_cycles}),
}


def measure(algorithm: str, nodes: int, edges: int) -> Figures:
    """Return the seconds of each tool. Raises `WrongAnswer` if two answers differ."""
    graph: ChangingGraph = RandomGraph(nodes, edges) if nodes else DebianGraph()
    definition, others = ALGORITHMS[algorithm]

    def program(worker: Worker) -> tuple[float, float, Fingerprint]:
        warm, seconds = warm_up(worker, definition), []
        for _ in range(TIMES):
            session = Session(worker, definition, graph)
            seconds.append(session.load())
            session.close()
        return warm, statistics.median(seconds), session.fingerprint

    warm, ours, fingerprint = execute_directly(program)
    figures = {WARM_UP: warm, OURS: ours}
    small = RandomGraph(10, 20)
    for name, from_scratch in others.items():
        if name.startswith("networkx") and find_spec("networkx") is None:
            continue
        from_scratch(*small.initial, small.nodes)  # loads the modules of the tool
        figures[name] = _seconds(from_scratch, graph, str(fingerprint), name)
    figures[SCIPY_RATIO] = ours / figures["SciPy s"]
    return figures


def _seconds(from_scratch: FromScratch, graph: ChangingGraph, expected: str, name: str) -> float:
    seconds = []
    for _ in range(TIMES):
        begun = clock.perf_counter()
        columns = from_scratch(*graph.initial, graph.nodes)
        seconds.append(clock.perf_counter() - begun)
    found = Fingerprint()
    found.add(columns, np.ones(len(columns[0]), np.int64))
    check(str(found) == expected, f"{name}: {found}, but the dataflow's answer is {expected}")
    return statistics.median(seconds)
