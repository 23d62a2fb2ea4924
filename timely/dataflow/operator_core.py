"""What an operator's ports know of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timely.dataflow.attribution import operator_error
from timely.dataflow.capability import Holder
from timely.dataflow.core import DataflowCore
from timely.dataflow.schedule import Schedulable
from timely.dataflow.streams import ScopeCore
from timely.dataflow.tee import Push, Tee
from timely.errors import BuildError, OperatorError, PeerFailed
from timely.order import Time
from timely.origin import Origin
from timely.progress.static import StaticProgress


class OperatorCore(Schedulable):
    """An operator without its ports, planned as `node`.

    With `inline` set it is not scheduled at all: a message to its only input calls that function instead. `awaits`,
    where it is set, returns what outside of its dataflow the operator waits for, for people. `activations` counts those
    that have ended. `kept`, where it is set, returns the rows and bytes of the operator's state, to any thread.

    In a region, `progress` is what is held in the operator's scope, and `turn` is its place in the order of the scope.
    """

    def __init__(self, scope: ScopeCore[Any], name: str, origin: Origin, cancels: bool) -> None:
        super().__init__()
        self.scope = scope
        self.dataflow: DataflowCore = scope.dataflow
        self.node = self.dataflow.plan.add_node(name, scope, origin, cancels=cancels)
        self.name = name
        self.index = self.node.index
        self.origin = origin
        self.progress: StaticProgress | None = None
        self.turn = 0
        self.inline: Push | None = None
        self.tees: list[Tee] = []
        """Where its messages leave: those of its outputs, in order."""
        self.activations = 0
        self.awaits: Callable[[], str] | None = None
        self.kept: Callable[[], tuple[int, int]] | None = None

    def __str__(self) -> str:
        return f"operator {self.name!r} (built at {self.origin})"

    def __repr__(self) -> str:
        return f"<{self}>"

    def holder(self, output: int) -> Holder:
        """Return an output."""
        raise NotImplementedError

    def tracked(self, time: Time) -> Time:
        """Return the time at which the tracker knows what is held here at `time`: in a region, as it is outside."""
        return time if self.progress is None else time[: self.progress.outermost.width]

    def activate(self) -> None:
        """Run in this step or the next."""
        self.dataflow.schedule.activate(self)

    def resume_later(self) -> None:
        """Run again when no other operator is ready, since there is more to emit for what was taken."""
        self.dataflow.schedule.resume_later(self)

    def must_wait(self) -> bool:
        """Return whether consumers have no room. Emit nothing then: the operator runs again once there is room."""
        return self.dataflow.schedule.holds_back(self)

    def attempt(self, function: Callable[[], Any]) -> Any:
        """Return what a function of this operator returns outside of an activation: what makes or ends it."""
        try:
            return function()
        except (BuildError, OperatorError, PeerFailed):
            raise
        except Exception as error:
            raise self.failure(error, None) from error

    def failure(self, error: Exception, time: Time | None, sender: int | None = None) -> OperatorError:
        """Return the error to raise when `error` came out of this operator's code, on a batch from a worker."""
        return operator_error(self.dataflow, self.name, self.origin, error, time, sender)
