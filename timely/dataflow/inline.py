"""Operators without state or capabilities: functions between two tees, run in line with the producer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import timely.dataflow.stream as streams
from timely.data.container import Batch
from timely.dataflow.operator import operator_error
from timely.dataflow.ports import Push, Tee
from timely.errors import BuildError
from timely.order import Time
from timely.origin import Origin, user_origin
from timely.progress.summary import PathSummary

if TYPE_CHECKING:
    from timely.dataflow.dataflow import Dataflow
    from timely.dataflow.recorder import Recorder
    from timely.dataflow.scope import Scope
    from timely.dataflow.stream import Stream


Function = Callable[[Time, Batch], Any]


class Inline:
    """A consumer of a tee that is just a function: `bind(function)` passes on what it makes of a batch."""

    __slots__ = ("bind", "dataflow", "function", "index", "name", "origin", "recorder", "scope")

    def __init__(
        self, stream: Stream, name: str, origin: Origin, function: Function, bind: Callable[[Function], Push]
    ) -> None:
        self.scope = stream.scope
        self.dataflow: Dataflow = stream.scope.dataflow
        self.index = len(self.dataflow.inlines)
        self.name = name
        self.origin = origin
        self.function = function
        self.bind = bind
        self.recorder: Recorder | None = None
        self.dataflow.inlines.append(self)
        stream.tee.consumers.append(self)

    def pusher(self) -> Push:
        return self.bind(self.function if self.recorder is None else self.recorder.measured(self.index, self.function))


class Forward:
    """A consumer of a tee that passes everything on to another tee, unchanged."""

    __slots__ = ("_tee",)

    def __init__(self, tee: Tee) -> None:
        self._tee = tee

    def pusher(self) -> Push:
        tee = self._tee
        return lambda time, batch: tee.push(time, batch)


def inline(stream: Stream, transform: Callable[[Batch], Batch | None], *, name: str) -> Stream:
    """Return the stream of `transform(batch)` for every batch of `stream`, at its own time."""
    return inline_timed(stream, lambda time, batch: (time, transform(batch)), name=name)


def inline_timed(
    stream: Stream,
    transform: Callable[[Time, Batch], tuple[Time, Batch | None]],
    *,
    name: str,
    scope: Scope | None = None,
    summary: PathSummary | None = None,
) -> Stream:
    """Return the stream of `transform(time, batch)`, in `scope`, whose times are those that `summary` says."""
    source = stream.scope
    dataflow = source.dataflow
    origin = user_origin()
    target = derived(stream, name=name, scope=scope, summary=summary)
    tee = target.tee

    def bind(function: Function) -> Push:
        def push(time: Time, batch: Batch) -> None:
            try:
                later, result = function(time, batch)
            except Exception as error:
                raise operator_error(dataflow, name, origin, error, time) from error
            if result is not None and len(result):
                tee.push(later, result)

        return push

    Inline(stream, name, origin, transform, bind)
    return target


def derived(stream: Stream, *, name: str, scope: Scope | None = None, summary: PathSummary | None = None) -> Stream:
    """Return a stream with a location and a tee of its own, which can result from `stream`."""
    source = stream.scope
    dataflow = source.dataflow
    scope = source if scope is None else scope
    location = dataflow.add_place(scope, f"stream {name!r}")
    summary = PathSummary.identity(source.width) if summary is None else summary
    dataflow.wiring.add_edge(stream.location, location, summary)
    return streams.Stream(scope, location, dataflow.add_tee())


def merged(streams: Sequence[Stream], *, name: str) -> Stream:
    """Return the stream of everything on `streams`, all of one scope."""
    first = streams[0]
    dataflow = first.scope.dataflow
    target = derived(first, name=name)
    first.tee.consumers.append(Forward(target.tee))
    for stream in streams[1:]:
        if stream.scope is not first.scope:
            where = f"{name}: one stream is in {first.scope}, another in {stream.scope}"
            if stream.scope.dataflow is not first.scope.dataflow:
                raise BuildError(f"{where} of another dataflow: what flows there can be captured, and replayed here")
            raise BuildError(f"{where}: use enter() or leave() to bring one to the other")
        dataflow.wiring.add_edge(stream.location, target.location, PathSummary.identity(first.scope.width))
        stream.tee.consumers.append(Forward(target.tee))
    return target


def split(
    stream: Stream, divide: Callable[[Time, Batch], Iterable[tuple[int, Batch]]], parts: int, *, name: str
) -> tuple[Stream, ...]:
    """Return `parts` streams; `divide(time, batch)` yields (number of the stream, what goes there)."""
    dataflow = stream.scope.dataflow
    origin = user_origin()
    targets = tuple([derived(stream, name=f"{name} {number}") for number in range(parts)])
    tees = [target.tee for target in targets]

    def pieces(time: Time, batch: Batch) -> list[tuple[int, Batch]]:
        return [(number, piece) for number, piece in divide(time, batch) if len(piece)]

    def bind(function: Function) -> Push:
        def push(time: Time, batch: Batch) -> None:
            try:
                made = function(time, batch)
            except Exception as error:
                raise operator_error(dataflow, name, origin, error, time) from error
            for number, piece in made:
                tees[number].push(time, piece)

        return push

    Inline(stream, name, origin, pieces, bind)
    return targets
