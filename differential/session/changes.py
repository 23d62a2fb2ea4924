"""What commits change, one commit at a time.

`Changes` collects from its creation on, until it is closed or forgotten. Its workers put a `Change` for each commit
that changes anything; the program takes them in a loop that waits, in `async for`, or all changes so far at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from threading import Condition
from typing import Any, NamedTuple, Self

import numpy as np

from differential.frames.python import items
from differential.session.awaiting import interruptible
from differential.session.table_data import Column, frame_of, order_of
from timely.lowlevel import user_origin


class Change(NamedTuple):
    """The rows that a commit changed, in columns, and by how much more often each occurs.

    `to_pandas`, `to_polars` and `to_arrow` make a frame that has the columns `time` and `diff` after those of the rows.
    If the rows have a column of such a name, the further one is `time_` or `diff_`.

    >>> change = Change(2, ("x",), (np.array([5, 3]),), np.array([1, -1]))
    >>> change.records()
    [((3,), -1), ((5,), 1)]
    >>> change.to_pandas(), change.to_polars().shape, change.to_arrow().num_rows
    (   x  time  diff
    0  5     2     1
    1  3     2    -1, (2, 3), 2)
    """

    time: int
    columns: tuple[str, ...]
    rows: tuple[Column, ...]
    diff: Column

    def records(self) -> list[tuple[tuple[Any, ...], int]]:
        """Return (row, diff) for each row, as Python values, sorted."""
        order = order_of((*self.rows, self.diff))
        return list(zip(zip(*(items(column[order]) for column in self.rows)), self.diff[order].tolist()))

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame of the rows with the columns `time` and `diff` after theirs."""
        return self._frame("pandas")

    def to_polars(self) -> Any:
        """Return a Polars DataFrame, as `to_pandas` does."""
        return self._frame("polars")

    def to_arrow(self) -> Any:
        """Return an Arrow table, as `to_pandas` does."""
        return self._frame("pyarrow")

    def _frame(self, kind: str) -> Any:
        time = np.full(len(self.diff), self.time)
        names = (*self.columns, *(_free(name, self.columns) for name in ("time", "diff")))
        return frame_of(names, (*self.rows, time, self.diff), kind)


class RetainedChanges(NamedTuple):
    """What the commits after `since` have changed. Their marks begin with `label`, a short name of the stream."""

    label: str
    since: int
    changes: list[Change]


def _free(name: str, taken: tuple[str, ...]) -> str:
    return _free(f"{name}_", taken) if name in taken else name


class Changes:
    """The changes of a table or view from a moment on. For any thread.

    Iteration waits for the next change, and ends when the session or the view ends. An error that ended the view is
    raised.

    >>> changes = Changes(lambda changes: print("left"))
    >>> changes.put(Change(1, ("x",), (np.array([5]),), np.array([1])))
    >>> changes.get(timeout=10).time, changes.get(timeout=0), changes.read_nowait()
    (1, None, [])
    >>> changes.put(Change(2, ("x",), (np.array([5]),), np.array([-1])))
    >>> changes.end()
    >>> [change.records() for change in changes]
    [[((5,), -1)]]
    >>> changes.close()
    left
    """

    def __init__(self, leave: Callable[[Changes], object], made_by: str | None = None) -> None:
        self._leave = leave
        self.made_by = made_by
        """The method by which the program follows the changes; None if the session does so by itself."""
        self.origin = user_origin()
        """Where the program asked for them."""
        self._ready: deque[Change] = deque()
        self._condition = Condition()
        self.is_over = False
        """Whether no further change follows."""
        self._error: BaseException | None = None
        self._awaiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def put(self, change: Change) -> None:
        """Add a change."""
        self._ready.append(change)  # atomic, so the lock is needed only to wake those who wait
        self._wake()

    def end(self, error: BaseException | None = None) -> None:
        """End the iteration after the changes so far, with an error if there is one."""
        self._error = error  # first: a reader that finds it over, and no change left, looks for the error
        self.is_over = True
        self._wake()

    def get(self, timeout: float | None = None) -> Change | None:
        """Return the next change, waiting for at most `timeout` seconds; None if there is none."""
        with self._condition:
            self._condition.wait_for(lambda: self._ready or self.is_over, timeout)
            return self._next()

    def read_nowait(self) -> list[Change]:
        """Return the changes so far without waiting. If there are none, raise the error that ended the view, if any."""
        found: list[Change] = []
        while (self._ready or not found) and (change := self._next()) is not None:
            found.append(change)
        return found

    def close(self) -> None:
        """Stop collecting."""
        self._leave(self)  # first: nothing is put behind the end
        self.end()

    def __iter__(self) -> Iterator[Change]:
        while (change := self.get()) is not None:
            yield change

    async def __aiter__(self) -> AsyncIterator[Change]:
        waiter = (asyncio.get_running_loop(), asyncio.Event())
        with self._condition:
            self._awaiting.append(waiter)
        try:
            while True:
                with interruptible():
                    await asyncio.sleep(0)  # the loop has its turn, even if there is always another change
                    waiter[1].clear()  # before the look: what comes after the look sets it again
                    if not (self._ready or self.is_over):
                        await waiter[1].wait()
                # In this order: once it is over, all changes are there. The other order could miss the last one.
                is_over, change = self.is_over, self._next()
                if change is not None:
                    yield change
                elif is_over:
                    return
        finally:
            with self._condition:
                self._awaiting.remove(waiter)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _next(self) -> Change | None:
        try:
            return self._ready.popleft()  # no look before it: another reader could take the change in between
        except IndexError:
            if self._error is None:
                return None
        raise self._error

    def _wake(self) -> None:
        with self._condition:  # a reader that waits has looked under this lock, so it misses no change
            self._condition.notify_all()
            for loop, event in self._awaiting:
                with suppress(RuntimeError):  # the loop is closed, perhaps just now: nobody awaits in it any more
                    loop.call_soon_threadsafe(event.set)
