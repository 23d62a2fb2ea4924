"""Scopes: where in a dataflow something is, and what its timestamps look like.

The outermost scope of a dataflow has times of `outer` coordinates (one epoch, unless more are asked for). Each
iterative scope adds a loop counter. A region adds nothing: it is structure for people. Scopes are not operators;
entering, leaving and going round a loop are path summaries on the edges between places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from timely.dataflow.operators import empty, feedback, iterator_source, to_stream
from timely.dataflow.operators.feedback import LoopHandle
from timely.dataflow.probe import Probe
from timely.dataflow.streams import S, ScopeCore


class ScopeOf(ScopeCore[S]):
    """A scope whose streams are of class S, with the operators that begin there."""

    @contextmanager
    def iterative(self, name: str = "iterative") -> Iterator[Self]:
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
        yield type(self)(self.dataflow, self, name, self.outer, iterative=True)

    @contextmanager
    def region(self, name: str = "region") -> Iterator[Self]:
        """Open a scope with the same times: structure for people, and for what logs and `explain` call its operators.

        >>> def program(scope):
        ...     with scope.region("cleaning") as cleaning:
        ...         return scope.to_stream([3, -1]).enter(cleaning).filter(lambda x: x > 0).leave()
        >>> example(program)
        [3]
        """
        yield type(self)(self.dataflow, self, name, self.outer, iterative=False)

    def to_stream(self, data: Any, *, name: str = "to_stream") -> S:
        """Return a stream of the given data at the least time (see `operators.to_stream`).

        >>> example(lambda scope: scope.to_stream((np.array([1, 2]), np.array(["a", "b"]))))
        [(1, 'a'), (2, 'b')]
        """
        return to_stream.to_stream(self, data, name=name)

    def iterator_source(
        self, epochs: Iterable[Any], probe: Probe, *, ahead: int = 1, name: str = "iterator_source"
    ) -> S:
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
        return iterator_source.iterator_source(self, epochs, probe, ahead=ahead, name=name)

    def feedback(self, step: int = 1, *, name: str = "feedback") -> tuple[LoopHandle, S]:
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
        return feedback.feedback(self, step, name=name)

    def loop_variable(self, step: int = 1, *, name: str = "loop_variable") -> tuple[LoopHandle, S]:
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
        return feedback.loop_variable(self, step, name=name)

    def empty(self, *, name: str = "empty") -> S:
        """Return a stream on which nothing ever comes.

        >>> example(lambda scope: scope.empty().concat(scope.to_stream([1])))
        [1]
        """
        return empty.empty(self, name=name)
