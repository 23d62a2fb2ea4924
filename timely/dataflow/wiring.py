"""The graph of a dataflow as its program described it, and what is made of it before it runs.

Every stream, input and output is a *place*: a location whose times are those of a scope. Edges between places carry
path summaries. Most places are not tracked: `merge_ports` says which are, and what is between them, so that whatever
could result in something at a tracked place still does. They are those at which a capability may be held, a message be
queued or a frontier be asked for; the others are composed away.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Set
from typing import TYPE_CHECKING, NamedTuple

from timely.progress.cycles import positions, strong_components
from timely.progress.graph import Edge, contract
from timely.progress.summary import PathSummary

if TYPE_CHECKING:
    from timely.dataflow.operator import Operator
    from timely.dataflow.ports import InputPort
    from timely.dataflow.scope import Scope

MOST_EDGES = 32
"""How many edges more there may be for a place less that nobody asks about."""


class Place(NamedTuple):
    """A location while the dataflow is built: the scope whose times it has, and how to speak of it."""

    scope: Scope
    named: object


class Wiring:
    """The places of a dataflow, the edges between them, and the operators at them."""

    def __init__(self, operators: list[Operator]) -> None:
        """Start with nothing; `operators` grows while the dataflow is described."""
        self.operators = operators
        self.places: list[Place] = []
        self.edges: list[Edge] = []

    def add_place(self, scope: Scope, named: object) -> int:
        """Return a new location whose times are those of `scope`, and which is spoken of as `str(named)`."""
        self.places.append(Place(scope, named))
        return len(self.places) - 1

    def add_edge(self, source: int, target: int, summary: PathSummary) -> None:
        """Let what is at `source` result in something at `target`."""
        self.edges.append(Edge(source, target, summary))

    def ranks(self) -> list[int]:
        """Return each place's topological position; raise `CycleError` for a loop that does not advance time."""
        order = positions(len(self.places), self.edges, lambda place: str(self.places[place].named))
        return [place.rank for place in order]

    def digest(self) -> str:
        """Return 16 letters that are the same where the same is connected in the same way."""
        feeds: dict[int, list[str]] = {}
        for edge in self.edges:
            feeds.setdefault(edge.target, []).append(f"{edge.source}{tuple(edge.summary)}")
        wiring = "; ".join(f"{target}: {' '.join(sources)}" for target, sources in sorted(feeds.items()))
        return hashlib.blake2b(wiring.encode(), digest_size=8).hexdigest()

    def sources_of(self, channels: Iterable[InputPort]) -> list[tuple[int, ...]]:
        """Return, for each of the channels, the scheduled operators that what arrives there comes from."""
        scheduled = {
            output.place: operator.index
            for operator in self.operators
            if operator.inline is None
            for output in operator.outputs
        }
        incoming: dict[int, list[int]] = {}
        for edge in self.edges:
            incoming.setdefault(edge.target, []).append(edge.source)
        found = []
        for port in channels:
            sources: set[int] = set()
            waiting, seen = [port.place], {port.place}
            while waiting:
                for source in incoming.get(waiting.pop(), ()):
                    if source in scheduled:
                        sources.add(scheduled[source])
                    elif source not in seen:
                        seen.add(source)
                        waiting.append(source)
            found.append(tuple(sorted(sources)))
        return found

    def keep_loops_finite(self) -> None:
        """Queue at a feedback that would otherwise be a call of itself: a loop of in-line operators only."""
        candidates = [operator for operator in self.operators if operator.inline is not None]
        while candidates:
            onward = self._in_line_edges()
            ends = {place for edge in onward for place in edge[:2]}
            parts = [set(part) for part in strong_components(ends, onward) if len(part) > 1]
            part_of = {place: number for number, part in enumerate(parts) for place in part}
            in_loops: dict[int, list[Operator]] = {}
            for operator in candidates:
                number = part_of.get(operator.inputs[0].location)
                if number is not None:
                    in_loops.setdefault(number, []).append(operator)
            candidates = []
            for first, *others in in_loops.values():
                first.inline = None
                candidates += others

    def flows_uncancelled(self, source: int, target: int) -> bool:
        """Return whether what is at one place is at another, or gets there without passing an operator that cancels."""
        barred = {port.location for operator in self.operators if operator.cancels for port in operator.ports}
        onward: dict[int, list[int]] = {}
        for edge in self.edges:
            if edge.target not in barred:
                onward.setdefault(edge.source, []).append(edge.target)
        reached, waiting = {source}, [source]
        while waiting:
            places = set(onward.get(waiting.pop(), ())) - reached
            reached |= places
            waiting.extend(places)
        return target in reached

    def _in_line_edges(self) -> list[Edge]:
        """Return the edges between places of which neither is a scheduled operator's."""
        scheduled = {port.location for operator in self.operators if operator.inline is None for port in operator.ports}
        return [edge for edge in self.edges if edge.source not in scheduled and edge.target not in scheduled]

    def merge_ports(self, observed: Set[int], in_order: bool) -> tuple[list[int], list[Edge]]:
        """Return the places to track and the edges between them; count inputs that need no place at their output's.

        `in_order` is whether workers tell each other of progress on the way that batches take, so that it comes after
        those sent before.
        """
        kept = set(observed)
        followers: dict[int, InputPort] = {}
        for operator in self.operators:
            if operator.inline is not None:
                continue
            kept.update(port.location for port in operator.outputs)
            only = operator.outputs[0] if len(operator.outputs) == 1 else None
            for port in operator.inputs:
                if only is None or only.summaries.get(port, _NO_PATH) is not None:
                    kept.add(port.location)
                elif not port.interest:
                    port.location = only.location
                else:
                    kept.add(port.location)
                    if port.drains and (in_order or not port.spreads):
                        followers[port.location] = port
        edges = contract(self.edges, kept, most=MOST_EDGES)
        kept.update(place for edge in edges for place in edge[:2])
        incoming: dict[int, list[Edge]] = {}
        for edge in edges:
            incoming.setdefault(edge.target, []).append(edge)
        for place, port in followers.items():
            if place not in observed and place in incoming:
                port.follow([(edge.source, self._summary(edge)) for edge in incoming[place]])
                port.location = port.operator.outputs[0].location
                kept.discard(place)
        return sorted(kept), contract(edges, kept)

    def _summary(self, edge: Edge) -> PathSummary | None:
        """Return an edge's summary, or None if times stay as they are along it."""
        return None if edge.summary == PathSummary.identity(self.places[edge.source].scope.width) else edge.summary


_NO_PATH = PathSummary(0, (), ())
