"""Strong and weak scaling (Naiad, SOSP 2013, section 5.4), from one worker to two, which are threads or processes.

Strong: the same work; weak: twice the work. Two processes that do not communicate, each with half of the work, show
how much a second process can gain on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks.harness import Case
from benchmarks.incremental import INITIAL
from benchmarks.seeds.experiment import Experiment, Recorded, Row, shown
from benchmarks.seeds.style import BACKGROUND, BLACK, BLUE, GREEN, GREY, VERMILION, describe
from benchmarks.wordcount import RATE

HALF, ONE = "half of the work, 1 worker", "1 worker"
WAYS = {"2 threads": (BLUE, "s"), "2 processes": (VERMILION, "o"), "2 processes apart": (GREY, "D")}
WORDS_PER_EPOCH = 100_000


class Work(NamedTuple):
    """A workload, its name in the picture, and the factors of the paper: strong at 64 computers, and weak."""

    workload: str
    name: str
    strong: float | None
    weak: float | None


WORKS = (
    Work("wcc", "connected components", 38.0, 1.44),
    Work("bfs", "breadth-first search", None, None),
    Work("wordcount", "word count", 46.0, 1.23),
)
COMPUTERS = 64
DASHES = (0, (4, 3))


def cases(full: bool) -> list[Case]:
    """Return for each workload a case of half the work, and one of the whole for each way to share it."""
    return [case for work in WORKS for case in _cases(work.workload, full)]


def _cases(workload: str, full: bool) -> Iterator[Case]:
    ways = {
        HALF: (1, 1, 2),
        ONE: (1, 1, 1),
        "2 threads": (1, 2, 1),
        "2 processes": (2, 1, 1),
        "2 processes apart": (2, 1, 1),
    }
    size = 10_000_000 if full else 1_000_000
    for way, (processes, workers, part) in ways.items():
        if workload == "wordcount":
            parameters = {
                "words": size // part,
                "distinct": 100_000,
                "epochs": size // part // WORDS_PER_EPOCH,
                "ahead": 16,
            }
        else:
            parameters = {"nodes": size // part // 10, "edges": size // part, "singles": 0, "batches": 0}
        if way.endswith("apart"):
            parameters["apart"] = True
        yield Case(f"{workload}, {way}", workload, parameters, processes, workers)


def _seconds(recorded: Recorded, workload: str, way: str) -> float | None:
    """Return the seconds of a case, or None if it has none."""
    case = f"{workload}, {way}"
    if workload == "wordcount":
        rate = recorded.median(case, RATE)
        return None if rate is None else 1e-6 * recorded.parameters[case]["words"] / rate
    return recorded.median(case, INITIAL)


def _factors(recorded: Recorded) -> Iterator[tuple[Work, str, float, float | None]]:
    """Yield each work and way with its speed-up, and how many times as long twice the work takes."""
    for work in WORKS:
        half, one = (_seconds(recorded, work.workload, way) for way in (HALF, ONE))
        for way in WAYS:
            two = _seconds(recorded, work.workload, way)
            if one is not None and two is not None:
                yield work, way, one / two, None if half is None else two / half


def rows(recorded: Recorded) -> list[Row]:
    """Return the factors of each workload."""
    found = []
    for work, way, strong, weak in _factors(recorded):
        seconds = _seconds(recorded, work.workload, ONE) or 0.0
        paper = f"{work.strong:g} x at {COMPUTERS} computers" if work.strong and way == "2 processes" else ""
        found.append(Row(work.name, f"speed-up by {way}", f"{strong:.2f} x of {shown(seconds)} s; ideal 2", paper))
        if weak is not None:
            paper = f"{work.weak:g} x at {COMPUTERS} computers" if work.weak and way == "2 processes" else ""
            found.append(Row(work.name, f"twice the work by {way}", f"{weak:.2f} x as long; ideal 1", paper))
    return found


def draw(figure: Any, recorded: Recorded) -> None:
    """Draw both factors, a row for each workload and way."""
    panels = figure.subplots(1, 2, sharey=True)
    height = len(WAYS) + 1
    rows = {(work, way): height * place + 1 + line for place, work in enumerate(WORKS) for line, way in enumerate(WAYS)}
    for work, way, *factors in _factors(recorded):
        colour, marker = WAYS[way]
        row = rows[work, way]
        for axes, factor in zip(panels, factors):
            if factor is not None:
                face = "white" if way.endswith("apart") else colour
                axes.plot([1, factor], [row, row], color=colour, linewidth=1)
                axes.plot([factor], [row], marker, color=colour, markerfacecolor=face)
                _note(axes, max(factor, 1.0), row, f"{factor:.2f}", colour)
    strong, weak = panels
    for place, work in enumerate(WORKS):
        top = height * place
        strong.annotate(
            work.name,
            (0.02, top),
            xycoords=strong.get_yaxis_transform(),
            va="center",
            fontweight="bold",
            bbox=BACKGROUND,
        )
        if work.weak:
            weak.plot([work.weak] * 2, [top + 0.5, top + len(WAYS) + 0.4], color=GREY, linewidth=1, linestyle=DASHES)
            _note(weak, work.weak, top, f"Naiad, {COMPUTERS} computers: {work.weak:g}", GREY)
    for axes, ideal in zip(panels, (2.0, 1.0)):
        axes.axvline(1, color=BLACK, linewidth=0.8, zorder=1)
        axes.axvline(ideal, color=GREEN, linewidth=1, zorder=0)
        axes.annotate(
            f"ideal: {ideal:g}",
            (ideal, 1),
            xycoords=axes.get_xaxis_transform(),
            xytext=(3, 0),
            textcoords="offset points",
            va="bottom",
            color=GREEN,
            fontsize=8,
        )
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(0, 1.15 * max(axes.get_xlim()[1], 2))
    strong.set_yticks([*rows.values()], [way.replace(" apart", ",\nnot communicating") for _, way in rows])
    for tick, (_, way) in zip(strong.get_yticklabels(), rows):
        tick.set_color(WAYS[way][0])
    strong.set_ylim(height * len(WORKS) - 0.4, -0.7)
    describe(strong, "times as fast as one worker", "two workers", "strong: the same work", grid="x")
    describe(weak, "times as long as one worker takes for half", "", "weak: twice the work", grid="x")
    for axes in panels:
        axes.set_title(axes.get_title(loc="left"), loc="left", pad=14)


def _note(axes: Any, x: float, y: float, text: str, colour: str) -> None:
    """Write a text to the right of a point."""
    axes.annotate(
        text,
        (x, y),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
        color=colour,
        fontsize=8,
        bbox=BACKGROUND,
    )


EXPERIMENT = Experiment("scaling", "From one worker to two on two cores", cases, rows, draw, repeats=True, height=4.4)
