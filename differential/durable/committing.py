"""Append what becomes final, while the worker goes on: a group of epochs at a time, in a thread.

An append waits for the disk several times, so it runs in a thread, one for each collection at most. What becomes final
meanwhile is the next group. Frontiers tell everybody else how far the collection is durable: the operator that owns an
`Appender` holds a capability for `Appender.upper`.

If the program waits for an append, the next one begins as soon as there is something to append. A program that does
not wait would always have an append in progress, each of a few epochs, and as many small parts to merge. The appender
therefore rests if further epochs are over when an append ends (`rest`).
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

from differential.data.updates import Updates
from differential.durable.manifest import Position
from differential.durable.state import OpenShard
from timely.lowlevel import Activator

T = TypeVar("T")
Offset = tuple[int, str, Position]
"""At an epoch, the position of a source after the changes of that epoch."""

REST = 9
"""A rest is this many times as long as the append before it, so appends take a tenth of the time."""
LONGEST_REST = 1.0
"""It has at most this many seconds, because a store may answer late once."""


class Appender:
    """Appends staged updates and offsets, on worker 0. Use from the worker's thread.

    `flush` is the least time between two appends, in seconds. `may_compact` returns whether parts may be merged now.
    """

    def __init__(self, shard: OpenShard, flush: float, activate: Activator, may_compact: Callable[[], bool]) -> None:
        self._shard = shard
        self._flush = flush
        self._activate = activate
        self._may_compact = may_compact
        self._staged: list[Updates] = []
        self.offsets: list[Offset] = []
        """Positions of sources, which are appended together with the updates of their epochs."""
        self._last: Future[None] | None = None
        self._next_at = self._awaited_at = self._took = 0.0

    @property
    def upper(self) -> int:
        """The time before which everything is durable."""
        return self._shard.writer.manifest.upper

    @property
    def is_busy(self) -> bool:
        """Whether an append is under way. Raises what the last one raised, if it failed."""
        if self._last is None or not self._last.done():
            return self._last is not None
        self._last.result()
        return False

    def is_due(self) -> bool:
        """Return whether it is time for the next append; if it is not, the operator is activated when it is."""
        remaining = self._next_at - clock.monotonic()
        if remaining > 0 and self._awaited_at != self._next_at:  # one activation for each deadline
            self._awaited_at = self._next_at
            self._activate.activate_after(remaining)
        return remaining <= 0

    def rest(self, upper: int, has_arrived: bool) -> None:
        """Delay the next append if the last one has just ended and further times, before `upper`, are over.

        In this case the program has gone on during the append, so it does not wait for it. While changes that have
        arrived meanwhile are not staged, nobody knows yet which times are over.
        """
        if upper > self.upper:
            self._next_at = max(self._next_at, clock.monotonic() + min(REST * self._took, LONGEST_REST))
        if upper > self.upper or not has_arrived:
            self._took = 0.0  # further calls until the next append must not prolong the rest

    def stage(self, updates: Updates) -> None:
        """Append these updates as soon as their times are final."""
        if len(updates):
            # Text as it is, not as numbers: only the worker's thread may use the table that has it.
            self._staged.append(updates.for_other_worker())

    def staged_upper(self) -> int:
        """Return the time after the last at which something is staged, at least `upper`."""
        last = [int(updates.times.max()) for updates in self._staged] + [epoch for epoch, _, _ in self.offsets]
        return max(self.upper, max(last, default=-1) + 1)

    def append(self, upper: int) -> None:
        """Begin to append everything at times before `upper`, which must be final; activate the operator at the end."""
        assert not self.is_busy
        batches, self._staged = split(self._staged, upper)
        # Of a source the last position counts: one worker sends all of them, in order. An offset without a source only
        # carries its epoch to `staged_upper` (`DurableSession.close`).
        offsets = {source: position for epoch, source, position in self.offsets if epoch < upper and source}
        offsets |= self._shard.state.made_of(self._shard, upper)
        self.offsets = [offset for offset in self.offsets if offset[0] >= upper]
        begun = clock.monotonic()
        self._next_at = begun + self._flush
        may_compact = self._may_compact()  # here, because it may read a frontier, which belongs to the worker's thread

        def run() -> None:
            try:
                writer = self._shard.writer
                # Other threads append to what limits this. Uppers only grow, so an old one retains more than it must.
                writer.append(upper, batches, offsets, limit=self._shard.state.limit(self._shard))
                if may_compact:
                    self._activate()  # what was appended is durable; what follows may take a while
                    writer.compact()
            finally:
                self._took = clock.monotonic() - begun

        self._last = in_thread(f"append to {self._shard.name}", run, self._activate)


def in_thread(name: str, call: Callable[[], T], activate: Callable[[], object]) -> Future[T]:
    """Return the result that a call will have in a thread of its own, which ends with `activate`.

    >>> in_thread("a sum", lambda: 3 + 4, lambda: None).result()
    7
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # raised again on the worker's thread
            future.set_exception(error)
        activate()  # last, because the operator asks whether the call is over

    Thread(target=run, name=name, daemon=True).start()
    return future


def split(batches: list[Updates], upper: int) -> tuple[list[Updates], list[Updates]]:
    """Return the updates at times before `upper`, and the others.

    >>> split([Updates((np.arange(2),), np.array([[3], [4]]), np.array([0, 1]))], 4)
    ([Updates([((0,), (3,), 1)])], [Updates([((1,), (4,), 1)])])
    """
    before, after = [], []
    for updates in batches:
        is_before = updates.times[:, 0] < upper
        if is_before.all():
            before.append(updates)
        elif not is_before.any():
            after.append(updates)
        else:
            rows = is_before[updates.time_index]
            before.append(updates.take(rows))
            after.append(updates.take(~rows))
    return [each for each in before if len(each)], [each for each in after if len(each)]
