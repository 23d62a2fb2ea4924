"""A worker's log: who listens to what happens there.

A listener is a function that receives lists of records (`timely.observe.events`), in the order in which they happened:
at the end of each step of the worker, and more often when there are many. It names the kinds it wants; others are not
made.
It runs in the worker's thread and may do what a program may, but not at length.

Nothing is recorded that nobody listens to. While a listener wants what happens inside a dataflow, its operators and
ports have a recorder (`timely.dataflow.recorder`); what remains without listeners is that they look whether they have.

What a dataflow does that itself consumes the log (see `operators.log_stream`) is left out, or it would never end.

>>> from timely.observe.events import ScheduleStopped
>>> def program(worker):
...     counts = {}
...     def listen(events):
...         for event in events:
...             counts[event.operator] = counts.get(event.operator, 0) + 1
...     worker.log.listen(listen, ScheduleStopped)
...     with worker.dataflow() as scope:
...         scope.to_stream(range(3)).exchange().probe()
...     while worker.step():
...         pass
...     return sorted(counts)
>>> execute_directly(program)
[0, 1]
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from timely.dataflow.recorder import descriptions, switch
from timely.observe.events import BUILT, ApplicationText, CapabilityMade, DataflowCompleted, Event, check_kind

if TYPE_CHECKING:
    from timely.dataflow.dataflow import Dataflow
    from timely.worker.worker import Worker

Listener = Callable[[Sequence[Any]], object]
Kind = type[Event]

AT_ONCE = 4096
"""So many records at most are kept before the listeners get them."""


class Log:
    """Listeners, and the records they have not been handed yet.

    Invariant: `kinds` are those that some listener wants; `pending` holds records of these kinds only.

    >>> from typing import NamedTuple
    >>> class Loaded(NamedTuple):  # a kind of the program's own
    ...     time: int
    ...     worker: int
    ...     rows: int
    >>> def program(worker):
    ...     log = worker.log
    ...     log.listen(lambda events: print(sum(event.rows for event in events)), Loaded)
    ...     for rows in (100, 50):
    ...         log.record(Loaded(log.now(), worker.index, rows))
    ...     log.flush()
    >>> execute_directly(program)
    150
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._begun = clock.perf_counter_ns()
        # By keys of their own: what is given several times is there as often, and each goes by itself.
        self._listeners: dict[object, tuple[Listener, frozenset[Any]]] = {}
        self._gauges: dict[object, Callable[[Log], None]] = {}
        self._on_end: dict[object, Callable[[], None]] = {}
        self.kinds: frozenset[Any] = frozenset()
        self.pending: list[Any] = []

    def now(self) -> int:
        """Return the time that a record made now has."""
        return clock.perf_counter_ns() - self._begun

    def listen(self, listener: Listener, *kinds: Any) -> Callable[[], None]:
        """Hand records of these kinds to `listener` from now on; return a function that ends this.

        What has been built and still runs, and the capabilities held, are told first, if asked for. Raises BuildError
        where one of `kinds` is none.

        >>> from timely.observe.events import OperatorBuilt
        >>> def program(worker):
        ...     worker.log.listen(lambda events: print(*events, sep="\\n"), OperatorBuilt)
        ...     with worker.dataflow() as scope:
        ...         new_input(scope, name="numbers")[1].probe()
        >>> execute_directly(program)
        OperatorBuilt(time=..., worker=0, dataflow=0, operator=0, name='numbers', path='dataflow', origin='...')
        """
        for kind in kinds:
            check_kind(kind)
        key, chosen = object(), frozenset(kinds)
        self.flush()
        wanted = chosen.intersection((*BUILT, CapabilityMade))
        if wanted:
            told: list[Any] = []
            for dataflow in self._worker.dataflows:
                if dataflow.is_logged:
                    told += [event for event in descriptions(dataflow, self.now()) if type(event) in wanted]
            if told:
                listener(told)
        self._listeners[key] = listener, chosen
        self._settle()

        def stop() -> None:
            if key in self._listeners:
                self.flush()
                del self._listeners[key]
                self._settle()

        return stop

    def record(self, event: Event) -> None:
        """Take a record, if somebody wants its kind."""
        if type(event) in self.kinds:
            pending = self.pending
            pending.append(event)
            if len(pending) >= AT_ONCE:
                self.flush()

    def say(self, text: str) -> None:
        """Record a text of the program's own.

        >>> def program(worker):
        ...     worker.log.listen(lambda events: print(events[0].text), ApplicationText)
        ...     worker.log.say("loaded")
        >>> execute_directly(program)
        loaded
        """
        self.record(ApplicationText(self.now(), self._worker.index, text))

    def flush(self) -> None:
        """Hand what is pending to the listeners. A listener that records something itself is handed that next time."""
        if not self.pending:
            return
        events, self.pending = self.pending, []
        for listener, kinds in tuple(self._listeners.values()):
            chosen = events if kinds >= self.kinds else [event for event in events if type(event) in kinds]
            if chosen:
                listener(chosen)

    def gauge(self, attach: Callable[[Log], None]) -> Callable[[], None]:
        """Call `attach(log)` now and whenever other kinds are wanted, until the function returned is called.

        So other packages know when to record kinds of their own.

        >>> def program(worker):
        ...     forget = worker.log.gauge(lambda log: print("wanted:", ApplicationText in log.kinds))
        ...     stop = worker.log.listen(print, ApplicationText)
        ...     stop()
        ...     forget()
        >>> execute_directly(program)
        wanted: False
        wanted: True
        wanted: False
        """
        key = object()
        self._gauges[key] = attach
        attach(self)

        def forget() -> None:
            self._gauges.pop(key, None)

        return forget

    def when_idle(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when the last dataflow that is logged is complete, or at the program's end; return a function
        that takes this back.

        >>> def program(worker):
        ...     worker.log.when_idle(lambda: print("over"))
        ...     with worker.dataflow() as scope:
        ...         scope.to_stream([1, 2]).inspect(print)
        >>> execute_directly(program)
        1
        2
        over
        """
        key = object()
        self._on_end[key] = callback

        def forget() -> None:
            self._on_end.pop(key, None)

        return forget

    # Called by the worker alone.

    def dataflow_built(self, dataflow: Dataflow) -> None:
        """Tell of a dataflow that begins to run, and log what it does."""
        if self.kinds and dataflow.is_logged:
            for event in descriptions(dataflow, self.now()):
                self.record(event)
            switch(dataflow, self.kinds)

    def dataflow_ended(self, dataflow: Dataflow) -> None:
        """Tell of a dataflow that is complete."""
        if dataflow.is_logged:
            self.record(DataflowCompleted(self.now(), self._worker.index, dataflow.index))
            if self._on_end and not any(other.is_logged for other in self._worker.dataflows):
                self.end()

    def end(self) -> None:
        """Tell those who wait for it that nothing is left to be logged."""
        self.flush()
        waiting, self._on_end = self._on_end, {}
        for callback in waiting.values():
            callback()

    def _settle(self) -> None:
        """Have exactly what is wanted recorded."""
        kinds: frozenset[Any] = frozenset().union(*(wanted for _, wanted in self._listeners.values()))
        if kinds == self.kinds:
            return
        self.kinds = kinds
        for dataflow in self._worker.dataflows:
            if dataflow.is_logged:
                switch(dataflow, kinds)
        for attach in tuple(self._gauges.values()):
            attach(self)
