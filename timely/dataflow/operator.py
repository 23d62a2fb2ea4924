"""An operator at run time: its inputs, its outputs and its logic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timely.dataflow.capability import Holder
from timely.dataflow.operator_core import OperatorCore
from timely.dataflow.ports import InputPort, OutputPort
from timely.dataflow.recorder import Recorder
from timely.dataflow.streams import ScopeCore
from timely.errors import CapabilityError, OperatorError, PeerFailed
from timely.origin import Origin
from timely.progress.static import StaticProgress

Logic = Callable[[], None]


class Operator(OperatorCore):
    """An operator with ports and logic."""

    def __init__(self, scope: ScopeCore[Any], name: str, origin: Origin, cancels: bool) -> None:
        super().__init__(scope, name, origin, cancels)
        self.inputs: list[InputPort] = []
        self.outputs: list[OutputPort] = []
        self.asks = False
        """In a region, whether an input asks for its frontier."""
        self.logic: Logic | None = None
        self.named: Callable[[Exception], Exception] | None = None
        """Returns, for an error of the logic, the one that a person can read."""
        self.recorder: Recorder | None = None

    def holder(self, output: int) -> Holder:
        if not 0 <= output < len(self.outputs):
            raise CapabilityError(f"{self} has {len(self.outputs)} output(s), and none with the number {output}")
        return self.outputs[output]

    def run(self) -> None:
        """Activate the operator once."""
        self.active = False  # before the logic runs: if that activates the operator, it runs again
        if self.logic is None:
            return
        for port in self.inputs:
            port.time = None
        try:
            self.logic()
        except (OperatorError, PeerFailed):
            raise
        except Exception as error:
            cause = error if self.named is None else self.named(error)
            handled = [port for port in self.inputs if port.time is not None]
            if not handled:
                raise self.failure(cause, None) from cause
            raise self.failure(cause, handled[0].time, handled[0].sender) from cause
        self.activations += 1  # ends the rights of the messages taken; after an error the dataflow runs nothing

    def settle(self, progress: StaticProgress, turn: int) -> None:
        """Take a place in the order in which a region runs the operators of a scope."""
        self.progress = progress
        self.turn = turn
        self.asks = any(port.interest for port in self.inputs)
