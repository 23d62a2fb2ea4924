"""Interactive queries while tweets arrive (Naiad, SOSP 2013, section 6.4): fresh, and one second stale."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Case
from benchmarks.queries import DUE
from benchmarks.seeds.experiment import Experiment, Recorded, Row, percentiles, shown
from benchmarks.seeds.style import BACKGROUND, BLUE, VERMILION, describe, distribution, plain, reference

CASE = "queries"
PAPER = {"fresh": "< 1 s", "stale": "< 10 ms"}
KINDS = {"fresh": ("fresh", VERMILION), "stale": ("1 second stale", BLUE)}


def cases(full: bool) -> list[Case]:
    """Return the case."""
    rate, milliseconds, seconds = (32_000, 100, 40.0) if full else (2000, 20, 8.0)
    parameters = {"rate": rate, "users": 10_000, "milliseconds": milliseconds, "seconds": seconds}
    return [Case(CASE, "queries", parameters, function="series")]


def rows(recorded: Recorded) -> list[Row]:
    """Return the percentiles of both kinds."""
    rate = recorded.parameters[CASE]["rate"]
    return [
        Row(
            f"{rate:,} tweets/s",
            f"{text}: median / p95 / p99",
            percentiles(recorded.series(CASE, kind), "ms"),
            PAPER[kind],
        )
        for kind, (text, _) in KINDS.items()
    ]


def draw(figure: Any, recorded: Recorded) -> None:
    """Draw the latencies over time, and their distribution."""
    over_time, shares = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    due = recorded.series(CASE, DUE)
    lowest = np.inf
    for kind, (text, colour) in KINDS.items():
        milliseconds = recorded.series(CASE, kind)
        over_time.plot(due, milliseconds, ".", color=colour, markersize=2.5)
        values, share = distribution(milliseconds)
        shares.plot(share, values, color=colour)
        median = float(np.median(milliseconds))
        shares.annotate(
            f"{text}:\nmedian {shown(median)} ms,\np99 {shown(float(np.percentile(milliseconds, 99)))} ms",
            (0.03, median) if kind == "fresh" else (1.0, median),
            xytext=(0, 6) if kind == "fresh" else (0, -8),
            textcoords="offset points",
            va="bottom" if kind == "fresh" else "top",
            ha="left" if kind == "fresh" else "right",
            color=colour,
            bbox=BACKGROUND,
        )
        lowest = min(lowest, float(milliseconds.min()))
    over_time.set(yscale="log", ylim=(lowest / 6, 3000))
    shares.set_xlim(0, 1.02)
    plain(over_time, "y")
    for axes in (over_time, shares):
        reference(axes, 1000, "Naiad, fresh: below 1 s" if axes is over_time else "")
        reference(axes, 10, "Naiad, 1 s stale: below 10 ms" if axes is over_time else "")
    rate = recorded.parameters[CASE]["rate"]
    describe(over_time, f"time of the query (s); {rate:,} tweets a second", "latency (ms)", "over time")
    describe(shares, "share of queries", "", "distribution")


EXPERIMENT = Experiment("queries", "Queries of the top hashtag in a user's component", cases, rows, draw, height=3.4)
