"""A barrier: all workers wait for one another.

It is a dataflow of its own in which nothing flows: each worker's input moves on by one epoch, and a probe says when all
have. A round costs one exchange of progress between the workers, which go on with their other dataflows meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from timely.dataflow.operators.input import new_input
from timely.errors import CapabilityError

if TYPE_CHECKING:
    from timely.worker.worker import Worker


class Barrier:
    """Lets no worker pass before all have come. All workers must make it, in the same order as their dataflows.

    Its dataflow stays until all workers have closed it, which the end of a `with` statement does, too.

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
        """Step this worker until every worker has called this as often, or has closed the barrier.

        Raises CapabilityError where this worker has closed it, or its dataflow was dropped.
        """
        if self._input.is_closed:
            raise CapabilityError("the barrier was closed here: no worker waits for this one any more")
        self._input.advance_to(self._input.epoch + 1)
        self._worker.step_while(lambda: self._probe.less_than(self._input.time))

    def close(self) -> None:
        """Come no more: nobody waits for this worker any longer. Once all have said so, the dataflow is gone."""
        self._input.close()

    def __enter__(self) -> Barrier:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
