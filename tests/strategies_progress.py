"""Random graphs of nested loops, pointstamps and updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from tests.oracle.progress import Graph
from timely.errors import CycleError
from timely.progress.cycles import positions
from timely.progress.graph import Edge
from timely.progress.summary import PathSummary

Pick = Callable[[int, int], int]
"""An integer between two, both included: drawn by Hypothesis, or by a seeded generator."""


def nested_graph(pick: Pick, *, valid: bool = True, largest: int = 9) -> Graph:
    """A graph with up to three nested loops below one or two outermost coordinates.

    Locations are numbered such that edges forward lead from any scope to any other, leaving and entering loops on the
    way, sometimes with a delay. Edges backward add to the counter of a loop around both ends, or to an outermost
    coordinate. Unless the graph need not be `valid`, edges that close a cycle which does not advance time are left out.
    """
    outer = pick(1, 2)
    scopes: list[tuple[int, ...]] = [()]
    for loop in range(pick(0, 3)):
        parent = scopes[pick(0, len(scopes) - 1)]
        if outer + len(parent) < 4:
            scopes.append((*parent, loop))
    places = [scopes[pick(0, len(scopes) - 1)] for _ in range(pick(2, largest))]
    edges: list[Edge] = []
    for _ in range(pick(1, 2 * len(places))):
        source, target = pick(0, len(places) - 1), pick(0, len(places) - 1)
        edge = Edge(source, target, _summary(pick, outer, places[source], places[target], source < target))
        if edge not in edges and not (valid and _is_refused([*edges, edge])):
            edges.append(edge)
    return Graph([outer + len(place) for place in places], edges)


def _summary(pick: Pick, outer: int, source: tuple[int, ...], target: tuple[int, ...], forward: bool) -> PathSummary:
    common = 0
    while common < min(len(source), len(target)) and source[common] == target[common]:
        common += 1
    if forward:
        keep = outer + common
        increments = [0] * keep
        if pick(0, 7) == 0:
            increments[pick(0, keep - 1)] = 1
    else:
        keep = outer + pick(min(1, common), common)
        increments = [0] * keep
        increments[-1 if keep > outer else pick(0, outer - 1)] = pick(1, 2)
    return PathSummary(keep, tuple(increments), (0,) * (outer + len(target) - keep))


def check_cycles(edges: Sequence[Edge], describe: Callable[[int], str] = str) -> None:
    """Raise `CycleError` if a cycle of `edges` does not advance time."""
    positions(1 + max((location for edge in edges for location in edge[:2]), default=-1), edges, describe)


def _is_refused(edges: list[Edge]) -> bool:
    try:
        check_cycles(edges)
    except CycleError:
        return True
    return False


@st.composite
def graphs(draw: st.DrawFn, *, valid: bool = True, largest: int = 9) -> Graph:
    return nested_graph(lambda low, high: draw(st.integers(low, high)), valid=valid, largest=largest)


def times(length: int, highest: int = 3) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[st.integers(0, highest)] * length)


@st.composite
def pointstamps(draw: st.DrawFn, graph: Graph) -> tuple[int, tuple[int, ...]]:
    location = draw(st.integers(0, len(graph.lengths) - 1))
    return location, draw(times(graph.lengths[location]))


def updates(graph: Graph) -> st.SearchStrategy[list[tuple[int, tuple[int, ...], int]]]:
    """Changes of counts; as often below zero as above."""
    return st.lists(
        st.tuples(pointstamps(graph), st.integers(-2, 2)).map(lambda change: (*change[0], change[1])), max_size=8
    )
