"""Could-result-in by following every path, and cycles one by one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from timely.order import Time
from timely.progress.graph import Edge


class Graph(NamedTuple):
    """A graph of locations: the number of time coordinates of each, and its edges."""

    lengths: list[int]
    edges: list[Edge]


def at_or_before(a: Time, b: Time) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True))


def least(times: Iterable[Time]) -> set[Time]:
    """The minimal elements: those that no other one is at or before."""
    found: list[Time] = []
    for time in sorted(set(times)):  # whatever is before an element is sorted before it
        if not any(at_or_before(other, time) for other in found):
            found.append(time)
    return set(found)


def step(edge: Edge, time: Time) -> Time:
    """The result of an edge for a time, by the definition of a path summary."""
    keep, increments, suffix = edge.summary
    return tuple(time[place] + increments[place] for place in range(keep)) + suffix


def results(graph: Graph, location: int, time: Time) -> list[set[Time]]:
    """For each location the least times at which a message at (location, time) could result in something.

    Takes every edge from every (location, time) reached. It prunes a time if another path has reached one at or before
    it, because edges keep the order of times. It prunes coordinates that no shortest path needs: those beyond the
    start's plus everything that the edges of the graph add and append, each edge taken once.
    """
    bound = max(time) + sum(sum(edge.summary.increments) + sum(edge.summary.suffix) for edge in graph.edges)
    reached: list[list[Time]] = [[] for _ in graph.lengths]
    reached[location].append(time)
    pending = deque([(location, time)])
    while pending:
        at, now = pending.popleft()
        for edge in graph.edges:
            if edge.source == at:
                then = step(edge, now)
                known = reached[edge.target]
                if max(then) <= bound and not any(at_or_before(other, then) for other in known):
                    known.append(then)
                    pending.append((edge.target, then))
    return [least(times) for times in reached]


class Frontiers:
    """The frontiers of a graph, recomputed for each set of live pointstamps."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.known: dict[tuple[int, Time], list[set[Time]]] = {}

    def results(self, location: int, time: Time) -> list[set[Time]]:
        if (location, time) not in self.known:
            self.known[location, time] = results(self.graph, location, time)
        return self.known[location, time]

    def of(self, live: Iterable[tuple[int, Time]]) -> list[set[Time]]:
        """The frontier at each location, given the live pointstamps."""
        images = [self.results(location, time) for location, time in live]
        return [least(time for image in images for time in image[place]) for place in range(len(self.graph.lengths))]


def simple_cycles(edges: list[Edge]) -> Iterator[list[Edge]]:
    """Every cycle that visits no location twice, from its least location."""

    def extend(path: list[Edge]) -> Iterator[list[Edge]]:
        for edge in edges:
            if edge.source != path[-1].target or edge.target < path[0].source:
                continue
            if edge.target == path[0].source:
                yield [*path, edge]
            elif all(edge.target != visited.target for visited in path):
                yield from extend([*path, edge])

    for first in edges:
        if first.source == first.target:
            yield [first]
        elif first.source < first.target:
            yield from extend([first])


def advances(cycle: list[Edge], length: int) -> bool:
    """Whether a cycle leads from a time with large coordinates to a time that is not at or before it."""
    start = now = (100,) * length
    for edge in cycle:
        now = step(edge, now)
    return not at_or_before(now, start)
