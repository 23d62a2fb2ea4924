"""What a program described: the operators of a dataflow, their ports, and how these are connected.

A plan is data. It knows no queues, no counts and no functions to call, and it no longer changes once the dataflow is
built (`freeze`). Every stream, input and output is a *place*, whose times are those of a scope. An edge between two
places states what a time at one can result in at the other, as a path summary; so could-result-in between all places
follows from the plan alone.

What runs is made of a plan in two steps: `plain` (in `layout`) tracks progress at every place, and `compose`
then leaves out the places that need no counts of their own.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from timely.errors import BuildError
from timely.origin import Origin
from timely.progress.cycles import positions
from timely.progress.graph import Edge
from timely.progress.summary import PathSummary


class Surroundings(Protocol):
    """What a plan knows of a scope: its path among the scopes, and how many coordinates its times have.

    Of these coordinates the first `outer` are not loop counters.
    """

    path: str
    width: int
    outer: int

    @property
    def parent(self) -> Surroundings | None:
        """The scope around it; None for that of the whole dataflow."""


class Place(NamedTuple):
    """Where something can be at a time: the scope whose times it has, and an object whose text names it for people."""

    scope: Surroundings
    named: object


class Inlet:
    """An input of a planned operator.

    `spreads` is whether messages may come from other workers, `asks` whether the operator asks for the frontier, and
    `drains` whether it takes all that is queued before it does.
    """

    def __init__(self, place: int, pact: str, spreads: bool, asks: bool, drains: bool) -> None:
        self.place = place
        self.pact = pact
        self.spreads = spreads
        self.asks = asks
        self.drains = drains


class PlannedOutput:
    """An output of a planned operator, with what can result there from each input: a summary, or None for no change."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.summaries: dict[Inlet, PathSummary | None] = {}


class Node:
    """A planned operator.

    One that `cancels` passes on what is left of all that comes in at a time: never both a change and its opposite. One
    that `may_run_in_line` is a function of one input that the producer of the message can call. One that `is_static`
    may run in a region (see `timely.dataflow.sections`), and one that `is_constant` emits all it has at the start.
    """

    def __init__(self, index: int, name: str, scope: Surroundings, origin: Origin, cancels: bool) -> None:
        self.index = index
        self.name = name
        self.scope = scope
        self.origin = origin
        self.cancels = cancels
        self.inlets: list[Inlet] = []
        self.outlets: list[PlannedOutput] = []
        self.may_run_in_line = False
        self.is_static = False
        self.is_constant = False
        self.is_finished = False

    def __str__(self) -> str:
        return f"operator {self.name!r} (built at {self.origin})"

    @property
    def places(self) -> list[int]:
        """The places of all inputs and outputs."""
        return [inlet.place for inlet in self.inlets] + [outlet.place for outlet in self.outlets]


class Plan:
    """The nodes, places and edges of one dataflow."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.places: list[Place] = []
        self.edges: list[Edge] = []
        self.observed: set[int] = set()
        """Places at which somebody other than an operator asks for the frontier."""
        self.is_frozen = False

    def add_node(self, name: str, scope: Surroundings, origin: Origin, *, cancels: bool = False) -> Node:
        """Return a new operator, to which ports can be added."""
        node = Node(len(self.nodes), name, scope, origin, cancels)
        self.nodes.append(node)
        return node

    def add_place(self, scope: Surroundings, named: object) -> int:
        """Return a new place whose times are those of `scope`, and which `str(named)` names."""
        self.places.append(Place(scope, named))
        return len(self.places) - 1

    def add_edge(self, source: int, target: int, summary: PathSummary) -> None:
        """State that what is at `source` at a time can result in something at `target` at the summary of that time."""
        self.edges.append(Edge(source, target, summary))

    def freeze(self) -> None:
        """Refuse further additions; raise BuildError where an operator is not finished."""
        for node in self.nodes:
            if not node.is_finished:
                raise BuildError(f"{node} is not finished: its loop was left open, or build() was not called")
        self.is_frozen = True

    def ranks(self) -> list[int]:
        """Return each place's topological position; raise `CycleError` for a loop that does not advance time."""
        order = positions(len(self.places), self.edges, lambda place: str(self.places[place].named))
        return [place.rank for place in order]

    def width(self, place: int) -> int:
        """Return how many coordinates the times of a place have."""
        return self.places[place].scope.width

    def digest(self) -> str:
        """Return 16 letters that are the same where the same is connected in the same way."""
        feeds: dict[int, list[str]] = {}
        for edge in self.edges:
            feeds.setdefault(edge.target, []).append(f"{edge.source}{tuple(edge.summary)}")
        wiring = "; ".join(f"{target}: {' '.join(sources)}" for target, sources in sorted(feeds.items()))
        return hashlib.blake2b(wiring.encode(), digest_size=8).hexdigest()

    def shape(self, name: str, in_line: Iterable[str]) -> tuple[str, ...]:
        """Return what must be the same on every worker: the name, a line for each operator, and a digest of the edges.

        After a tab, a line states where the operator was built, which need not be the same. `in_line` are the lines of
        functions that are not nodes.
        """
        lines = [f"dataflow {name!r}"]
        for node in self.nodes:
            pacts = ", ".join(inlet.pact for inlet in node.inlets) or "no input"
            lines.append(f"operator {node.name!r} ({pacts}) in {node.scope.path}\t{node.origin}")
        return (*lines, *in_line, f"wiring {self.digest()}")

    def producers(self, places: Iterable[int], in_line: set[int]) -> list[tuple[int, ...]]:
        """Return, for each of the places, the operators that what arrives there comes from, but for those in line."""
        emitting = {
            outlet.place: node.index for node in self.nodes if node.index not in in_line for outlet in node.outlets
        }
        # What is before an operator that emits is not where this comes from.
        back = by_start((edge.target, edge.source) for edge in self.edges if edge.target not in emitting)
        return [
            tuple(sorted({emitting[source] for source in reached([place], back) if source in emitting}))
            for place in places
        ]

    def flows_uncancelled(self, source: int, target: int) -> bool:
        """Return whether what is at one place is at another, or gets there without passing an operator that cancels."""
        barred = {place for node in self.nodes if node.cancels for place in node.places}
        steps = ((edge.source, edge.target) for edge in self.edges if edge.target not in barred)
        return target in reached([source], by_start(steps))

    def reached_from(self, source: int) -> set[int]:
        """Return the places that depend on what is at one place: an operator's outputs depend on all of its inputs."""
        within = (
            (inlet.place, outlet.place) for node in self.nodes for inlet in node.inlets for outlet in node.outlets
        )
        return reached([source], by_start(itertools.chain((edge[:2] for edge in self.edges), within)))


def by_start(steps: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    """Return where steps between places end, by where they start."""
    onward: dict[int, list[int]] = {}
    for start, end in steps:
        onward.setdefault(start, []).append(end)
    return onward


def reached(sources: Iterable[int], onward: dict[int, list[int]]) -> set[int]:
    """Return some places, and all to which steps lead from them (see `by_start`)."""
    found = set(sources)
    waiting = list(found)
    while waiting:
        places = set(onward.get(waiting.pop(), ())) - found
        found |= places
        waiting.extend(places)
    return found
