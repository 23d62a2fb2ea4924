"""A barrier: all workers wait for one another.

It is a dataflow of its own without any data. Each worker's input advances by one epoch, and a probe shows when all
inputs have. A round costs one exchange of progress between the workers, whose other dataflows continue meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from timely.dataflow.operators.input import new_input
from timely.errors import CapabilityError

if TYPE_CHECKING:
    from timely.worker.worker import Worker


class Barrier:
    """Lets workers pass only when all have arrived. All workers must create it, in the same order as their dataflows.

    Its dataflow exists until all workers have closed it, by `close` or the end of a `with` statement.

    >>> def program(worker):
    ...     barrier = Barrier(worker)
    ...     barrier.wait()
    ...     came.append(worker.index)
    ...     barrier.wait()
    ...     barrier.close()
    ...     return len(came)
    >>> came = []
    >>> execute(program, Config(workers=2))
    [2, 2]
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        with worker.dataflow("barrier") as scope:
            self._input, stream = new_input(scope, name="barrier")
            self._probe = stream.probe()

    def wait(self) -> None:
        """Step this worker until every worker has called this method equally often, or has closed the barrier.

        Raises CapabilityError if this worker has closed the barrier, or its dataflow was dropped.
        """
        if self._input.is_closed:
            raise CapabilityError("the barrier was closed on this worker: no worker waits for it any longer")
        self._input.advance_to(self._input.epoch + 1)
        # The probe passes the epoch before this time once every worker's input is at it or later, or closed.
        self._worker.step_while(lambda: self._probe.less_than(self._input.time))

    def close(self) -> None:
        """Stop taking part: no worker waits for this one any more. When all have closed, the dataflow ends."""
        self._input.close()

    def __repr__(self) -> str:
        return f"Barrier({'closed' if self._input.is_closed else f'round {self._input.epoch}'})"

    def __enter__(self) -> Barrier:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
