"""The barrier of Naiad (SOSP 2013, section 5.2): an empty loop of notifications, in which only progress is sent."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.barrier import EACH
from benchmarks.harness import Case
from benchmarks.seeds.experiment import Experiment, Recorded, Row, percentiles, processes, shown
from benchmarks.seeds.style import BACKGROUND, BLUE, GREEN, VERMILION, describe, distribution, plain, reference

NAIAD = 753.0
PROCESSES = {1: BLUE, 2: VERMILION, 4: GREEN}


def cases(full: bool) -> list[Case]:
    """Return a case for each number of processes."""
    rounds = 100_000 if full else 10_000
    return [Case(processes(number), "barrier", {"rounds": rounds}, number, function="series") for number in PROCESSES]


def rows(recorded: Recorded) -> list[Row]:
    """Return the percentiles of an iteration."""
    return [
        Row(case, "an iteration: median / p95 / p99", percentiles(recorded.series(case, EACH), "us"), paper)
        for case, paper in zip(map(processes, PROCESSES), ("", "", f"{NAIAD:g} us, 64 computers"))
        if case in recorded
    ]


def draw(figure: Any, recorded: Recorded) -> None:
    """Draw the distribution of the time of an iteration."""
    axes = figure.subplots()
    for number, colour in PROCESSES.items():
        case = processes(number)
        if case not in recorded:
            continue
        values = recorded.series(case, EACH)
        microseconds, shares = distribution(values)
        axes.plot(microseconds, shares, color=colour)
        median = float(np.median(values))
        axes.plot([median], [0.5], "o", color=colour)
        axes.annotate(
            f"{case}:\nmedian {shown(median)} µs,\np99 {shown(float(np.percentile(values, 99)))} µs",
            (median, 0.5),
            xytext=(7, -4),
            textcoords="offset points",
            va="top",
            color=colour,
            bbox=BACKGROUND,
        )
    axes.set(xscale="log", ylim=(0, 1.02), xlim=(3, 30_000))
    plain(axes, "x")
    reference(axes, NAIAD, f"Naiad, 64 computers:\nmedian {NAIAD:g} µs", axis="x")
    describe(axes, "time of an iteration (µs)", "share of iterations", grid="both")


EXPERIMENT = Experiment("barrier", "Barrier: distribution of an empty loop of notifications", cases, rows, draw)
