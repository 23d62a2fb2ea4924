"""Table 1 of Naiad (SOSP 2013, section 6.1): PageRank, components and approximate shortest paths beside other systems.

The graph is random, with ten edges for each node. Others answer from scratch after each change; networkx and igraph
keep their graph, and are not charged for changing it. Pathway follows changes, too, in the one question that is written
for it. PageRank here is exact, or within a tolerance, so that small changes of ranks are not passed on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks.harness import Case
from benchmarks.incremental import INITIAL as FIRST, SINGLE_MEDIAN
from benchmarks.peers import INITIAL, MEDIAN
from benchmarks.scratch import AT_HAND, BUILT, CHANGE, OURS, SCIPY
from benchmarks.seeds.experiment import Experiment, Recorded, Row, duration, shown
from benchmarks.seeds.style import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, describe, plain

PATHWAY = "pathway"
QUESTIONS = {
    "pagerank": ("PageRank", "15 x"),
    "scc": ("strongly connected\ncomponents", "9 x"),
    "wcc": ("weakly connected\ncomponents", "98 x"),
    "landmarks": ("distances from\n8 landmarks (ASP)", "593 x"),
}
"""For each question its name in the picture, and how many times as fast as PDW or SHS Naiad was."""


ROW = 0.16
"""The distance between tools, of that between questions."""


FAR = 0.55
"""The share of the axis from which labels are to the left of their points."""


class Point(NamedTuple):
    """The seconds of a tool: from scratch if `is_first`, and otherwise after a change."""

    tool: str
    is_first: bool
    seconds: float


HERE = "this library"
TOLERANT = "tolerance 1 %"
TOOLS = {
    HERE: (BLUE, "o"),
    TOLERANT: (BLUE, "p"),
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
    tolerant = {**sizes, "tolerance": 0.01, "singles": 20, "batches": 0}
    found.append(Case(TOLERANT, "pagerank", tolerant))
    return [*found, Case(PATHWAY, "peers", parameters, needs=(PATHWAY,))]


def _points(recorded: Recorded, question: str) -> Iterator[Point]:
    """Yield the points of a question."""
    named = [(question, HERE, OURS, CHANGE, 1.0)]
    if question == "pagerank":
        named.append((TOLERANT, TOLERANT, FIRST, SINGLE_MEDIAN, 1e-6))
    named.append((question, "SciPy", SCIPY, SCIPY, 1.0))
    named += [(question, tool, BUILT.format(tool), AT_HAND.format(tool), 1.0) for tool in ("igraph", "networkx")]
    if question == "wcc":
        named.append((PATHWAY, "Pathway", f"pathway: {INITIAL}", f"pathway: {MEDIAN}", 1e-6))
    for case, tool, first, later, unit in named:
        for figure, is_first in ((first, True), (later, False)):
            found = recorded.median(case, figure)
            if found is not None:
                yield Point(tool, is_first, found if is_first else unit * found)


def rows(recorded: Recorded) -> list[Row]:
    """Return the seconds of each tool for each question."""
    found = []
    for question, (text, paper) in QUESTIONS.items():
        name = text.replace("\n", " ")
        for point in _points(recorded, question):
            what = "from scratch" if point.is_first else "after one change"
            figure = f"{shown(point.seconds)} s"
            is_ours = point.tool == HERE and point.is_first
            found.append(Row(name, f"{point.tool}, {what}", figure, f"{paper} as fast as others" if is_ours else ""))
    return found


def draw(figure: Any, recorded: Recorded) -> None:
    """Draw the seconds from scratch and after a change, a row for each question."""
    panels = figure.subplots(1, 2, sharey=True, sharex=True)
    seconds = [point.seconds for question in QUESTIONS for point in _points(recorded, question)]
    low, high = min(seconds), max(seconds)
    for place, question in enumerate(QUESTIONS):
        points = [*_points(recorded, question)]
        tools = [*dict.fromkeys(point.tool for point in points)]
        for point in points:
            colour, marker = TOOLS[point.tool]
            row = place + ROW * (tools.index(point.tool) - (len(tools) - 1) / 2)
            axes = panels[0 if point.is_first else 1]
            axes.plot([point.seconds], [row], marker, color=colour)
            is_far = point.seconds > low * (high / low) ** FAR
            axes.annotate(
                f"{point.tool}: {duration(point.seconds)}",
                (point.seconds, row),
                xytext=(-6 if is_far else 6, 0),
                textcoords="offset points",
                ha="right" if is_far else "left",
                va="center",
                color=colour,
                fontsize=7.5,
                fontweight="bold" if point.tool == HERE else "normal",
            )
    for axes in panels:
        axes.set_xscale("log")
        axes.tick_params(axis="x", labelsize=7)
        for border in range(1, len(QUESTIONS)):
            axes.axhline(border - 0.5, color=GREY, linewidth=0.5)
        axes.tick_params(axis="y", length=0)
    panels[0].set_xlim(low / 2, high * (high / low) ** 0.12)
    panels[0].set_ylim(-0.5, len(QUESTIONS) - 0.5)
    for axes in panels:
        plain(axes, "x", shown=duration)
    panels[0].set_yticks(range(len(QUESTIONS)), [text for text, _ in QUESTIONS.values()])
    panels[0].invert_yaxis()
    edges = max(given["edges"] for given in recorded.parameters.values())
    describe(panels[0], "time (logarithmic)", "question", f"from scratch, {edges:,} edges", grid="x")
    describe(panels[1], "time (logarithmic)", "", "after one changed edge", grid="x")


EXPERIMENT = Experiment(
    "table-one",
    "Four questions about one graph, beside other Python tools",
    cases,
    rows,
    draw,
    wants=("igraph", "networkx", PATHWAY),
    height=5.6,
)
