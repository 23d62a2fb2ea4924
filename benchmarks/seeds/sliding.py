"""A sliding window (differential dataflow, CIDR 2013): components of mentions, as the window moves by one second."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Case
from benchmarks.seeds.experiment import Experiment, Recorded, Row, percentiles, shown
from benchmarks.seeds.style import BLUE, GREY, VERMILION, Label, describe, label, plain
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
        median, slides = float(np.median(values)), len(values)
        axes.plot(1 + np.arange(slides), values, ".", color=colour, markersize=3)
        for value, line_colour, dashes in ((median, colour, "-"), (paper, GREY, (0, (4, 3)))):
            axes.plot([0, slides], [value, value], color=line_colour, linewidth=1, linestyle=dashes)
        axes.set(yscale="log", xlim=(0, slides * 1.13))
        axes.set_ylim(min(paper, float(values.min())) / 1.5, 1.8 * max(paper, float(values.max())))
        axes.set_xticks(np.linspace(0, slides, 5))
        plain(axes, "y")
        describe(axes, "", text)
        texts = ((median, "median", colour), (paper, "paper", GREY))
        label(axes, [Label(slides, value, f"{who}\n{unit.format(shown(value))}", hue) for value, who, hue in texts])
    below.set_xlabel(f"slide by 1 second, of a window of {given['window']:,} s with {given['rate']} mentions a second")
    above.set_xlabel("")
    above.spines["bottom"].set_color(GREY)


EXPERIMENT = Experiment("sliding", "Connected components of a sliding window", cases, rows, draw, height=3.8)
