"""A worker: one thread's share of every dataflow.

All workers build the same dataflows in the same order; each holds all operators and a share of the data. A step takes
in what has arrived, runs what is ready, and passes on what changed. Nothing here blocks but `park`, and what waits for
an answer: `explain`, for `patience`, and a step or the end of `dataflow` that finds a peer's dataflow to be another,
for 5 seconds at most, to say what differs (`shapes`).
"""

from __future__ import annotations

import gc
import time as clock
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import isfinite
from numbers import Integral

from timely.closing import close_all
from timely.communication.allocator import Allocator
from timely.communication.message import Answer, Data, Message, Progress, Question, Shape, Taken
from timely.config import Config
from timely.data.container import weight_of
from timely.dataflow.activator import Activator
from timely.dataflow.dataflow import Dataflow
from timely.dataflow.explain import EVERYWHERE, PATIENCE, explain, refusals
from timely.dataflow.operator import Operator
from timely.dataflow.outstanding import Outstanding
from timely.dataflow.recording import record
from timely.dataflow.stream import Scope
from timely.errors import BuildError, FrameError, StalledError
from timely.observe.activity import PARKED, STEPPING, Activity
from timely.observe.events import Parked, Unparked
from timely.observe.log import Log
from timely.worker.explaining import Explainer
from timely.worker.garbage import thaw
from timely.worker.shapes import Shapes
from timely.worker.standstill import Standstill

REMEMBERED = 1024
"""Of so many dropped dataflows a worker knows that they were."""


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
        self._dataflows: dict[int, Dataflow] = {}
        self.built = 0
        """How many dataflows have been built."""
        self.abandoned: deque[int] = deque(maxlen=REMEMBERED)
        """The numbers of those that were last dropped before they were complete, for who still waits for one."""
        self.activity = Activity()
        self.log = Log(self.index)
        self.explainer = Explainer(self)
        self.standstill = Standstill(self)
        self.outstanding = Outstanding(self.peers, config.queue_bytes, allocator.send)
        self._early: dict[int, list[tuple[int, Data | Progress]]] = {}
        self.shapes = Shapes(allocator)
        self._requests: deque[Callable[[], None]] = deque()
        self._building = False
        self._has_parted = False
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._timed = count()
        self._chores: deque[Callable[[], bool]] = deque()

    def __str__(self) -> str:
        return f"worker {self.index} of {self.peers}"

    def __repr__(self) -> str:
        return f"<{self}>"

    @contextmanager
    def dataflow(self, name: str = "dataflow", *, outer: int = 1) -> Iterator[Scope]:
        """Open the outermost scope of a new dataflow; it starts to run when the `with` block is left.

        `outer` is the number of coordinates of its times. Raises BuildError while another dataflow is being built,
        where `outer` is no whole number of at least 1, and where this worker and its peers have ended with their run.

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
        if self._building:
            raise BuildError("a dataflow is being built already: one `with worker.dataflow()` at a time")
        if not isinstance(outer, Integral) or outer < 1:
            raise BuildError(
                f"a time of dataflow {name!r} has at least one coordinate, so `outer` cannot be {outer!r:.80}"
            )
        dataflow = Dataflow(self, self.built, name)
        self._building = True
        try:
            with _no_search_for_garbage():
                yield Scope(dataflow, None, name, outer, iterative=False)
                dataflow.finish()
                record(dataflow)
                dataflow.start()
        except BaseException:
            dataflow.close()
            raise
        finally:
            self._building = False
        self.built += 1
        self._dataflows[dataflow.index] = dataflow
        self.shapes.announce(dataflow)
        for sender, message in self._early.pop(dataflow.index, ()):
            self._receive(sender, message)

    @property
    def is_congested(self) -> bool:
        """Whether more than `Config.queue_bytes` wait for operators, or for the network, so that inputs should wait."""
        return bool(self.outstanding.over) or self.allocator.congested

    @property
    def dataflows(self) -> list[Dataflow]:
        """The dataflows that are not complete."""
        return list(self._dataflows.values())

    def step(self) -> bool:
        """Do what there is to do now, without waiting. Return whether any dataflow is still incomplete.

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
        return bool(self._dataflows)

    def step_or_park(self, timeout: float | None = None) -> bool:
        """Do what there is to do; if there was nothing, wait for something to arrive, for `timeout` seconds at most.

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
        if not self._step() and self._dataflows:
            self._park(timeout)
        return bool(self._dataflows)

    def step_while(self, condition: Callable[[], bool]) -> None:
        """Step, waiting where there is nothing to do, as long as `condition()` holds.

        Raises `StalledError` when nothing can ever make the condition false: a worker without peers and without
        activators has nothing left to do.

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
        while condition():
            # A step that runs no operator may still have moved a frontier.
            if not self._step() and condition():
                if self.peers == 1 and self.is_stalled and not self.may_be_woken:
                    raise self._stalled()
                self._park(None)

    def activator(self, operator: Operator) -> Activator:
        """Return what schedules `operator`, at once or later, and wakes this worker; any thread may call it.

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
        return any(dataflow.may_be_woken for dataflow in self._dataflows.values())

    def call(self, function: Callable[[], None]) -> None:
        """Have this worker call `function` when it next steps, and wake it; any thread may ask for this.

        `step_while` does not wait for it, and raises `StalledError` where nothing else is left to do: it cannot know
        that another thread is going to ask. `step_or_park` waits.

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
        self._requests.append(function)
        self.allocator.wake()

    def call_after(self, seconds: float, function: Callable[[], None]) -> None:
        """Have this worker call `function` in its first step after `seconds`; any thread may ask for this.

        Until then the worker does not sleep longer than that. Raises ValueError where that is no finite number.

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
        if not isfinite(seconds):
            raise ValueError(f"call_after takes a finite number of seconds, and not {seconds}")
        timer = (clock.monotonic() + seconds, next(self._timed), function)
        self.call(lambda: heappush(self._timers, timer))

    def when_idle(self, chore: Callable[[], bool]) -> None:
        """Call `chore`, for a bounded piece of work, in steps that run no operator, until it returns False.

        Each such step calls one chore, by turns. While there are any, the worker does not sleep. A dataflow does not
        wait for them to be complete. Chores are asked for by this thread, or by what Python's garbage collector calls.

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
        self._chores.append(chore)

    def drop_dataflow(self, dataflow: Dataflow | int) -> None:
        """Forget a dataflow, complete or not. All workers must drop it.

        Its inputs are closed. An operator that drops its own dataflow is the last to run there.

        >>> def program(worker):
        ...     with worker.dataflow("endless") as scope:
        ...         numbers, stream = new_input(scope)
        ...     worker.drop_dataflow(scope.dataflow)
        ...     return numbers.is_closed, worker.dataflows
        >>> execute_directly(program)
        (True, [])
        """
        index = dataflow if isinstance(dataflow, int) else dataflow.index
        dropped = self._dataflows.pop(index, None)
        if dropped is not None:
            if not dropped.is_complete:
                self.abandoned.append(index)
            dropped.close()
            thaw()

    def close_inputs(self) -> None:
        """Close the inputs that the program left open: only this thread could have sent on them."""
        for dataflow in self.dataflows:  # what is still sent may have an operator drop one
            dataflow.close_inputs()
        if self.log.is_idle:
            self.log.end()

    def close(self) -> None:
        """Let go of all dataflows. Whoever runs a worker (`execute` does) calls this when it is done with it.

        One with peers has parted from them, and cannot be used again; a single one can.

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

        Other workers are asked, and given `patience` seconds to answer; with 0 they are not, and only counted.

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
        arrived = self.allocator.receive()
        moved = False
        for sender, message in arrived:
            self._receive(sender, message)
            moved = moved or not isinstance(message, (Question, Answer))
        if moved:
            self.activity.slept = 0.0
        return moved

    def dataflow_at(self, index: int) -> Dataflow | None:
        """Return the dataflow with this number, if it runs."""
        return self._dataflows.get(index)

    def _step(self) -> bool:
        """Return whether anything was done."""
        if self._has_parted:
            raise StalledError(self._parted())
        activity = self.activity
        activity.step_began = clock.monotonic()
        before, activity.doing = activity.doing, STEPPING
        try:
            busy = self._run()
        finally:
            activity.doing = before
        if self.log.pending:
            self.log.flush()
        return busy

    def _run(self) -> bool:
        busy = self.take_in()
        left = len(self._requests)  # what these ask for is for the next step
        while self._requests and left:  # one that steps the worker has it do the others meanwhile
            left -= 1
            self._requests.popleft()()
            busy = True
        while self._timers and self._timers[0][0] <= self.activity.step_began:
            heappop(self._timers)[2]()
            busy = True
        has_run = False
        for dataflow in tuple(self._dataflows.values()):
            if dataflow.index not in self._dataflows:
                continue  # dropped by what ran in another one
            if dataflow.step():
                has_run = busy = True
            if dataflow.is_complete:
                self.drop_dataflow(dataflow)
                busy = True
        if busy:
            self.activity.slept = 0.0
        if self._chores and not has_run:
            chore = self._chores.popleft()
            if chore():
                self._chores.append(chore)
            busy = True
        return busy

    def _park(self, timeout: float | None) -> None:
        if self._timers:
            due = max(0.0, self._timers[0][0] - clock.monotonic())
            timeout = due if timeout is None else min(timeout, due)
        log = self.log
        with self.activity.during(PARKED):
            if not log.kinds:
                self.standstill.park(timeout)
                return
            begun = log.now()
            log.record(Parked(begun, self.index))
            log.flush()
            self.standstill.park(timeout)
            ended = log.now()
            log.record(Unparked(ended, self.index, ended - begun))

    def _receive(self, sender: int, message: Message) -> None:
        """Take in a message; refuse and count one that says what cannot be."""
        try:
            if isinstance(message, (Data, Progress)):
                self._dispatch(sender, message)
            elif isinstance(message, Taken):
                self._settle(sender, message)
            elif isinstance(message, Shape):
                self.shapes.receive(sender, message)
            else:
                assert isinstance(message, (Question, Answer))
                self.explainer.receive(sender, message)
        except FrameError as error:
            self.allocator.refuse(str(error))

    def _dispatch(self, sender: int, message: Data | Progress) -> None:
        """Hand a message to its dataflow, or keep it until that is built; raise `FrameError` if it can be for none."""
        index = message.dataflow
        dataflow = self._dataflows.get(index)
        if dataflow is not None:
            if isinstance(message, Progress):
                dataflow.receive(sender, message.changes)
            else:
                dataflow.arrivals.deliver(sender, message.channel, message.time, message.batch)
        elif index >= self.built:
            # A peer tells of a dataflow's shape when it is built; operators may send when they are made, just before.
            if index > self.shapes.told[sender]:
                kind = "a batch" if isinstance(message, Data) else "progress"
                raise FrameError(f"worker {sender} sent {kind} of dataflow {index}, which it has not built")
            self._early.setdefault(index, []).append((sender, message))
        elif isinstance(message, Data):
            # Nobody takes it any more, and its sender may not have dropped the dataflow yet.
            self.outstanding.take(sender, index, message.channel, weight_of(message.batch))

    def _settle(self, sender: int, taken: Taken) -> None:
        """Heed what another worker has taken; raise `FrameError` for what it cannot have."""
        for index, channel, messages in taken.counts:
            if index in self._dataflows:
                self._dataflows[index].arrivals.settle(sender, channel, messages)
            elif index >= self.built:
                raise FrameError(f"worker {sender} took messages of dataflow {index}, which is not built")

    def _parted(self) -> str:
        return (
            f"{self} has ended with its run, and parted from its peers: what it is to do belongs in the function that "
            "execute is given (a single worker, such as execute_directly makes, can be used after it)"
        )

    def _stalled(self) -> StalledError:
        return StalledError(
            "nothing is left to do, but the condition of step_while still holds "
            f"(was an input not advanced or closed?)\n{self.explain()}"
        )

    @property
    def is_stalled(self) -> bool:
        """Whether nothing will happen on this worker unless someone outside acts."""
        return not (self._requests or self._timers) and all(dataflow.is_idle for dataflow in self._dataflows.values())


@contextmanager
def _no_search_for_garbage() -> Iterator[None]:
    """Pause Python's search for cycles of garbage.

    What is built stays. To look through all of it again and again, while it grows, takes several times as long as to
    build a dataflow of thousands of operators. Where several threads build, the first that is done resumes the search.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
