"""Schedule an operator from outside its messages: now or some time later, from any thread.

An operator runs when a message comes or a frontier moves that it asked about. What else it waits for (a socket, a
clock, another thread) calls its activator. In a step of the operator's own worker that schedules it at once; anywhere
else it leaves a request with the worker and wakes it. Several activations before the operator runs are one.
"""

from __future__ import annotations

from threading import get_ident

from timely.dataflow.operator import Operator


class Activator:
    """Schedules one operator; call it, from any thread.

    >>> def ticks(capability, activate):
    ...     remaining = [3, 2, 1]
    ...     def logic(output):
    ...         output.give(capability, [remaining.pop(0)])
    ...         activate.activate_after(0.001) if remaining else capability.drop()
    ...     return logic
    >>> example(lambda scope: source(scope, ticks))
    [3, 2, 1]
    """

    __slots__ = ("_is_requested", "_operator")

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._is_requested = False
        operator.dataflow.may_activate(operator)

    def __repr__(self) -> str:
        return f"<activator of {self._operator}>"

    def __call__(self) -> None:
        """Schedule the operator, and wake its worker if it sleeps."""
        operator = self._operator
        dataflow = operator.dataflow
        if dataflow.running is not None and get_ident() == dataflow.host.activity.thread:
            dataflow.activate(operator)
        elif not self._is_requested:
            try:
                self._is_requested = True  # first: the worker may meet the request before `call` returns
                dataflow.host.call(self._activate)
            except BaseException:  # an interrupt: the worker may lack the request
                self._is_requested = False
                raise

    def activate_after(self, seconds: float) -> None:
        """Schedule the operator when `seconds` have passed; its worker does not sleep longer than that."""
        operator = self._operator
        operator.dataflow.host.call_after(seconds, lambda: operator.dataflow.activate(operator))

    def _activate(self) -> None:
        # In this order: what another thread has done before it finds a request, the operator will see.
        self._is_requested = False
        self._operator.dataflow.activate(self._operator)
