"""Answers from scratch by other Python tools, on the same graphs: SciPy, networkx, igraph, and plain Python.

The graphs are Debian's and random ones. The questions are components, ranks (PageRank), and distances from landmarks.
The tools are SciPy, label propagation in NumPy, union-find in plain Python, networkx and igraph (with and without
the time to build their graphs), and the first answer of a dataflow, which then follows changes. Each answers `TIMES`
times in succession, and the median counts, so that each uses memory that its process has touched. All answers are
compared. Ranks are equal within a thousandth: here they are whole numbers after twenty rounds, elsewhere the limit as a
float.
"""

from __future__ import annotations

import statistics
import time as clock
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import bfs, pagerank, scc, wcc
from benchmarks.graphs import ChangingGraph, DebianGraph, Ints, RandomGraph
from benchmarks.harness import WARM_UP, Case, Figures, check
from benchmarks.incremental import Definition, Fingerprint, FromScratch, Session, warm_up
from benchmarks.tools import LANDMARKS, TOOLS, UNREACHED
from differential import Collection
from differential.graphs import cyclic_edges, landmark_distances, pagerank as ranks, weakly_connected_components
from timely import Worker, execute_directly

TIMES = 3
OURS, CHANGE, SCIPY = "this library, first answer s", "this library, 1 change, median s", "SciPy s"
SCIPY_RATIO = "this library / SciPy"
RANK_ERROR = 1e-3
BUILT, AT_HAND = "{}, with its graph, s", "{}, its graph at hand, s"


def _case(question: str, size: str, nodes: int, edges: int, changes: int, quick: bool = True) -> Case:
    parameters = {"question": question, "nodes": nodes, "edges": edges, "changes": changes}
    limits = {SCIPY_RATIO: 10} if quick and question in ("wcc", "scc") and edges < 100_000 else {}
    return Case(f"scratch {question} {size}", "scratch", parameters, quick=quick, limits=limits)


CASES = [
    *(_case(question, "Debian 59k/279k", 0, 0, 100) for question in ("wcc", "scc")),
    *(_case(question, "10k/20k", 10_000, 20_000, 20) for question in ("wcc", "scc")),
    *(_case(question, "10k/100k", 10_000, 100_000, 20) for question in ("pagerank", "scc", "wcc", "landmarks")),
    *(
        _case(question, "100k/1M", 100_000, 1_000_000, changes, quick=False)
        for question, changes in (("pagerank", 5), ("scc", 20), ("wcc", 100), ("landmarks", 100))
    ),
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


def landmarks(edges: Collection) -> Collection:
    """Return (node, landmark, distance) for every node that can be reached from each landmark."""
    return landmark_distances(edges, Collection.of(edges.scope, np.arange(LANDMARKS)))


def distances_from_scratch(source: Ints, target: Ints, nodes: int) -> tuple[Ints, ...]:
    """Return the same, computed by SciPy, one search for each landmark."""
    found = [bfs.from_scratch(source, target, nodes, start) for start in range(LANDMARKS)]
    each = np.repeat(np.arange(LANDMARKS), [len(reached) for reached, _ in found])
    return np.concatenate([reached for reached, _ in found]), each, np.concatenate([far for _, far in found])


@dataclass(frozen=True)
class Question:
    """A question about a graph: a dataflow, SciPy's answer, and the columns that an answer of another tool stands for.

    The answers are equal, or with `is_rank` the last columns are equal within `RANK_ERROR`.
    """

    definition: Definition
    from_scratch: FromScratch
    columns: Callable[[NDArray[Any], Ints, Ints], tuple[NDArray[Any], ...]]
    others: Mapping[str, FromScratch] = field(default_factory=dict)
    is_rank: bool = False


def _within(labels: Ints, source: Ints, target: Ints) -> tuple[Ints, Ints]:
    """Return the edges whose ends have the same label."""
    within = labels[source] == labels[target]
    return source[within], target[within]


def _ranked(shares: NDArray[Any], source: Ints, target: Ints) -> tuple[Ints, NDArray[Any]]:
    """Return (node, rank) for shares that add up to 1."""
    present, share = wcc.of_present(shares, source, target)
    return present, share * (pagerank.UNIT * len(present) / share.sum())


def _reached(distances: Ints, *_: Ints) -> tuple[Ints, Ints, Ints]:
    """Return (node, landmark, distance) of a row for each landmark."""
    landmark, node = np.nonzero(distances != UNREACHED)
    return node, landmark, distances[landmark, node]


QUESTIONS = {
    "wcc": Question(
        weakly_connected_components,
        wcc.from_scratch,
        wcc.of_present,
        {"NumPy label propagation s": numpy_labels, "union-find in plain Python s": union_find},
    ),
    "scc": Question(cyclic_edges, scc.from_scratch, _within),
    "pagerank": Question(
        lambda edges: ranks(edges, rounds=pagerank.ROUNDS, unit=pagerank.UNIT),
        pagerank.from_scratch,
        _ranked,
        is_rank=True,
    ),
    "landmarks": Question(landmarks, distances_from_scratch, _reached),
}


def measure(question: str, nodes: int, edges: int, changes: int) -> Figures:
    """Return the seconds of each tool. Raises `WrongAnswer` if two answers differ."""
    graph: ChangingGraph = RandomGraph(nodes, edges) if nodes else DebianGraph()
    asked = QUESTIONS[question]
    warm, first, change, fingerprint = execute_directly(lambda worker: _ours(worker, asked, graph, changes))
    figures = {WARM_UP: warm, OURS: first, CHANGE: change}
    small = RandomGraph(10, 20)
    answer: tuple[NDArray[Any], ...] = ()
    for name, from_scratch in {SCIPY: asked.from_scratch, **asked.others}.items():
        from_scratch(*small.initial, small.nodes)  # loads the modules of the tool
        figures[name], columns = _timed(from_scratch, *graph.initial, graph.nodes)
        found = Fingerprint()
        found.add(columns, np.ones(len(columns[0]), np.int64))
        check(str(found) == str(fingerprint), f"{name}: {found}, but the dataflow's answer is {fingerprint}")
        answer = answer or columns
    figures |= _tools(question, graph, answer)
    figures[SCIPY_RATIO] = first / figures[SCIPY]
    return figures


def _ours(
    worker: Worker, asked: Question, graph: ChangingGraph, changes: int
) -> tuple[float, float, float, Fingerprint]:
    """Return the seconds to warm up, for the first answer and for a change, and the first answer's fingerprint."""
    warm, seconds = warm_up(worker, asked.definition), []
    for number in range(TIMES):
        session = Session(worker, asked.definition, graph)
        seconds.append(session.load())
        if number < TIMES - 1:
            session.close()
    initial = Fingerprint()
    initial.sum, initial.records = session.fingerprint.sum, session.fingerprint.records
    change = statistics.median(session.change(1) for _ in range(changes))
    session.close()
    expected = Fingerprint()
    columns = asked.from_scratch(*graph.after(session.changes_made), graph.nodes)
    expected.add(columns, np.ones(len(columns[0]), np.int64))
    check(str(session.fingerprint) == str(expected), f"wrong after {changes} changes: {session.fingerprint}")
    return warm, statistics.median(seconds), change, initial


def _tools(question: str, graph: ChangingGraph, expected: tuple[NDArray[Any], ...]) -> Figures:
    """Return the seconds of each tool that is installed, with the time to build its graph and without."""
    figures: Figures = {}
    for tool in TOOLS:
        if find_spec(tool.module) is None:
            continue
        small = RandomGraph(10, 20)
        tool.answers[question](tool.build(*small.initial, small.nodes, question), small.nodes)
        building, built = _timed(tool.build, *graph.initial, graph.nodes, question)
        answering, found = _timed(tool.answers[question], built, graph.nodes)
        columns = QUESTIONS[question].columns(found, *graph.initial)
        check(_equal(columns, expected, QUESTIONS[question].is_rank), f"{tool.module}: another answer than SciPy's")
        figures[BUILT.format(tool.module)] = building + answering
        figures[AT_HAND.format(tool.module)] = answering
    return figures


def _timed(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Return the median seconds of `TIMES` calls, and the last result."""
    seconds = []
    for _ in range(TIMES):
        begun = clock.perf_counter()
        result = call(*arguments)
        seconds.append(clock.perf_counter() - begun)
    return statistics.median(seconds), result


def _equal(found: tuple[NDArray[Any], ...], expected: tuple[NDArray[Any], ...], is_rank: bool) -> bool:
    """Return whether two answers are the same rows, in any order."""
    if len(found[0]) != len(expected[0]):
        return False
    found, expected = (tuple(column[np.lexsort(rows[::-1])] for column in rows) for rows in (found, expected))
    if is_rank:
        is_close = np.abs(found[-1] - expected[-1]) <= RANK_ERROR * expected[-1]
        return bool(np.array_equal(found[0], expected[0]) and is_close.all())
    return all(map(np.array_equal, found, expected))
