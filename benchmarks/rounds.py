"""Many epochs at once: changes inserted without waiting, each in an epoch of its own.

Every epoch has its own exact answer, but they travel together: all epochs that are in a loop take its rounds together.
The figures are the times for 1, 10, 100, ... rounds, with one changed edge in each.
"""

from __future__ import annotations

import time as clock

import numpy as np

from benchmarks import bfs
from benchmarks.graphs import RandomGraph
from benchmarks.harness import WARM_UP, Case, Figures, check
from benchmarks.incremental import Definition, Session, settled
from differential.graphs import weakly_connected_components
from timely import Worker, execute_directly

ALGORITHMS: dict[str, Definition] = {"bfs": bfs.definition, "wcc": weakly_connected_components}
CASES = [
    Case(f"rounds {name} 100k/1M", "rounds", {"algorithm": name, "nodes": 100_000, "edges": 1_000_000, "most": 1000})
    for name in ALGORITHMS
] + [
    Case(
        f"rounds {name} 100k/1M, to 10,000",
        "rounds",
        {"algorithm": name, "nodes": 100_000, "edges": 1_000_000, "most": 10_000},
        quick=False,
    )
    for name in ALGORITHMS
]
REPEATS = 5


def measure(algorithm: str, nodes: int, edges: int, most: int) -> Figures:
    """Return the milliseconds for increasing numbers of rounds, each the median of several repeats."""
    return execute_directly(lambda worker: _program(worker, ALGORITHMS[algorithm], RandomGraph(nodes, edges), most))


def _program(worker: Worker, definition: Definition, graph: RandomGraph, most: int) -> Figures:
    begun = clock.perf_counter()
    session = settled(worker, definition, graph)
    session.change_each(10)
    figures: Figures = {WARM_UP: clock.perf_counter() - begun}
    rounds, one = 1, 0.0
    while rounds <= most:
        times = [session.change_each(rounds) for _ in range(REPEATS if rounds < 1000 else 1)]
        median = float(np.median(times))
        one = one or median
        figures[f"{rounds:,} rounds, ms"] = 1e3 * median
        figures[f"{rounds:,} rounds, relative to one by one"] = median / (rounds * one)
        rounds *= 10
    session.close()
    # The same changes in one epoch give the same answer.
    again = Session(worker, definition, graph)
    again.load()
    again.change(session.changes_made)
    again.close()
    check(str(again.fingerprint) == str(session.fingerprint), f"{again.fingerprint} is not {session.fingerprint}")
    return figures
