"""Data from outside the dataflow, epoch by epoch."""

from __future__ import annotations

from bisect import bisect_left
from threading import get_ident
from typing import Any

from timely.data.container import Batch, Columns, as_columns, frozen, own_columns
from timely.data.weight import weight_of
from timely.dataflow.builder import OperatorBuilder
from timely.dataflow.capability import Capability
from timely.dataflow.host import Host, refuse_elsewhere
from timely.dataflow.operator import Logic
from timely.dataflow.ports import OutputPort
from timely.dataflow.streams import S, ScopeCore
from timely.errors import CapabilityError, DataError
from timely.order import Moment, Time


class Inflow:
    """Sends what a program gives to an input, and counts the bytes sent since the worker last stepped."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._sent = 0
        self._sent_in = -1.0  # when the step began after which they were sent

    def send(self, output: OutputPort, capability: Capability, batch: Batch) -> None:
        """Send a batch that nobody else writes to; raise DataflowFailed if the dataflow has lost what it computed."""
        dataflow = output.dataflow
        dataflow.refuse_if_failed()
        self._count(batch)
        before, dataflow.sending = dataflow.sending, output.operator
        emitted = dataflow.emitted
        try:
            output.give_owned(capability, batch)
        except BaseException as error:
            # Some consumers have received the batch, and others have not. If none has, a program may send it otherwise.
            if dataflow.emitted > emitted or not isinstance(error, Exception):
                dataflow.lose(error)
            raise
        finally:
            dataflow.sending = before
            if dataflow.is_closed:  # by a function that received the batch, for whose return `close` has waited
                dataflow.close()

    def _count(self, batch: Batch) -> None:
        began = self._host.activity.step_began
        if began != self._sent_in:
            self._sent_in, self._sent = began, 0
        self._sent += 64 + weight_of(batch)

    @property
    def is_congested(self) -> bool:
        """Whether more than `Config.queue_bytes` were sent, or wait to be taken."""
        host = self._host
        unstepped = self._sent if self._sent_in == host.activity.step_began else 0
        return unstepped > host.config.queue_bytes or host.is_congested


class Input:
    """Sends data into a dataflow at its current time, and reports when that time is over.

    Use from the worker's thread: others have `Worker.call` send. What `send` is given row by row is kept until `flush`,
    `advance_to` or `close`, or until `is_congested` finds that it is too much.

    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         numbers, stream = new_input(scope)
    ...         probe = stream.inspect_time(print).probe()
    ...     numbers.send(1)
    ...     numbers.flush()
    ...     numbers.advance_to(7)
    ...     numbers.send(np.array([2, 3]))
    ...     numbers.send_batch(["any", "records"])
    ...     worker.step_while(lambda: probe.less_than(7))
    ...     numbers.close()
    >>> execute_directly(program)
    (0,) 1
    (7,) 2
    (7,) 3
    (7,) any
    (7,) records
    """

    def __init__(self, builder: OperatorBuilder[Any], output: OutputPort) -> None:
        self._builder = builder
        self._output = output
        self._capability: Capability | None = None
        self._rows: list[tuple[Any, ...]] = []
        self._classes: tuple[type, ...] = ()
        """Of the values of the last row."""
        self._weighed = 0  # how many of the rows are counted in the bytes gathered
        self._gathered = 0
        self._inflow = Inflow(builder.scope.dataflow.host)
        self._activity = builder.scope.dataflow.host.activity
        builder.operator.awaits = self._awaited
        builder.build(self._construct)
        builder.scope.dataflow.when_program_ends(self.close, lambda: not self.is_closed)
        builder.scope.dataflow.when_complete(self._end)

    def _construct(self, capabilities: list[Capability]) -> Logic:
        self._capability = capabilities[0]
        return lambda: None  # an input emits only when the program sends

    @property
    def time(self) -> Time:
        """The time at which data is sent now."""
        return self._open().time

    @property
    def epoch(self) -> int:
        """The first coordinate of `time`."""
        return self.time[0]

    @property
    def is_congested(self) -> bool:
        """Whether more than `Config.queue_bytes` were sent here since the worker stepped, or wait to be taken.

        What is sent then is queued all the same. A program whose memory is to be bounded waits before it sends:
        `worker.step_while(lambda: session.is_congested)`. What `send` has gathered is sent by this if it is as much.
        """
        if self._weighed < len(self._rows):
            self._gathered += weight_of(self._rows[self._weighed :])
            self._weighed = len(self._rows)
            if self._gathered > self._builder.scope.dataflow.host.config.queue_bytes:
                self.flush()
        return self._inflow.is_congested

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be sent any more: after `close`, and if the dataflow is complete, dropped or failed."""
        capability = self._capability
        return self._builder.scope.dataflow.is_abandoned if capability is None else capability.output is None

    def send(self, *values: Any) -> None:
        """Send one record given as scalars, or many given as equally long columns: arrays or lists.

        Arrays are copied and stay the program's own. A record that is not a tuple of numbers, booleans and text can be
        sent with `send_batch`, in a list.

        Raises DataError where there is no value, or not as many as in the record before, or where a value cannot be in
        one column with the one before. The record is not sent then.
        """
        if not values:
            raise DataError("send() needs at least one value")
        if any(getattr(value, "ndim", 0) or type(value) is list for value in values):
            self.flush()
            self.send_batch(Columns.of_equals(own_columns(values)))
            return
        if not self._rows:
            self.refuse_elsewhere("send(...)")
        self._open()
        if self._rows and len(self._rows[0]) != len(values):
            raise DataError(f"a record of {len(values)} fields was sent after one of {len(self._rows[0])}")
        classes = tuple(map(type, values))
        # Classes decide what fits into one column, except for large integers (`flush`). So a row is compared with the
        # last one only if its classes differ.
        if classes != self._classes:
            as_columns(tuple(list(column) for column in zip(*self._rows[-1:], values)))
            self._classes = classes
        self._rows.append(values)

    def send_batch(self, batch: Batch) -> None:
        """Send a batch: `Columns`, or a list of arbitrary records.

        The arrays of `Columns` become read-only: they are the dataflow's from now on. Views of writable arrays are
        copied, and a list, but not its records. Raises DataError where it is not a batch.
        """
        self.refuse_elsewhere("send(...)")
        self.send_owned(frozen(batch))

    def send_owned(self, batch: Batch) -> None:
        """Send a batch that nobody else writes to, without a look at it or at the thread."""
        self._inflow.send(self._output, self._open(), batch)

    def flush(self) -> None:
        """Send what `send` has gathered.

        Raises DataError where that makes no columns, as an integer of more than 64 bits does not. It names the record,
        which is left out. The others are kept, and go out with the next call.
        """
        if self._rows:
            self.refuse_elsewhere("flush()")
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            # Before the rows are forgotten: where this raises, they are kept.
            try:
                columns = Columns.of_equals(as_columns(tuple(list(column) for column in zip(*self._rows))))
            except DataError:
                raise self._without_misfit() from None
            self._rows = []
            self._weighed = self._gathered = 0
            self.send_owned(frozen(columns))

    def _without_misfit(self) -> DataError:
        """Forget the first record with a field that makes no column with those before it; return what is wrong."""
        rows = self._rows
        for position, values in enumerate(zip(*rows)):
            row = bisect_left(range(1, len(rows) + 1), True, key=lambda count: _refused(values[:count]) is not None)
            if row < len(rows):
                refused = _refused(values[: row + 1])
                shown = f"record {row} of the {len(rows)} to be sent, {rows[row]!r:.80}, is left out for its field"
                del rows[row]
                self._weighed = min(self._weighed, len(rows))
                return DataError(f"{self._builder.operator}: {shown} {position}: {refused}")
        raise AssertionError("all fields make columns")

    def advance_to(self, time: Moment) -> None:
        """Move on to a later time: nothing will be sent any more at times not at or after it.

        Raises DataError as `flush` does.
        """
        self.refuse_elsewhere("advance_to(...)")
        capability = self._open()
        self._builder.scope.dataflow.refuse_if_failed()
        self._flush()
        try:
            capability.downgrade(time)
        except CapabilityError as error:
            raise CapabilityError(f"{self._builder.operator}: {error}") from None

    def close(self) -> None:
        """Stop sending. Raises DataError as `flush` does."""
        if self._capability is not None and not self.is_closed:
            self.refuse_elsewhere("close()")
            self._flush()
            self._capability.drop()

    def refuse_elsewhere(self, call: str) -> None:
        """Raise CapabilityError in another thread than the worker's, which makes this call, such as "close()"."""
        if get_ident() != self._activity.thread:
            operator = self._builder.operator
            refuse_elsewhere(self._builder.scope.dataflow.host, operator, f"{operator.name}.{call}")

    def _awaited(self) -> str:
        """Return, for people, what moves this input on."""
        *outer, last = self._open().time
        later = (*outer, last + 1) if outer else last + 1
        name = self._builder.operator.name
        return f"{name}.advance_to({later}) or {name}.close()"

    def _end(self) -> None:
        """Accept no more data: the dataflow was dropped, or is complete."""
        self._rows.clear()
        if self._capability is not None:
            self._capability.drop()

    def __repr__(self) -> str:
        capability = self._capability
        state = "not built" if capability is None else "closed" if self.is_closed else f"time={capability.time}"
        return f"Input({self._builder.operator.name!r}, {state})"

    def __enter__(self) -> Input:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> Capability:
        capability = self._capability
        if capability is None:
            dataflow = self._builder.scope.dataflow
            raise CapabilityError(f"{self._builder.operator}: {dataflow.until_built('data can be sent')}")
        if capability.output is None:
            raise CapabilityError(
                f"{self._builder.operator} was closed and takes no more data (dropping a dataflow closes its inputs)"
            )
        return capability


def new_input(scope: ScopeCore[S], *, name: str = "input") -> tuple[Input, S]:
    """Return a handle to send data with, and the stream of what is sent.

    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         numbers, stream = new_input(scope)
    ...         probe = stream.inspect(print).probe()
    ...     for epoch in range(2):
    ...         numbers.send(10 * epoch)
    ...         numbers.advance_to(epoch + 1)
    ...         worker.step_while(lambda: probe.less_than(numbers.time))
    ...     numbers.close()
    >>> execute_directly(program)
    0
    10
    """
    builder = OperatorBuilder(scope, name)
    output, stream = builder.add_output(initial=True)
    return Input(builder, output), stream


def _refused(values: tuple[Any, ...]) -> DataError | None:
    """Return why values make no column, or None where they do."""
    try:
        as_columns(list(values))
    except DataError as error:
        return error
    return None
