"""One dataflow on one worker: its operators, its progress tracker, and a scheduling step.

While it is built, every stream, input and output is a location of a graph whose edges carry path summaries. When it is
complete, the locations at which nobody can hold a capability, queue a message or ask for a frontier are composed away, and
what remains is tracked. A step applies what is known of progress, runs the operators that have messages or a frontier
that moved, in topological order, and hands on the net changes of counts as one atomic batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from timely.communication.message import Changes, Data, Progress
from timely.container import Batch
from timely.dataflow.operator import Operator
from timely.dataflow.ports import InputPort, OutputPort, Tee
from timely.errors import BuildError
from timely.order import Time
from timely.progress.graph import Edge, Location, check_cycles, contract
from timely.progress.protocol import Protocol
from timely.progress.reachability import Tracker
from timely.progress.summary import PathSummary

if TYPE_CHECKING:
    from timely.dataflow.scope import Scope
    from timely.worker import Worker

RUNS_PER_STEP = 4
"""How often, on average, an operator may run in one step before progress is looked at again."""


class Place(NamedTuple):
    """A location while the dataflow is built: the scope whose times it has, and how to speak of it."""

    scope: Scope
    name: Callable[[], str]


class Wire(NamedTuple):
    """An edge while the dataflow is built. Feedback edges do not take part in the topological order."""

    source: int
    target: int
    summary: PathSummary
    feedback: bool


class Dataflow:
    """A dataflow under construction, then running."""

    def __init__(self, worker: Worker, index: int, name: str) -> None:
        self.worker = worker
        self.worker_index = worker.index
        self.peers = worker.peers
        self.index = index
        self.name = name
        self.operators: list[Operator] = []
        self.channels: list[InputPort] = []
        self.built = False
        self._places: list[Place] = []
        self._wires: list[Wire] = []
        self._tees: list[Tee] = []
        self._observed: set[int] = set()
        self._on_complete: list[Callable[[], None]] = []
        self._constructors: list[Callable[[], None]] = []

    def __str__(self) -> str:
        return f"dataflow {self.index} ({self.name!r})"

    # Building

    def add_place(self, scope: Scope, name: Callable[[], str]) -> int:
        """Return a new location whose times are those of `scope`."""
        if self.built:
            raise BuildError(f"{self} is complete: nothing can be added to it")
        self._places.append(Place(scope, name))
        return len(self._places) - 1

    def add_wire(self, source: int, target: int, summary: PathSummary, feedback: bool = False) -> None:
        """Let what is at `source` result in something at `target`."""
        self._wires.append(Wire(source, target, summary, feedback))

    def add_tee(self) -> Tee:
        tee = Tee()
        self._tees.append(tee)
        return tee

    def add_operator(self, operator: Operator) -> None:
        self.operators.append(operator)

    def observe(self, location: int) -> None:
        """Keep track of the frontier at a location though no operator asks for it (a probe)."""
        self._observed.add(location)

    def when_built(self, constructor: Callable[[], None]) -> None:
        """Call `constructor` as soon as capabilities can be made."""
        self._constructors.append(constructor)

    def when_complete(self, callback: Callable[[], None]) -> None:
        """Call `callback` when nothing can happen in this dataflow any more, or when it is dropped."""
        self._on_complete.append(callback)

    def finish(self) -> None:
        """Turn what was described into something that runs."""
        positions = topological_positions(self._places, self._wires)
        self._keep_loops_finite()
        kept = self._merge_ports()
        edges = [Edge(wire.source, wire.target, wire.summary) for wire in self._wires]
        check_cycles(edges, lambda location: self._places[location].name())
        number = {location: position for position, location in enumerate(kept)}
        contracted = contract(len(self._places), edges, set(kept))
        outer = self._places[0].scope.outer if self._places else 1
        self.tracker = Tracker(
            [Location(positions[location], outer) for location in kept],
            [Edge(number[edge.source], number[edge.target], edge.summary) for edge in contracted],
        )
        self.protocol = Protocol(self.tracker, self.worker.config.progress, self.peers)
        self.update = self.protocol.update
        self._number = number
        self._names = [self._places[location].name for location in kept]
        self._place_ports(number, positions)
        self.built = True
        for tee in self._tees:
            tee.resolve()
        self._start()

    def location(self, place: int) -> int:
        """Return the tracked location of an observed place."""
        return self._number[place]

    def describe(self, location: int) -> str:
        """Return the name of a tracked location."""
        return self._names[location]()

    def shape(self) -> tuple[str, ...]:
        """Return one line per operator: what must be the same on every worker."""
        feeds: dict[int, list[str]] = {}
        for wire in self._wires:
            feeds.setdefault(wire.target, []).append(f"{wire.source}{tuple(wire.summary)}")
        lines = []
        for operator in self.operators:
            pacts = ", ".join(port.pact.name for port in operator.inputs)
            lines.append(f"{operator.name}({pacts}) -> {len(operator.outputs)} in {operator.scope.path}")
        wiring = "; ".join(f"{target}: {' '.join(sources)}" for target, sources in sorted(feeds.items()))
        return (*lines, f"wiring {hashlib.blake2b(wiring.encode(), digest_size=8).hexdigest()}")

    def _keep_loops_finite(self) -> None:
        """Queue at a feedback that would otherwise be a call of itself: a loop of in-line operators only."""
        inline = {
            place
            for operator in self.operators
            if operator.inline is not None
            for place in (operator.inputs[0].location, operator.outputs[0].location)
        }
        scheduled = {
            port.location
            for operator in self.operators
            if operator.inline is None
            for port in (*operator.inputs, *operator.outputs)
        }
        onward: dict[int, list[int]] = {}
        for wire in self._wires:
            if wire.source not in scheduled and wire.target not in scheduled:
                onward.setdefault(wire.source, []).append(wire.target)
        for operator in self.operators:
            if operator.inline is None:
                continue
            start = operator.inputs[0].location
            assert start in inline
            if _reaches(onward, start, start):
                operator.inline = None
                for port in (*operator.inputs, *operator.outputs):
                    onward.pop(port.location, None)

    def _merge_ports(self) -> list[int]:
        """Return the places to track; count inputs that need no place of their own at their output's."""
        kept = set(self._observed)
        for operator in self.operators:
            if operator.inline is not None:
                continue
            kept.update(port.location for port in operator.outputs)
            only = operator.outputs[0] if len(operator.outputs) == 1 else None
            for port in operator.inputs:
                if only is not None and not port.interest and only.summaries.get(port, _NO_PATH) is None:
                    port.location = only.location
                else:
                    kept.add(port.location)
        return sorted(kept)

    def _place_ports(self, number: dict[int, int], positions: list[tuple[int, ...]]) -> None:
        def rank(operator: Operator) -> tuple[int, ...]:
            ports = operator.outputs or operator.inputs
            return max(positions[port.location] for port in ports)

        self._scheduled = sorted(
            (operator for operator in self.operators if operator.inline is None),
            key=lambda operator: (rank(operator), operator.index),
        )
        self._ready: list[int] = []
        self._listeners: list[list[Operator]] = [[] for _ in number]
        for order, operator in enumerate(self._scheduled):
            operator.rank = order
            for output in operator.outputs:
                output.location = number[output.location]
            for port in operator.inputs:
                port.location = number[port.location]
                if port.interest:
                    self._listeners[port.location].append(operator)

    def _start(self) -> None:
        """Count the capability that every worker initially holds at each output that starts with one."""
        for operator in self._scheduled:
            for output in operator.outputs:
                if output.initial:
                    self.tracker.update(output.location, operator.scope.minimum, self.peers)
        for constructor in self._constructors:
            constructor()
        self._propagate()

    # Running

    def activate(self, operator: Operator) -> None:
        """Schedule an operator in this or the next step."""
        if not operator.active:
            operator.active = True
            heappush(self._ready, operator.rank)

    def send(self, worker: int, channel: int, time: Time, batch: Batch) -> None:
        """Send a batch to an input of this dataflow on another worker."""
        self.worker.allocator.send(worker, Data(self.index, channel, time, batch))

    def deliver(self, channel: int, time: Time, batch: Batch) -> None:
        """Queue a batch that came from another worker."""
        self.channels[channel].deliver(time, batch)

    def receive(self, changes: Changes) -> None:
        """Take in a peer's atomic batch of progress."""
        self.protocol.receive(changes)

    def step(self) -> bool:
        """Run what is ready. Return whether anything ran."""
        self._flush()
        ready = self._ready
        if not ready:
            return False
        budget = RUNS_PER_STEP * len(self._scheduled)
        scheduled = self._scheduled
        while ready and budget:
            scheduled[heappop(ready)].run()
            budget -= 1
        self._flush()
        return True

    @property
    def is_idle(self) -> bool:
        """Whether no operator is waiting to run."""
        return not self._ready and not self.protocol.dirty

    @property
    def is_complete(self) -> bool:
        """Whether nothing can happen here any more: no capability, no message, on any worker."""
        return self.tracker.is_idle and not self._ready and not self.protocol.holding

    def close(self) -> None:
        """Let go of what operators hold outside this dataflow (traces, files)."""
        for callback in self._on_complete:
            callback()
        self._on_complete.clear()

    def _flush(self) -> None:
        changes = self.protocol.flush()
        if changes is not None:
            message = Progress(self.index, changes)
            send = self.worker.allocator.send
            for peer in range(self.peers):
                if peer != self.worker_index:
                    send(peer, message)
        self._propagate()

    def _propagate(self) -> None:
        listeners = self._listeners
        for location in self.tracker.propagate():
            for operator in listeners[location]:
                if not operator.active:
                    operator.active = True
                    heappush(self._ready, operator.rank)


_NO_PATH = PathSummary(0, (), ())


def _reaches(onward: dict[int, list[int]], start: int, goal: int) -> bool:
    seen: set[int] = set()
    stack = list(onward.get(start, ()))
    while stack:
        place = stack.pop()
        if place == goal:
            return True
        if place not in seen:
            seen.add(place)
            stack.extend(onward.get(place, ()))
    return False


def topological_positions(places: list[Place], wires: list[Wire]) -> list[tuple[int, ...]]:
    """Return, for every place, its topological position in each loop around it, outermost first.

    In each loop scope, the places directly in it and the loops directly in it are ordered along all edges but feedback.
    Raises `BuildError` where a cycle has no feedback in it.
    """
    chains = [place.scope.loops for place in places]
    graphs: dict[Scope, dict[Scope | int, set[Scope | int]]] = {}
    for place, chain in enumerate(chains):
        for outer, inner in _pairs(chain, place):
            graphs.setdefault(outer, {}).setdefault(inner, set())
    for wire in wires:
        if not wire.feedback:
            source, target = chains[wire.source], chains[wire.target]
            for (scope, a), (other, b) in zip(_pairs(source, wire.source), _pairs(target, wire.target)):
                if scope is not other:
                    break
                if a != b:
                    graphs[scope][a].add(b)
                    break
    ranks = {scope: _ranks(graph, places) for scope, graph in graphs.items()}
    return [tuple(ranks[scope][child] for scope, child in _pairs(chain, place)) for place, chain in enumerate(chains)]


def _pairs(chain: tuple[Scope, ...], place: int) -> Iterator[tuple[Scope, Scope | int]]:
    """Yield (scope, its child on the way to the place), outermost first."""
    return zip(chain, (*chain[1:], place))


def _ranks(graph: dict[Scope | int, set[Scope | int]], places: list[Place]) -> dict[Scope | int, int]:
    """Return a topological numbering; among equals, places come in the order they were made."""

    def made(child: Scope | int) -> int:
        return child if isinstance(child, int) else child.made

    waiting = dict.fromkeys(graph, 0)
    for successors in graph.values():
        for successor in successors:
            waiting[successor] += 1
    children = list(graph)
    index = {child: position for position, child in enumerate(children)}
    ready = [(made(child), index[child]) for child, count in waiting.items() if not count]
    heapify(ready)
    ranks: dict[Scope | int, int] = {}
    while ready:
        child = children[heappop(ready)[1]]
        ranks[child] = len(ranks)
        for successor in graph[child]:
            waiting[successor] -= 1
            if not waiting[successor]:
                heappush(ready, (made(successor), index[successor]))
    if len(ranks) < len(graph):
        stuck: Iterable[str] = sorted(
            places[child].name() if isinstance(child, int) else str(child) for child in graph if child not in ranks
        )
        raise BuildError(f"these form a cycle without a feedback in it: {', '.join(stuck)}")
    return ranks
