"""What happens on a worker, as a stream that a dataflow can consume."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from numbers import Real
from typing import Any

import numpy as np

from timely.arguments import refusal
from timely.data.container import Array, Columns, as_column
from timely.dataflow.activator import Activator
from timely.dataflow.builder import OperatorBuilder
from timely.dataflow.capability import Capability
from timely.dataflow.operator import Logic
from timely.dataflow.ports import OutputPort
from timely.dataflow.streams import S, ScopeCore
from timely.observe.events import LogEvent, Parked, ScheduleStopped, Unparked, check_kind
from timely.observe.log import Log

AT_ONCE = 4096
"""How many records of sleep are sent although nothing runs that is logged."""


def log_stream(scope: ScopeCore[S], kind: type[LogEvent], *, interval: float = 0.1, name: str = "log") -> S:
    """Return the stream of this worker's records of one kind (see `timely.observe.events`), a column for each field.

    Epoch k holds what happened in the k-th interval of `interval` seconds since the worker was made. Fields that are
    neither numbers nor texts become text. Each worker emits its own records.

    `Parked` and `Unparked` are emitted only while something that is logged runs: a worker woken to record that it has
    slept would never sleep for long. Records made meanwhile are emitted with the next ones, or once there are 4,096.

    The dataflow in which this is called is not logged itself. The stream ends when all dataflows that are logged are
    complete, or with the program; so build what is to be watched before the worker is stepped.

    Raises BuildError in a scope whose times have more than one coordinate, where the interval is not positive, and
    where `kind` is not a kind of record.

    >>> from timely.observe.events import OperatorBuilt
    >>> def program(worker):
    ...     with worker.dataflow("watching") as scope:
    ...         log_stream(scope, OperatorBuilt).map(lambda *fields: fields[4:6]).inspect(print)
    ...     with worker.dataflow("watched") as scope:
    ...         new_input(scope, name="numbers")[1].exchange().probe()
    >>> execute_directly(program)
    ('numbers', 'watched')
    ('exchange', 'watched')
    """
    if scope.width != 1:
        raise refusal(name, "a log has epochs and nothing else: use it in an outermost scope of one coordinate")
    if not isinstance(interval, Real) or not interval > 0:
        raise refusal(name, f"the interval must be positive, in seconds, not {interval!r:.80}")
    check_kind(kind)
    scope.dataflow.is_logged = False
    builder = OperatorBuilder(scope, name)
    output, stream = builder.add_output(initial=True)
    activate = Activator(builder.operator)
    source = LogSource(kind, max(1, int(interval * 1e9)), scope.dataflow.host.log, output, activate)
    builder.build(source.begin)
    scope.dataflow.when_complete(source.stop)
    return stream


class LogSource:
    """The operator.

    Invariant: the capability's epoch is not after that of any record that has not been sent. A run takes the time,
    then has the log flushed, then sends, so it has all records from before that time.
    """

    def __init__(self, kind: type[LogEvent], interval: int, log: Log, output: OutputPort, activate: Activator) -> None:
        self._kind = kind
        self._interval = interval
        self._log = log
        self._output = output
        self._activate = activate
        self._records: list[Any] = []
        self._is_timed = False
        self._has_ended = False
        self._engagements: list[Callable[[], None]] = []

    def begin(self, capabilities: list[Capability]) -> Logic:
        self._capability = capabilities[0]
        if self._kind in (Parked, Unparked):
            listening = self._log.listen(self._take_sleep, self._kind, ScheduleStopped)
        else:
            listening = self._log.listen(self._take, self._kind)
        self._engagements = [listening, self._log.when_idle(self._end)]
        return self._run

    def stop(self) -> None:
        """Stop receiving the log."""
        for end in self._engagements:
            end()

    def _take(self, events: Sequence[Any]) -> None:
        self._records += events
        self._run_later()

    def _take_sleep(self, events: Sequence[Any]) -> None:
        """Take records of sleep. What wakes a worker so that it may send them is not logged, and so is not a reason to
        send those that follow: only that something ran is."""
        slept = [event for event in events if type(event) is self._kind]
        self._records += slept
        if len(slept) < len(events) or len(self._records) >= AT_ONCE:
            self._run_later()

    def _run_later(self) -> None:
        """Run when the present interval is over."""
        if not self._is_timed:
            self._is_timed = True
            self._activate.activate_after((self._interval - self._log.now() % self._interval) / 1e9)

    def _end(self) -> None:
        self._has_ended = True
        self._activate()

    def _run(self) -> None:
        if self._capability.output is None:
            return
        # The time first: records made after it may be missing here, and are in this epoch or a later one.
        now = self._log.now()
        self._log.flush()
        records, self._records, self._is_timed = self._records, [], False
        for epoch, group in groupby(records, lambda event: event.time // self._interval):
            with self._capability.delayed((epoch,)) as capability:
                self._output.give(capability, as_columns_of(list(group)))
        if self._has_ended:
            self.stop()
            self._capability.drop()
        else:
            self._capability.downgrade((now // self._interval,))


def as_columns_of(events: Sequence[Any]) -> Columns:
    """Return records of one kind as columns, one for each field.

    >>> from timely.observe.events import ProgressSent
    >>> list(as_columns_of([ProgressSent(5, 0, 1, ((2, (0,), -1),), 40)]).rows())
    [(5, 0, 1, '((2, (0,), -1),)', 40)]
    """
    return Columns(tuple(_column(values) for values in zip(*events)))


def _column(values: Sequence[Any]) -> Array:
    if type(values[0]) is int:
        return np.array(values, np.int64)
    return as_column([str(value) for value in values])
