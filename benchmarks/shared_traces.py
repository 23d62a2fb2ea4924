"""Questions installed on one shared graph: `examples/interactive.py`.

The figures are the time from installing a question to its first answer, for graphs of different sizes, and the memory
for different numbers of questions, which share the index of the graph or have one each. The answers are compared with a
search of the graph at the end.
"""

from __future__ import annotations

import time as clock
from typing import Any

import numpy as np

from benchmarks.harness import WARM_UP, Case, Figures, Series, check, example
from timely import execute

CHANGES, HOPS = 10, 2
EACH, BYTES = "install ms", "bytes of indexes"


def _case(name: str, edges: int, keep: int, *, private: bool = False, quick: bool = True, processes: int = 1) -> Case:
    parameters = {"edges": edges, "keep": keep, "private": private}
    return Case(f"shared_traces {name}", "shared_traces", parameters, processes, quick=quick)


CASES = [
    _case("10k edges", 10_000, 10),
    _case("100k edges", 100_000, 10),
    _case("1M edges", 1_000_000, 10),
    _case("1M edges, 2 processes", 1_000_000, 10, processes=2, quick=False),
    _case("100k edges, 1 question", 100_000, 1, quick=False),
    _case("100k edges, 30 questions", 100_000, 30, quick=False),
    _case("100k edges, 1 question, not shared", 100_000, 1, private=True, quick=False),
    _case("100k edges, 10 questions, not shared", 100_000, 10, private=True),
    _case("100k edges, 30 questions, not shared", 100_000, 30, private=True, quick=False),
]


def measure(edges: int, keep: int, private: bool) -> Figures:
    """Return latencies in milliseconds and the bytes of all indexes, on the first worker."""
    warm_up, report = _run(edges, keep, private)
    median, p95 = np.percentile(report.installs, (50, 95))
    return {
        WARM_UP: warm_up,
        "install, median ms": float(median),
        "install, p95 ms": float(p95),
        "round, median ms": float(np.median(report.epochs)),
        "bytes of indexes/edge": report.nbytes / edges,
    }


def series(edges: int, keep: int, private: bool) -> Series:
    """Return the milliseconds of each installation, and the bytes of all indexes, on the first worker."""
    _, report = _run(edges, keep, private)
    return {EACH: report.installs, BYTES: [float(report.nbytes)]}


def _run(edges: int, keep: int, private: bool) -> tuple[float, Any]:
    """Return the seconds of the warm-up, and the example's report after checking its answers."""
    program, random_edges = example("interactive").program, example("bfs").random_edges
    nodes, rounds = edges // 10, max(30, keep)
    begun = clock.perf_counter()
    execute(lambda worker: program(worker, 100, 1000, CHANGES, 3, 2, HOPS, private))
    warm_up = clock.perf_counter() - begun
    index, report = execute(
        lambda worker: (worker.index, program(worker, nodes, edges, CHANGES, rounds, keep, HOPS, private))
    )[0]
    check(index > 0 or len(report.answers) == keep, f"{len(report.answers)} of {keep} questions have an answer")
    source, target = random_edges(rounds * CHANGES, edges, nodes)
    for node, found in report.answers:
        reached = np.array([node])
        for _ in range(HOPS):
            reached = np.union1d(reached, target[np.isin(source, reached)])
        check(found == len(reached), f"the answer for {node} is {found} nodes, not {len(reached)}")
    return warm_up, report
