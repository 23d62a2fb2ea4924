"""Running small programs, for doctests and first steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from timely.container import records
from timely.errors import BuildError
from timely.execute import execute_directly

if TYPE_CHECKING:
    from timely.dataflow.scope import Scope
    from timely.dataflow.stream import Stream
    from timely.worker import Worker


def example(program: Callable[[Scope], Stream]) -> list[Any]:
    """Return the records on the stream that `program(scope)` makes, run to completion by one worker in this thread.

    >>> example(lambda scope: scope.to_stream(range(3)).map(lambda x: 10 * x))
    [0, 10, 20]
    """
    found: list[Any] = []

    def build(worker: Worker) -> None:
        with worker.dataflow("example") as scope:
            made = program(scope)
            if not hasattr(made, "inspect_batch"):
                raise BuildError(f"the program of an example must return a stream, and returned {made!r:.80}")
            made.inspect_batch(lambda time, batch: found.extend(records(batch)))

    execute_directly(build)
    return found
