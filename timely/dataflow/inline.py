"""Operators without state or capabilities: functions between two tees, which run in line with the producer.

Such a function has no queue, no capability and no activation of its own. In a plain dataflow (`Config.plain`) it is an
operator like others instead, with an input that keeps messages on the worker. So is one in `MOST_IN_LINE` of those that
stand in a line, because each is called by the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from timely.data.container import Batch
from timely.dataflow.attribution import operator_error
from timely.dataflow.builder import OperatorBuilder
from timely.dataflow.core import DataflowCore
from timely.dataflow.pact import Pipeline
from timely.dataflow.recorder import Recorder
from timely.dataflow.streams import S, ScopeCore
from timely.dataflow.tee import Forward, Push, Tee
from timely.errors import BuildError
from timely.order import Time
from timely.origin import Origin, user_origin
from timely.progress.summary import PathSummary

Function = Callable[[Time, Batch], Any]

MOST_IN_LINE: Final = 100
"""How many tees may call each other before a queue: each takes up to three of the 1,000 calls that Python nests."""


class Inline:
    """A consumer of a tee that is just a function: `bind(function)` passes on what it makes of a batch."""

    __slots__ = ("bind", "counter", "dataflow", "function", "index", "name", "origin", "recorder", "scope", "targets")

    def __init__(
        self, stream: S, name: str, origin: Origin, function: Function, bind: Callable[[Function], Push]
    ) -> None:
        self.scope = stream.scope
        self.dataflow: DataflowCore = stream.scope.dataflow
        self.index = self.dataflow.add_function(self)
        self.name = name
        self.origin = origin
        self.function = function
        self.bind = bind
        self.recorder: Recorder | None = None
        self.counter: Callable[[Function], Function] | None = None
        """While batches are counted: what makes the function count them."""
        self.targets: list[int] = []
        """The places of the streams that it makes."""
        stream.tee.consumers.append(self)

    def pusher(self) -> Push:
        function = self.function if self.recorder is None else self.recorder.measured(self.index, self.function)
        return self.bind(function if self.counter is None else self.counter(function))


def inline(stream: S, transform: Callable[[Batch], Batch | None], *, name: str) -> S:
    """Return the stream of `transform(batch)` for every batch of `stream`, at its own time."""
    return inline_timed(stream, lambda time, batch: (time, transform(batch)), name=name)


def inline_timed(
    stream: S,
    transform: Callable[[Time, Batch], tuple[Time, Batch | None]],
    *,
    name: str,
    scope: ScopeCore[S] | None = None,
    summary: PathSummary | None = None,
) -> S:
    """Return the stream of `transform(time, batch)`, in `scope`.

    `summary` states how `transform` changes times; None if it leaves them as they are.
    """
    source = stream.scope
    dataflow = source.dataflow
    origin = user_origin()
    target = _unconnected(source if scope is None else scope, name, _next_depth(stream))
    tee = target.tee

    def bind(function: Function) -> Push:
        def push(time: Time, batch: Batch) -> None:
            try:
                made: tuple[Time, Batch | None] = function(time, batch)
            except Exception as error:
                failure = operator_error(dataflow, name, origin, error, time)
                dataflow.lose(failure)  # also where the program sends, outside of any step
                raise failure from error
            later, result = made
            if result is not None and len(result):
                tee.push(later, result)

        return push

    path = PathSummary.identity(source.width) if summary is None else summary
    _attach(stream, name, origin, transform, bind, [target], path)
    return target


def derived(stream: S, *, name: str) -> S:
    """Return a stream with a location and a tee of its own, which can result from `stream` at its times."""
    target = _unconnected(stream.scope, name, stream.tee.depth)
    identity = PathSummary.identity(stream.scope.width)
    stream.scope.dataflow.plan.add_edge(stream.location, target.location, identity)
    return target


def merged(streams: Sequence[S], *, name: str) -> S:
    """Return the stream of everything on `streams`, all of one scope."""
    for stream in streams:
        if not hasattr(stream, "tee"):
            raise BuildError(f"{name} takes streams, not {stream!r:.80} (at {user_origin()})")
    scope = streams[0].scope
    for stream in streams[1:]:
        if stream.scope is not scope:
            where = f"{name} (at {user_origin()}): one stream is in {scope}, another in {stream.scope}"
            if stream.scope.dataflow is not scope.dataflow:
                raise BuildError(f"{where} of another dataflow: what flows there can be captured and replayed here")
            raise BuildError(f"{where}: use enter() or leave() to bring one to the other")
    streams = [
        stream if stream.tee.depth < MOST_IN_LINE else inline(stream, lambda batch: batch, name=name)
        for stream in streams
    ]
    target = _unconnected(scope, name, 1 + max(stream.tee.depth for stream in streams))
    for stream in streams:
        scope.dataflow.plan.add_edge(stream.location, target.location, PathSummary.identity(scope.width))
        stream.tee.consumers.append(Forward(target.tee))
    return target


def split(
    stream: S, divide: Callable[[Time, Batch], Iterable[tuple[int, Batch]]], parts: int, *, name: str
) -> tuple[S, ...]:
    """Return `parts` streams; `divide(time, batch)` yields (number of the stream, what is emitted there)."""
    dataflow = stream.scope.dataflow
    origin = user_origin()
    depth = _next_depth(stream)
    targets = tuple([_unconnected(stream.scope, f"{name} {number}", depth) for number in range(parts)])
    tees = [target.tee for target in targets]

    def pieces(time: Time, batch: Batch) -> list[tuple[int, Batch]]:
        # All at once, so that `push` meets every error of `divide` before it sends anything. Recorders recognise pieces
        # by the list.
        return [(number, piece) for number, piece in divide(time, batch) if len(piece)]

    def bind(function: Function) -> Push:
        def push(time: Time, batch: Batch) -> None:
            try:
                made = function(time, batch)
            except Exception as error:
                failure = operator_error(dataflow, name, origin, error, time)
                dataflow.lose(failure)  # also where the program sends, outside of any step
                raise failure from error
            for number, piece in made:
                tees[number].push(time, piece)

        return push

    identity = PathSummary.identity(stream.scope.width)
    _attach(stream, name, origin, pieces, bind, targets, identity)
    return targets


def _unconnected(scope: ScopeCore[S], name: str, depth: int) -> S:
    """Return a stream of a scope that nothing can result in yet, whose tee is at a depth."""
    dataflow = scope.dataflow
    return scope.stream(dataflow.add_place(scope, f"stream {name!r}"), dataflow.add_tee(depth))


def _next_depth(stream: S) -> int:
    """Return the depth of what consumes a stream: 0 where a queue is between."""
    return 0 if _needs_queue(stream) else stream.tee.depth + 1


def _needs_queue(stream: S) -> bool:
    """Return whether a function of a stream has a queue."""
    return stream.scope.dataflow.is_plain or stream.tee.depth >= MOST_IN_LINE


def _attach(
    stream: S,
    name: str,
    origin: Origin,
    function: Function,
    bind: Callable[[Function], Push],
    targets: Sequence[S],
    summary: PathSummary,
) -> None:
    """Have a function consume a stream: in line, or as an operator with a queue."""
    dataflow = stream.scope.dataflow
    source = stream.location
    if _needs_queue(stream):
        source = _scheduled(stream, name, bind(function), [target.tee for target in targets])
    else:
        Inline(stream, name, origin, function, bind).targets = [target.location for target in targets]
    for target in targets:
        dataflow.plan.add_edge(source, target.location, summary)


def _scheduled(stream: S, name: str, push: Push, tees: list[Tee]) -> int:
    """Build an operator that calls `push` for each message; return the place of its input.

    It needs no capability: a message is counted at the input until the step ends in which `push` sent what follows from
    it, and all changes of a step reach the tracker together.
    """
    builder = OperatorBuilder(stream.scope, name)
    builder.operator.tees = tees
    input = builder.add_input(stream, Pipeline(), drains=True)

    def logic() -> None:
        for time, batch in input.drain():
            push(time, batch)

    builder.build_from(logic)
    return input.place
