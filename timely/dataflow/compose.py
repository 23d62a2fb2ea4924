"""The optimisation pass: a layout with fewer locations, of the same meaning as the plain one.

`TIMELY_PLAIN=1` (`Config.plain`) leaves this pass out; everything must work then, too, and more slowly. It does four
things:

**Operators run in line.** A function of one input that needs no capability is called by whoever emits the message: it
has no queue and no location. A loop of such functions only would call itself without end, so one operator of each loop
keeps its queue.

**Inputs are counted elsewhere.** A message queued at an input can result in exactly what a capability for its time at
the operator's only output can, if the input's path there changes no times. So it can be counted there, where no
operator asks for the frontier of the input. An operator that *drains* its input takes all that is queued before it asks
for the frontier, so it need not know of what has arrived, and the frontiers at the outputs that feed the input are
enough: for messages that stay on the worker, since they arrive when they are emitted; for those that are spread, if
the worker that sends one also sends its progress to this worker itself, and afterwards (`in_order`). When the frontier
at that output has passed a time, this worker has received the news that the capability under which a message was sent
at that time has ended, and nothing overtakes on the way from one worker to another (`Allocator`): the message is here.

**Places are composed away.** A place at which no capability is held, no message is queued and no frontier is asked for
only passes times on: each edge into it and each edge out of it become one, with the composed summary (`contract`).
Could-result-in between the places that remain is unchanged.

**Sections run as one operator**, on a worker without peers (`timely.dataflow.sections`). All places of their operators
become one, the hub of a region. What comes into the region at a time can result in anything that leaves it at that
time, so the hub has the edges of them all.
"""

from __future__ import annotations

from itertools import count

from timely.dataflow.layout import Layout, RegionLayout
from timely.dataflow.plan import Inlet, Node, Place, Plan
from timely.dataflow.sections import Section, sections
from timely.progress.cycles import strong_components
from timely.progress.graph import Edge, contract
from timely.progress.summary import PathSummary

MOST_EDGES = 32
"""A place stays tracked if composing it away would add more edges than this."""


def compose(plan: Plan, *, in_order: bool, alone: bool) -> Layout:
    """Return a layout of the plan that tracks as few places as it can.

    `in_order` is whether workers send each other their progress on the way that batches take, so that it arrives after
    the batches sent before. `alone` is whether sections may run as one operator.
    """
    in_line = _in_line(plan)
    hubs = _Hubs(plan, in_line, alone=alone)
    kept = {*plan.observed, *hubs.places, *hubs.doors}
    counted_at: dict[int, int] = {}
    followers: dict[int, int] = {}
    for node in plan.nodes:
        if node.index in in_line or node in hubs.members:
            continue
        kept.update(outlet.place for outlet in node.outlets)
        for inlet in node.inlets:
            output = _equivalent_output(node, inlet)
            if output is None:
                kept.add(inlet.place)
            elif not inlet.asks:
                counted_at[inlet.place] = output
            else:
                kept.add(inlet.place)
                if inlet.drains and (in_order or not inlet.spreads):
                    followers[inlet.place] = output
    edges = contract(hubs.edges(), kept, most=MOST_EDGES)
    kept.update(place for edge in edges for place in edge[:2])
    incoming: dict[int, list[Edge]] = {}
    for edge in edges:
        incoming.setdefault(edge.target, []).append(edge)
    followed: dict[int, list[tuple[int, PathSummary | None]]] = {}
    for place, output in followers.items():
        if place not in plan.observed and place in incoming:
            followed[place] = [(edge.source, hubs.summary(edge)) for edge in incoming[place]]
            counted_at[place] = output
            kept.discard(place)
    kept.difference_update(hubs.doors)
    regions = hubs.regions(edges, kept)
    return Layout(sorted(kept), contract(edges, kept), counted_at, followed, in_line, regions)


def _equivalent_output(node: Node, inlet: Inlet) -> int | None:
    """Return the place of the operator's only output if times stay as they are on the way there from the input."""
    if len(node.outlets) != 1:
        return None
    (only,) = node.outlets
    return only.place if only.summaries.get(inlet, _NO_PATH) is None else None


def _in_line(plan: Plan) -> set[int]:
    """Return the operators that run in line: all that may, but for one in each loop that consists of such only."""
    in_line = {node.index for node in plan.nodes if node.may_run_in_line}
    candidates = [node for node in plan.nodes if node.may_run_in_line]
    while candidates:
        scheduled = {place for node in plan.nodes if node.index not in in_line for place in node.places}
        onward = [edge for edge in plan.edges if edge.source not in scheduled and edge.target not in scheduled]
        ends = {place for edge in onward for place in edge[:2]}
        parts = [set(part) for part in strong_components(ends, onward) if len(part) > 1]
        part_of = {place: number for number, part in enumerate(parts) for place in part}
        in_loops: dict[int, list[Node]] = {}
        for node in candidates:
            number = part_of.get(node.inlets[0].place)
            if number is not None:
                in_loops.setdefault(number, []).append(node)
        candidates = []
        for first, *others in in_loops.values():
            in_line.discard(first.index)
            candidates += others
    return in_line


class _Hubs:
    """The hubs of sections, numbered after the places of the plan.

    What comes into a region passes its door, a place of its own, so that the region can also wait for what it emits
    itself and what comes back later. The door is tracked no more when the sources are known.
    """

    def __init__(self, plan: Plan, in_line: set[int], *, alone: bool) -> None:
        found = sections(plan, in_line) if alone else []
        self._plan = plan
        self._sections = found
        first = len(plan.places)
        self.places = range(first, first + len(found))
        self.doors = range(first + len(found), first + 2 * len(found))
        self._more = count(self.doors.stop)
        self.members = {node: hub for hub, section in zip(self.places, found) for node in section.nodes()}
        self._hub_of = {place: hub for node, hub in self.members.items() for place in node.places}
        self._counted = {place for node in plan.nodes if node.index not in in_line for place in node.places}
        """The places of operators with a schedule."""
        self._looked_at = plan.observed - self._counted
        """The streams at which somebody looks from outside, and at which nothing is counted."""

    def edges(self) -> list[Edge]:
        """Return the edges of the plan with hub and door in the place of all places of a region's operators.

        Other places may have copies. Where somebody looks at a stream from outside, a path ends, and a twin goes on: no
        region waits for it. And what follows a region without an advance in time has a copy that does not lead back
        into it: that is how its own operators follow each other.
        """
        plan, hub_of = self._plan, self._hub_of
        if not self._sections:
            return plan.edges
        twins = {place: next(self._more) for place in sorted(self._looked_at)}
        copies = self._copies()
        found = [Edge(hub_of[place], place, plan.identity(place)) for place in plan.observed if place in hub_of]
        found += [Edge(door, hub, PathSummary.identity(self._width(hub))) for door, hub in zip(self.doors, self.places)]
        for source, target, summary in plan.edges:
            hub = hub_of.get(source)
            begins: list[tuple[int, int | None]] = [(twins.get(source, source), None)] if hub is None else [(hub, hub)]
            begins += [(copy, after) for after, copy in copies.get(source, {}).items()]
            advanced = [after for _, after in begins if after is not None and self._advances(summary, after)]
            end = hub_of.get(target)
            if hub is not None:
                summary = _between(self._width(hub), plan.width(source)).followed_by(summary)
            if end is not None:
                summary = summary.followed_by(_between(plan.width(target), self._width(end)))
            for begin, after in begins:
                after = None if after in advanced else after
                if end is None:
                    copy = None if after is None else copies.get(target, {}).get(after)
                    found.append(Edge(begin, twins.get(target, target) if copy is None else copy, summary))
                    if target in twins:
                        found.append(Edge(begin, target, summary))
                elif end != after:
                    found.append(Edge(begin, self.doors[end - self.places.start], summary))
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
        incoming: dict[int, list[int]] = {}
        for source, target, _ in self._plan.edges:
            incoming.setdefault(target, []).append(source)
        found = []
        for hub, door, section in zip(self.places, self.doors, self._sections):
            nodes = list(section.nodes())
            named = f"region of {len(nodes)} operators, the first of which is {nodes[0]}"
            sources = [(edge.source, self.summary(edge)) for edge in edges if edge.target == door]
            reach = {
                inlet: self._sources_of(inlet.place, hub, incoming, kept)
                for node in nodes
                for inlet in node.inlets
                if inlet.asks
            }
            every = set().union(*reach.values())
            partial = {inlet: sorted(places) for inlet, places in reach.items() if places != every}
            found.append(RegionLayout(section, hub, Place(section.scope, named), sources, partial))
        return found

    def summary(self, edge: Edge) -> PathSummary | None:
        """Return an edge's summary, or None if times stay as they are along it."""
        return None if edge.summary == PathSummary.identity(self._width(edge.source)) else edge.summary

    def _sources_of(self, place: int, hub: int, incoming: dict[int, list[int]], kept: set[int]) -> set[int]:
        """Return the tracked places outside of a region from which something may arrive at a place in it."""
        found: set[int] = set()
        waiting, seen = [place], {place}
        while waiting:
            for source in incoming.get(waiting.pop(), ()):
                other = self._hub_of.get(source)
                if other is not None and other != hub:
                    found.add(other)
                elif source in kept and source not in self._looked_at:
                    found.add(source)
                elif source not in seen:
                    seen.add(source)
                    waiting.append(source)
        return found

    def _advances(self, summary: PathSummary, hub: int) -> bool:
        """Return whether a path adds to a coordinate that times have at a hub."""
        return any(summary.increments[: self._width(hub)])

    def _width(self, place: int) -> int:
        is_hub = place in self.places
        return self._sections[place - self.places.start].scope.width if is_hub else self._plan.width(place)


def _between(width: int, other: int) -> PathSummary:
    """Return the summary of entering loops, or leaving them, from times of `width` coordinates to times of `other`."""
    keep = min(width, other)
    return PathSummary(keep, (0,) * keep, (0,) * (other - keep))


_NO_PATH = PathSummary(0, (), ())
