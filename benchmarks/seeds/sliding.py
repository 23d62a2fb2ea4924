"""A sliding window (differential dataflow, CIDR 2013): components of mentions, as the window moves by one second."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Case
from benchmarks.seeds.experiment import Experiment, Recorded, Row, percentiles, shown
from benchmarks.seeds.style import BLUE, GREY, VERMILION, describe, plain, reference
from benchmarks.sliding import EACH, EACH_DIFFERENCES

CASE = "slides"
MILLISECONDS, DIFFERENCES = 24.4, 67


def cases(full: bool) -> list[Case]:
    """Return the case."""
    users, window = (1_000_000, 3600) if full else (10_000, 60)
    parameters = {"algorithm": "weak", "users": users, "rate": 100, "window": window, "slides": 400}
    return [Case(CASE, "sliding", parameters, function="series")]


def rows(recorded: Recorded) -> list[Row]:
    """Return the percentiles of a slide's latency and differences."""
    given = recorded.parameters[CASE]
    name = f"window of {given['window']:,} s, {given['rate']} mentions/s"
    milliseconds, differences = (recorded.series(CASE, series) for series in (EACH, EACH_DIFFERENCES))
    return [
        Row(name, "a slide: median / p95 / p99", percentiles(milliseconds, "ms"), f"{MILLISECONDS} ms"),
        Row(name, "differences: median / p95 / p99", percentiles(differences, ""), f"{DIFFERENCES}"),
    ]


def draw(figure: Any, recorded: Recorded) -> None:
    """Draw latency and differences of each slide."""
    above, below = figure.subplots(2, 1, sharex=True)
    given = recorded.parameters[CASE]
    panels = (
        (above, EACH, VERMILION, MILLISECONDS, "latency (ms)", "{} ms"),
        (below, EACH_DIFFERENCES, BLUE, DIFFERENCES, "differences", "{}"),
    )
    for axes, series, colour, paper, text, unit in panels:
        values = recorded.series(CASE, series)
        slides = 1 + np.arange(len(values))
        axes.plot(slides, values, ".", color=colour, markersize=3)
        axes.axhline(float(np.median(values)), 0, 1 / 1.13, color=colour, linewidth=1)
        axes.annotate(
            f"median\n{unit.format(shown(float(np.median(values))))}",
            (len(values), float(np.median(values))),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=colour,
        )
        low, high = min(paper, float(values.min())), max(paper, float(values.max()))
        axes.set(yscale="log", xlim=(0, len(values) * 1.13), ylim=(low / 1.5, high * 1.8))
        axes.set_xticks(np.linspace(0, len(values), 5))
        plain(axes, "y")
        reference(axes, paper, f"paper: {unit.format(paper)}", end=1 / 1.13)
        describe(axes, "", text)
    below.set_xlabel(f"slide by 1 second, of a window of {given['window']:,} s with {given['rate']} mentions a second")
    above.set_xlabel("")
    above.spines["bottom"].set_color(GREY)


EXPERIMENT = Experiment("sliding", "Connected components of a sliding window", cases, rows, draw, height=3.8)
