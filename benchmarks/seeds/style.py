"""The common appearance of the pictures: colours of Okabe and Ito, labels beside lines, and reproducible files.

The same figures give the same bytes with the same version of matplotlib: the file has no date, and the names inside an
SVG do not depend on the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
LINE_HEIGHT = 11.5
"""The height of a line of a label in points."""
FEW_DECADES = 300.0
BACKGROUND = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.85}
"""What is behind a text on lines or points."""


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


def plain(
    axes: Any, axis: str, ticks: Sequence[float] = (), shown: Callable[[float], str] = lambda value: f"{value:,.10g}"
) -> None:
    """Write the ticks of a logarithmic axis as numbers instead of powers; with `ticks` exactly these.

    An axis of few decades has ticks between them. Call it once limits are set.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

    which, (low, high) = (axes.xaxis, axes.get_xlim()) if axis == "x" else (axes.yaxis, axes.get_ylim())
    if len(ticks):
        which.set_major_locator(FixedLocator([*ticks]))
        which.set_minor_locator(NullLocator())
    elif high / low < FEW_DECADES:
        which.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    which.set_major_formatter(FuncFormatter(lambda value, _: shown(value)))
    which.set_minor_formatter(NullFormatter())


def label(axes: Any, labels: Sequence[Label], right: float = 6.0) -> None:
    """Write each label to the right of its point; those that would overlap move apart. Call it once limits are set."""
    axes.figure.draw_without_rendering()  # the layout decides where the axes are
    per_point = axes.figure.dpi / 72
    heights = [axes.transData.transform((each.x, each.y))[1] / per_point for each in labels]
    sizes = [LINE_HEIGHT * (1 + each.text.count("\n")) for each in labels]
    floor = axes.bbox.y0 / per_point + 1
    for each, height, moved in zip(labels, heights, apart(heights, sizes, floor)):
        axes.annotate(
            each.text,
            (each.x, each.y),
            xytext=(right, moved - height),
            textcoords="offset points",
            va="center",
            color=each.colour,
            annotation_clip=False,
        )


def apart(heights: Sequence[float], sizes: Sequence[float], floor: float) -> list[float]:
    """Return the middles of labels of these sizes, near the given heights in the same order, none over another.

    None is below the `floor`.
    """
    order = sorted(range(len(heights)), key=heights.__getitem__)
    groups: list[tuple[list[int], float]] = []  # runs of labels that touch, each with its lower end
    for index in order:
        group, low = [index], max(heights[index] - sizes[index] / 2, floor)
        while groups and groups[-1][1] + sum(sizes[each] for each in groups[-1][0]) > low:
            before, below = groups.pop()
            sought = (below * len(before) + (low - sum(sizes[each] for each in before)) * len(group)) / (
                len(before) + len(group)
            )
            group, low = before + group, max(sought, floor)
        groups.append((group, low))
    moved = [0.0] * len(heights)
    for group, low in groups:
        for index in group:
            moved[index] = low + sizes[index] / 2
            low += sizes[index]
    return moved


def reference(axes: Any, value: float, text: str, *, axis: str = "y", place: float = 0.0, end: float = 1.0) -> None:
    """Draw a figure of a paper as a dashed grey line up to a share `end` of the axes, its text at the share `place`."""
    draw, anchor = (axes.axhline, (place, value)) if axis == "y" else (axes.axvline, (value, place))
    draw(value, 0, end, color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    axes.annotate(
        text,
        anchor,
        xycoords=axes.get_yaxis_transform() if axis == "y" else axes.get_xaxis_transform(),
        xytext=(2, 3) if axis == "y" else (4, 2),
        textcoords="offset points",
        va="bottom",
        color=GREY,
        fontsize=8,
        bbox=BACKGROUND,
    )


def distribution(values: Floats, points: int = 400) -> tuple[Floats, Floats]:
    """Return values and the share of all that are at most these, at most `points` of them, closer in the upper tail."""
    shares = np.unique(
        np.append(np.linspace(0, 1, points // 2), 1 - np.geomspace(1 / max(len(values), 2), 1, points // 2))
    )
    return np.quantile(values, shares), shares
