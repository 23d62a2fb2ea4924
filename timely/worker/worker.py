"""A worker: one thread's share of every dataflow.

All workers build the same dataflows in the same order; each holds all operators and a share of the data. A step takes
in what has arrived (`intake`), makes the calls that are due (`requests`), runs the operators that are ready, and sends
what changed. Three things block: a wait for something to arrive; `explain`, for `patience`; and, for 5 seconds at most,
a step or the end of `dataflow` that finds that a peer built another dataflow and asks what differs (`shapes`).
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import get_ident

from timely.arguments import check_functions, check_whole
from timely.closing import close_all
from timely.communication.allocator import Allocator
from timely.config import Config
from timely.dataflow.activator import Activator
from timely.dataflow.dataflow import Dataflow
from timely.dataflow.explain import EVERYWHERE, PATIENCE, explain, refusals
from timely.dataflow.operator import Operator
from timely.dataflow.outstanding import Outstanding
from timely.dataflow.recording import record
from timely.dataflow.stream import Scope
from timely.errors import BuildError, StalledError
from timely.observe.activity import PARKED, STEPPING, Activity
from timely.observe.events import Parked, Unparked
from timely.observe.log import Log
from timely.progress.due import Agenda
from timely.worker.dataflows import Dataflows
from timely.worker.explaining import Explainer
from timely.worker.garbage import paused
from timely.worker.intake import Intake
from timely.worker.requests import Requests
from timely.worker.shapes import Shapes
from timely.worker.standstill import Standstill


class Worker:
    """Builds dataflows and runs them, step by step.

    >>> def program(worker):
    ...     with worker.dataflow("square") as scope:
    ...         numbers, stream = new_input(scope)
    ...         squares = stream.map(lambda x: x * x).inspect(print).probe()
    ...     for epoch in range(3):
    ...         numbers.send(epoch)
    ...         numbers.advance_to(epoch + 1)
    ...         worker.step_while(lambda: squares.less_than(epoch + 1))
    ...     return f"{worker} has answered {epoch + 1} epochs"
    >>> execute_directly(program)
    0
    1
    4
    'worker 0 of 1 has answered 3 epochs'
    """

    def __init__(self, allocator: Allocator, config: Config) -> None:
        self.allocator = allocator
        self.config = config
        self.index = allocator.index
        self.peers = allocator.peers
        self.activity = Activity()
        self.log = Log(self.index)
        self.outstanding = Outstanding(self.peers, config.queue_bytes, allocator.send)
        self.shapes = Shapes(allocator)
        self.agenda = Agenda()
        self._dataflows = Dataflows(self.agenda)
        self._requests = Requests(allocator.wake, config)
        self.standstill = Standstill(self, self._dataflows, self._requests)
        self.explainer = Explainer(self, self._dataflows, self.standstill.has_lasted, self.take_in)
        self._intake = Intake(self, self._dataflows, self.shapes, self.explainer)
        self._is_building = False
        self._has_parted = False

    def __str__(self) -> str:
        return f"worker {self.index} of {self.peers}"

    def __repr__(self) -> str:
        return f"<{self}>"

    @contextmanager
    def dataflow(self, name: str = "dataflow", *, outer: int = 1) -> Iterator[Scope]:
        """Open the outermost scope of a new dataflow; it starts to run when the `with` block is left.

        `outer` is the number of coordinates of its times. Raises BuildError while another dataflow is being built, if
        `outer` is not a whole number of at least 1, and if the run of this worker and its peers has ended.

        >>> def program(worker):
        ...     with worker.dataflow("bitemporal", outer=2) as scope:
        ...         facts, stream = new_input(scope)
        ...         stream.inspect_time(print)
        ...     facts.advance_to((2026, 3))
        ...     facts.send("known in 2026 of month 3")
        >>> execute_directly(program)
        (2026, 3) known in 2026 of month 3
        """
        if self._has_parted:
            raise BuildError(self._parted())
        self._refuse_elsewhere(f"builds dataflow {name!r}")
        if self._is_building:
            raise BuildError("a dataflow is already being built: open one `with worker.dataflow()` at a time")
        check_whole(f"dataflow {name!r}", 1, outer=outer)
        dataflow = Dataflow(self, self.built, name)
        self._is_building = True
        try:
            with paused():
                yield Scope(dataflow, None, name, int(outer), iterative=False)
                dataflow.finish()
                record(dataflow)
                dataflow.start()
        except BaseException:
            dataflow.abandon()
            raise
        finally:
            self._is_building = False
        self._dataflows.add(dataflow)
        self.shapes.announce(dataflow)  # first: a peer's early messages are for its own dataflow, which may differ
        self._intake.deliver_early(dataflow)

    @property
    def is_congested(self) -> bool:
        """Whether more than `Config.queue_bytes` wait for operators, or for the network, so that inputs should wait."""
        return bool(self.outstanding.over) or self.allocator.congested

    @property
    def dataflows(self) -> list[Dataflow]:
        """The dataflows that are not complete."""
        return list(self._dataflows.running.values())

    @property
    def built(self) -> int:
        """How many dataflows have been built."""
        return self._dataflows.built

    def step(self) -> bool:
        """Do what can be done now, without waiting. Return whether any dataflow is still incomplete.

        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         numbers, stream = new_input(scope)
        ...         stream.exchange().inspect(print)
        ...     numbers.send(1)
        ...     numbers.flush()
        ...     print("open:", worker.step())
        ...     numbers.close()
        ...     print("open:", worker.step())
        >>> execute_directly(program)
        1
        open: True
        open: False
        """
        self._step()
        return bool(self._dataflows.running)

    def step_or_park(self, timeout: float | None = None) -> bool:
        """Do what can be done now. If that is nothing, wait for something to arrive, for `timeout` seconds at most.

        Return whether any dataflow is still incomplete.

        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         scope.to_stream([1, 2]).inspect(print)
        ...     while worker.step_or_park(timeout=0.1):
        ...         pass  # a program may look at other things between
        >>> execute_directly(program)
        1
        2
        """
        if not self._step() and self._dataflows.running:
            self._park(timeout)
        return bool(self._dataflows.running)

    def step_while(self, condition: Callable[[], bool]) -> None:
        """Step as long as `condition()` holds, and wait whenever there is nothing to do.

        Raises `StalledError` when nothing can ever make the condition false: a worker without peers and without
        activators has nothing left to do. Raises `DataflowFailed` instead if an error has ended one of its dataflows.

        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         numbers, stream = new_input(scope)
        ...         probe = stream.probe()
        ...     numbers.advance_to(3)
        ...     worker.step_while(lambda: probe.less_than(3))
        ...     worker.step_while(lambda: probe.less_than(4))
        >>> execute_directly(program)
        Traceback (most recent call last):
        ...
        timely.errors.StalledError: nothing is left to do, but the condition of step_while still holds ...
        """
        if not callable(condition):
            check_functions("step_while", condition=condition)
        self.activity.waits += 1
        while condition():
            if not self._step() and condition():
                if self.peers == 1 and self.is_stalled and not self.may_be_woken:
                    self._refuse_to_wait(
                        "the condition of step_while still holds (was an input not advanced or closed?)"
                    )
                self._park(None)

    def complete(self) -> None:
        """Step until all dataflows are complete. What runs a worker calls this when the program has returned.

        Raises `StalledError` where they never will be: on a worker without peers, activators and other threads.

        >>> found = []
        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         scope.to_stream([1, 2]).inspect(found.append)
        ...     worker.complete()
        ...     return found, worker.dataflows
        >>> execute_directly(program)
        ([1, 2], [])
        """
        while True:
            busy = self._step()
            if not self._dataflows.running:
                return
            if not busy:
                if self.standstill.is_certain():
                    self._refuse_to_wait(
                        "the program has returned, and its dataflows are not complete (was a capability not dropped?)"
                    )
                self._park(None)

    def activator(self, operator: Operator) -> Activator:
        """Return a function that schedules `operator`, at once or later, and wakes this worker; for any thread.

        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         numbers, stream = new_input(scope)
        ...         builder = OperatorBuilder(scope, "bell")
        ...         builder.add_input(stream, Pipeline())
        ...         builder.build(lambda _: lambda: print("ding"))
        ...     worker.step()
        ...     activate = worker.activator(builder.operator)
        ...     activate()
        ...     worker.step()
        >>> execute_directly(program)
        ding
        ding
        """
        return Activator(operator)

    @property
    def may_be_woken(self) -> bool:
        """Whether something outside may activate an operator of this worker."""
        return self._dataflows.may_be_woken

    def call(self, function: Callable[[], None]) -> None:
        """Call `function` in this worker's next step, and wake the worker; any thread may ask for this.

        `step_while` does not wait for it: it raises `StalledError` if nothing else is left to do. `step_or_park` waits.

        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         numbers, stream = new_input(scope)
        ...         stream.inspect(print)
        ...     Thread(target=lambda: worker.call(lambda: (numbers.send(7), numbers.close()))).start()
        ...     while worker.step_or_park():  # it sleeps until the other thread wakes it
        ...         pass
        >>> from threading import Thread
        >>> execute_directly(program)
        7
        """
        self._requests.call(function)

    def call_after(self, seconds: float, function: Callable[[], None]) -> None:
        """Call `function` in this worker's first step after `seconds`; any thread may ask for this.

        The worker wakes up for the call. Raises ValueError unless `seconds` is a finite number.

        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         numbers, stream = new_input(scope)
        ...         probe = stream.probe()
        ...     worker.call_after(0.001, numbers.close)
        ...     worker.step_while(lambda: not probe.done())
        ...     return "closed"
        >>> execute_directly(program)
        'closed'
        """
        self._requests.call_after(seconds, function)

    def when_idle(self, chore: Callable[[], bool]) -> None:
        """Call `chore`, for a bounded piece of work, in steps that run no operator, until it returns False.

        Each such step calls one chore, in turn; with peers in other processes, after 100 µs of quiet. The worker does
        not sleep while it has any. A dataflow may be complete before. Only this thread, or garbage collection, may ask.

        >>> def program(worker):
        ...     with worker.dataflow() as scope:
        ...         numbers, stream = new_input(scope)
        ...         stream.inspect(print)
        ...     pieces = ["swept", "dusted"]
        ...     def chore():
        ...         print(pieces.pop())
        ...         return bool(pieces)
        ...     worker.when_idle(chore)
        ...     numbers.send(1)
        ...     numbers.flush()
        ...     for _ in range(3):
        ...         worker.step()
        >>> execute_directly(program)
        1
        dusted
        swept
        """
        self._requests.chores.append(chore)

    def drop_dataflow(self, dataflow: Dataflow | int) -> None:
        """Forget a dataflow, complete or not. All workers must drop it.

        Its inputs are closed. An operator that drops its own dataflow is the last to run there. Raises BuildError for a
        dataflow of another worker, and for a number that no dataflow has had.

        >>> def program(worker):
        ...     with worker.dataflow("endless") as scope:
        ...         numbers, stream = new_input(scope)
        ...     worker.drop_dataflow(scope.dataflow)
        ...     return numbers.is_closed, worker.dataflows
        >>> execute_directly(program)
        (True, [])
        """
        self._refuse_elsewhere("drops a dataflow")
        if isinstance(dataflow, Dataflow) and dataflow.host is self:
            self._dataflows.drop(dataflow.index)
        elif type(dataflow) is not int:
            raise BuildError(f"worker {self.index} cannot drop {dataflow!s:.80}, which is not a dataflow of its own")
        elif 0 <= dataflow < self.built:
            self._dataflows.drop(dataflow)
        else:
            raise BuildError(f"worker {self.index} cannot drop dataflow {dataflow}: it has built {self.built}")

    def close_inputs(self) -> bool:
        """Close the inputs that the program left open, on which only this thread could send. Return whether it did."""
        were_open = False
        for dataflow in self.dataflows:  # a copy, for what is still sent may make an operator drop a dataflow
            were_open |= dataflow.close_inputs()
        if self.log.is_idle:
            self.log.end()
        return were_open

    def close(self) -> None:
        """Drop all dataflows. The function that runs a worker, such as `execute`, calls this at the end.

        A worker with peers has parted from them and cannot be used again; a single worker can.

        >>> from timely.run.execute import local_allocators
        >>> worker = Worker(*local_allocators(Config()), Config())
        >>> with worker.dataflow("endless") as scope:
        ...     numbers, stream = new_input(scope)
        >>> worker.close()
        >>> numbers.is_closed, worker.dataflows
        (True, [])
        """
        self._has_parted = self.peers > 1
        close_all([*(partial(self.drop_dataflow, dataflow) for dataflow in self.dataflows), self.log.end])

    def explain(self, *, patience: float = PATIENCE) -> str:
        """Return, for people, what every incomplete dataflow is waiting for, and what was refused, if anything was.

        The other workers have `patience` seconds to answer. With 0 they are not asked; what they hold is only counted.

        >>> def program(worker):
        ...     with worker.dataflow("numbers") as scope:
        ...         numbers, stream = new_input(scope, name="numbers")
        ...         stream.probe()
        ...     worker.step()
        ...     return worker.explain()
        >>> print(execute_directly(program))
        dataflow 0 ('numbers') is kept from completing by:
          a capability for (0,) on output 0 of operator 'numbers' (built at ...), made at ..., worker 0
        """
        texts = [explain(dataflow, EVERYWHERE, (), patience) for dataflow in self.dataflows]
        return "\n".join([*(texts or ["all dataflows are complete"]), *refusals(self)])

    def take_in(self) -> bool:
        """Take in what has arrived, running nothing. Return whether there was more than questions and answers."""
        return self._intake.take_in()

    def _refuse_elsewhere(self, what: str) -> None:
        """Raise BuildError in another thread than the worker's; `what` is what the worker would do there."""
        if self.activity.is_elsewhere():
            raise BuildError(f"{self} {what} in another thread than its own: there, use worker.call(function)")

    def _step(self) -> bool:
        """Return whether anything was done."""
        if self._has_parted:
            raise StalledError(self._parted())
        if get_ident() != self.activity.thread:
            self._refuse_elsewhere("is stepped")
        activity = self.activity
        activity.step_began = clock.monotonic()
        before, activity.doing = activity.doing, STEPPING
        try:
            incoming, requests = self.allocator.incoming, self._requests
            busy = (incoming is None or len(incoming) > 0) and self._intake.take_in()
            if (requests.calls or requests.timers) and requests.run(self.activity.step_began):
                busy = True
            has_run, has_changed = self._dataflows.step()
            busy = busy or has_run or has_changed
            if busy:
                self.activity.slept, requests.busy_at = 0.0, self.activity.step_began
            if requests.chores and not has_run:
                requests.tend(self.activity.step_began)
                busy = True
        finally:
            activity.doing = before
        if self.log.pending:
            self.log.flush()
        return busy

    def _park(self, timeout: float | None) -> None:
        if self._requests.timers:
            timeout = self._requests.limit(timeout)
        log, activity = self.log, self.activity
        before, activity.doing = activity.doing, PARKED  # not `during`, which takes longer: this is for each message
        try:
            if not log.kinds:
                self.standstill.park(timeout)
                return
            log.record(Parked(begun := log.now(), self.index))
            log.flush()
            self.standstill.park(timeout)
            log.record(Unparked(ended := log.now(), self.index, ended - begun))
        finally:
            activity.doing = before

    def _refuse_to_wait(self, why: str) -> None:
        """Raise StalledError, or DataflowFailed if an error has ended a dataflow."""
        for dataflow in self.dataflows:
            dataflow.refuse_if_failed()
        raise StalledError(f"nothing is left to do, but {why}\n{self.explain()}")

    def _parted(self) -> str:
        return (
            f"{self} has ended with its run, and parted from its peers: build and step dataflows in the function that "
            "execute runs (a single worker, such as execute_directly makes, can be used after its run)"
        )

    @property
    def is_stalled(self) -> bool:
        """Whether nothing will happen on this worker unless someone outside acts."""
        return self._requests.is_empty and self._dataflows.is_idle
