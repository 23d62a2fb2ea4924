"""The right to send: capabilities.

A capability for time `t` at an operator's output permits sending messages at any time at or after `t`. As long as it is
held, no frontier downstream moves past what could result from `t`. So hold it no longer, and at no earlier a time, than
needed. Capabilities are explicit: they are dropped by `drop` or by leaving a `with` block. Each remembers the line of
the program that made it, which `explain` shows when a dataflow does not finish.

A capability that the garbage collector finds was forgotten: nobody can send with it any more, so holding its time up
serves nobody. Its worker drops it in its next step, with a `CapabilityWarning` at the line that made it. A program must
not rely on that: when the collector finds an object that is part of a cycle is up to the collector.

Only the worker's thread may use a capability: counts are changed without a lock, and a worker that waits would not
learn of it. Other threads use `Worker.call`; what they call directly is refused, unless an operator runs meanwhile.

What is counted is kept apart from the capability, in `Held`, so that the port that counts it does not keep the
capability alive.

Invariant: the tracker's own count at an output's location is the number of what is held (`OutputPort.live`) there, plus
messages queued at inputs that are counted at this location (see `timely.dataflow.ports`).
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from threading import get_ident
from types import CodeType, TracebackType
from typing import Any, Final

from timely.dataflow.core import DataflowCore
from timely.dataflow.host import refuse_elsewhere
from timely.dataflow.recorder import Recorder
from timely.errors import BuildError, CapabilityError, CapabilityWarning
from timely.order import LIMIT, Moment, Time, as_time, less_equal
from timely.origin import Origin, is_ours

_SHORT: Final = LIMIT - 1
"""Compiled code compares integers up to this one without making objects of them."""

_NAMES: Final = ("capability", "capability_set", "input_capability", "operator")
_CARRIERS: Final = tuple([os.path.join(os.path.dirname(__file__), f"{name}.py") for name in _NAMES])
"""Whose functions make capabilities for others."""


Update = Callable[[int, Time, int], None]
"""Changes the count at a location and a time."""


class Holder:
    """What counts capabilities: an operator's output, as its capabilities know it."""

    def __init__(self, dataflow: DataflowCore, operator: int, index: int, built_at: Origin) -> None:
        """Take the numbers of an operator and of its output, and where the program built the operator."""
        self.dataflow = dataflow
        self.activity = dataflow.host.activity
        self.index = index
        self.built_at = built_at
        self.location = -1
        self.update: Update = not_built
        self.live: set[Held] = set()
        self.recorder: Recorder | None = None
        self._operator = operator

    def locate(self, location: int, update: Update) -> None:
        """Count capabilities at `location`."""
        self.location = location
        self.update = update

    def refuse_elsewhere(self, call: str) -> None:
        """Raise CapabilityError in another thread than the worker's, which calls this, such as "capability.drop()"."""
        dataflow = self.dataflow
        # Operators drop thousands in a second, so while one runs nobody looks.
        if dataflow.running is None and get_ident() != self.activity.thread and not dataflow.is_closed:
            refuse_elsewhere(dataflow.host, f"a capability on {self}", call)

    def time_of(self, right: Any) -> Time:
        """Return the time at which a right permits sending here; raise CapabilityError if it permits nothing here."""
        raise NotImplementedError

    def hold(self, held: Held, is_counted: bool) -> None:
        """Count what a capability holds, which may be counted already."""
        if not is_counted:
            self.update(self.location, held.time, 1)
        self.live.add(held)
        if self.recorder is not None:
            self.recorder.made(self._operator, self.index, held.time, held.origin)

    def move(self, held: Held, time: Time) -> None:
        """Count it at another time."""
        # In this order, an interrupt in between leaves too much counted. Too little would let a frontier pass.
        self.update(self.location, time, 1)
        before, held.time = held.time, time
        self.update(self.location, before, -1)
        if self.recorder is not None:
            self.recorder.moved(self._operator, self.index, before, time)

    def release(self, held: Held) -> None:
        """Count it no longer."""
        self.update(self.location, held.time, -1)
        self.live.discard(held)
        if self.recorder is not None:
            self.recorder.dropped(self._operator, self.index, held.time)

    def forget(self, held: Held) -> None:
        """Have the worker drop what nobody holds any more. The garbage collector runs in any thread, at any moment."""
        if not self.dataflow.is_closed:
            self.dataflow.host.call(held.drop_forgotten)


def not_built(location: int, time: Time, change: int) -> None:
    """Raise BuildError, in the place of what changes counts once the dataflow is built."""
    raise BuildError("nothing is counted before the dataflow is complete: leave its `with` block first")


class Held:
    """What an output counts for a capability: its time, and the line that made it. Without an output it is dropped."""

    __slots__ = ("_code", "_file", "_line", "output", "time")

    def __init__(self, output: Holder, time: Time, is_initial: bool, is_own: bool) -> None:
        self._code: CodeType | None = None
        if is_initial or is_own:
            self._file, self._line = output.built_at
        else:
            # Compiled functions have no frames; where these modules are not compiled, their own are passed over.
            frame = sys._getframe()
            while frame.f_code.co_filename in _CARRIERS and frame.f_back is not None:
                frame = frame.f_back
            self._file = frame.f_code.co_filename
            # Which line an instruction belongs to is found when somebody asks: that costs more than all the rest.
            self._code, self._line = frame.f_code, frame.f_lasti
        self.output: Holder | None = output
        self.time = time
        output.hold(self, is_initial)

    @property
    def origin(self) -> Origin:
        """The line that made the capability: the user's, or where the user built the operator holding it."""
        if is_ours(self._file) and self.output is not None:
            return self.output.built_at
        return Origin(self._file, self._line if self._code is None else _line_of(self._code, self._line))

    def drop(self) -> None:
        """Count it no longer."""
        output = self.output
        if output is not None:
            # First: after an interrupt in between, it is counted for ever, and not taken off the count twice.
            self.output = None
            output.release(self)

    def drop_forgotten(self) -> None:
        """Drop what nobody can drop any more, if it still counts, with a warning at the line that made it."""
        output = self.output
        if output is None or output.dataflow.is_closed:
            return
        origin = self.origin  # first: it may be the line that built the operator of the output
        self.drop()
        warnings.warn_explicit(
            f"a capability for {self.time} on {output}, made at {origin}, was forgotten on worker "
            f"{output.dataflow.worker_index}, and is dropped only now that it was found: call drop() when nothing more "
            "is to be sent with it, or hold it in a `with` block; to keep its time open, keep it",
            CapabilityWarning,
            origin.file,
            origin.line,
        )


def _line_of(code: CodeType, instruction: int) -> int:
    """Return the line of an instruction, given by its place in the bytes of the code."""
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno


class Capability:
    """The right to send at `time` or later on one output of one operator. Use from the worker's thread.

    >>> def program(worker):
    ...     with worker.dataflow() as scope:
    ...         numbers, stream = new_unordered_input(scope)
    ...         probe = stream.probe()
    ...     later = numbers.capability.delayed((3,))
    ...     numbers.capability.drop()
    ...     twin = later.clone()
    ...     later.downgrade((5,))
    ...     worker.step()
    ...     before = probe.frontier
    ...     with twin:  # dropped at the end
    ...         numbers.send(twin, 1)
    ...     worker.step()
    ...     return before, probe.frontier
    >>> execute_directly(program)
    (Antichain([(3,)]), Antichain([(5,)]))
    """

    __slots__ = ("_held",)

    def __init__(self, output: Holder, time: Time, *, is_initial: bool = False, is_own: bool = False) -> None:
        """Count one more at the output; what it starts with (`is_initial`) is counted already, for all workers.

        The line that made it is where the operator was built, if the operator is one of this library (`is_own`).
        """
        self._held = Held(output, time, is_initial, is_own)

    @property
    def time(self) -> Time:
        """The least time at which it permits sending."""
        return self._held.time

    @property
    def output(self) -> Holder | None:
        """The output it permits sending on; None once it is dropped."""
        return self._held.output

    @property
    def origin(self) -> Origin:
        """The line that made this capability: the user's, or where the user built the operator holding it."""
        return self._held.origin

    def clone(self) -> Capability:
        """Return another capability for the same time."""
        output = self.live()
        output.refuse_elsewhere("capability.clone()")
        return Capability(output, self.time)

    def delayed(self, time: Moment) -> Capability:
        """Return a new capability for `time`.

        Raises CapabilityError unless that is at or after this one's, and no coordinate is larger than 2 ** 62.
        """
        output = self.live()
        output.refuse_elsewhere("capability.delayed(...)")
        given = as_time(time)
        self.check(given)
        return Capability(output, given)

    def downgrade(self, time: Moment) -> None:
        """Move this capability forward to `time`, giving up the times in between.

        Raises CapabilityError as `delayed` does.
        """
        output = self.live()
        output.refuse_elsewhere("capability.downgrade(...)")
        given = as_time(time)
        if given != self.time:
            self.check(given)
            output.move(self._held, given)

    def drop(self) -> None:
        """Give the right up. Dropping twice is allowed."""
        output = self._held.output
        if output is not None:
            output.refuse_elsewhere("capability.drop()")
            self._held.drop()

    def __del__(self) -> None:
        if not hasattr(self, "_held"):  # Ctrl-C struck while it was made
            return
        output = self._held.output
        if output is not None:
            output.forget(self._held)

    def __enter__(self) -> Capability:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drop()

    def __repr__(self) -> str:
        state = "dropped" if self.output is None else f"on {self.output}"
        return f"Capability({self.time}, {state}, made at {self.origin})"

    def live(self) -> Holder:
        """Return the output it permits sending on; raise CapabilityError once it is dropped."""
        if self.output is None:
            raise CapabilityError(f"the capability for {self.time} was dropped and can no longer be used")
        return self.output

    def check(self, time: Time) -> None:
        """Raise CapabilityError unless this permits sending at `time`."""
        if len(time) != len(self.time):
            raise CapabilityError(f"{time} is not a time of this scope, whose times look like {self.time}")
        if not less_equal(self.time, time):
            raise CapabilityError(f"a capability for {self.time} cannot go back to {time}: times may only move forward")
        for coordinate in time:
            if coordinate > _SHORT and coordinate > LIMIT:
                raise CapabilityError(f"{time} is too late: no coordinate of a time may be larger than 2 ** 62")
