"""Pictures of an answer, and of the latency of changes.

A job chooses one of the functions that return a `Picture`. Beside the picture of the answer a figure has, if there were
changes, their latencies over time and as a distribution. Colours are those of Okabe and Ito, which
people with colour-blindness can distinguish.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from differential.extra import needed_for
from differential.jobs.files import OutputFile
from differential.jobs.job import Column, Picture, Shown
from differential.jobs.report import Report, percentiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#767676"

MOST = 60
"""A histogram has at most this many bars."""

LARGEST = 1e300
"""The ends and the ticks of an axis, which Matplotlib computes, would be infinite for larger numbers."""

PANEL = (4.6, 3.6)
"""Width and height of a panel, in inches."""

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "jobs",  # the same picture gives the same file
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
}


Panel = Callable[["Axes"], None]
"""Draws one part of a figure."""

LABEL: dict[str, Any] = {"fontsize": 8, "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.85}}
"""The appearance of a label inside a panel, legible on top of points and lines."""


def answer_panels(picture: Picture | None, shown: Shown, report: Report) -> list[Panel]:
    """Return the panels of a graph job: `picture` is the job's, or None if it has none."""
    panels: list[Panel] = []
    if picture is not None:
        panels.append(lambda axes: picture(axes, shown))
    if report.batches:
        panels += latency_panels(report.latencies(), "change")
    return panels


def save(
    file: OutputFile,
    title: str,
    panels: Sequence[Panel],
    columns: int = 0,
    shape: tuple[float, float] = PANEL,
) -> None:
    """Write a figure of panels, in rows of `columns` (by default one row), in the format that the file's name ends in.

    `shape` is the size of a panel in inches.
    """
    with needed_for("--plot"):
        from matplotlib import rc_context
        from matplotlib.figure import Figure

    across = max(1, columns or len(panels))
    down = max(1, -(-len(panels) // across))
    with rc_context(STYLE):
        figure = Figure(figsize=(shape[0] * across, shape[1] * down), layout="constrained")
        # A file may be called `$1_$2`, which is not a formula, or have bytes in its name that are not UTF-8.
        figure.suptitle(title.encode(errors="backslashreplace").decode(), fontsize=10, parse_math=False)
        for axes, panel in zip(figure.subplots(down, across, squeeze=False).flat, panels):
            panel(axes)
        form = Path(file.name).suffix.removeprefix(".")
        metadata = {"Date": None} if form == "svg" else None
        figure.savefig(file.stream, format=form, metadata=metadata, dpi=160)


def latency_panels(latencies: NDArray[np.float64], noun: str) -> list[Panel]:
    """Return two panels: the latencies, in milliseconds, in their order, and their distribution."""
    return [lambda axes: _over_time(axes, latencies, noun), lambda axes: _distribution(axes, latencies, noun)]


def _or_nothing(title: str) -> Callable[[Picture], Picture]:
    """Make a picture only a title if the answer is empty."""
    return lambda panel: lambda axes, shown: panel(axes, shown) if len(shown.answer) else nothing(axes, title)


def group_sizes(field: int, title: str, unit: str = "nodes") -> Picture:
    """Return the picture of how many groups have how many members; records with equal fields number `field` are one."""

    @_or_nothing(title)
    def panel(axes: Axes, shown: Shown) -> None:
        _, sizes = np.unique(shown.answer.columns[field], return_counts=True)
        points(axes, *np.unique(sizes, return_counts=True))
        axes.set(title=title, xlabel=f"size ({unit})", ylabel="how many of this size")

    return panel


def histogram(field: int, title: str, unit: str, counted_in: str = "nodes") -> Picture:
    """Return the picture of how many records have each value of a field, which takes few values or is divided."""

    @_or_nothing(title)
    def panel(axes: Axes, shown: Shown) -> None:
        column = shown.answer.columns[field]
        if column.max() > LARGEST:
            return nothing(axes, title, f"values above {LARGEST:g} are not drawn")
        values, numbers = np.unique(column, return_counts=True)
        if len(values) <= MOST and values.dtype.kind == "i":
            axes.bar(values, numbers, color=BLUE, width=0.8)
        else:
            axes.hist(column, bins=MOST, color=BLUE)
        if numbers.max() > 100:
            axes.set_yscale("log")
        axes.set(title=title, xlabel=unit, ylabel=counted_in)
        return None

    return panel


def ranked(field: int, title: str, unit: str, scale: float = 1.0) -> Picture:
    """Return the picture of the values of a field in descending order, on logarithmic axes."""

    @_or_nothing(title)
    def panel(axes: Axes, shown: Shown) -> None:
        values = np.sort(shown.answer.columns[field])[::-1] * scale
        axes.loglog(np.arange(1, len(values) + 1), values, color=BLUE, linewidth=1.8)
        axes.set(title=title, xlabel="place", ylabel=unit)

    return panel


@_or_nothing("Degrees")
def degrees(axes: Axes, shown: Shown) -> None:
    """Draw how many nodes have each degree, from degrees of nodes or from their distribution."""
    degree, number = shown.answer.columns
    if not shown.options.distribution:
        degree, number = np.unique(number, return_counts=True)
    points(axes, degree, number)
    direction = "incoming" if shown.options.incoming else "outgoing"
    axes.set(title="Distribution of degrees", xlabel=f"degree ({direction} edges)", ylabel="nodes")


def core_sizes(axes: Axes, shown: Shown) -> None:
    """Draw how many nodes are in each core, or the degrees inside of the one that was asked for."""
    core = shown.options.core
    title = "Sizes of cores" if core is None else f"Degrees inside of the {core}-core"
    if not len(shown.answer):
        return nothing(axes, title)
    nodes, depth = shown.answer.columns
    if core is None:
        depths, exact = np.unique(depth, return_counts=True)
        axes.step(depths, exact[::-1].cumsum()[::-1], where="mid", color=BLUE, linewidth=1.8)
        axes.set_yscale("log")
        axes.set(title=title, xlabel="k", ylabel="nodes in the k-core")
        return None
    _, degree = np.unique(nodes, return_counts=True)
    points(axes, *np.unique(degree, return_counts=True))
    axes.set(title=title, xlabel="neighbours in the core", ylabel="nodes")
    return None


@_or_nothing("Occurrences of the motif at each node")
def occurrences(axes: Axes, shown: Shown) -> None:
    """Draw in how many occurrences of a motif nodes are."""
    _, numbers = np.unique(np.concatenate(shown.answer.columns), return_counts=True)
    points(axes, *np.unique(numbers, return_counts=True))
    axes.set(title="Occurrences of the motif at each node", xlabel="occurrences", ylabel="nodes in so many")


def points(axes: Axes, values: Column, numbers: Column) -> None:
    """Draw how many there are of each value, on logarithmic axes, in which zero has a place of its own."""
    if (values == 0).any():
        axes.set_xscale("symlog", linthresh=1)
    else:
        axes.set_xscale("log")
    axes.set_yscale("log")
    axes.plot(values, numbers, linestyle="none", marker="o", markersize=4, color=BLUE, alpha=0.75)


def beside(axes: Axes, height: float, text: str, colour: str) -> None:
    """Write a label to the right of the panel, at a height in data coordinates, where it covers nothing."""
    axes.text(1.01, height, text, color=colour, va="center", fontsize=8, transform=axes.get_yaxis_transform())


def _over_time(axes: Axes, latencies: NDArray[np.float64], noun: str) -> None:
    ordinal = np.arange(1, len(latencies) + 1)
    size = 3 if len(latencies) > 300 else 6
    axes.plot(ordinal, latencies, linestyle="none", marker=".", markersize=size, color=BLUE, alpha=0.5, rasterized=True)
    window = max(1, len(latencies) // 100)
    if window > 2:
        middle = np.array([np.median(part) for part in np.array_split(latencies, len(latencies) // window)])
        axes.plot(np.linspace(1, len(latencies), len(middle)), middle, color=ORANGE, linewidth=1.5)
        beside(axes, middle[-1], "running\nmedian", ORANGE)
    axes.set_yscale("log")
    plain_numbers(axes.yaxis)
    axes.set(title=f"Latency of each {noun}", xlabel=noun, ylabel="latency (ms)")


def _distribution(axes: Axes, latencies: NDArray[np.float64], noun: str) -> None:
    """Draw the share that took longer than each latency."""
    latencies = np.sort(latencies)
    share = 1 - np.arange(len(latencies)) / len(latencies)
    axes.step(latencies, share, where="pre", color=BLUE, linewidth=1.8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    right = np.inf
    for name, value in reversed(percentiles(latencies).items()):
        place = axes.transData.transform((value, 1))[0]
        axes.axvline(value, color=GREY, linewidth=0.8, linestyle=":")
        if right - place > 20:  # pixels, so that labels do not cover each other
            text = f"{name} {value:.3g}"
            axes.text(value, share[-1], text, rotation=90, ha="center", va="bottom", color=GREY, **LABEL)
            right = place
    plain_numbers(axes.xaxis)
    axes.set(title="Distribution of latencies", xlabel="latency (ms)", ylabel=f"share of {noun}s that took longer")


def plain_numbers(axis: Any) -> None:
    """Write the numbers of a logarithmic axis as 60, not as 6 times a power of ten."""
    from matplotlib.ticker import LogFormatter

    class Plain(LogFormatter):
        """Labels the same ticks with the numbers themselves."""

        def __call__(self, x: float, pos: Any = None) -> str:
            return f"{x:g}" if super().__call__(x, pos) else ""

    axis.set_major_formatter(Plain())
    axis.set_minor_formatter(Plain(minor_thresholds=(1.2, 0.5)))


def nothing(axes: Axes, title: str, text: str = "the answer is empty") -> None:
    axes.set(title=title)
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes, color=GREY)
