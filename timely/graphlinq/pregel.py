"""Vertex programs: nodes with a state, which send messages along edges and change when they receive messages.

A superstep is a round of a loop. In superstep 0 each node gets its initial state and sends. From then on, a node that
has received messages is updated with their combination and, if its state has changed, sends again. The run ends when
there are no messages, and then outputs the state of every node. With `everyone`, all nodes are updated and send in each
superstep, even those that received nothing, and the run ends when no node has changed.

Each time at which nodes are given is a separate run, over the edges of that time and before. Messages to nodes that
were not given are dropped, so a program can run on part of a graph. Programs may be used inside loops.

Besides NumPy's time for the rows that take part, a superstep costs each worker two activations of each of two
operators, and one message to each other worker (two with aggregates). Messages are combined before they are sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from timely import (
    Broadcast,
    Capability,
    Columns,
    InputPort,
    Notificator,
    OperatorBuilder,
    OutputPort,
    Pipeline,
    Scope,
    Stream,
    Time,
)
from timely.graphlinq.core import GraphCore
from timely.graphlinq.in_order import Pacts, by_node
from timely.graphlinq.run import Run, Superstep, VertexProgram, combined
from timely.graphlinq.transmit import transmit
from timely.lowlevel import check_kind, check_streams, of_columns


def pregel(graph: GraphCore, program: VertexProgram, nodes: Stream | None = None, *, name: str = "pregel") -> Stream:
    """Return (node, state) for each of `nodes` (by default, all nodes of the graph) after running a vertex program.

    >>> edges = (np.array([0, 1, 2, 4]), np.array([1, 2, 3, 0]))
    >>> hops = VertexProgram(
    ...     init=lambda node: np.where(node == 0, 0, 99),
    ...     message=lambda distance: distance + 1,
    ...     combine=np.minimum,
    ...     update=lambda superstep, distance, received: np.minimum(distance, received),
    ...     sends=lambda distance: distance < 99,
    ... )
    >>> example(lambda scope: Graph(scope.to_stream(edges)).pregel(hops))
    [(0, 0), (1, 1), (2, 2), (3, 3), (4, 99)]
    """
    check_kind(name, VertexProgram, "a VertexProgram(init=..., message=..., ...)", program=program)
    if nodes is not None:
        check_streams(name, nodes=nodes)
    placed = (graph.nodes() if nodes is None else nodes).exchange(lambda node, *_: node, name=f"{name} nodes")
    runs: dict[Time, Run] = {}
    with graph.scope.iterative(name) as loop:
        messages, again = loop.feedback(name=f"{name} messages")
        vertices = _Vertices(loop, program, runs, placed.enter(loop), again, name)
        sent = transmit(graph.enter(loop), vertices.sent, combine=program.combine, along=program.along, is_placed=True)
        sent.connect_loop(messages)
    return _results(placed, vertices.ended.leave(graph.scope), runs, name)


@dataclass
class _Round:
    """What has arrived for a superstep, and the capabilities to send in it."""

    capabilities: list[Capability] = field(default_factory=list)
    batches: list[Columns] = field(default_factory=list)
    contributions: list[tuple[Any, ...]] = field(default_factory=list)


class _Vertices:
    """The operator that updates nodes, superstep by superstep.

    A superstep starts when nothing can arrive at its time any more, on any input, from any worker. If a program needs
    values of all workers (aggregates or, with `everyone`, whether any node has changed), each worker broadcasts the
    contribution of its nodes, around the loop. So every worker with nodes takes part in every superstep, and all end
    the run at the same one.
    """

    def __init__(
        self, loop: Scope, program: VertexProgram, runs: dict[Time, Run], nodes: Stream, messages: Stream, name: str
    ) -> None:
        """Build the operator, which receives the nodes of a run and then the messages to them."""
        self._loop = loop
        self._program = program
        self._runs = runs
        self._broadcasts = program.everyone or bool(program.aggregators) or program.until is not None
        self._rounds: dict[Time, _Round] = {}
        builder = OperatorBuilder(loop, name)
        self._output, self.sent = builder.add_output()
        _, self.ended = builder.add_output()
        inputs: list[tuple[Stream, Pacts]] = [(nodes, Pipeline()), (messages, by_node())]
        if self._broadcasts:
            handle, contributions = loop.feedback(name="aggregates")
            inputs.append((contributions, Broadcast()))
        self._inputs = [builder.add_input(stream, pact, frontier=True, drains=True) for stream, pact in inputs]
        if self._broadcasts:
            self._contribution, contribution = builder.add_output()
            contribution.connect_loop(handle)
        builder.build_from(self._logic)

    def _logic(self) -> None:
        for place, input in enumerate(self._inputs):
            for capability, batch in input:
                round = self._rounds.get(capability.time)
                if round is None:
                    # Output 1, `ended`, only has a frontier: it passes a run when nothing of it is left anywhere.
                    outputs = (0, 2) if self._broadcasts else (0,)
                    round = self._rounds[capability.time] = _Round([capability.retain(each) for each in outputs])
                if place == 2:
                    assert isinstance(batch, list)
                    round.contributions += batch
                else:
                    round.batches.append(Columns(of_columns(batch)))
        # Only now that all messages are taken: a frontier may have passed times of messages that were still queued.
        frontiers = [input.frontier for input in self._inputs]
        for time in sorted(self._rounds):
            if not any(frontier.admits(time) for frontier in frontiers):
                round = self._rounds.pop(time)
                self._inputs[0].handle(time)
                self._run(time, round)
                for held in round.capabilities:
                    held.drop()

    def _run(self, time: Time, round: _Round) -> None:
        """Run the superstep of a time, all of whose messages have arrived."""
        program, outer, number = self._program, time[:-1], time[-1]
        if number == 0:
            self._runs[outer] = Run(program, round.batches)
        run = self._runs.get(outer)
        # Without nodes on this worker there is no run, and messages to it are for nodes that were not given.
        if run is None or (number and not self._goes_on(run, number, round)):
            return
        if program.supersteps is None or number < program.supersteps:
            sent = run.sent()
            if sent is not None:
                self._output.give(round.capabilities[0], sent)
            if self._broadcasts:
                self._contribution.give(round.capabilities[1], [(self._loop.index, *run.contribution())])

    def _goes_on(self, run: Run, number: int, round: _Round) -> bool:
        """Update the nodes and return True, unless the run has ended."""
        superstep = Superstep(number)
        if self._broadcasts:
            changed, aggregates = combined(self._program, round.contributions)
            superstep = Superstep(number, aggregates)
            if not changed or (self._program.until is not None and self._program.until(superstep)):
                return False
        run.step(superstep, round.batches)
        return True


def _results(placed: Stream, ended: Stream, runs: dict[Time, Run], name: str) -> Stream:
    """Return the states of the nodes of each run when it has ended."""

    def logic(given: InputPort, ended: InputPort, output: OutputPort, notificator: Notificator) -> None:
        for capability, _ in given:
            notificator.notify_at(capability)
        for time, due in notificator:
            assert due is not None
            # The run is there: the frontier of `ended` passes its time only after superstep 0, which makes it.
            output.give(due, runs.pop(time).result())

    return placed.binary_notify(ended, Pipeline(), Pipeline(), logic, name=f"{name} results")
