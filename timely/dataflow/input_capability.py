"""The right to send that comes with a message."""

from __future__ import annotations

from typing import Any, NoReturn

from timely.dataflow.capability import Capability
from timely.dataflow.operator_core import OperatorCore
from timely.errors import CapabilityError
from timely.order import LIMIT, Moment, Time, as_time, less_equal


class Port:
    """What the rights that come with its messages know of an input: whose it is."""

    __slots__ = ("operator",)

    def __init__(self, operator: OperatorCore) -> None:
        self.operator = operator


class InputCapability:
    """The right that comes with a message: to send at its time, until the activation ends in which it was taken."""

    __slots__ = ("activation", "input", "time")

    def __init__(self, input: Port, time: Time, activation: int) -> None:
        self.input = input
        self.time = time
        self.activation = activation

    def delayed(self, time: Moment) -> InputCapability:
        """Return the same right at a later time."""
        time = as_time(time)
        if len(time) != len(self.time):
            raise CapabilityError(f"{time} is not a time of this scope, whose times look like {self.time}")
        if not less_equal(self.time, time):
            raise CapabilityError(f"a message at {self.time} gives no right to send at {time}: times only move forward")
        if max(time) > LIMIT:
            raise CapabilityError(f"{time} is too late: no coordinate of a time may be larger than 2 ** 62")
        return InputCapability(self.input, time, self.activation)

    def retain(self, output: int = 0) -> Capability:
        """Return a capability on the operator's `output` that may be held after the message was handled."""
        holder = self.input.operator.holder(output)
        return Capability(holder, holder.time_of(self))

    def downgrade(self, time: Any) -> NoReturn:
        """Raise CapabilityError: `retain` returns a capability that moves."""
        self._refuse("downgraded")

    def drop(self) -> NoReturn:
        """Raise CapabilityError: `retain` returns a capability to drop."""
        self._refuse("dropped")

    def _refuse(self, done: str) -> NoReturn:
        ends = f"the right of a message at {self.time} ends with the activation in which it came"
        raise CapabilityError(f"{ends}, and cannot be {done}: retain() returns a capability that can be {done}")
