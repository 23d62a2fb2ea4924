"""k-exposure (Naiad, SOSP 2013, section 6.3): how many tweets a second a program follows, epoch by epoch."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.exposures import EACH
from benchmarks.harness import Case
from benchmarks.seeds.experiment import Experiment, Recorded, Row, percentiles, shown
from benchmarks.seeds.style import BLUE, GREEN, VERMILION, Label, describe, label, reference

NAIAD = 483_000
LARGE, SMALL = 50_000, 1000
WAYS = {
    "1 process": (1, LARGE, VERMILION),
    "2 processes": (2, LARGE, BLUE),
    "1 process, small epochs": (1, SMALL, GREEN),
}


def cases(full: bool) -> list[Case]:
    """Return a case for each way."""
    tweets = 5_000_000 if full else 1_000_000
    graph = {"users": 100_000, "tags": 10_000, "follows": 20}
    return [
        Case(name, "exposures", {**graph, "epochs": tweets // size, "size": size}, number, function="series")
        for name, (number, size, _) in WAYS.items()
    ]


def _rate(recorded: Recorded, case: str) -> float:
    milliseconds = recorded.series(case, EACH)
    return float(1e3 * recorded.parameters[case]["size"] * len(milliseconds) / milliseconds.sum())


def rows(recorded: Recorded) -> list[Row]:
    """Return the rate of each way, and the latency of its epochs."""
    found = []
    for case in filter(recorded.__contains__, WAYS):
        size = recorded.parameters[case]["size"]
        paper = f"{NAIAD:,}" if size == LARGE else ""
        found.append(Row(case, f"tweets a second, in epochs of {size:,}", f"{_rate(recorded, case):,.0f}", paper))
        latency = percentiles(recorded.series(case, EACH), "ms")
        found.append(Row(case, "an epoch: median / p95 / p99", latency))
    return found


def draw(figure: Any, recorded: Recorded) -> None:
    """Draw the rate during the run."""
    axes = figure.subplots()
    labels, end = [], 0.0
    for case, (_, _, colour) in WAYS.items():
        if case not in recorded:
            continue
        size = recorded.parameters[case]["size"]
        milliseconds = recorded.series(case, EACH)
        together = max(LARGE // size, 1)  # the rate of small epochs is that of as many tweets as a large one has
        spans = np.add.reduceat(milliseconds, np.arange(0, len(milliseconds), together))
        sent = 1e-6 * size * np.minimum(together * (1 + np.arange(len(spans))), len(milliseconds))
        rates = np.diff(sent, prepend=0.0) / (1e-3 * spans)
        axes.plot(sent, rates, color=colour, linewidth=1.2)
        text = f"{case.partition(',')[0]},\nepochs of {size:,}:\n{shown(1e-6 * _rate(recorded, case))} M/s"
        labels.append(Label(sent[-1], float(np.median(rates)), text, colour))
        end = max(end, float(sent[-1]))
    axes.set(xlim=(0, end * 1.25), ylim=(0, None))
    axes.set_xticks(np.linspace(0, end, 6))
    reference(axes, 1e-6 * NAIAD, f"Naiad, without fault tolerance: {1e-6 * NAIAD:.2g} M/s", end=1 / 1.25)
    describe(axes, "tweets so far (millions)", "million tweets a second,\nover each 50,000")
    label(axes, labels)


EXPERIMENT = Experiment(
    "exposures", "k-exposure: hashtags that 100,000 users use first after k exposures", cases, rows, draw
)
