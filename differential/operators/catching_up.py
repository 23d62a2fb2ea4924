"""Allow traces to be compacted though nothing arrives.

An operator that reads traces, and has nothing to do when a frontier moves, does not ask to run then: it allows
compaction when a batch arrives. If a frontier was behind at that time, the traces keep what was different then. So
after each run the worker calls the operator's `compact` in a step that runs no operator; and if its readers still lag
behind what the traces hold, the operator runs when a frontier moves next. A busy dataflow pays a call now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from timely.lowlevel import InputPort


class CatchingUp:
    """Moves an operator's readers on while the operator has nothing to do.

    `compact` allows compaction as far as the frontiers do, and returns whether the traces hold updates at times that a
    frontier has not passed.
    """

    __slots__ = ("_compact", "_inputs", "_is_expected")

    def __init__(self, inputs: Sequence[InputPort], compact: Callable[[], bool]) -> None:
        """Take all inputs of the operator."""
        self._inputs = tuple(inputs)
        self._compact: Callable[[], bool] | None = compact
        self._is_expected = False
        inputs[0].dataflow.when_complete(self._end)

    def expect(self) -> None:
        """Call `compact` when the worker runs no operator; for the end of each run."""
        if not self._is_expected and self._inputs:
            self._is_expected = True
            self._inputs[0].dataflow.host.when_idle(self._look)

    def _look(self) -> bool:
        self._is_expected = False
        inputs, compact = self._inputs, self._compact
        if compact is None:
            return False
        # The frontier of an input that drains does not cover queued messages. An operator that is held back, because
        # the queues behind it are full, has messages though the worker runs no operator; it expects again after it ran.
        if not any(port.queue for port in inputs) and compact():
            inputs[0].operator.waits = True
        return False

    def _end(self) -> None:
        """Release the dataflow, which the worker's call may outlive."""
        self._inputs = ()
        self._compact = None
