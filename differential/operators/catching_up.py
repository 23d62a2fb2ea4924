"""Let traces be compacted though nothing comes.

An operator that reads traces, and has nothing to do when a frontier moves, does not ask to run then: it lets its traces
forget what it can when something comes. If a frontier was behind at that time, the traces keep what was still different
then. So after each run the worker calls the operator's `compact` in a step that runs no operator; and if its readers
still lag behind what the traces hold, the operator runs when a frontier moves next. A busy dataflow pays for nothing
of this but a call now and then.
"""

from __future__ import annotations

from collections.abc import Callable

from timely.dataflow.operator import Operator


class CatchingUp:
    """Moves an operator's readers on while it has nothing to do.

    `compact` lets the traces forget what the frontiers allow, and returns whether they hold anything at times that a
    frontier has not passed yet.
    """

    __slots__ = ("_compact", "_is_expected", "_operator")

    def __init__(self, operator: Operator, compact: Callable[[], bool]) -> None:
        self._operator: Operator | None = operator
        self._compact: Callable[[], bool] | None = compact
        self._is_expected = False
        operator.dataflow.when_complete(self._end)

    def expect(self) -> None:
        """Call `compact` when the worker runs no operator; for the end of each run."""
        if not self._is_expected and self._operator is not None:
            self._is_expected = True
            self._operator.dataflow.host.when_idle(self._look)

    def _look(self) -> bool:
        self._is_expected = False
        operator, compact = self._operator, self._compact
        if operator is None or compact is None:
            return False
        # The frontier of an input that drains does not cover what is queued. An operator that is held back, for lack of
        # room behind it, has messages queued though the worker runs none; it asks again after its next run.
        if not any(port.queue for port in operator.inputs) and compact():
            operator.waits = True
        return False

    def _end(self) -> None:
        """Keep nothing of the dataflow, for the worker may call only later."""
        self._operator = self._compact = None
