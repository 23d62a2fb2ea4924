"""The upgrade of Debian, step by step: the latency of each step below the answers that follow it.

Not from a paper: real data, on which all of differential dataflow's means meet.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Case
from benchmarks.seeds.experiment import Experiment, Recorded, Row, percentiles, shown
from benchmarks.seeds.style import BLUE, GREEN, GREY, VERMILION, Label, describe, label, plain
from benchmarks.upgrade import EACH, INITIAL, STEPS

CASE = "upgrade"
LINES = {
    "dependants of libssl3": ("depend on\nlibssl3", BLUE),
    "dependants of libssl3t64": ("depend on\nlibssl3t64", VERMILION),
}
COUNTS = {"components": ("components", GREEN), "cycles": ("cycles", GREY)}


def cases(full: bool) -> list[Case]:
    """Return the case."""
    return [Case(CASE, "upgrade", {"steps": 0 if full else 3000}, function="series")]


def rows(recorded: Recorded) -> list[Row]:
    """Return the percentiles of a step, and the first and the last answers."""
    milliseconds = recorded.series(CASE, EACH)
    found = [
        Row(f"{len(milliseconds):,} steps", "a step: median / p95 / p99", percentiles(milliseconds, "ms")),
        Row("the initial graph", "first answers", f"{shown(float(recorded.series(CASE, INITIAL)[0]))} s"),
    ]
    for name in {**LINES, **COUNTS}:
        values = recorded.series(CASE, name)
        found.append(Row("answers", name, f"{values[0]:,.0f} after the first steps, {values[-1]:,.0f} at the end"))
    return found


def draw(figure: Any, recorded: Recorded) -> None:
    """Draw the answers, and below them the latency of each step."""
    watched, counted, below = figure.subplots(3, 1, sharex=True, height_ratios=(2, 2, 3))
    steps, milliseconds = recorded.series(CASE, STEPS), recorded.series(CASE, EACH)
    below.plot(
        1 + np.arange(len(milliseconds)),
        milliseconds,
        ".",
        color=BLUE,
        markersize=2,
        alpha=0.5,
        markeredgewidth=0,
        rasterized=True,
    )
    for axes, lines in ((watched, LINES), (counted, COUNTS)):
        labels = []
        for name, (text, colour) in lines.items():
            values = recorded.series(CASE, name)
            axes.step(steps, values, where="post", color=colour, linewidth=1.2)
            labels.append(Label(steps[-1], values[-1], text, colour))
        axes.set_xlim(0, len(milliseconds) * 1.16)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        describe(axes, "", "packages" if axes is watched else "number")
        label(axes, labels)
    median, p99 = np.percentile(milliseconds, (50, 99))
    below.set_yscale("log")
    for value, text in ((median, f"median\n{shown(float(median))} ms"), (p99, f"p99\n{shown(float(p99))} ms")):
        below.axhline(value, 0, 1 / 1.16, color=VERMILION, linewidth=0.8)
        label(below, [Label(len(milliseconds) * 1.01, value, text, VERMILION)])
    plain(below, "y")
    below.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    describe(below, "step of the upgrade: the migration of one source package", "latency (ms)")


EXPERIMENT = Experiment(
    "upgrade",
    "Debian's upgrade: four answers about 279,192 dependencies after each step",
    cases,
    rows,
    draw,
    height=4.8,
)
