"""A worker's log: who listens to what happens there.

A listener is a function that receives lists of records (`timely.observe.events`) in the order in which they happened:
at the end of each step of the worker, and more often if there are many. A listener names the kinds it wants; the log
makes no others. A listener runs in the worker's thread. It may do what a program may, but not for long.

The log records nothing that nobody listens to. What makes records follows the kinds that are wanted by a *gauge*. A
dataflow's gauge gives its operators and ports a recorder while somebody wants to know what happens there
(`timely.dataflow.recording`); without listeners they only test whether they have one.

Who wants totals instead of records has the worker count (`Log.count`), which costs a fraction of that.

A dataflow that itself consumes the log (see `operators.log_stream`) is not logged, or it would never end.

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
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from timely.observe.events import BUILT, ApplicationText, CapabilityMade, LogEvent, check_kind
from timely.observe.notices import added

Listener = Callable[[Sequence[Any]], object]
Kind = type[LogEvent]

AT_ONCE = 4096
"""The log passes records on as soon as it keeps this many."""


class Log:
    """Listeners, and the records that they have not received yet.

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

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self._begun = clock.perf_counter_ns()
        # By keys of their own: the same function may be added several times, and each is removed by itself.
        self._listeners: dict[object, tuple[Listener, frozenset[Any]]] = {}
        self._gauges: dict[object, Callable[[Log], None]] = {}
        self._described: dict[object, Callable[[], Iterable[Any]]] = {}
        self._on_end: dict[object, Callable[[], None]] = {}
        self._counting: dict[object, None] = {}
        self.kinds: frozenset[Any] = frozenset()
        self.is_counting = False
        """Whether dataflows count what their operators do."""
        self.pending: list[Any] = []

    def now(self) -> int:
        """Return the time that a record made now has."""
        return clock.perf_counter_ns() - self._begun

    def listen(self, listener: Listener, *kinds: Any) -> Callable[[], None]:
        """Pass records of these kinds to `listener` from now on; return a function that ends this.

        If `kinds` include what was built, or capabilities made, the listener first receives records of the dataflows
        that run, and of the capabilities that are held. Raises BuildError if one of `kinds` is not a kind of record.

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
        chosen = frozenset(kinds)
        # What is pending happened before this listener came.
        self.flush()
        wanted = chosen.intersection((*BUILT, CapabilityMade))
        if wanted:
            found = [event for describe in self._described.values() for event in describe() if type(event) in wanted]
            if found:
                listener(found)
        forget = added(self._listeners, (listener, chosen))
        self._settle()

        def stop() -> None:
            # Before its kinds are no longer wanted: this listener receives what has happened until now.
            self.flush()
            forget()
            self._settle()

        return stop

    def count(self) -> Callable[[], None]:
        """Have each dataflow count what its operators do (`timely.dataflow.counting`) until the result is called.

        >>> def program(worker):
        ...     stop = worker.log.count()
        ...     with worker.dataflow() as scope:
        ...         numbers, stream = new_input(scope)
        ...         stream.exchange().probe()
        ...     numbers.send(7)
        ...     numbers.close()
        ...     worker.step()
        ...     stop()
        ...     return scope.dataflow.counts.received
        >>> execute_directly(program)
        [1]
        """
        forget = added(self._counting, None)
        self._settle()

        def stop() -> None:
            forget()
            self._settle()

        return stop

    def record(self, event: LogEvent) -> None:
        """Keep a record for the listeners, if one of them wants its kind."""
        if type(event) in self.kinds:
            pending = self.pending
            pending.append(event)
            if len(pending) >= AT_ONCE:
                self.flush()

    def note(self, text: str) -> None:
        """Record a text of the program's own.

        >>> def program(worker):
        ...     worker.log.listen(lambda events: print(events[0].text), ApplicationText)
        ...     worker.log.note("loaded")
        >>> execute_directly(program)
        loaded
        """
        self.record(ApplicationText(self.now(), self._worker, text))

    def flush(self) -> None:
        """Pass what is pending to the listeners. What a listener itself records is passed on the next time."""
        if not self.pending:
            return
        # Exchanged first, since a listener may itself record. The listeners are copied, since it may also end one.
        events, self.pending = self.pending, []
        for listener, kinds in tuple(self._listeners.values()):
            # Whoever wants all kinds receives all: nothing of another kind is pending.
            chosen = events if kinds >= self.kinds else [event for event in events if type(event) in kinds]
            if chosen:
                listener(chosen)

    def gauge(
        self, attach: Callable[[Log], None], describe: Callable[[], Iterable[Any]] | None = None
    ) -> Callable[[], None]:
        """Call `attach(log)` now and whenever other kinds are wanted, until the function returned is called.

        So other packages know when to record kinds of their own. A dataflow also gives `describe`, which yields records
        of what the dataflow consists of; the log ends when the last such gauge is removed.

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
        forget = added(self._gauges, attach)
        attach(self)
        if describe is None:
            return forget
        forget_description = added(self._described, describe)

        def end() -> None:
            forget()
            forget_description()
            if self.is_idle and self._on_end:
                self.end()

        return end

    def when_idle(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` when the last dataflow that is logged is complete, or at the program's end.

        Return a function that takes this back.

        >>> def program(worker):
        ...     worker.log.when_idle(lambda: print("over"))
        ...     with worker.dataflow() as scope:
        ...         scope.to_stream([1, 2]).inspect(print)
        >>> execute_directly(program)
        1
        2
        over
        """
        return added(self._on_end, callback)

    @property
    def is_idle(self) -> bool:
        """Whether no dataflow that is logged runs."""
        return not self._described

    def end(self) -> None:
        """Call what waits for the log to be idle. The worker calls this at the program's end."""
        self.flush()
        # Exchanged first: a callback may end the log again, and each is called once.
        waiting, self._on_end = self._on_end, {}
        for callback in waiting.values():
            callback()

    def _settle(self) -> None:
        """Have exactly the kinds recorded that somebody wants."""
        kinds: frozenset[Any] = frozenset().union(*(wanted for _, wanted in self._listeners.values()))
        if kinds != self.kinds or self.is_counting != bool(self._counting):
            self.kinds, self.is_counting = kinds, bool(self._counting)
            # A copy, because to attach may add or remove a gauge.
            for attach in tuple(self._gauges.values()):
                attach(self)
