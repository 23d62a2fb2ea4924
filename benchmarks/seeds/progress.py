"""The protocol traffic of Naiad (SOSP 2013, section 5.3): bytes about progress by mode of accumulation."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Case
from benchmarks.progress_traffic import DATA, UNBATCHED
from benchmarks.seeds.experiment import Experiment, Recorded, Row, shown
from benchmarks.seeds.style import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILION, Label, describe, label, plain

WORKERS = 4
PROCESSES = (2, 4, 8, 16)
WAYS = {
    UNBATCHED: ("a message for each change", BLACK),
    "eager": ("eager, by worker", ORANGE),
    "demand": ("on demand, by worker", VERMILION),
    "demand, by process": ("on demand, by process", BLUE),
    "demand, by cluster": ("on demand, by cluster", GREEN),
}
UNITS = {"messages": "messages between processes", "kB": "kB between processes"}


def _name(processes: int) -> str:
    return f"{processes} processes of {WORKERS} workers"


def cases(full: bool) -> list[Case]:
    """Return a case for each number of processes, which are simulated in one."""
    return [
        Case(_name(number), "progress_traffic", {"work": "wcc", "processes": number, "workers": WORKERS})
        for number in PROCESSES[: None if full else 3]
    ]


def rows(recorded: Recorded) -> list[Row]:
    """Return messages and bytes in each mode."""
    found = []
    for case in recorded.runs:
        whole = recorded.median(case, f"{UNBATCHED}, kB") or np.nan
        for way, (text, _) in WAYS.items():
            messages, size = (recorded.median(case, f"{way}, {unit}") or np.nan for unit in UNITS)
            paper = "less by one to two orders of magnitude" if way == "demand, by cluster" else ""
            found.append(
                Row(case, text, f"{messages:,.0f} messages, {size:,.0f} kB ({shown(whole / size)} x less)", paper)
            )
    return found


def draw(figure: Any, recorded: Recorded) -> None:
    """Draw messages and bytes by number of processes."""
    numbers = [number for number in PROCESSES if _name(number) in recorded]
    panels = figure.subplots(1, 2, width_ratios=(3, 2))
    for axes, (unit, text) in zip(panels, UNITS.items()):
        labels = []
        for way, (described, colour) in WAYS.items():
            sent = [recorded.median(_name(number), f"{way}, {unit}") or np.nan for number in numbers]
            axes.plot(numbers, sent, color=colour, marker="o")
            labels.append(Label(numbers[-1], sent[-1], described, colour))
        if unit == "messages":
            data = [recorded.median(_name(number), DATA) or np.nan for number in numbers]
            axes.plot(numbers, data, color=GREY, linestyle=":", marker=".")
            labels.append(Label(numbers[-1], data[-1], "messages with records", GREY))
        axes.set(
            xscale="log", yscale="log", xlim=(numbers[0] / 1.15, numbers[-1] * (14 if unit == "messages" else 1.15))
        )
        plain(axes, "x", numbers)
        plain(axes, "y")
        describe(axes, f"processes, of {WORKERS} workers each", text)
        if unit == "messages":
            label(axes, labels)


EXPERIMENT = Experiment(
    "progress",
    "Progress traffic by mode of accumulation, for components of 4,000 edges",
    cases,
    rows,
    draw,
)
