"""An experiment of the papers: the cases that repeat it here, their figures as a table, and a picture of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Case

Floats = NDArray[np.float64]


class Row(NamedTuple):
    """A line of the table: what was measured, its figure with its unit, and the figure of the paper if it has one."""

    case: str
    figure: str
    here: str
    paper: str = ""


@dataclass(frozen=True)
class Recorded:
    """What the cases of one experiment returned, by their names, in each run. Cases that failed are missing."""

    runs: Mapping[str, Sequence[Mapping[str, Any]]]
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    others: float | None = None
    """How many cores other programs used meanwhile, if the system reports it."""

    def __contains__(self, case: str) -> bool:
        return case in self.runs

    def median(self, case: str, figure: str) -> float | None:
        """Return the median of a figure over the runs, or None if the case has no such figure."""
        found = [run[figure] for run in self.runs.get(case, ()) if figure in run]
        return statistics.median(found) if found else None

    def series(self, case: str, name: str) -> Floats:
        """Return a series: the median over the runs of each of its values."""
        runs = [run[name] for run in self.runs[case]]
        shortest = min(map(len, runs))
        return np.asarray(np.median([run[:shortest] for run in runs], axis=0))


@dataclass(frozen=True)
class Experiment:
    """An experiment by the name of its picture."""

    name: str
    title: str
    cases: Callable[[bool], list[Case]]
    """The cases to measure, of the sizes that take minutes if called with True, and otherwise of smaller ones."""
    rows: Callable[[Recorded], list[Row]]
    draw: Callable[[Any, Recorded], None]
    """Draws what was recorded into an empty `matplotlib.figure.Figure`."""
    wants: tuple[str, ...] = ()
    """Modules of other libraries, which are left out of the picture if they are not installed."""
    repeats: bool = False
    """Whether cases return single figures that vary, so that medians of several runs are taken."""
    height: float = 3.2
    """The height of the picture in inches."""


def processes(number: int) -> str:
    """Return '1 process', '2 processes', and so on."""
    return f"{number} process{'es' if number > 1 else ''}"


def shown(figure: float) -> str:
    """Return a figure with three digits that count."""
    if figure >= 100:
        return f"{figure:,.0f}"
    return f"{figure:.3g}"


def compact(figure: float) -> str:
    """Return a round number in thousands or millions, as the label of a tick."""
    for unit, least in (("M", 1e6), ("k", 1e3)):
        if figure >= least:
            return f"{figure / least:g} {unit}"
    return f"{figure:g}"


def duration(seconds: float) -> str:
    """Return seconds in the unit in which they are easily read."""
    for unit, least in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= least:
            return f"{shown(seconds / least)} {unit}"
    return f"{shown(1e6 * seconds)} µs"


def percentiles(values: Floats, unit: str) -> str:
    """Return the median, 95th and 99th percentile as text."""
    median, p95, p99 = np.percentile(values, (50, 95, 99))
    return f"{shown(median)} / {shown(p95)} / {shown(p99)} {unit}"
