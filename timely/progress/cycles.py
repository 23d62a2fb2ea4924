"""Cycles advance time, and an order of work in which every step of propagation goes forward.

**What is refused.** Going round a cycle of edges keeps the first K coordinates, K the least `keep` on it, and
adds to them; the others are reset. If it adds nothing to those K, there is a time t with s(t) ≤ t for the
summary s of the cycle, so t would hold itself back and never be final. If it adds to one of them, s(t) ≤ t
for no t.

**Nested components.** Consider a strongly connected set of edges none of which adds to a coordinate before k,
where k is the first coordinate to which some edge does add.

- If one of them keeps only k coordinates or fewer, a cycle through it (there is one: the set is strongly
  connected) adds to none of those it keeps. Likewise if none of them adds to anything. That cycle is refused.
- Otherwise all keep coordinate k, and a cycle with an edge that adds to it is fine. The cycles without one lie
  in the strongly connected components of the remaining edges, where the same is asked for the coordinates
  after k.

So the check is exact, without looking at the cycles one by one (there may be exponentially many): it costs
one search for components per nesting level, O(depth · edges).

**The key.** The same recursion yields the order of the tracker's worklist. A location's components, outermost
first, have topological positions p0, p1, ..., and are separated by the coordinates k1, k2, ... whose edges
were taken out. The key

    key(location, time) = (p0, time[k1], p1, time[k2], p2, ...)

strictly increases along every edge, with its summary: at the first component that does not hold both ends the
position grows if the edge was among those considered there, and if it was taken out, coordinate k grew just
before it; in front of that nothing decreased. This is the interleaving of time and structure that plain
orders lack (the lexicographic order of times decreases on the way out of a loop). A location on no cycle has
the key (p0,): all its times at once, for whatever precedes it is then final. In a loop, times that differ
only in coordinates that the loop does not advance (all epochs in their fourth iteration) share a key too.

>>> from timely.progress.summary import PathSummary
>>> channel, feedback = PathSummary.identity(2), PathSummary.feedback(2)
>>> check_cycles([Edge(0, 1, channel), Edge(1, 0, feedback)])
>>> check_cycles([Edge(0, 1, channel), Edge(1, 0, channel)], ["map", "filter"].__getitem__)  # doctest: +ELLIPSIS
Traceback (most recent call last):
timely.errors.CycleError: the cycle map -> filter -> map does not advance its timestamps, ...
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from timely.errors import CycleError
from timely.progress.graph import Edge


class Position(NamedTuple):
    """Where a location stands in the order of work: its nested components and the coordinates between them.

    `components` is one longer than `coordinates`. The last component is the location alone, and its number
    (its rank) belongs to no other location.
    """

    components: tuple[int, ...]
    coordinates: tuple[int, ...]

    @property
    def rank(self) -> int:
        """The location's own number in topological order."""
        return self.components[-1]


def check_cycles(edges: Iterable[Edge], describe: Callable[[int], str] = str) -> None:
    """Raise `CycleError` if some cycle of `edges` does not advance time, naming its locations with `describe`."""
    edges = list(edges)
    _Nesting(describe).descend({location for edge in edges for location in edge[:2]}, edges, (), ())


def positions(count: int, edges: Iterable[Edge], describe: Callable[[int], str] = str) -> list[Position]:
    """The position of each of `count` locations; raises `CycleError` as `check_cycles` does."""
    nesting = _Nesting(describe)
    nesting.descend(range(count), list(edges), (), ())
    return [nesting.found[location] for location in range(count)]


class _Nesting:
    """The recursion over nested components; numbers locations in the order in which it meets them alone."""

    def __init__(self, describe: Callable[[int], str]) -> None:
        self.describe = describe
        self.found: dict[int, Position] = {}

    def descend(
        self, locations: Collection[int], edges: list[Edge], components: tuple[int, ...], coordinates: tuple[int, ...]
    ) -> None:
        """Assign positions to `locations`, within the components given."""
        parts = strong_components(locations, edges)
        part_of = {location: number for number, part in enumerate(parts) for location in part}
        inner: list[list[Edge]] = [[] for _ in parts]
        for edge in edges:
            if part_of[edge.source] == part_of[edge.target]:
                inner[part_of[edge.source]].append(edge)
        for part, within in zip(parts, inner):
            # Numbers are given in order, so the first one used inside a component places it among its siblings.
            first = (*components, len(self.found))
            if not within:
                self.found[part[0]] = Position(first, coordinates)
            else:
                coordinate = self.advancing(within)
                remaining = [edge for edge in within if not edge.summary.increments[coordinate]]
                self.descend(part, remaining, first, (*coordinates, coordinate))

    def advancing(self, edges: list[Edge]) -> int:
        """The first coordinate that an edge of a strongly connected set adds to, if all of them keep it."""
        coordinate = min(
            (place for edge in edges for place, more in enumerate(edge.summary.increments) if more), default=None
        )
        for edge in edges:
            if coordinate is None or edge.summary.keep <= coordinate:
                raise self.refusal(edge, edges)
        assert coordinate is not None, "a strongly connected set without edges"
        return coordinate

    def refusal(self, edge: Edge, edges: list[Edge]) -> CycleError:
        """The error for a shortest cycle through `edge`."""
        names = " -> ".join(map(self.describe, [edge.source, *_path(edge.target, edge.source, edges)]))
        return CycleError(
            f"the cycle {names} does not advance its timestamps, so nothing on it could ever be final; "
            "a cycle must pass through a feedback of a loop that it does not leave"
        )


def _path(source: int, target: int, edges: list[Edge]) -> list[int]:
    """The locations of a shortest path, both ends included; the edges are strongly connected."""
    came_from = {source: source}
    frontier = [source]
    while target not in came_from:
        reached = []
        for edge in edges:
            if edge.source in frontier and edge.target not in came_from:
                came_from[edge.target] = edge.source
                reached.append(edge.target)
        frontier = reached
    path = [target]
    while path[-1] != source:
        path.append(came_from[path[-1]])
    return path[::-1]


def strong_components(locations: Iterable[int], edges: Iterable[Edge]) -> list[list[int]]:
    """The strongly connected components, each before those it leads to (Tarjan 1972, without recursion)."""
    successors: dict[int, list[int]] = {location: [] for location in locations}
    for edge in edges:
        successors[edge.source].append(edge.target)
    index: dict[int, int] = {}
    lowest: dict[int, int] = {}
    stack: list[int] = []
    open_: set[int] = set()
    component: list[int]
    components: list[list[int]] = []
    for root in successors:
        if root in index:
            continue
        visits = [(root, iter(successors[root]))]
        while visits:
            location, rest = visits[-1]
            if location not in index:
                index[location] = lowest[location] = len(index)
                stack.append(location)
                open_.add(location)
            for successor in rest:
                if successor not in index:
                    visits.append((successor, iter(successors[successor])))
                    break
                if successor in open_:
                    lowest[location] = min(lowest[location], index[successor])
            else:
                visits.pop()
                if visits:
                    above = visits[-1][0]
                    lowest[above] = min(lowest[above], lowest[location])
                if lowest[location] == index[location]:
                    components.append(component := [])
                    while location in open_:
                        component.append(stack.pop())
                        open_.discard(component[-1])
    return components[::-1]
