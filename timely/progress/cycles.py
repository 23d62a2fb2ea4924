"""Cycles must advance time; and the order in which propagation only moves forward.

**What is refused.** A cycle of edges keeps the first K coordinates of a time, where K is the least `keep` on it, adds
to them, and resets the others. If it adds nothing to those K, then s(t) ≤ t for some time t, where s is the summary of
the cycle: t would wait for itself and never complete. If it adds to one of them, s(t) ≤ t for no t.

**Nested components.** Take a strongly connected set of edges none of which adds to a coordinate before k, where k is
the first coordinate that some edge adds to.

- If an edge keeps only k coordinates or fewer, a cycle through it (there is one, since the set is strongly connected)
  adds to none of the coordinates that it keeps. The same holds if no edge adds to anything. Such a cycle is refused.
- Otherwise all edges keep coordinate k, and a cycle with an edge that adds to it advances. The cycles without such an
  edge lie in the strongly connected components of the remaining edges, and the same argument applies to these, for the
  coordinates after k.

So the check is exact, although it does not enumerate the cycles, of which there may be exponentially many. It costs one
search for components per nesting level: O(depth · edges).

**The key.** The same recursion yields the order in which the tracker works. Let a location lie in components at the
topological positions p0, p1, ..., outermost first, separated by the coordinates k1, k2, ... whose edges were removed.
Its key

    key(location, time) = (p0, time[k1], p1, time[k2], p2, ...)

strictly increases along every edge, followed by the edge's summary. Consider the outermost level at which the two ends
lie in different components. If the edge was still there at this level, the position increases. If it had been removed,
it adds to the coordinate k for which it was removed, which stands just before. Nothing decreases further to the front.

The key thus interleaves time and structure. Neither alone would do: the lexicographic order of times decreases at the
exit of a loop. A location on no cycle has the key (p0,), the same for all its times: whatever precedes it is final by
then. In a loop, times that differ only in coordinates that the loop does not advance (the fourth iteration of every
epoch, say) share a key as well.

>>> from timely.progress.summary import PathSummary
>>> channel, feedback = PathSummary.identity(2), PathSummary.feedback(2)
>>> positions(2, [Edge(0, 1, channel), Edge(1, 0, channel)], ["map", "filter"].__getitem__)  # doctest: +ELLIPSIS
Traceback (most recent call last):
timely.errors.CycleError: the cycle map -> filter -> map does not advance its timestamps, ...

Before a loop of locations 1 and 2 comes location 0, and after it location 3. The keys are (0,), in round r of the loop
(1, r, 1) and (1, r, 2), and after it (3,):

>>> loop = [Edge(1, 2, channel), Edge(2, 1, feedback)]
>>> edges = [Edge(0, 1, PathSummary.enter(1)), *loop, Edge(2, 3, PathSummary.leave(2))]
>>> [(place.components, place.coordinates) for place in positions(4, edges)]
[((0,), ()), ((1, 1), (1,)), ((1, 2), (1,)), ((3,), ())]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from timely.errors import CycleError
from timely.progress.graph import Edge


class Position(NamedTuple):
    """The place of a location in the order of work: its nested components and the coordinates between them.

    `components` is one longer than `coordinates`. The last component consists of the location alone, so its number, the
    rank, identifies the location.
    """

    components: tuple[int, ...]
    coordinates: tuple[int, ...]

    @property
    def rank(self) -> int:
        """The number of the location in topological order; no other location has it."""
        return self.components[-1]


def positions(count: int, edges: Iterable[Edge], describe: Callable[[int], str] = str) -> list[Position]:
    """Return the position of each of `count` locations.

    Raises `CycleError` if a cycle of `edges` does not advance time; `describe` names its locations.
    """
    nesting = _Nesting(describe)
    nesting.descend(range(count), list(edges), (), ())
    return [nesting.found[location] for location in range(count)]


class _Nesting:
    """The recursion over nested components, which numbers locations in the order in which it isolates them."""

    def __init__(self, describe: Callable[[int], str]) -> None:
        self.describe = describe
        self.found: dict[int, Position] = {}

    def descend(
        self, locations: Collection[int], edges: list[Edge], components: tuple[int, ...], coordinates: tuple[int, ...]
    ) -> None:
        """Assign positions to `locations`, all of which lie within the given components."""
        parts = strong_components(locations, edges)
        part_of = {location: number for number, part in enumerate(parts) for location in part}
        inner: list[list[Edge]] = [[] for _ in parts]
        for edge in edges:
            if part_of[edge.source] == part_of[edge.target]:
                inner[part_of[edge.source]].append(edge)
        for part, within in zip(parts, inner):
            # Parts come in topological order and numbers are assigned in order, so the first number used inside a
            # part places the part among its siblings.
            first = (*components, len(self.found))
            if not within:  # so it is a single location: several would be connected by edges within
                self.found[part[0]] = Position(first, coordinates)
            else:
                coordinate = self.advancing(within)
                # At least one edge is left out, so the recursion ends.
                remaining = [edge for edge in within if not edge.summary.increments[coordinate]]
                self.descend(part, remaining, first, (*coordinates, coordinate))

    def advancing(self, edges: list[Edge]) -> int:
        """Return the first coordinate that an edge of a strongly connected set adds to; all edges must keep it."""
        coordinate = min(
            [place for edge in edges for place, more in enumerate(edge.summary.increments) if more], default=None
        )
        for edge in edges:
            # A cycle leads through each edge. If the edge drops the coordinate, the cycle advances none that it keeps.
            if coordinate is None or edge.summary.keep <= coordinate:
                raise self.refusal(edge, edges)
        assert coordinate is not None, "a strongly connected set has edges"
        return coordinate

    def refusal(self, edge: Edge, edges: list[Edge]) -> CycleError:
        """Return the error about a shortest cycle through `edge`."""
        names = " -> ".join(map(self.describe, [edge.source, *_path(edge.target, edge.source, edges)]))
        return CycleError(
            f"the cycle {names} does not advance its timestamps, so no time on it could ever complete; "
            "a cycle must pass through the feedback of a loop that it does not leave"
        )


def _path(source: int, target: int, edges: list[Edge]) -> list[int]:
    """Return the locations on a shortest path, both ends included. The edges are strongly connected."""
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
    """Return the strongly connected components, each before those it leads to (Tarjan 1972, without recursion)."""
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
            for successor in rest:  # goes on where it stopped when the last successor was visited
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
                if lowest[location] == index[location]:  # nothing reached from here leads further up the stack
                    components.append(component := [])
                    while location in open_:
                        component.append(stack.pop())
                        open_.discard(component[-1])
    return components[::-1]  # a component is complete only after those it leads to
