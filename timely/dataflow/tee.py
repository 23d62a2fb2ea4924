"""Tees: where the messages of a stream go on to everything that consumes it.

A consumer is an operator's input, a function that runs in line with the stream's producer, or another tee. What each
wants to be called is looked up once, when the dataflow is built; from then on a message costs one call per consumer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from timely.data.container import Batch
from timely.errors import BuildError
from timely.order import LIMIT, Time

Push = Callable[[Time, Batch], None]


class Consumer(Protocol):
    """Something that can be attached to a tee."""

    def pusher(self) -> Push:
        """Return the function to call with each message, once the dataflow is built."""


class Tee:
    """Passes each message of a stream to all its consumers. `push` is final once the dataflow is built."""

    __slots__ = ("consumers", "depth", "observers", "push")

    def __init__(self, depth: int = 0) -> None:
        self.consumers: list[Consumer] = []
        self.observers: list[Push] = []
        """What is called with each message before the consumers, while somebody wants to know of it."""
        self.depth = depth
        """Through how many tees in line a message may have come since an operator emitted it."""
        self.push: Push = _not_built

    def resolve(self) -> None:
        """Look up what to call for each message."""
        pushers = [*self.observers, *[consumer.pusher() for consumer in self.consumers]]
        if len(pushers) == 1:
            self.push = pushers[0]
            return

        def push(time: Time, batch: Batch) -> None:
            for pusher in pushers:
                pusher(time, batch)

        self.push = push


class Forward:
    """A consumer that passes everything on to another tee, unchanged."""

    __slots__ = ("_tee",)

    def __init__(self, tee: Tee) -> None:
        self._tee = tee

    def pusher(self) -> Push:
        tee = self._tee
        # `push` is looked up for each message: that tee may be resolved after this one, and again later.
        return lambda time, batch: tee.push(time, batch)


def later(tee: Tee, step: int, refused: Callable[[Time], Exception]) -> Push:
    """Return what passes messages on to a tee with the last coordinate of their times larger by `step`.

    Nothing results past the limit of times. For a message that would, it raises what `refused` returns for its time.
    """
    last = LIMIT - step

    def push(time: Time, batch: Batch) -> None:
        if time[-1] > last:
            raise refused(time)
        tee.push((*time[:-1], time[-1] + step), batch)

    return push


def _not_built(time: Time, batch: Batch) -> None:
    raise BuildError("data was sent before the dataflow was complete: leave its `with` block first")
