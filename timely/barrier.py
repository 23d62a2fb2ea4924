"""A barrier: all workers wait for one another.

It is a dataflow of its own in which nothing flows: each worker's input moves on by one epoch, and a probe says when all
have. A round costs one exchange of progress between the workers, which go on with their other dataflows meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from timely.worker import Worker


class Barrier:
    """Lets no worker pass before all have come. All workers must make it, in the same order as their dataflows.

    >>> def program(worker):
    ...     barrier = Barrier(worker)
    ...     barrier.wait()
    ...     came.append(worker.index)
    ...     barrier.wait()
    ...     return len(came)
    >>> came = []
    >>> execute(program, Config(workers=2))
    [2, 2]
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        with worker.dataflow("barrier") as scope:
            self._input, stream = scope.new_input("barrier")
            self._probe = stream.probe()

    def wait(self) -> None:
        """Step this worker until every worker has called this as often."""
        self._input.advance_to(self._input.epoch + 1)
        self._worker.step_while(lambda: self._probe.less_than(self._input.time))
