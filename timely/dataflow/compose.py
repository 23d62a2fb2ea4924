"""The optimisation pass: a layout with fewer locations, of the same meaning as the plain one.

`TIMELY_PLAIN=1` (`Config.plain`) leaves this pass out; everything must work then, too, and more slowly. It does four
things:

**Operators run in line.** A function of one input that needs no capability is called where the message is emitted: it
has no queue and no location. A loop of such functions only would call itself without end, so one operator of each loop
keeps its queue.

**Inputs are counted elsewhere.** Let an operator have one output, and an input whose path there changes no times. Then
a message queued at the input can result in exactly what a capability for its time at the output can. So the message is
counted at the output, unless the operator asks for the frontier of the input.

An operator that *drains* its input takes all that is queued before it asks for the frontier. So this frontier need not
count what is queued. It can follow from the frontiers of the outputs that feed the input, provided that every message
is here before these pass its time. A message that stays on the worker arrives when it is emitted. A message from
another worker is here if the sender sends its progress to this worker itself, after the message (`in_order`): the
frontier passes the time only when the end of the sender's capability is known here, and nothing overtakes on the way
between two workers (`Allocator`).

**Places are composed away.** A place at which no capability is held, no message is queued and no frontier is asked for
only passes times on: each edge into it and each edge out of it become one, with the composed summary (`contract`).
Could-result-in between the places that remain is unchanged.

**Sections run as one operator** (`timely.dataflow.sections`). All places of their operators become one, the hub of a
region. What comes into the region at a time can result in anything that leaves it at that time, so the hub has the
edges of them all. What other workers send into a region is counted at its hub. The region knows that all of it is here
in the same way as an operator that drains its input, so there are regions only where progress is `in_order`.
"""

from __future__ import annotations

from timely.dataflow.hubs import Hubs
from timely.dataflow.layout import Layout
from timely.dataflow.plan import Inlet, Node, Plan
from timely.dataflow.sections import sections
from timely.progress.cycles import strong_components
from timely.progress.graph import Edge, contract
from timely.progress.summary import PathSummary

MOST_EDGES = 32
"""A place stays tracked if composing it away would add more edges than this."""


def compose(plan: Plan, *, in_order: bool, regions: bool) -> Layout:
    """Return a layout of the plan that tracks as few places as it can.

    `in_order` is whether workers send each other their progress on the way that batches take, so that it arrives after
    the batches sent before. With `regions`, sections run as one operator.
    """
    in_line = _in_line(plan)
    hubs = Hubs(plan, in_line, sections(plan, in_line) if regions and in_order else [])
    kept = {*plan.observed, *hubs.places, *hubs.entrances}
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
    kept.update(place for edge in edges for place in edge[:2])  # also what `contract` left, for its many edges
    incoming: dict[int, list[Edge]] = {}
    for edge in edges:
        incoming.setdefault(edge.target, []).append(edge)
    followed: dict[int, list[tuple[int, PathSummary | None]]] = {}
    for place, output in followers.items():
        # A probe needs the place itself. Without an edge into it there are no frontiers to follow.
        if place not in plan.observed and place in incoming:
            followed[place] = [(edge.source, hubs.summary(edge)) for edge in incoming[place]]
            counted_at[place] = output
            kept.discard(place)
    kept.difference_update(hubs.entrances)
    found = hubs.regions(edges, kept)
    return Layout(sorted(kept), contract(edges, kept), counted_at, followed, in_line, found)


def _equivalent_output(node: Node, inlet: Inlet) -> int | None:
    """Return the place of the operator's only output if times stay as they are on the way there from the input."""
    if len(node.outlets) != 1:
        return None
    (only,) = node.outlets
    # A summary of None leaves times as they are; without an entry there is no path.
    return only.place if inlet in only.summaries and only.summaries[inlet] is None else None


def _in_line(plan: Plan) -> set[int]:
    """Return the operators that run in line: all that may, but for one in each loop that consists of such only."""
    candidates = [node for node in plan.nodes if node.may_run_in_line]
    in_line = {node.index for node in candidates}
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
        # Without its first operator, a set of connected loops may fall into smaller ones: look at the others again.
        candidates = []
        for first, *others in in_loops.values():
            in_line.discard(first.index)
            candidates += others
    return in_line
