"""An operator at run time: its ports, its logic, and what is said about it when it fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from timely.dataflow.ports import InputPort, OutputPort, Push
from timely.errors import BuildError, DataError, OperatorError, PeerFailed
from timely.interruption import interruption
from timely.order import Time
from timely.origin import Origin, raised_at

if TYPE_CHECKING:
    from timely.dataflow.dataflow import Dataflow
    from timely.dataflow.recorder import Recorder
    from timely.dataflow.scope import Scope

Logic = Callable[[], None]


class Operator:
    """An operator with ports.

    `rank` is its place in the topological order of the dataflow. With `inline` set it is not scheduled at all: a
    message to its only input calls that function instead. `awaits`, where it is set, returns what outside of its
    dataflow the operator waits for, for people. One that `cancels` passes on what is left of all that comes in at a
    time: never both a change and its opposite. `activations` counts those that have ended.
    """

    __slots__ = (
        "activations",
        "active",
        "awaits",
        "cancels",
        "dataflow",
        "index",
        "inline",
        "inputs",
        "logic",
        "name",
        "origin",
        "outputs",
        "rank",
        "recorder",
        "scope",
        "waits",
    )

    def __init__(self, scope: Scope, name: str, index: int, origin: Origin) -> None:
        self.scope = scope
        self.dataflow: Dataflow = scope.dataflow
        self.name = name
        self.index = index
        self.origin = origin
        self.inputs: list[InputPort] = []
        self.outputs: list[OutputPort] = []
        self.logic: Logic | None = None
        self.inline: Push | None = None
        self.rank = -1
        self.active = False
        self.activations = 0
        self.waits = True
        self.cancels = False
        self.awaits: Callable[[], str] | None = None
        self.recorder: Recorder | None = None

    def __str__(self) -> str:
        return f"operator {self.name!r} (built at {self.origin})"

    @property
    def ports(self) -> list[InputPort | OutputPort]:
        """All inputs and outputs."""
        return [*self.inputs, *self.outputs]

    def run(self) -> None:
        """Activate the operator once."""
        self.active = False
        if self.logic is None:
            return
        for port in self.inputs:
            port.time = None
        try:
            self.logic()
        except (OperatorError, PeerFailed):
            raise
        except Exception as error:
            handled = next((port for port in self.inputs if port.time is not None), None)
            if handled is None:
                raise self.failure(error, None) from error
            raise self.failure(error, handled.time, handled.sender) from error
        self.activations += 1

    def attempt(self, function: Callable[[], Any]) -> Any:
        """Return what a function of this operator returns outside of an activation: what makes or ends it."""
        try:
            return function()
        except (BuildError, OperatorError, PeerFailed):
            raise
        except Exception as error:
            raise self.failure(error, None) from error

    def failure(self, error: Exception, time: Time | None, sender: int | None = None) -> OperatorError:
        """Return the error to raise when `error` came out of this operator's code, on a batch of a worker's."""
        return operator_error(self.dataflow, self.name, self.origin, error, time, sender)


def operator_error(
    dataflow: Dataflow, name: str, origin: Origin, error: Exception, time: Time | None, sender: int | None = None
) -> OperatorError:
    """Return an error naming the operator, the time, the worker and the user's line; raise an interrupt as such.

    It names the `sender` of what was handled, too, where that is another worker.
    """
    if isinstance(error, OperatorError):
        return error
    stop = interruption(error)
    if stop is not None:
        raise stop from None
    if isinstance(error, DataError) and error.time is not None:
        time = error.time
    line = raised_at(error.__traceback__)
    at = "" if time is None else f" at time {time}"
    after = "" if sender in (None, dataflow.worker_index) else f", after a batch from worker {sender}"
    where = f"built at {origin}" if line is None else f"{line}" if line == origin else f"{line}, built at {origin}"
    failure = OperatorError(
        f"operator {name!r} failed{at} on worker {dataflow.worker_index} of {dataflow.peers}{after} "
        f"({where}): {type(error).__name__}: {error}{_noted(error)}"
    )
    failure.__cause__ = error  # compiled, `raise ... from` forgets it
    return failure


def _noted(error: Exception) -> str:
    """Return the notes of an error, which `timely.data.user_functions` adds to those of functions of columns."""
    notes = getattr(error, "__notes__", ())
    return f" ({'; '.join(notes)})" if notes else ""
