"""The hubs of regions: a hub is the one place at which the progress of a whole section is counted.

All places of a section's operators become its hub. What comes into the section at a time may result in anything that
leaves it at that time. So the hub has the edges of all these places, with times as they are outside of the section's
loops. Between the other places, could-result-in never becomes less than it is in the plan.
"""

from __future__ import annotations

from itertools import count

from timely.dataflow.layout import RegionLayout
from timely.dataflow.plan import Inlet, Place, Plan, by_start
from timely.dataflow.sections import Section
from timely.progress.graph import Edge
from timely.progress.summary import PathSummary


class Hubs:
    """The hubs of sections, numbered after the places of the plan.

    What comes into a region passes its *entrance*, a place of its own. So a region can also wait for what it has
    emitted itself and what comes back at a later time. Once a region's sources are known, its entrance is no longer
    tracked.
    """

    def __init__(self, plan: Plan, in_line: set[int], found: list[Section]) -> None:
        """Take sections of a plan, of which the operators `in_line` have no schedule."""
        self._plan = plan
        self._sections = found
        first = len(plan.places)
        self.places = range(first, first + len(found))
        self.entrances = range(first + len(found), first + 2 * len(found))
        self._more = count(self.entrances.stop)
        self.members = {node: hub for hub, section in zip(self.places, found) for node in section.nodes()}
        self._hub_of = {place: hub for node, hub in self.members.items() for place in node.places}
        self._counted = {place for node in plan.nodes if node.index not in in_line for place in node.places}
        """The places of operators with a schedule."""
        self._observed = plan.observed - self._counted
        """The streams that are observed from outside, and at which nothing is counted."""

    def edges(self) -> list[Edge]:
        """Return the edges of the plan with hub and entrance in the place of all places of a region's operators.

        Two kinds of other places are doubled:

        - A stream that is observed from outside has a twin. All paths go on from the twin, and the stream itself leads
          nowhere. So the stream can stay tracked, and no region waits for it.
        - A place that follows a hub without an advance in time has a copy for this hub. Paths from the hub lead through
          its copies, and none leads from them to its entrance: the region knows how its own operators follow each
          other. Only a path that advances time leads back to the entrance.
        """
        plan, hub_of = self._plan, self._hub_of
        if not self._sections:
            return plan.edges
        twins = {place: next(self._more) for place in sorted(self._observed)}
        copies = self._copies()
        # No loop in a section has observed places (`sections`), so the times of these are those of the hub.
        inside = [place for place in plan.observed if place in hub_of]
        found = [Edge(hub_of[place], place, PathSummary.identity(plan.width(place))) for place in inside]
        found += [Edge(at, hub, PathSummary.identity(self._width(hub))) for at, hub in zip(self.entrances, self.places)]
        for source, target, summary in plan.edges:
            hub = hub_of.get(source)
            # Where paths through `source` go on, each with the hub that it has left without an advance in time, if any.
            begins: list[tuple[int, int | None]] = [(twins.get(source, source), None)] if hub is None else [(hub, hub)]
            begins += [(copy, after) for after, copy in copies.get(source, {}).items()]
            advanced = [after for _, after in begins if after is not None and self._advances(summary, after)]
            end = hub_of.get(target)
            # A hub has the times outside of its section's loops, so these are entered and left on the way.
            if hub is not None:
                summary = PathSummary.between(self._width(hub), plan.width(source)).followed_by(summary)
            if end is not None:
                summary = summary.followed_by(PathSummary.between(plan.width(target), self._width(end)))
            for begin, after in begins:
                after = None if after in advanced else after
                if end is None:
                    copy = None if after is None else copies.get(target, {}).get(after)
                    found.append(Edge(begin, twins.get(target, target) if copy is None else copy, summary))
                    if target in twins:  # no edge begins at the observed stream itself
                        found.append(Edge(begin, target, summary))
                elif end != after:  # otherwise the region itself knows how its operators follow each other
                    found.append(Edge(begin, self.entrances[end - self.places.start], summary))
        return found

    def _copies(self) -> dict[int, dict[int, int]]:
        """Return the copies of places by hub: of those that follow a hub without an advance in time."""
        onward: dict[int, list[tuple[int, PathSummary]]] = {}
        for source, target, summary in self._plan.edges:
            if target not in self._counted:
                onward.setdefault(source, []).append((target, summary))
        copies: dict[int, dict[int, int]] = {}
        for hub in self.places:
            waiting = [place for place, other in self._hub_of.items() if other == hub]
            while waiting:
                for target, summary in onward.get(waiting.pop(), ()):
                    if not self._advances(summary, hub) and hub not in copies.setdefault(target, {}):
                        copies[target][hub] = next(self._more)
                        waiting.append(target)
        return copies

    def regions(self, edges: list[Edge], kept: set[int]) -> list[RegionLayout]:
        """Return the regions of a layout that tracks the places `kept`, with these edges."""
        onward = by_start(edge[:2] for edge in self._plan.edges)
        found = []
        for hub, entrance, section in zip(self.places, self.entrances, self._sections):
            nodes = list(section.nodes())
            named = f"a region of {len(nodes)} operators, the first of which is {nodes[0]}"
            sources = [(edge.source, self.summary(edge)) for edge in edges if edge.target == entrance]
            outside = [source for source, _ in sources if source != hub]
            reached = {source: self._reached_from(source, hub, onward, kept) for source in outside}
            inlets: list[Inlet] = [inlet for node in nodes for inlet in node.inlets if inlet.asks]
            leading = {inlet: [each for each in outside if inlet.place in reached[each]] for inlet in inlets}
            partial = {inlet: places for inlet, places in leading.items() if len(places) < len(outside)}
            found.append(RegionLayout(section, hub, Place(section.scope, named), sources, partial))
        return found

    def summary(self, edge: Edge) -> PathSummary | None:
        """Return an edge's summary, or None if times stay as they are along it."""
        return None if edge.summary == PathSummary.identity(self._width(edge.source)) else edge.summary

    def _reached_from(self, source: int, hub: int, onward: dict[int, list[int]], kept: set[int]) -> set[int]:
        """Return the places at which something from a tracked place may arrive, in a region and on the way there."""
        # The plan has no hubs: from one, all places of its operators lead on.
        waiting = [place for place, other in self._hub_of.items() if other == source] or [source]
        seen: set[int] = set()
        while waiting:
            for target in onward.get(waiting.pop(), ()):
                is_inside = self._hub_of.get(target) == hub
                is_tracked = target in self._hub_of or (target in kept and target not in self._observed)
                # What passes another tracked place counts as coming from there.
                if target not in seen and (is_inside or not is_tracked):
                    seen.add(target)
                    waiting.append(target)
        return seen

    def _advances(self, summary: PathSummary, hub: int) -> bool:
        """Return whether a path adds to a coordinate that times have at a hub."""
        return any(summary.increments[: self._width(hub)])

    def _width(self, place: int) -> int:
        is_hub = place in self.places
        return self._sections[place - self.places.start].scope.width if is_hub else self._plan.width(place)
