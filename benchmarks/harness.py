"""Run cases in fresh processes, and compare their figures with reference figures.

A run of a case is `timely run -n N -w W -m benchmarks.child`, which warms up, measures, checks the answer against an
independent computation, and writes its figures as JSON. The figures are those of the first worker. Cases are
interleaved: each runs once before any runs again. The reported figure is the median of the runs.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Figures = dict[str, float]
Series = dict[str, list[float]]
"""Figures of which a workload returns each one by itself, such as all latencies, by name."""

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
RUN_SECONDS = 900.0
"""How long one run of a case may take."""
END_SECONDS = 15.0
"""How long the processes of an abandoned run may take to end: `timely run` allows them ten seconds."""

WARM_UP = "warm-up s"
PEAK = "peak bytes/edge"


@dataclass(frozen=True)
class Reference:
    """A figure measured elsewhere, and a target relative to it.

    `target` is a ratio to the reference: the least for a figure named `.../s`, the most for any other.
    """

    figure: float
    target: float | None = None

    def __str__(self) -> str:
        return f"{self.figure:g}"


@dataclass(frozen=True)
class Case:
    """A workload of one size, on a number of processes with a number of workers (threads) each."""

    name: str
    workload: str
    parameters: Mapping[str, Any]
    processes: int = 1
    workers: int = 1
    quick: bool = True
    needs: tuple[str, ...] = ()
    """Modules of other libraries that the case measures too; without them the case is left out."""
    references: Mapping[str, Reference] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    """Absolute targets: the most a figure should be, or the least for one named `.../s` or `share ...`."""
    function: str = "measure"
    """The function of the workload to call: `measure`, which returns `Figures`, or another that returns `Series`."""


class CaseFailed(Exception):
    """A run of a case ended without figures; the message has its output."""


class WrongAnswer(Exception):
    """The answer differs from that of an independent computation, so no time is reported."""


def check(right: bool, complaint: str) -> None:
    """Raise `WrongAnswer` with the complaint unless `right`."""
    if not right:
        raise WrongAnswer(complaint)


def example(name: str) -> Any:
    """Return a module of `examples/`, and let it import the others there."""
    if str(EXAMPLES) not in sys.path:
        sys.path.append(str(EXAMPLES))
    return importlib.import_module(name)


def run_case(case: Case) -> Any:
    """Run a case once, in processes of its own; return what its function returns, `Figures` or `Series`."""
    with tempfile.TemporaryDirectory() as directory:
        into = Path(directory) / "figures.json"
        called = {"workload": case.workload, "function": case.function, "parameters": dict(case.parameters)}
        given = json.dumps(called | {"into": str(into)})
        command = [sys.executable, "-m", "timely", "run", "-n", str(case.processes), "-w", str(case.workers)]
        command += ["-m", "benchmarks.child", given]
        environ = os.environ | {"PYTHONPATH": str(ROOT)}
        with subprocess.Popen(
            command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                printed = "".join(process.communicate(timeout=RUN_SECONDS))
            except subprocess.TimeoutExpired:
                raise CaseFailed(f"{case.name}: not finished after {RUN_SECONDS:g} s") from None
            finally:
                _end(process)
        if process.returncode or not into.exists():
            raise CaseFailed(f"{case.name}: ended with status {process.returncode}\n{printed}")
        return json.loads(into.read_text())


def _end(process: subprocess.Popen[str]) -> None:
    """Terminate a launcher that still runs, so that it ends its processes."""
    if process.poll() is None:
        process.terminate()
        try:
            process.communicate(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


@dataclass(frozen=True)
class Measured:
    """The results of running cases."""

    results: Mapping[str, list[Figures]]
    """The figures of each run, by case, for the cases that have any."""
    failures: Sequence[CaseFailed]
    interrupted: bool
    """Whether Ctrl-C interrupted it before all runs were done."""


def run_all(cases: Sequence[Case], runs: int, report: Callable[[str], None]) -> Measured:
    """Run all cases in turn, `runs` times.

    A case that has failed is not run again, and has no figures.
    """
    results: dict[str, list[Figures]] = {}
    failures: dict[str, CaseFailed] = {}
    interrupted = False
    try:
        for number in range(runs):
            for case in cases:
                if case.name in failures:
                    continue
                report(f"run {number + 1} of {runs}: {case.name}")
                try:
                    results.setdefault(case.name, []).append(run_case(case))
                except CaseFailed as failure:
                    failures[case.name] = failure
    except KeyboardInterrupt:
        interrupted = True
    report("")
    results = {name: figures for name, figures in results.items() if figures and name not in failures}
    return Measured(results, list(failures.values()), interrupted)


def medians(runs: Sequence[Figures]) -> Figures:
    """Return the median of each figure over the runs."""
    return {name: statistics.median(figures[name] for figures in runs) for name in runs[0]}


def at_least(name: str) -> bool:
    """Return whether more is better, as for rates and shares."""
    return name.endswith("/s") or name.startswith("share")
