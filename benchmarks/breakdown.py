"""How the microseconds of one change divide among operators, kernels and progress.

Each scheduled operator, each kernel, the propagation of progress, the step of the dataflow and the flush of the input
has a clock. Time spent in one inside another counts only for the inner one. So the figure of an operator is its Python
code, with the stateless operators that run in line with it. Calls between compiled modules pass no clock: if dataflows
are compiled, scheduling, progress and operators are one figure. The clocks themselves take time, so read the shares;
the total without clocks is given as well. All figures are means.
"""

from __future__ import annotations

import time as clock
from collections import defaultdict
from collections.abc import Callable
from inspect import isfunction
from typing import Any

import numpy as np

from benchmarks import bfs, wcc
from benchmarks.graphs import RandomGraph
from benchmarks.harness import Case, Figures
from benchmarks.incremental import Definition, FromScratch, Session, compare
from differential import InputSession
from differential.graphs import weakly_connected_components
from differential.kernels import compile as kernels
from timely import Worker, execute_directly
from timely.dataflow.dataflow import Dataflow
from timely.dataflow.operator import Operator

ALGORITHMS: dict[str, tuple[Definition, FromScratch]] = {
    "bfs": (bfs.definition, bfs.from_scratch),
    "wcc": (weakly_connected_components, wcc.from_scratch),
}
CASES = [
    Case(f"breakdown {name} 100k/1M", "breakdown", {"algorithm": name, "nodes": 100_000, "edges": 1_000_000})
    for name in ALGORITHMS
]
WARM = 50

WITHOUT = "1 change without clocks, us"
WITH = "1 change with clocks, us"


class Clocks:
    """Seconds and calls by name; a clock pauses while another one runs inside it."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: defaultdict[str, int] = defaultdict(int)
        self._inside = [0.0]

    def timed(self, function: Callable[..., Any], name: Callable[..., str]) -> Callable[..., Any]:
        """Return `function` under the clock that `name` gives for its arguments."""
        inside, seconds, calls, now = self._inside, self.seconds, self.calls, clock.perf_counter

        def run(*arguments: Any, **named: Any) -> Any:
            inside.append(0.0)
            begun = now()
            try:
                return function(*arguments, **named)
            finally:
                spent = now() - begun
                label = name(*arguments)
                seconds[label] += spent - inside.pop()
                calls[label] += 1
                inside[-1] += spent

        return run

    def clear(self) -> None:
        self.seconds.clear()
        self.calls.clear()


def install(clocks: Clocks) -> None:
    """Put clocks on everything that can have one, permanently in this process."""
    parts: list[tuple[type, str, Callable[..., str]]] = [(InputSession, "flush", lambda _: "input")]
    if isfunction(Operator.run):
        parts += [
            (Operator, "run", lambda operator: f"operator {operator.name}"),
            (Dataflow, "_propagate", lambda _: "progress"),
            (Dataflow, "step", lambda _: "scheduling"),
        ]
    else:
        parts += [(Dataflow, "step", lambda _: "scheduling, progress and operators, compiled")]
    for owner, method, name in parts:
        setattr(owner, method, clocks.timed(getattr(owner, method), name))
    for kernel in kernels._KERNELS:
        if kernel.loaded is not None:
            label = f"kernel {kernel.source.__name__}"
            timed = clocks.timed(kernel.loaded, lambda *_, label=label: label)
            kernel.__setstate__((timed, (), {}, kernel.__dict__))  # type: ignore[attr-defined]


def measure(algorithm: str, nodes: int, edges: int, changes: int = 500) -> Figures:
    """Return the microseconds that a change spends in each part, the largest first."""
    graph = RandomGraph(nodes, edges)
    return execute_directly(lambda worker: _program(worker, *ALGORITHMS[algorithm], graph, changes))


def _program(
    worker: Worker, definition: Definition, from_scratch: FromScratch, graph: RandomGraph, changes: int
) -> Figures:
    session = Session(worker, definition, graph)
    session.load()
    for _ in range(WARM):  # the first changes load kernels that the initial answer does not need
        session.change(1)
    plain = [session.change(1) for _ in range(changes)]
    clocks = Clocks()
    install(clocks)
    for _ in range(WARM):
        session.change(1)
    clocks.clear()
    with_clocks = [session.change(1) for _ in range(changes)]
    session.close()
    compare(session.fingerprint, from_scratch, graph, session.changes_made)
    figures = {WITHOUT: 1e6 * float(np.mean(plain)), WITH: 1e6 * float(np.mean(with_clocks))}
    for name in sorted(clocks.seconds, key=lambda name: -clocks.seconds[name]):
        figures[f"  {name}, us"] = 1e6 * clocks.seconds[name] / changes
        figures[f"  {name}, calls"] = clocks.calls[name] / changes
    return figures
