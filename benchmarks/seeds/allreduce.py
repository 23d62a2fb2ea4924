"""AllReduce (Naiad, SOSP 2013, section 6.2): the sum of one vector of each worker, data-parallel and along a tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.allreduce import SIZE
from benchmarks.harness import Case
from benchmarks.seeds.experiment import Experiment, Recorded, Row, compact, processes, shown
from benchmarks.seeds.style import BLACK, BLUE, VERMILION, Label, describe, label, plain

PROCESSES = (2, 4)
METHODS = {"data-parallel": BLUE, "tree": VERMILION}
PAPER = "data-parallel 35 % better"
SAME = 0.02
"""Lines that end as close as this, relative to each other, share a label."""


def cases(full: bool) -> list[Case]:
    """Return a case for each number of processes."""
    sizes = [10**power for power in range(3, 8 if full else 7)]
    parameters = {"sizes": sizes, "numbers": 50_000_000 if full else 5_000_000, "most_rounds": 300 if full else 100}
    return [Case(processes(number), "allreduce", parameters, number, function="series") for number in PROCESSES]


def rows(recorded: Recorded) -> list[Row]:
    """Return milliseconds and bytes of both methods for each size."""
    found = []
    for case in filter(recorded.__contains__, map(processes, PROCESSES)):
        sizes = recorded.series(case, SIZE)
        for place, size in enumerate(sizes):
            for method in METHODS:
                milliseconds, sent = (recorded.series(case, f"{method} {unit}")[place] for unit in ("ms", "bytes"))
                text = f"{shown(milliseconds)} ms, {shown(1e-6 * sent)} MB sent by the first worker"
                paper = PAPER if method == "data-parallel" and place == len(sizes) - 1 else ""
                found.append(Row(f"{case}, {size:,.0f} numbers", method, text, paper))
    return found


def draw(figure: Any, recorded: Recorded) -> None:
    """Draw the time of a round and the bytes of the first worker, by size, for each number of processes."""
    panels = figure.subplots(1, 2)
    numbers = [number for number in PROCESSES if processes(number) in recorded]
    for axes, unit, scale in zip(panels, ("ms", "bytes"), (1.0, 1e-6)):
        labels: list[Label] = []
        for number in numbers:
            case = processes(number)
            sizes = recorded.series(case, SIZE)
            for method, colour in METHODS.items():
                values = scale * recorded.series(case, f"{method} {unit}")
                axes.plot(
                    sizes,
                    np.where(values > 0, values, np.nan),
                    color=colour,
                    linestyle="-" if number == PROCESSES[0] else "--",
                    marker="o",
                    markerfacecolor=colour if number == PROCESSES[0] else "white",
                )
                if labels and abs(labels[-1].y / values[-1] - 1) < SAME:
                    labels[-1] = labels[-1]._replace(text=f"either, {number}", colour=BLACK)
                    continue
                labels.append(Label(sizes[-1], values[-1], f"{method}, {number}", colour))
        axes.set(xscale="log", yscale="log", xlim=(sizes[0] / 1.5, sizes[-1] * (sizes[-1] / sizes[0]) ** 0.62))
        plain(axes, "x", sizes.tolist(), compact)
        plain(axes, "y")
        text = "time of a round (ms)" if unit == "ms" else "sent by the first worker (MB)"
        describe(axes, "numbers in the vector", text)
        label(axes, labels)


EXPERIMENT = Experiment("allreduce", "AllReduce by method and number of processes", cases, rows, draw)
