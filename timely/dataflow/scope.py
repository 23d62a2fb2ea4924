"""Scopes: where in a dataflow something is, and what its timestamps look like.

The outermost scope of a dataflow has times of `outer` coordinates (one epoch, unless more are asked for). Each
iterative scope adds a loop counter. A region adds nothing: it is structure for people. Scopes are not operators;
entering, leaving and going round again are path summaries on the edges between locations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from timely.order import Time
from timely.origin import user_origin
from timely.progress.summary import PathSummary

if TYPE_CHECKING:
    from timely.dataflow.dataflow import Dataflow
    from timely.dataflow.operators.feedback import LoopHandle
    from timely.dataflow.operators.probe import Probe
    from timely.dataflow.stream import Stream


class Scope:
    """A scope of a dataflow; made by `Worker.dataflow`, `Scope.iterative` and `Scope.region`."""

    def __init__(self, dataflow: Dataflow, parent: Scope | None, name: str, outer: int, iterative: bool) -> None:
        self.dataflow = dataflow
        self.parent = parent
        self.name = name
        self.outer = outer
        self.origin = user_origin()
        if parent is None:
            self.width, self.path = outer, name
        else:
            self.width = parent.width + iterative
            self.path = f"{parent.path}/{name}"

    @property
    def minimum(self) -> Time:
        """The least time of this scope."""
        return (0,) * self.width

    @property
    def index(self) -> int:
        """This worker's index."""
        return self.dataflow.worker_index

    @property
    def peers(self) -> int:
        """The number of workers."""
        return self.dataflow.peers

    @contextmanager
    def iterative(self, name: str = "iterative") -> Iterator[Scope]:
        """Open a scope whose times have one more coordinate, a loop counter.

        >>> def odd_part(scope):
        ...     with scope.iterative() as loop:
        ...         handle, again = loop.feedback()
        ...         even, odd = scope.to_stream([12]).enter(loop).concat(again).branch(lambda x: x % 2 == 1)
        ...         even.map(lambda x: x // 2).connect_loop(handle)
        ...         return odd.leave()
        >>> example(odd_part)
        [3]
        """
        yield Scope(self.dataflow, self, name, self.outer, iterative=True)

    @contextmanager
    def region(self, name: str = "region") -> Iterator[Scope]:
        """Open a scope with the same times: structure for people, and for what logs and `explain` call its operators.

        >>> def program(scope):
        ...     with scope.region("cleaning") as cleaning:
        ...         return scope.to_stream([3, -1]).enter(cleaning).filter(lambda x: x > 0).leave()
        >>> example(program)
        [3]
        """
        yield Scope(self.dataflow, self, name, self.outer, iterative=False)

    def is_within(self, other: Scope) -> bool:
        """Return whether this scope is `other` or lies inside it.

        >>> def program(scope):
        ...     with scope.iterative() as loop:
        ...         print(loop.is_within(scope), scope.is_within(loop))
        ...     return scope.empty()
        >>> example(program)
        True False
        []
        """
        scope: Scope | None = self
        while scope is not None:
            if scope is other:
                return True
            scope = scope.parent
        return False

    def summary_to(self, target: Scope) -> PathSummary:
        """Return the path summary of entering or leaving to `target`, a scope around this one or inside it."""
        if target.width >= self.width:
            return PathSummary(self.width, (0,) * self.width, (0,) * (target.width - self.width))
        return PathSummary(target.width, (0,) * target.width, ())

    def to_stream(self, data: Any, *, name: str = "to_stream") -> Stream:
        """Return a stream of the given data at the least time (see `operators.to_stream`).

        >>> example(lambda scope: scope.to_stream((np.array([1, 2]), np.array(["a", "b"]))))
        [(1, 'a'), (2, 'b')]
        """
        from timely.dataflow.operators.to_stream import to_stream

        return to_stream(self, data, name=name)

    def iterator_source(
        self, epochs: Iterable[Any], probe: Probe, *, ahead: int = 1, name: str = "iterator_source"
    ) -> Stream:
        """Return the stream of the items of `epochs`, never far before `probe` (see `operators.iterator_source`).

        >>> def program(worker):
        ...     probe = Probe()
        ...     with worker.dataflow() as scope:
        ...         scope.iterator_source([[1, 2], [3]], probe).inspect_time(print).probe_with(probe)
        ...     worker.step_while(lambda: not probe.done())
        >>> execute_directly(program)
        (0,) 1
        (0,) 2
        (1,) 3
        """
        from timely.dataflow.operators.iterator_source import iterator_source

        return iterator_source(self, epochs, probe, ahead=ahead, name=name)

    def feedback(self, step: int = 1, *, name: str = "feedback") -> tuple[LoopHandle, Stream]:
        """Return a handle to close a loop with, and the stream of what comes round (see `operators.feedback`).

        With one coordinate of time, what is fed back comes round in a later epoch, here the next but one:

        >>> def program(scope):
        ...     handle, again = scope.feedback(2)
        ...     numbers = scope.to_stream([3]).concat(again).inspect_time(print)
        ...     numbers.map(lambda x: x - 1).filter(lambda x: x > 1).connect_loop(handle)
        ...     return numbers
        >>> example(program)
        (0,) 3
        (2,) 2
        [3, 2]
        """
        from timely.dataflow.operators.feedback import feedback

        return feedback(self, step, name=name)

    def loop_variable(self, step: int = 1, *, name: str = "loop_variable") -> tuple[LoopHandle, Stream]:
        """Return a handle to close a loop of this iterative scope with, and the stream of what comes round.

        >>> def program(scope):
        ...     with scope.iterative() as loop:
        ...         handle, again = loop.loop_variable()
        ...         small, large = scope.to_stream([3]).enter(loop).concat(again).branch(lambda x: x > 20)
        ...         small.map(lambda x: x * x).connect_loop(handle)
        ...         return large.leave()
        >>> example(program)
        [81]
        """
        from timely.dataflow.operators.feedback import loop_variable

        return loop_variable(self, step, name=name)

    def empty(self, *, name: str = "empty") -> Stream:
        """Return a stream on which nothing ever comes.

        >>> example(lambda scope: scope.empty().concat(scope.to_stream([1])))
        [1]
        """
        from timely.dataflow.operators.empty import empty

        return empty(self, name=name)

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        return f"scope {self.path!r}"
