"""Close a loop."""

from __future__ import annotations

from typing import Any

from timely.arguments import check_kind, check_whole, refusal
from timely.dataflow.builder import OperatorBuilder
from timely.dataflow.pact import Pipeline
from timely.dataflow.ports import OutputPort
from timely.dataflow.streams import S, ScopeCore
from timely.dataflow.tee import later
from timely.errors import BuildError, CapabilityError
from timely.order import Time
from timely.progress.summary import PathSummary


class LoopHandle:
    """The open end of a loop; `stream.connect_loop(handle)` closes it.

    >>> def program(scope):
    ...     with scope.iterative() as loop:
    ...         handle, again = loop.feedback()
    ...         counted = scope.to_stream([0]).enter(loop).concat(again).map(lambda x: x + 1)
    ...         handle.connect(counted.filter(lambda x: x < 3))
    ...         return counted.leave()
    >>> example(program)
    [1, 2, 3]
    """

    def __init__(self, builder: OperatorBuilder[Any], output: OutputPort, step: int) -> None:
        self._builder = builder
        self._step = step
        self._connected = False
        self._output = output

    def connect(self, stream: S) -> None:
        """Feed `stream` back, each time's innermost counter advanced. Raises BuildError if it is closed."""
        if self._connected:
            raise BuildError(f"{self._builder.operator}: this loop is already closed; concat the streams first")
        self._connected = True
        builder, step = self._builder, self._step
        scope = builder.scope
        input = builder.add_input(stream, Pipeline())
        summary = PathSummary.feedback(scope.width, step)
        builder.connect(input, self._output, summary)
        push = later(self._output.tee, step, self._refused)

        # No capability: what `push` sends is counted in the same step in which the message is counted no longer.
        def logic() -> None:
            for time, batch in input.drain():
                push(time, batch)

        builder.build(lambda _: logic, inline=push)

    def _refused(self, time: Time) -> Exception:
        """Return the error for a message at a time from which none results."""
        operator = self._builder.operator
        next = (*time[:-1], time[-1] + self._step)
        error = CapabilityError(
            f"{next} is too late for the next round: no coordinate of a time may be larger than 2 ** 62"
        )
        failure = operator.failure(error, time)
        operator.dataflow.lose(failure)  # also where the program sends, outside of any step
        return failure


def feedback(scope: ScopeCore[S], step: int = 1, *, name: str = "feedback") -> tuple[LoopHandle, S]:
    """Return a handle and the stream of what will be fed back: whatever is connected, its counter advanced by `step`.

    Raises BuildError unless `step` is a whole number of at least 1.

    >>> def program(scope):
    ...     with scope.iterative() as inner:
    ...         handle, again = inner.feedback()
    ...         doubled = scope.to_stream(range(1, 4)).enter(inner).concat(again).map(lambda x: 2 * x)
    ...         doubled.filter(lambda x: x < 10).connect_loop(handle)
    ...         return doubled.filter(lambda x: x >= 10).leave()
    >>> sorted(example(program))
    [12, 16, 16]

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
    check_whole(name, 1, step=step)
    builder = OperatorBuilder(scope, name)
    output, stream = builder.add_output()
    return LoopHandle(builder, output, int(step)), stream


def connect_loop(stream: S, handle: LoopHandle) -> None:
    """Close the loop that `handle` was made for with this stream. Raises BuildError if it is already closed.

    >>> def countdown(scope):
    ...     with scope.iterative() as loop:
    ...         handle, again = loop.feedback()
    ...         numbers = scope.to_stream([3]).enter(loop).concat(again)
    ...         numbers.map(lambda x: x - 1).filter(lambda x: x > 0).connect_loop(handle)
    ...         return numbers.leave()
    >>> example(countdown)
    [3, 2, 1]
    """
    check_kind("connect_loop", LoopHandle, "the handle of a loop, as scope.feedback() makes", handle=handle)
    handle.connect(stream)


def loop_variable(scope: ScopeCore[S], step: int = 1, *, name: str = "loop_variable") -> tuple[LoopHandle, S]:
    """Return what `feedback` does, for a loop of `scope`; refuse a scope whose times have no loop counter.

    >>> def doubled_until_100(scope):
    ...     start = scope.to_stream([3])
    ...     with scope.iterative() as loop:
    ...         handle, again = loop.loop_variable()
    ...         small, large = start.enter(loop).concat(again).map(lambda x: 2 * x).branch(lambda x: x >= 100)
    ...         small.connect_loop(handle)
    ...         return large.leave()
    >>> example(doubled_until_100)
    [192]
    """
    if scope.width == scope.outer:
        raise refusal(name, f"{scope} has no loop counter: a loop variable belongs in an iterative scope")
    return feedback(scope, step, name=name)
