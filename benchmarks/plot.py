"""Draw the figures that have a reference, as ratios to the reference, with their targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.harness import WARM_UP, Case, Figures, at_least

MET, MISSED, PLAIN = "#4c9a6a", "#c0563f", "#8a97a5"


def plot(cases: Sequence[Case], results: Mapping[str, Figures], file: Path) -> None:
    """Write the picture, in the format named by the extension of the file."""
    from matplotlib.figure import Figure

    bars = [bar for case in cases if case.name in results for bar in _bars(case, results[case.name])]
    figure = Figure(figsize=(9, 1.2 + 0.24 * len(bars)), layout="constrained")
    axes = figure.subplots()
    axes.barh([name for name, *_ in bars], [ratio for _, ratio, *_ in bars], color=[colour for *_, colour in bars])
    for row, (_, _, target, _) in enumerate(bars):
        if target is not None:
            axes.plot([target, target], [row - 0.4, row + 0.4], color="black", linewidth=1.5)
    axes.axvline(1, color="gray", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("ratio to the reference (inverted for rates); black marks: targets")
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=7)
    figure.savefig(file)


def _bars(case: Case, figures: Figures) -> list[tuple[str, float, float | None, str]]:
    """Return name, ratio, target and colour of each figure that has a reference. Less is always better."""
    bars = []
    for name, reference in case.references.items():
        if name == WARM_UP or name not in figures:
            continue
        is_rate = at_least(name)
        ratio = reference.figure / figures[name] if is_rate else figures[name] / reference.figure
        target = reference.target
        if target is not None and is_rate:
            target = 1 / target
        colour = PLAIN if target is None else MET if ratio <= target else MISSED
        bars.append((f"{case.name}: {name}", ratio, target, colour))
    return bars
