"""Data from outside the dataflow, at any times in any order, as long as a capability permits them.

`new_input` has one current time. Here the caller holds capabilities, as many as it likes, starting from one for the
least time: `delayed` makes one for a later time, `downgrade` gives up earlier ones, `drop` all. A time is complete when
no capability for it or before it is left, on any worker.
"""

from __future__ import annotations

from threading import get_ident
from typing import Any

from timely.data.container import Batch, Columns, frozen, own_columns
from timely.dataflow.builder import OperatorBuilder
from timely.dataflow.capability import Capability
from timely.dataflow.host import refuse_elsewhere
from timely.dataflow.operator import Logic
from timely.dataflow.operators.input import Inflow
from timely.dataflow.ports import OutputPort
from timely.dataflow.streams import S, ScopeCore
from timely.errors import CapabilityError, DataError


class UnorderedInput:
    """Sends data into a dataflow at the times of the capabilities it is given. Use from the worker's thread.

    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         numbers, stream = new_unordered_input(scope)
    ...         stream.inspect_time(print)
    ...     later = numbers.capability.delayed((7,))
    ...     numbers.send(later, np.array([1, 2]))
    ...     numbers.send_batch(numbers.capability, ["any", "records"])
    ...     numbers.close()
    >>> execute_directly(program)
    (7,) 1
    (7,) 2
    (0,) any
    (0,) records
    """

    def __init__(self, builder: OperatorBuilder[Any], output: OutputPort) -> None:
        self._builder = builder
        self._output = output
        self._inflow = Inflow(builder.scope.dataflow.host)
        self._first: Capability | None = None
        builder.build(self._construct)
        builder.scope.dataflow.when_program_ends(self.close, lambda: bool(output.live))
        builder.scope.dataflow.when_complete(self.close)

    def _construct(self, capabilities: list[Capability]) -> Logic:
        self._first = capabilities[0]
        return lambda: None

    @property
    def capability(self) -> Capability:
        """The capability for the least time, from which others are made. It is the caller's to downgrade or drop."""
        if self._first is None:
            dataflow = self._builder.scope.dataflow
            raise CapabilityError(f"{self._builder.operator}: {dataflow.until_built('data can be sent')}")
        return self._first

    @property
    def is_congested(self) -> bool:
        """Whether a program whose memory is to be bounded should wait before it sends (see `Input.is_congested`)."""
        return self._inflow.is_congested

    def send(self, capability: Capability, *values: Any) -> None:
        """Send one record given as scalars, or many given as equally long columns, at the capability's time.

        Arrays are copied, and stay the program's own.

        Raises DataError where there is no value, CapabilityError where the capability was dropped or another input's.
        """
        if not values:
            raise DataError("send() needs at least one value")
        if not any(getattr(value, "ndim", 0) or type(value) is list for value in values):
            values = tuple([value] for value in values)
        self.send_batch(capability, Columns.of_equals(own_columns(values)))

    def send_batch(self, capability: Capability, batch: Batch) -> None:
        """Send a batch, `Columns` or a list of arbitrary records, at the capability's time.

        The arrays of `Columns` become read-only: they are the dataflow's from now on (see `Input.send_batch`).

        Raises CapabilityError where the capability was dropped or another input's, DataError where the batch is none,
        and DataflowFailed once an error or an interrupt has ended a step of the dataflow, or a call of this.
        """
        self._refuse_elsewhere("send(...)")
        batch = frozen(batch)
        if not isinstance(capability, Capability):
            raise CapabilityError(
                f"{self._output} is given a batch with a capability, such as delayed() makes of this input's, "
                f"not with {capability!r:.80}"
            )
        if capability.output is None:
            raise CapabilityError(f"{capability!r} was dropped and no longer permits anything")
        self._output.time_of(capability)
        self._inflow.send(self._output, capability, batch)

    def close(self) -> None:
        """Drop all capabilities that are left, those that the program holds, too."""
        if self._output.live:
            self._refuse_elsewhere("close()")
        for capability in list(self._output.live):  # a copy, since `drop` removes it there
            capability.drop()

    def _refuse_elsewhere(self, call: str) -> None:
        """Raise CapabilityError in another thread than the worker's, which makes a call."""
        host = self._builder.scope.dataflow.host
        if get_ident() != host.activity.thread:
            operator = self._builder.operator
            refuse_elsewhere(host, operator, f"{operator.name}.{call}")

    def __repr__(self) -> str:
        held = len(self._output.live)
        state = "not built" if self._first is None else f"capabilities held: {held}" if held else "closed"
        return f"UnorderedInput({self._builder.operator.name!r}, {state})"

    def __enter__(self) -> UnorderedInput:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def new_unordered_input(scope: ScopeCore[S], *, name: str = "unordered_input") -> tuple[UnorderedInput, S]:
    """Return a handle to send data with at any times that capabilities permit, and the stream of what is sent.

    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         numbers, stream = new_unordered_input(scope)
    ...         sums = stream.accumulate(0, lambda total, x: total + int(x.sum())).inspect_time(print)
    ...         probe = sums.probe()
    ...     later = numbers.capability.delayed((7,))
    ...     numbers.send(later, np.arange(4))
    ...     with numbers.capability as now:
    ...         numbers.send(now, 10)
    ...         numbers.send(later, 100)
    ...     worker.step_while(lambda: probe.less_than(7))
    ...     later.drop()
    ...     worker.step_while(lambda: not probe.done())
    >>> execute_directly(program)
    (0,) 10
    (7,) 106
    """
    builder = OperatorBuilder(scope, name)
    output, stream = builder.add_output(initial=True)
    return UnorderedInput(builder, output), stream
