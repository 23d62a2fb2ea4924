"""The common appearance of the pictures: colours of Okabe and Ito, labels beside lines, and reproducible files.

The same figures give the same bytes with the same version of matplotlib: the file has no date, and the names inside an
SVG do not depend on the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.seeds.experiment import Experiment, Floats, Recorded

BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY = "#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9"
BLACK, GREY, PALE = "#222222", "#767676", "#dddddd"
WIDTH = 7.0
"""The width of a picture in inches; text of 9 points is legible where it is half a page."""
SETTINGS: Any = {
    "svg.hashsalt": "seeds",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "figure.titlesize": 11,
    "savefig.dpi": 200,
}
METADATA: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None, "ModDate": None},
    ".png": {"Software": None},
}
FORMATS = tuple(suffix[1:] for suffix in METADATA)
LINE_HEIGHT = 11.0
"""The least distance between labels in points."""


class Label(NamedTuple):
    """A text beside the point (x, y) of a line."""

    x: float
    y: float
    text: str
    colour: str


def save(experiment: Experiment, recorded: Recorded, machine: str, file: Path) -> None:
    """Draw an experiment into a file, in the format that its name ends with: .svg, .png or .pdf.

    `machine` is printed below the picture.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS):
        figure = Figure(figsize=(WIDTH, experiment.height), layout="constrained")
        figure.suptitle(experiment.title, x=0.01, ha="left", fontweight="bold")
        figure.supxlabel(machine, x=0.01, ha="left", fontsize=6, color=GREY)
        experiment.draw(figure, recorded)
        figure.savefig(file, metadata=METADATA[file.suffix])


def describe(axes: Any, x: str, y: str, title: str = "", grid: str = "y") -> None:
    """Title the axes of a panel and, if given, the panel."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if title:
        axes.set_title(title)
    if grid:
        axes.grid(axis=grid, which="major", color=PALE, linewidth=0.6)


def plain(axes: Any, axis: str, ticks: Sequence[float] = ()) -> None:
    """Write the ticks of a logarithmic axis as numbers with commas instead of powers; with `ticks` exactly these."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    which = axes.xaxis if axis == "x" else axes.yaxis
    if len(ticks):
        which.set_major_locator(FixedLocator([*ticks]))
        which.set_minor_locator(NullLocator())
    which.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    which.set_minor_formatter(NullFormatter())


def label(axes: Any, labels: Sequence[Label], right: float = 6.0) -> None:
    """Write each label to the right of its point; those that would overlap move apart. Call it once limits are set."""
    axes.figure.draw_without_rendering()  # the layout decides where the axes are
    per_point = axes.figure.dpi / 72
    heights = [axes.transData.transform((each.x, each.y))[1] / per_point for each in labels]
    for each, height, moved in zip(labels, heights, apart(heights, LINE_HEIGHT)):
        axes.annotate(
            each.text,
            (each.x, each.y),
            xytext=(right, moved - height),
            textcoords="offset points",
            va="center",
            color=each.colour,
            annotation_clip=False,
        )


def apart(heights: Sequence[float], least: float) -> list[float]:
    """Return the heights moved as little as makes neighbours at least that far apart; their order stays."""
    order = sorted(range(len(heights)), key=heights.__getitem__)
    groups: list[tuple[list[int], float]] = []  # each a run of labels that touch, and its middle
    for index in order:
        group, middle = [index], heights[index]
        while groups and groups[-1][1] + least * (len(groups[-1][0]) + len(group)) / 2 > middle:
            before, below = groups.pop()
            middle = (below * len(before) + middle * len(group)) / (len(before) + len(group))
            group = before + group
        groups.append((group, middle))
    moved = [0.0] * len(heights)
    for group, middle in groups:
        for place, index in enumerate(group):
            moved[index] = middle + least * (place - (len(group) - 1) / 2)
    return moved


def reference(axes: Any, value: float, text: str, *, axis: str = "y", place: float = 0.0, above: bool = True) -> None:
    """Draw a figure of a paper as a dashed grey line across the axes, with its text at a share of its length."""
    draw, anchor = (axes.axhline, (place, value)) if axis == "y" else (axes.axvline, (value, place))
    draw(value, color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    transform = axes.get_yaxis_transform() if axis == "y" else axes.get_xaxis_transform()
    side = 3 if above else -3
    axes.annotate(
        text,
        anchor,
        xycoords=transform,
        xytext=(2, side) if axis == "y" else (side, 0),
        textcoords="offset points",
        ha="left" if axis == "y" or above else "right",
        va="bottom" if axis == "x" or above else "top",
        color=GREY,
        fontsize=8,
    )


def distribution(values: Floats, points: int = 400) -> tuple[Floats, Floats]:
    """Return values and the share of all that are at most these, at most `points` of them, closer in the upper tail."""
    shares = np.unique(
        np.append(np.linspace(0, 1, points // 2), 1 - np.geomspace(1 / max(len(values), 2), 1, points // 2))
    )
    return np.quantile(values, shares), shares
