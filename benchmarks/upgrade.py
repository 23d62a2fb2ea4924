"""Debian's upgrade, step by step, with four answers kept up to date: `examples/upgrade.py`.

The latency of a step is the time from inserting its changes until all four answers are final. Reading the answers is
not part of it. The answers at the end are compared with those that SciPy computes from scratch.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Case, Figures, Series, check, example
from timely import Worker, execute

MEDIAN, P99, INITIAL = "median ms a step", "p99 ms a step", "initial s"
STEPS, EACH = "steps", "ms"
ANSWERS: dict[str, Callable[[Any], int]] = {
    "edges": lambda answers: answers["edges"],
    "components": lambda answers: answers["components"]["count"],
    "cycles": lambda answers: answers["cycles"]["count"],
    "packages in the largest cycle": lambda answers: answers["cycles"]["largest"],
    "dependants of libssl3": lambda answers: answers["watch"]["libssl3"],
    "dependants of libssl3t64": lambda answers: answers["watch"]["libssl3t64"],
}
"""Figures from the answers after a step, by name."""
READINGS = 400
"""How many times the answers are read during the steps."""

CASES = [
    Case("upgrade 2000 steps", "upgrade", {"steps": 2000}),
    Case("upgrade all steps", "upgrade", {"steps": 0}, quick=False),
    Case("upgrade all steps, 2 processes", "upgrade", {"steps": 0}, processes=2, quick=False),
]


def measure(steps: int) -> Figures:
    """Return the figures of that many steps, or of all if 0, on the first worker of this process."""
    found = series(steps)
    median, p99 = np.percentile(found[EACH], (50, 99))
    return {INITIAL: found[INITIAL][0], MEDIAN: float(median), P99: float(p99)}


def series(steps: int) -> Series:
    """Return the milliseconds of each step and, after some of the `steps`, the answers, on the first worker.

    All four answers are maintained. `steps` is 0 for all.
    """
    whole = example("debian").load()
    return execute(lambda worker: _program(worker, whole, steps or whole.steps))[0]


def _program(worker: Worker, whole: Any, steps: int) -> Series:
    program = example("upgrade")
    watch = {name: whole.package(name) for name in program.WATCHED}
    run = program.Run(worker, whole, watch, [*program.QUESTIONS])
    begun = clock.perf_counter()
    run.take(0, 0)
    found: Series = {INITIAL: [clock.perf_counter() - begun], EACH: [], STEPS: []}
    found |= {name: [] for name in ANSWERS}
    every = max(steps // READINGS, 1)
    for step in range(1, steps + 1):
        begun = clock.perf_counter()
        run.take(step, step)
        found[EACH].append(1e3 * (clock.perf_counter() - begun))
        if worker.index == 0 and (step % every == 0 or step == steps):
            answers = run.answers(step)
            found[STEPS].append(float(step))
            for name, figure in ANSWERS.items():
                found[name].append(float(figure(answers)))
    if worker.index == 0:
        expected = example("graph_oracle").answers(whole.names, *whole.edges_at(steps), watch, run.questions)
        for name, right in expected.items():
            check(answers[name] == right, f"{name} after step {steps}: {answers[name]}, from scratch {right}")
    return found
