"""What a dataflow looks like: nodes in nested scopes, and the edges between them, as data for drawing.

A node is an operator, a function that runs in line with what it consumes, or a place at which streams meet (`concat`, a
loop's beginning). The numbers of nodes are their places in the list: operators first, by their own numbers, then the
functions, then the rest. All workers have the same shape.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from timely.dataflow.dataflow import Dataflow
from timely.dataflow.plan import Surroundings
from timely.dataflow.ports import InputPort


@dataclass(frozen=True)
class DiagramNode:
    """A box: what it is called, the number of its scope, the user's line, and whether it runs `in line`."""

    name: str
    scope: int
    origin: str
    kind: str
    """`operator`, `in line` or `meeting`."""
    is_operator: bool
    """Whether it is an operator of the plan, with ports, even if it runs in line."""


@dataclass(frozen=True)
class DiagramEdge:
    """An arrow between two nodes. `channel` is -1 without a queue; `pact` is how messages spread over workers."""

    source: int
    target: int
    channel: int
    pact: str
    is_loop: bool
    """Whether it leads back into a loop, to a node at which times advance."""


@dataclass(frozen=True)
class Box:
    """A scope: its name, the number of the one around it (-1: none), and whether its times have a loop counter."""

    name: str
    parent: int
    is_loop: bool


@dataclass
class Diagram:
    """The picture of a dataflow, without numbers that change."""

    dataflow: int
    name: str
    scopes: list[Box] = field(default_factory=list)
    nodes: list[DiagramNode] = field(default_factory=list)
    edges: list[DiagramEdge] = field(default_factory=list)

    def as_data(self) -> dict[str, Any]:
        """Return this as dictionaries and lists, for JSON."""
        return asdict(self)


def shape_from(data: dict[str, Any]) -> Diagram:
    """Return the shape that `as_data` has made this of."""
    scopes, nodes = [Box(**each) for each in data["scopes"]], [DiagramNode(**each) for each in data["nodes"]]
    return Diagram(data["dataflow"], data["name"], scopes, nodes, [DiagramEdge(**each) for each in data["edges"]])


def shape_of(dataflow: Dataflow) -> Diagram:
    plan = dataflow.plan
    shape = Diagram(dataflow.index, dataflow.name)
    scopes: dict[int, int] = {}

    def scope(found: Surroundings) -> int:
        number = scopes.get(id(found))
        if number is None:
            parent = found.parent
            around = -1 if parent is None else scope(parent)
            number = scopes[id(found)] = len(shape.scopes)
            is_loop = parent is not None and found.width > parent.width
            shape.scopes.append(Box(found.path.rpartition("/")[2], around, is_loop))
        return number

    node_of: dict[int, int] = {}
    for node in plan.nodes:
        node_of.update(dict.fromkeys(node.places, node.index))
        operator = dataflow.operators[node.index]
        kind = "operator" if operator.inline is None else "in line"
        shape.nodes.append(DiagramNode(node.name, scope(node.scope), str(node.origin), kind, True))
    for inline in dataflow.inlines:
        node_of.update(dict.fromkeys(inline.targets, len(shape.nodes)))
        shape.nodes.append(DiagramNode(inline.name, scope(inline.scope), str(inline.origin), "in line", False))
    for number, place in enumerate(plan.places):
        if number not in node_of:
            node_of[number] = len(shape.nodes)
            name = str(place.named).removeprefix("stream ").strip("'")
            shape.nodes.append(DiagramNode(name, scope(place.scope), "", "meeting", False))
    ports = {port.place: port for port in dataflow.channels}
    ends = [(node_of[edge.source], node_of[edge.target]) for edge in plan.edges]
    advancing = {end for (begin, end), edge in zip(ends, plan.edges) if begin == end and any(edge.summary.increments)}
    for (begin, end), edge in zip(ends, plan.edges):
        port: InputPort | None = ports.get(edge.target)
        if begin != end or port is not None:
            channel, pact = (-1, "") if port is None else (port.channel, port.pact.name)
            shape.edges.append(DiagramEdge(begin, end, channel, pact, end in advancing))
    return shape
