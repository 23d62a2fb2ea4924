"""A session beside the bare engine: one table of edges, and a view that counts each node's.

The figures are the time to take edges in bulk, of one commit of one edge (median), of the same epoch in a program of
one worker that steps itself, of reading the edges of a node, and of a question: who follows whom a node follows. The
processor time of a commit is that of all threads and processes. All answers are compared with NumPy.
"""

from __future__ import annotations

import os
import time as clock
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import WARM_UP, Case, Figures, check, example
from differential import Session, Trace, new_input
from timely import execute_directly

Column = np.ndarray[Any, Any]
COMMITS, QUESTIONS = 300, 50

CASES = [
    Case(
        f"session {name}",
        "session",
        {"edges": edges, "workers": workers, "processes": processes},
        quick=quick,
    )
    for name, edges, workers, processes, quick in (
        ("100k edges", 100_000, 1, False, True),
        ("1M edges", 1_000_000, 1, False, True),
        ("1M edges, 2 workers", 1_000_000, 2, False, False),
        ("1M edges, 2 processes", 1_000_000, 2, True, False),
    )
]


def measure(edges: int, workers: int, processes: bool) -> Figures:
    """Return the figures for a table of that many edges."""
    begun = clock.perf_counter()
    _session(1_000, 1, False)
    _bare(1_000)
    warm_up = clock.perf_counter() - begun
    inserted, commits, used, finds, asks = _session(edges, workers, processes)
    bare = _bare(edges)
    return {
        WARM_UP: warm_up,
        "insert rows/s": edges / inserted,
        "commit, median us": 1e6 * float(np.median(commits)),
        "commit, processor us": 1e6 * used / COMMITS,
        "bare epoch, median us": 1e6 * float(np.median(bare)),
        "over the bare engine, us": 1e6 * float(np.median(commits) - np.median(bare)),
        "find, median us": 1e6 * float(np.median(finds)),
        "ask, median ms": 1e3 * float(np.median(asks)),
        "ask, p95 ms": 1e3 * float(np.percentile(asks, 95)),
    }


def _graph(edges: int) -> tuple[Column, Column]:
    """Return the edges of a random graph, sources and targets, of a tenth as many nodes."""
    made: tuple[Column, Column] = example("bfs").random_edges(0, edges, edges // 10)
    return made


def _changed(number: int, nodes: int) -> tuple[int, int]:
    return number * 7919 % nodes, number


def _session(edges: int, workers: int, processes: bool) -> tuple[float, list[float], float, list[float], list[float]]:
    """Return the seconds of inserting the edges, of each commit, of processors in all commits, and of each answer.

    The answers are the rows of a key, and those to a question.
    """
    source, target = _graph(edges)
    nodes = edges // 10
    with Session(workers, processes) as db:
        table = db.table("edges", {"source": int, "target": int}, key="source")
        degrees = db.view("degrees", lambda t: t.edges.count())
        begun = clock.perf_counter()
        table.insert(source=source, target=target)
        db.commit()
        inserted = clock.perf_counter() - begun
        commits, finds, asks, used = [], [], [], _processor()
        for number in range(COMMITS):
            one, other = _changed(number, nodes)
            begun = clock.perf_counter()
            table.insert(source=one, target=other)
            db.commit()
            commits.append(clock.perf_counter() - begun)
        used = _processor() - used
        more = np.array([_changed(number, nodes) for number in range(COMMITS)])
        source, target = np.append(source, more[:, 0]), np.append(target, more[:, 1])
        for number in range(QUESTIONS):
            start = number * 104_729 % nodes
            begun = clock.perf_counter()
            out = len(table.find(source=start))
            finds.append(clock.perf_counter() - begun)
            begun = clock.perf_counter()
            answer = db.ask(partial(_two_hops, start))
            found = len(answer)
            asks.append(clock.perf_counter() - begun)
            near = target[source == start]
            check(out == len(near), f"the edges of {start} are right")
            check(found == len(np.unique(target[np.isin(source, near)])), f"the answer for {start} is right")
        counts = np.bincount(source, minlength=nodes)
        node, degree = degrees.rows().arrays()
        check(bool((counts[node] == degree).all()) and len(node) == np.count_nonzero(counts), "the degrees are right")
    return inserted, commits, used, finds, asks


def _processor() -> float:
    """Return the seconds of processors that this process and those that it has started have used."""
    ticks = 0
    for children in Path("/proc/self/task").glob("*/children"):
        for process in children.read_text().split():
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return clock.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def _two_hops(node: int, tables: Any) -> Any:
    """Return the nodes at the end of two edges."""
    start = tables.constant(node)
    return start.join_map(tables.edges, lambda _, one: one).join_map(tables.edges, lambda _, two: two).distinct()


def _bare(edges: int) -> list[float]:
    """Return the seconds of each epoch of one edge in a program of one worker."""

    def program(worker: Any) -> list[float]:
        source, target = _graph(edges)
        with worker.dataflow() as scope:
            session, graph = new_input(scope)
            index = graph.arrange_by_key().trace()
        with worker.dataflow() as scope:
            degrees = index.import_into(scope).count().arrange_by_key().trace()
        session.insert(source, target)
        session.advance_to(1)
        worker.step_while(lambda: degrees.upper.less_equal((0,)))
        seconds = []
        for number in range(COMMITS):
            begun = clock.perf_counter()
            session.insert(*_changed(number, edges // 10))
            session.advance_to(number + 2)
            worker.step_while(partial(_is_behind, degrees, number + 1))
            index.allow_compaction_to(number + 1)
            degrees.allow_compaction_to(number + 1)
            seconds.append(clock.perf_counter() - begun)
        return seconds

    return execute_directly(program)


def _is_behind(trace: Trace, epoch: int) -> bool:
    return trace.upper.less_equal((epoch,))
