"""Table 1 of Naiad (SOSP 2013, section 6.1): PageRank, components and approximate shortest paths beside other systems.

The graph is random, with ten edges for each node. Others answer from scratch after each change, with their graph built
already if they have one; Pathway follows changes, too, as far as this was written for it: components.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import Case
from benchmarks.peers import INITIAL, MEDIAN
from benchmarks.scratch import AT_HAND, BUILT, CHANGE, OURS, SCIPY
from benchmarks.seeds.experiment import Experiment, Recorded, Row, shown
from benchmarks.seeds.style import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, describe

PATHWAY = "pathway"
QUESTIONS = {
    "pagerank": ("PageRank", "15 x"),
    "scc": ("strongly connected\ncomponents", "9 x"),
    "wcc": ("weakly connected\ncomponents", "98 x"),
    "landmarks": ("distances from\n8 landmarks (ASP)", "593 x"),
}
"""For each question its name in the picture, and how many times as fast as PDW or SHS Naiad was."""


class Point(NamedTuple):
    """The seconds of a tool: from scratch if `is_first`, and otherwise after a change."""

    tool: str
    is_first: bool
    seconds: float


TOOLS = {
    "this library": (BLUE, "o"),
    "SciPy": (VERMILION, "s"),
    "igraph": (GREEN, "^"),
    "networkx": (ORANGE, "v"),
    "Pathway": (PURPLE, "D"),
}


def cases(full: bool) -> list[Case]:
    """Return a case for each question, and one for Pathway."""
    nodes = 100_000 if full else 10_000
    changes = {"pagerank": 5, "scc": 20, "wcc": 100, "landmarks": 100}
    sizes = {"nodes": nodes, "edges": 10 * nodes}
    found = [
        Case(question, "scratch", {"question": question, **sizes, "changes": changes[question]})
        for question in QUESTIONS
    ]
    parameters = {"peer": PATHWAY, "work": "components", **sizes, "changes": 30}
    return [*found, Case(PATHWAY, "peers", parameters, needs=(PATHWAY,))]


def _points(recorded: Recorded, question: str) -> Iterator[Point]:
    """Yield the points of a question."""
    named = [("this library", OURS, CHANGE), ("SciPy", SCIPY, SCIPY)]
    named += [(tool, BUILT.format(tool), AT_HAND.format(tool)) for tool in ("igraph", "networkx")]
    for tool, *figures in named:
        for figure, is_first in zip(figures, (True, False)):
            seconds = recorded.median(question, figure)
            if seconds is not None:
                yield Point(tool, is_first, seconds)
    if question == "wcc" and PATHWAY in recorded:
        yield Point("Pathway", True, recorded.median(PATHWAY, f"pathway: {INITIAL}") or np.nan)
        yield Point("Pathway", False, 1e-6 * (recorded.median(PATHWAY, f"pathway: {MEDIAN}") or np.nan))


def rows(recorded: Recorded) -> list[Row]:
    """Return the seconds of each tool for each question."""
    found = []
    for question, (text, paper) in QUESTIONS.items():
        name = text.replace("\n", " ")
        for point in _points(recorded, question):
            what = "from scratch" if point.is_first else "after one change"
            figure = f"{shown(point.seconds)} s"
            is_ours = point.tool == "this library" and point.is_first
            found.append(Row(name, f"{point.tool}, {what}", figure, f"{paper} as fast as others" if is_ours else ""))
    return found


def draw(figure: Any, recorded: Recorded) -> None:
    """Draw the seconds from scratch and after a change, a row for each question."""
    panels = figure.subplots(1, 2, sharey=True, sharex=True)
    step = 0.8 / len(TOOLS)
    for place, question in enumerate(QUESTIONS):
        for point in _points(recorded, question):
            colour, marker = TOOLS[point.tool]
            row = place + step * ([*TOOLS].index(point.tool) - (len(TOOLS) - 1) / 2)
            axes = panels[0 if point.is_first else 1]
            axes.plot([point.seconds], [row], marker, color=colour)
            axes.annotate(
                f"{point.tool} {_duration(point.seconds)}",
                (point.seconds, row),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                color=colour,
                fontsize=7.5,
                fontweight="bold" if point.tool == "this library" else "normal",
            )
    for axes in panels:
        axes.set_xscale("log")
        for border in range(1, len(QUESTIONS)):
            axes.axhline(border - 0.5, color=GREY, linewidth=0.5)
        axes.tick_params(axis="y", length=0)
    low, high = panels[0].get_xlim()
    panels[0].set_xlim(low, high * (high / low) ** 0.3)
    panels[0].set_yticks(range(len(QUESTIONS)), [text for text, _ in QUESTIONS.values()])
    panels[0].invert_yaxis()
    describe(panels[0], "time (s)", "question", "from scratch, with its graph", grid="x")
    describe(panels[1], "time (s)", "", "after one changed edge", grid="x")


def _duration(seconds: float) -> str:
    """Return seconds in the unit in which they are easily read."""
    for unit, least in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= least:
            return f"{shown(seconds / least)} {unit}"
    return f"{shown(1e6 * seconds)} µs"


EXPERIMENT = Experiment(
    "table-one",
    "Four questions about one graph, beside other Python tools",
    cases,
    rows,
    draw,
    wants=("igraph", "networkx", PATHWAY),
    height=4.6,
)
