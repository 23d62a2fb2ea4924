"""The picture of an upgrade: a time line of the latency of its steps, and of the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from differential.jobs.picture import BLUE, GREEN, ORANGE, Panel, beside, plain_numbers

POINTS = 1000
"""About how many answers of a run are drawn."""

COLOURS = (BLUE, ORANGE, GREEN)

History = Sequence[tuple[int, Mapping[str, Any]]]
"""Steps, and the answers after them."""


def panels(latencies: NDArray[np.float64], history: History) -> list[Panel]:
    """Return the panels, one below the other: latencies in milliseconds, then each answer that was maintained."""
    last = len(latencies)
    drawn: list[Panel] = [lambda axes: _latencies(axes, latencies)]
    for title, unit, lines in _answers(history):
        drawn.append(partial(_time_line, title=title, unit=unit, lines=lines, last=last))
    return drawn


def _latencies(axes: Any, latencies: NDArray[np.float64]) -> None:
    """Draw the latency of each step, and a running median."""
    steps = np.arange(1, len(latencies) + 1)
    axes.plot(steps, latencies, linestyle="none", marker=".", markersize=2, color=BLUE, alpha=0.4, rasterized=True)
    parts = np.array_split(np.arange(len(latencies)), max(1, len(latencies) // 100))
    if len(parts) > 2:
        medians = [float(np.median(latencies[part])) for part in parts]
        axes.plot([float(steps[part].mean()) for part in parts], medians, color=ORANGE, linewidth=1.5)
        beside(axes, medians[-1], "running\nmedian", ORANGE)
    axes.set_yscale("log")
    plain_numbers(axes.yaxis)
    axes.set(title="Latency of each step", xlabel="step", ylabel="latency (ms)", xlim=(0, max(1, len(latencies))))


def _answers(history: History) -> list[tuple[str, str, dict[str, list[tuple[int, int]]]]]:
    """Return the title, the unit and the lines, by their names, of each answer that is drawn."""
    found: list[tuple[str, str, dict[str, list[tuple[int, int]]]]] = []
    given = history[0][1] if history else {}
    for name, title in (("components", "Weakly connected components"), ("cycles", "Dependency cycles")):
        if name in given:
            lines = {"number": [(step, answers[name]["count"]) for step, answers in history]}
            if name == "cycles":
                lines["packages in\nthe largest"] = [(step, answers[name]["largest"]) for step, answers in history]
            found.append((title, "number", lines))
    for name, title, unit in (("watch", "Packages that depend on a package", "packages"),):
        if name in given:
            every = list(given[name])[: len(COLOURS)]
            lines = {each: [(step, answers[name][each]) for step, answers in history] for each in every}
            found.append((title, unit, lines))
    if history and history[-1][1].get("top"):
        name = history[-1][1]["top"][0][0]
        lines = {name: [(step, answers["top"][0][1]) for step, answers in history if answers["top"]]}
        found.append(("Most direct dependants of a package", "packages", lines))
    return found


def _time_line(axes: Any, title: str, unit: str, lines: Mapping[str, list[tuple[int, int]]], last: int) -> None:
    """Draw an answer over the steps, with a label at the end of each line."""
    for colour, (name, points) in zip(COLOURS, lines.items()):
        axes.step(*zip(*points), where="post", color=colour, linewidth=1.5)
        beside(axes, points[-1][1], name, colour)
    axes.margins(y=0.15)
    axes.yaxis.set_major_formatter(lambda number, _: f"{number:,.0f}" if number == int(number) else "")
    axes.set(title=title, xlabel="step", ylabel=unit, xlim=(0, max(1, last)))
