"""One dataflow on one worker: its operators, its progress tracker, and a scheduling step.

While it is built it gathers what is described (`wiring`). When it is complete, the locations at which nobody can hold a
capability, queue a message or ask for a frontier are composed away, and what remains is tracked. A step applies what is
known of progress, runs the operators that have messages or a frontier that moved, in topological order, and hands on
the net changes of counts as one atomic batch.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from timely.closing import close_all
from timely.communication.message import Data, Progress
from timely.data.container import Batch
from timely.dataflow.arrivals import Arrivals
from timely.dataflow.operator import Operator
from timely.dataflow.outstanding import Ledger
from timely.dataflow.ports import InputPort, Tee
from timely.dataflow.wiring import Wiring
from timely.errors import BuildError
from timely.order import Changes, Time
from timely.origin import user_origin
from timely.progress.accumulation import Route
from timely.progress.graph import Edge
from timely.progress.protocol import Protocol
from timely.progress.reachability import Tracker

if TYPE_CHECKING:
    from timely.dataflow.host import Host
    from timely.dataflow.inline import Inline
    from timely.dataflow.recorder import Recorder
    from timely.dataflow.scope import Scope

RUNS_PER_STEP = 4
"""How often, on average, an operator may run in one step before progress is looked at again."""


class Dataflow:
    """A dataflow under construction, then running."""

    def __init__(self, host: Host, index: int, name: str) -> None:
        self.host = host
        self.worker_index = host.index
        self.peers = host.peers
        self.index = index
        self.name = name
        self.is_logged = True
        """Whether the worker's log tells what happens here."""
        self.operators: list[Operator] = []
        self.wiring = Wiring(self.operators)
        self.inlines: list[Inline] = []
        """The functions that run in line with what they consume."""
        self._unfinished: set[Operator] = set()
        self.channels: list[InputPort] = []
        self.built = False
        self._tees: list[Tee] = []
        self._observed: set[int] = set()
        self._on_complete: list[Callable[[], None]] = []
        self._inputs: list[Callable[[], None]] = []
        self._constructors: list[Callable[[], None]] = []
        self._activated: set[Operator] = set()
        self._followers: dict[int, list[Callable[[], None]]] = {}
        self.running: Operator | None = None
        """The operator that runs, while a step of this dataflow is under way."""
        self.recorder: Recorder | None = None
        self.is_closed = False
        """Whether this was dropped, complete or not."""
        self._ready: list[int] = []
        self._partway: list[int] = []
        self._put_off: list[int] = []
        self._counted: list[tuple[int, Ledger]] = []
        self._held_back: set[int] = set()
        self.outstanding = host.outstanding

    def __str__(self) -> str:
        return f"dataflow {self.index} ({self.name!r})"

    # Building

    def refuse_if_built(self) -> None:
        """Raise BuildError once this is complete."""
        if self.built:
            raise BuildError(
                f"{self} is complete: nothing can be added to it (at {user_origin()}). Another dataflow has what is in "
                "this one by its trace (Arrangement.trace, taken inside the `with` block, and Trace.import_into), or "
                "by capture and replay"
            )

    def add_place(self, scope: Scope, named: object) -> int:
        """Return a new location whose times are those of `scope`, and which is spoken of as `str(named)`."""
        self.refuse_if_built()
        return self.wiring.add_place(scope, named)

    def add_tee(self) -> Tee:
        tee = Tee()
        self._tees.append(tee)
        return tee

    def add_operator(self, operator: Operator) -> None:
        """Add an operator that is being described; `finish_operator` says when it has been."""
        self.refuse_if_built()
        self.operators.append(operator)
        self._unfinished.add(operator)

    def finish_operator(self, operator: Operator) -> None:
        self._unfinished.discard(operator)

    def observe(self, location: int) -> None:
        """Keep track of the frontier at a location though no operator asks for it (a probe)."""
        self._observed.add(location)

    def follow(self, location: int, callback: Callable[[], None]) -> None:
        """Call `callback` whenever the frontier at a tracked location moves; for what is outside this dataflow."""
        self._followers.setdefault(location, []).append(callback)

    def unfollow(self, callback: Callable[[], None]) -> None:
        """Take back `follow`."""
        for location, callbacks in tuple(self._followers.items()):
            callbacks[:] = [each for each in callbacks if each != callback]
            if not callbacks:
                del self._followers[location]

    def when_built(self, constructor: Callable[[], None]) -> None:
        """Call `constructor` as soon as capabilities can be made."""
        self._constructors.append(constructor)

    def when_complete(self, callback: Callable[[], None]) -> None:
        """Call `callback` when nothing can happen in this dataflow any more, or when it is dropped."""
        self._on_complete.append(callback)

    def when_program_ends(self, close: Callable[[], None]) -> None:
        """Call `close` when the user's program has returned and can send no more."""
        self._inputs.append(close)

    def close_inputs(self) -> None:
        # What sends by an input was made after it, and may have something left to send.
        for close in reversed(self._inputs):
            close()

    def finish(self) -> None:
        """Turn what was described into something that runs."""
        for operator in self.operators:
            if operator in self._unfinished:
                raise BuildError(f"{operator} is not finished: its loop was left open, or build() was not called")
        ranks = self.wiring.ranks()
        self.wiring.keep_loops_finite()
        config = self.host.config
        route = Route.of(self.worker_index, self.peers // config.workers, config.workers, config.accumulation)
        kept, edges = self.wiring.merge_ports(self._observed, route.is_direct)
        number = {place: location for location, place in enumerate(kept)}
        self._kept = [self.wiring.places[place] for place in kept]
        widths = [place.scope.width for place in self._kept]
        self.tracker = Tracker(
            widths,
            [Edge(number[source], number[target], summary) for source, target, summary in edges],
            self.describe,
        )
        self.protocol = Protocol(self.tracker, config.progress, route)
        self.update = self.protocol.update
        self._number = number
        self._place_ports(number, ranks)
        self.arrivals = Arrivals(self, route.sources, widths)
        self.built = True
        self.resolve_tees()

    def resolve_tees(self) -> None:
        """Let each stream's tee look up what its consumers want to be called."""
        for tee in self._tees:
            tee.resolve()

    def listen(self, location: int, operator: Operator) -> None:
        """Schedule `operator`, once this is built, whenever the frontier at a tracked location moves."""
        self._listeners[location].append(operator)

    def location(self, place: int) -> int:
        """Return the tracked location of an observed place."""
        return self._number[place]

    def describe(self, location: int) -> str:
        """Return the name of a tracked location."""
        return str(self._kept[location].named)

    def scope_of(self, location: int) -> Scope:
        """Return the scope whose times a tracked location has."""
        return self._kept[location].scope

    def is_in_loop(self, location: int) -> bool:
        """Return whether the times of a tracked location have a loop counter."""
        scope = self.scope_of(location)
        return scope.width > scope.outer

    def shape(self) -> tuple[str, ...]:
        """Return what must be the same on every worker: the name, a line for each operator, and a digest of the wiring.

        After a tab, a line says where the operator was built, which need not be the same.
        """
        lines = [f"dataflow {self.name!r}"]
        for operator in self.operators:
            pacts = ", ".join(port.pact.name for port in operator.inputs) or "no input"
            described = f"operator {operator.name!r} ({pacts}) in {operator.scope.path}"
            lines.append(f"{described}\t{operator.origin}")
        return (*lines, f"wiring {self.wiring.digest()}")

    def _place_ports(self, number: dict[int, int], ranks: list[int]) -> None:
        def rank(operator: Operator) -> int:
            ports = operator.outputs or operator.inputs
            return max(ranks[port.location] for port in ports)

        self._scheduled = sorted(
            (operator for operator in self.operators if operator.inline is None),
            key=rank,
        )
        self._listeners: list[list[Operator]] = [[] for _ in number]
        for order, operator in enumerate(self._scheduled):
            operator.rank = order
            for output in operator.outputs:
                output.location = number[output.location]
            for port in operator.inputs:
                port.location = number[port.location]
                if port.interest:
                    for location in port.place_frontier(number):
                        self._listeners[location].append(operator)
                if port.spreads or not port.drains:
                    port.ledger = Ledger(self.outstanding, self.worker_index, self.peers, self.index, port.channel)
                    self._counted.append((order, port.ledger))

    def start(self) -> None:
        """Begin to run: count the capability that every worker holds at each output that starts with one."""
        for operator in self._scheduled:
            for output in operator.outputs:
                if output.initial:
                    self.tracker.update(output.location, operator.scope.minimum, self.peers)
        for constructor in self._constructors:
            constructor()
        self._constructors.clear()
        self._propagate()

    # Running

    def activate(self, operator: Operator) -> None:
        """Schedule an operator in this or the next step.

        One without inputs waits until nothing else is ready and the worker is not congested: it would come before
        those that consume what it sends, and fill their queues. Before the dataflow is complete nothing need be
        scheduled: all operators are then.
        """
        if self.built and not operator.active and operator.rank not in self._held_back:
            operator.active = True
            if operator.inputs:
                heappush(self._ready, operator.rank)
            else:
                self._put_off.append(operator.rank)

    def resume_later(self, operator: Operator) -> None:
        """Schedule an operator that has more to send for when no other is ready: those that consume it come first.

        Of several such operators the last in topological order goes on, so that what each has sent is consumed before
        it sends more, however many one message becomes.
        """
        if not operator.active and operator.rank not in self._held_back:
            operator.active = True
            heappush(self._partway, -operator.rank)

    def holds_back(self, operator: Operator) -> bool:
        """Return whether an operator must not send now, for want of room behind it; then it is activated when there is.

        Until then it cannot be activated otherwise, so that one that asks for it does not keep others from running.
        """
        if not self._is_full_behind(operator.rank):
            return False
        self._held_back.add(operator.rank)
        return True

    def _is_full_behind(self, rank: int) -> bool:
        """Return whether a worker is owed more than its share, and some of it behind the operator of a rank."""
        for peer in self.outstanding.over:
            room = self.outstanding.allowance
            for order, ledger in reversed(self._counted):
                if order <= rank:
                    break
                room -= ledger.owed[peer]
                if room < 0:
                    return True
        return False

    def may_activate(self, operator: Operator) -> None:
        """Expect that something outside this dataflow activates an operator."""
        self._activated.add(operator)

    @property
    def may_be_woken(self) -> bool:
        """Whether something outside may make an operator do anything: a source without capabilities never does."""
        return any(
            operator.inputs or not operator.outputs or any(output.live for output in operator.outputs)
            for operator in self._activated
        )

    def send(self, worker: int, channel: int, time: Time, batch: Batch) -> None:
        """Send a batch to an input of this dataflow on another worker."""
        if self.recorder is not None:
            self.recorder.sent(channel, batch, worker)
        self.host.allocator.send(worker, Data(self.index, channel, time, batch))

    def receive(self, sender: int, changes: Changes) -> None:
        """Take in a peer's atomic batch of progress, and pass it on to those who hear of it from this worker.

        Raises `FrameError`, and takes in nothing of it, where it cannot be meant for this.
        """
        self.arrivals.check(sender, changes)
        for peer in self.protocol.receive(sender, changes):
            self.host.allocator.send(peer, Progress(self.index, changes))
        if self.recorder is not None:
            self.recorder.received_progress(changes, sender)

    def step(self) -> bool:
        """Run what is ready. Return whether anything ran.

        Raises BuildError where one of its own operators asks for it, whose changes are not all made yet.
        """
        if self.running is not None:
            raise BuildError(
                f"{self.running} steps the worker while it runs, and {self} cannot go on before it returns: "
                "step in the program, or have worker.call() do what needs steps"
            )
        self._flush()
        ready = self._ready
        if not ready or self._held_back:
            self._resume(ready)
            if not ready:
                return False
        budget = RUNS_PER_STEP * len(self._scheduled)
        scheduled = self._scheduled
        try:
            while ready and budget and not self.is_closed:
                operator = scheduled[heappop(ready)]
                self.running = operator
                if operator.recorder is None:
                    operator.run()
                else:
                    operator.recorder.run(operator.index, operator.run)
                budget -= 1
                if not ready:
                    self._resume(ready)
        finally:
            self.running = None
            if self.is_closed:
                self.close()
        self._flush()
        return True

    def _resume(self, ready: list[int]) -> None:
        """Schedule the operators that were held back and need no more be; if nothing is ready, others that wait.

        First the last of those that have more to send; when there is none, those without inputs.
        """
        if self._held_back:
            for rank in [rank for rank in self._held_back if not self._is_full_behind(rank)]:
                self._held_back.discard(rank)
                self.activate(self._scheduled[rank])
        if self._partway and not ready:
            heappush(ready, -heappop(self._partway))
        elif self._put_off and not ready and not self.host.is_congested:
            while self._put_off:
                heappush(ready, self._put_off.pop())

    @property
    def is_idle(self) -> bool:
        """Whether no operator is waiting to run."""
        waiting = self._ready or self._partway or self._put_off or self._held_back
        return not waiting and not self.protocol.dirty

    @property
    def is_complete(self) -> bool:
        """Whether nothing can happen here any more: no capability, no message, on any worker."""
        waiting = self._ready or self._partway or self._put_off
        return self.tracker.is_idle and not waiting and not self.protocol.holding

    def close(self) -> None:
        """Let go of what operators hold outside this dataflow (traces, files).

        Called by one of its operators, it waits for that one to return, whose changes are told to all as one.
        """
        self.is_closed = True
        if self.running is not None:
            return
        self._ready.clear()
        self._partway.clear()
        self._put_off.clear()
        self._held_back.clear()
        for _, ledger in self._counted:
            ledger.close()
        callbacks, self._on_complete = self._on_complete, []
        close_all(callbacks)

    def _flush(self) -> None:
        """Pass on changes and take in what they do to frontiers, until neither has anything for the other."""
        self._propagate()
        while (changes := self.protocol.flush()) is not None:
            self._send_progress(changes)
            self._propagate()

    def _send_progress(self, changes: Changes) -> None:
        """Send changes to those who must be sent them, by whom all others hear of them."""
        if self.recorder is not None:
            self.recorder.sent_progress(changes)
        message = Progress(self.index, changes)
        for peer in self.protocol.targets:
            self.host.allocator.send(peer, message)

    def _propagate(self) -> None:
        """Take in what is known of progress, and schedule the operators that ask for a frontier that changed."""
        changed = self.tracker.propagate()
        if not changed:
            return
        if self.recorder is not None:
            self.recorder.frontiers_moved(changed, self.tracker, self.describe)
        listeners = self._listeners
        for location in changed:
            for operator in listeners[location]:
                if operator.waits and not operator.active:
                    operator.active = True
                    heappush(self._ready, operator.rank)
        if self._followers:
            for location in changed:
                for callback in tuple(self._followers.get(location, ())):
                    callback()
