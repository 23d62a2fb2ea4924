"""Running small programs, for doctests and first steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from differential.collection import Collection
from timely import Scope, Worker, execute_directly
from timely.errors import BuildError
from timely.lowlevel import check_functions


def example(program: Callable[[Scope], Collection]) -> list[tuple[tuple[Any, ...], int]]:
    """Return the records of the collection that `program(scope)` returns, sorted, each with how often it occurs.

    A record of a difference of collections may occur a negative number of times.

    >>> example(lambda scope: Collection.of(scope, np.array([5, 5, 4])))
    [((4,), 1), ((5,), 2)]
    """

    check_functions("example", program=program)

    def build(worker: Worker) -> list[tuple[tuple[Any, ...], int]]:
        with worker.dataflow("example") as scope:
            made = program(scope)
            if not hasattr(made, "output"):
                raise BuildError(f"the program of an example must return a collection, and returned {made!r:.80}")
            answer = made.output(signed=True)
        worker.step_while(lambda: not answer.done())
        return answer.records()

    return execute_directly(build)
