"""One dataflow on one worker: what runs of its plan, its progress tracker, and a scheduling step.

While a program describes a dataflow, the `Plan` grows. Then the plan is laid out (`layout`, `compose`), which decides
at which places progress is counted. What runs are the operators and ports that were made on the way, which now learn
their locations; the tracker, which computes frontiers from counts; and the protocol, which exchanges changes of counts
with the other workers.

A step applies what is known of progress, runs the operators that have messages or a frontier that moved, in topological
order, and sends the net changes of counts as one atomic batch. Invariant: no change of a step reaches the tracker, or
another worker, before the operator that makes it has returned. So no frontier moves while an operator runs. Without
peers, progress is also applied before a region runs, so that it can complete the times that a source has just passed.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter

from timely.communication.message import ProgressUpdate
from timely.dataflow.arrivals import Arrivals
from timely.dataflow.compose import compose
from timely.dataflow.core import DataflowCore
from timely.dataflow.host import Host
from timely.dataflow.inline import Inline
from timely.dataflow.layout import Layout, plain
from timely.dataflow.operator import Operator
from timely.dataflow.outstanding import Ledger
from timely.dataflow.plan import Node
from timely.dataflow.ports import InputPort
from timely.dataflow.region import Loop, Region
from timely.dataflow.schedule import Schedulable
from timely.dataflow.sections import Section
from timely.errors import BuildError
from timely.order import Changes
from timely.progress.accumulation import Route
from timely.progress.graph import Edge
from timely.progress.protocol import Protocol
from timely.progress.reachability import Tracker
from timely.progress.static import StaticProgress

RUNS_PER_STEP = 4
"""How often, on average, an operator may run in one step before progress is looked at again."""


class Dataflow(DataflowCore):
    """A dataflow under construction, then running."""

    def __init__(self, host: Host, index: int, name: str) -> None:
        super().__init__(host, index, name)
        self.operators: list[Operator] = []
        self.channels: list[InputPort] = []
        self.inlines: list[Inline] = []
        """The functions that run in line with what they consume."""
        self.regions: list[Region] = []
        """What runs several operators as one."""
        self.has_moved = False
        """Whether a frontier had moved when the last step began."""

    # Building

    def add_operator(self, operator: Schedulable) -> None:
        assert isinstance(operator, Operator)
        self.operators.append(operator)

    def add_channel(self, port: object) -> int:
        assert isinstance(port, InputPort)
        self.channels.append(port)
        return len(self.channels) - 1

    def add_function(self, function: object) -> int:
        assert isinstance(function, Inline)
        self.inlines.append(function)
        return len(self.inlines) - 1

    def finish(self) -> None:
        """Turn what was described into something that runs."""
        plan, config = self.plan, self.host.config
        plan.freeze()
        ranks = plan.ranks()
        route = Route.of(self.worker_index, self.peers // config.workers, config.workers, config.accumulation)
        in_order, regions = route.is_direct, not config.general
        layout = plain(plan) if self.is_plain else compose(plan, in_order=in_order, regions=regions)
        places = [*plan.places, *[region.place for region in layout.regions]]
        self._places = [places[place] for place in layout.places]
        self._locations = {place: location for location, place in enumerate(layout.places)}
        number = self._locations
        widths = [place.scope.width for place in self._places]
        edges = [Edge(number[source], number[target], summary) for source, target, summary in layout.edges]
        self.tracker = Tracker(widths, edges, self.describe, self.due)
        self.protocol = Protocol(self.tracker, config.progress, route)
        self.update = self.protocol.update
        self._lay_out(layout, ranks)
        self.arrivals = Arrivals(self, self.channels, route.sources, widths)
        self.resolve_tees()

    def _lay_out(self, layout: Layout, ranks: list[int]) -> None:
        """Give ports their locations, and operators their order and what activates them."""
        number = self._locations
        for operator in self.operators:
            if operator.index not in layout.in_line:  # before tees are resolved: `pusher` looks at `inline`
                operator.inline = None
        self._listeners = [[] for _ in number]
        self._found_regions(layout)  # first: it states which operators have a region
        alone = [operator for operator in self.operators if operator.inline is None and operator.region is None]
        ranked: list[tuple[int, Schedulable]] = [(_rank(operator, ranks), operator) for operator in alone]
        # A region ranks after everything that feeds one of its operators, but for feedback. What consumes an early one
        # may rank before the region, and then runs again when the region has emitted.
        ranked += [(max([_rank(operator, ranks) for operator in region.members]), region) for region in self.regions]
        self.schedule.start([each for _, each in sorted(ranked, key=itemgetter(0))])
        # What runs in line holds no capability and queues no message, so its ports need no location.
        for operator in alone:
            for output in operator.outputs:
                output.locate(number[output.place], self.update)
            for port in operator.inputs:
                followed = [(number[place], summary) for place, summary in layout.followed.get(port.place, ())]
                port.locate(number[layout.counted_at.get(port.place, port.place)], self.update, followed)
                if port.interest:
                    for location, _ in port.sources:
                        self._listeners[location].append(operator)
        for scheduled in self.schedule.operators:
            self._count_outstanding(scheduled)

    def _count_outstanding(self, scheduled: Schedulable) -> None:
        """Count what is outstanding at the inputs of what the schedule runs."""
        for operator in scheduled.members if isinstance(scheduled, Region) else [scheduled]:
            assert isinstance(operator, Operator)
            for port in operator.inputs:
                if port.spreads or (not port.drains and operator.region is None):
                    port.ledger = Ledger(self.outstanding, self.worker_index, self.peers, self.index, port.channel)
                    self.schedule.count(scheduled, port.ledger)

    def _found_regions(self, layout: Layout) -> None:
        """Make the regions, with their operators in them."""
        number = self._locations
        of_node = {operator.node: operator for operator in self.operators}
        for section, hub, _, sources, partial in layout.regions:
            location = number[hub]
            region = Region(self, _loop(section, None, of_node))
            region.locate(location, [(number[place], summary) for place, summary in sources])
            for operator in region.members:
                assert operator.progress is not None
                update = operator.progress.update
                for output in operator.outputs:
                    output.locate(location, update)
                for port in operator.inputs:
                    port.locate(location, update, [(number[place], None) for place in partial.get(port.inlet, ())])
            for source, _ in sources:
                self._listeners[number[source]].append(region)
            self.regions.append(region)

    def start(self) -> None:
        """Begin to run: count the capability that every worker holds at each output that starts with one."""
        # Every worker counts the capabilities of all workers, so the protocol need not send these. No region has one: a
        # static operator promises to hold only what results from messages.
        for operator in self.operators:
            for output in operator.outputs:
                if output.initial:
                    self.tracker.update(output.location, operator.scope.minimum, self.peers)
        for constructor in self._constructors:
            constructor()
        self._constructors.clear()
        self._propagate()  # before the first step, a program may ask a probe, whose frontier would be empty

    def resolve_tees(self) -> None:
        """Let each stream's tee look up what its consumers want to be called."""
        for tee in self._tees:
            tee.resolve()

    def is_in_loop(self, location: int) -> bool:
        """Return whether the times of a tracked location have a loop counter."""
        scope = self.scope_of(location)
        return scope.width > scope.outer

    def producers(self) -> list[tuple[int, ...]]:
        """Return, for each channel, the operators that what arrives there comes from."""
        in_line = {operator.index for operator in self.operators if operator.inline is not None}
        return self.plan.producers([port.place for port in self.channels], in_line)

    def shape(self) -> tuple[str, ...]:
        """Return what must be the same on every worker (see `Plan.shape`)."""
        lines = [f"operator {each.name!r} (in line) in {each.scope.path}\t{each.origin}" for each in self.inlines]
        return self.plan.shape(self.name, lines)

    # Running

    @property
    def may_be_woken(self) -> bool:
        """Whether something outside may make an operator do anything: a source without capabilities never does."""
        return any(
            operator.inputs or not operator.outputs or any(output.live for output in operator.outputs)
            for operator in self._activated
            if isinstance(operator, Operator)
        )

    def receive(self, sender: int, changes: Changes) -> None:
        """Apply a peer's atomic batch of progress, and pass it on to the workers that receive it from this one.

        Raises `FrameError`, and applies nothing of it, where it cannot be meant for this dataflow.
        """
        self.arrivals.check(sender, changes)
        if peers := self.protocol.receive(sender, changes):
            self._pass_on(peers, changes)
        if self.recorder is not None:
            self.recorder.received_progress(changes, sender)

    def step(self) -> bool:
        """Run what is ready. Return whether anything ran; if not, `has_moved` states whether a frontier moved.

        Raises BuildError where one of its own operators calls this, whose changes are not all made yet, or a function
        to which the program sends. After an error or an interrupt nothing runs any more: where peers would wait for
        what is lost, DataflowFailed is raised.
        """
        busy = self.running or self.sending
        if busy is not None:
            raise BuildError(
                f"{busy} steps the worker while it runs, and {self} cannot continue before it returns: "
                "step in the program, or have worker.call() do what needs steps"
            )
        if self.loss:
            self.has_moved = False
            self.schedule.close()  # what is queued is never taken: it must not keep other dataflows waiting for room
            if self.peers == 1:
                return False
            self.refuse_if_failed()
        try:
            return self._step()
        except BaseException as error:
            self.lose(error)
            raise

    def _step(self) -> bool:
        self.has_moved = self._flush()
        schedule = self.schedule
        if not schedule.is_ready and not schedule.resume():
            return False
        budget = RUNS_PER_STEP * len(schedule.operators)
        try:
            while budget and not self.is_closed:
                operator = schedule.next()
                if operator is None:
                    if not schedule.resume():
                        break
                    continue
                self.running = operator
                if isinstance(operator, Region):
                    if self.peers == 1 and self.tracker.is_behind:
                        self._propagate()  # a source has run before it: now its operators can answer at once
                    operator.run()  # it records what its operators do
                    budget -= 1
                    continue
                assert isinstance(operator, Operator)
                if operator.recorder is None:
                    operator.run()
                else:
                    operator.recorder.run(operator.index, operator.run)
                budget -= 1
        finally:
            self.running = None
            if self.is_closed:  # by an operator that ran, for whose return `close` has waited
                self.close()
        self._flush()
        return True

    @property
    def is_idle(self) -> bool:
        """Whether a step would do nothing: no operator waits to run, and no progress to be applied or sent."""
        return bool(self.loss) or (self.schedule.is_idle and not self.protocol.dirty)

    @property
    def is_complete(self) -> bool:
        """Whether nothing can happen here any more: no capability, no message, on any worker."""
        return self.tracker.is_idle and self.schedule.is_empty and not self.protocol.holding

    def _flush(self) -> bool:
        """Send changes and apply what they do to frontiers, until neither has anything for the other.

        Return whether a frontier moved.
        """
        has_moved = self._propagate()
        # What a root sends is in its own view, too, so it may move frontiers here.
        while (changes := self.protocol.flush()) is not None:
            self._send_progress(changes)
            has_moved = self._propagate() or has_moved
        return has_moved

    def flush_to_peers(self) -> None:
        """Send changes that peers may wait for, made since the last step. The next one applies what they do here."""
        if self.loss or self.running is not None or self.sending is not None:
            return
        try:
            changes = self.protocol.flush()
            if changes is not None:
                self._send_progress(changes)
        except BaseException as error:
            self.lose(error)
            raise

    def _send_progress(self, changes: Changes) -> None:
        """Send changes to the workers that receive them from this one; these pass them on to all others."""
        sent = self._pass_on(self.protocol.targets, changes)
        if self.recorder is not None:
            self.recorder.sent_progress(changes, sent)

    def _pass_on(self, peers: tuple[int, ...], changes: Changes) -> int:
        """Send changes to peers; return how many bytes they took on the wire, which is known where they are encoded."""
        allocator, message = self.host.allocator, ProgressUpdate(self.index, changes)
        before = allocator.progress_bytes
        for peer in peers:
            allocator.send(peer, message)
        sent = allocator.progress_bytes - before
        self.protocol.count_bytes(sent)
        return sent

    def _propagate(self) -> bool:
        """Compute frontiers from the counts, and schedule the operators that ask for a frontier that changed.

        Return whether any changed.
        """
        changed = self.tracker.propagate()
        if not changed:
            return False
        if self.recorder is not None:
            self.recorder.frontiers_moved(changed, self.tracker, self.describe)
        listeners, schedule = self._listeners, self.schedule
        for location in changed:
            for operator in listeners[location]:
                schedule.wake(operator)
        followers = self._followers
        if followers:
            moved: dict[Callable[[list[int]], None], list[int]] = {}
            for location in changed:
                if location in followers:
                    for callback in followers[location]:
                        moved.setdefault(callback, []).append(location)
            for callback, locations in moved.items():
                callback(locations)
        return True


def _rank(operator: Operator, ranks: list[int]) -> int:
    """Return the place of an operator in topological order, by those of its ports."""
    return max([ranks[port.place] for port in operator.outputs or operator.inputs])


def _loop(section: Section, outside: StaticProgress | None, operators: dict[Node, Operator]) -> Loop:
    """Return the loop of a section and of those inside it, with the operators of their nodes."""
    made = Loop(StaticProgress(outside, section.scope.width))
    for place, item in enumerate(section.items):
        if isinstance(item, Node):
            operator = operators[item]
            operator.settle(made.progress, place)
            made.add(operator)
        else:
            made.add(_loop(item, made.progress, operators))
    return made
