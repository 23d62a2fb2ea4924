"""The all-to-all exchange of Naiad (SOSP 2013, section 5.1): records of eight bytes between all workers, by batch."""

from __future__ import annotations

from typing import Any

from benchmarks.exchange import BATCH, RATE, ROUND
from benchmarks.harness import Case
from benchmarks.seeds.experiment import Experiment, Recorded, Row, compact, processes, shown
from benchmarks.seeds.style import BLUE, VERMILION, Label, describe, label, plain

SIZES = [10**power for power in range(7)]
PROCESSES = {1: ("in one process,\nby reference", BLUE), 2: ("between\ntwo processes", VERMILION)}
BYTES = 8


def cases(full: bool) -> list[Case]:
    """Return a case for each number of processes."""
    records, rounds = (50_000_000, 5000) if full else (5_000_000, 500)
    parameters = {"batches": SIZES, "records": records, "most_rounds": rounds}
    return [Case(processes(number), "exchange", parameters, number, function="series") for number in PROCESSES]


def rows(recorded: Recorded) -> list[Row]:
    """Return the rate and the time of a round for each size of batch."""
    found = []
    for case in filter(recorded.__contains__, map(processes, PROCESSES)):
        columns = (recorded.series(case, name) for name in (BATCH, RATE, ROUND))
        for batch, rate, microseconds in zip(*columns):
            text = f"{shown(rate)} M records/s, {shown(microseconds)} us a round"
            found.append(Row(case, f"batches of {batch:,.0f} for each worker", text))
    return found


def draw(figure: Any, recorded: Recorded) -> None:
    """Draw the throughput by size of batch."""
    axes = figure.subplots()
    labels = []
    for number, (text, colour) in PROCESSES.items():
        case = processes(number)
        if case in recorded:
            batches, rates = recorded.series(case, BATCH), recorded.series(case, RATE)
            axes.plot(batches, rates, color=colour, marker="o")
            gigabytes = 1e-3 * BYTES * rates[-1]
            labels.append(Label(batches[-1], rates[-1], f"{text}:\n{shown(gigabytes)} GB/s", colour))
    axes.set(xscale="log", yscale="log", xlim=(0.7, 1.2e7))
    axes.set_ylim(top=4 * axes.get_ylim()[1])
    plain(axes, "x", SIZES, compact)
    plain(axes, "y")
    describe(
        axes, "records that each worker sends in a round (8 bytes each)", "throughput of all workers\n(M records/s)"
    )
    label(axes, labels)


EXPERIMENT = Experiment("exchange", "All-to-all exchange: throughput by size of batch", cases, rows, draw)
