"""k-exposure with fault tolerance (Naiad, SOSP 2013, section 6.3): what three modes cost, and what a crash costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Case
from benchmarks.recovery import EACH, MODES, RESTART
from benchmarks.seeds.experiment import Experiment, Recorded, Row, percentiles, shown
from benchmarks.seeds.style import BLUE, GREEN, VERMILION, describe

COLOURS = dict(zip(MODES, (VERMILION, BLUE, GREEN)))
LABELS = {"nothing": "nothing durable", "inputs": "durable inputs", "snapshots": "inputs and snapshots"}


def cases(full: bool) -> list[Case]:
    """Return a case for each mode."""
    given = {"users": 100_000, "tags": 10_000, "follows": 20, "epochs": 500 if full else 100, "size": 10_000}
    return [Case(LABELS[mode], "recovery", {"mode": mode, **given}, function="series") for mode in MODES]


def rows(recorded: Recorded) -> list[Row]:
    """Return the latency of epochs and the time of a restart in each mode."""
    found = []
    for case in filter(recorded.__contains__, LABELS.values()):
        latency = percentiles(recorded.series(case, EACH), "ms")
        found.append(Row(case, "an epoch of 10,000 tweets: median / p95 / p99", latency))
        found.append(Row(case, "restart to the next answer", f"{shown(float(recorded.series(case, RESTART)[0]))} s"))
    return found


def draw(figure: Any, recorded: Recorded) -> None:
    """Draw the share of epochs that took at most so long, and the restarts."""
    latencies, restarts = figure.subplots(1, 2, width_ratios=(3, 2))
    for place, (mode, case) in enumerate(LABELS.items()):
        if case not in recorded:
            continue
        values = np.sort(recorded.series(case, EACH))
        latencies.step(
            values, np.arange(1, len(values) + 1) / len(values), color=COLOURS[mode], label=case, where="post"
        )
        seconds = float(recorded.series(case, RESTART)[0])
        restarts.plot([0, seconds], [place, place], color=COLOURS[mode], marker="o", markevery=[1])
    latencies.set(xscale="log", ylim=(0, 1))
    latencies.legend(frameon=False, fontsize=8)
    describe(latencies, "milliseconds for an epoch of 10,000 tweets", "share of epochs")
    restarts.set(xlim=(0, None), ylim=(len(LABELS) - 0.5, -0.5))
    restarts.set_yticks(range(len(LABELS)), MODES)
    describe(restarts, "seconds to restart", "what is durable", grid="x")


EXPERIMENT = Experiment("recovery", "k-exposure with private state: the cost of durability", cases, rows, draw)
