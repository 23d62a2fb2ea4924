"""The threads of a session, and what they are asked to do.

A call is a function of a `Site`, which all workers run, in the same order. Calls are a linked list: adding one is a
single assignment, so an interrupt of the thread that adds it cannot leave some workers with it and others without. A
call whose caller no longer waits is completed all the same.

A call costs two switches of threads (to the worker, and back), three locks and, for each worker, one wake-up.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from threading import Lock, Thread, current_thread, get_ident
from typing import Any, Generic, TypeVar

from differential.session.agreement import Agreement
from differential.session.interrupt import Closing, interrupt
from differential.session.item import Item
from differential.session.site import Site
from timely import Config, Worker, execute
from timely.errors import DataError, SessionError, TraceError

R = TypeVar("R")

PATIENCE = 1.0
"""How many seconds a function that is to end may still run, unless an engine has another `patience`."""
ATTEMPTS = 50
"""How often a function is interrupted before it is left alone: one that waits in C cannot be."""


class Call(Generic[R]):
    """What all workers are asked for, and, in the end, the result of each or an error of one.

    `done` is called on the thread of the last worker once all have made it, though the caller may no longer wait.
    """

    def __init__(self, function: Callable[[Site], R], peers: int, done: Callable[[Call[R]], object] | None) -> None:
        self.function: Callable[[Site], R] | None = function
        self.results: list[R] = []
        self.error: BaseException | None = None
        self.next: Call[Any] | None = None
        self.before: Call[Any] | None = None
        self._left = peers
        self._lock = Lock()
        self._done = done
        self._waiting = Lock()
        self._waiting.acquire()

    @property
    def is_over(self) -> bool:
        """Whether all workers have run it, or never will."""
        return self._left <= 0

    @property
    def is_submitted(self) -> bool:
        """Whether workers make the call, or have: no assignment besides that which lets them make it decides."""
        return self.function is None or (self.before is not None and self.before.next is self)

    def finish(self, result: R | None, error: BaseException | None) -> None:
        """Add the result of one worker."""
        with self._lock:
            self.error = self.error or error
            if error is None:
                self.results.append(result)  # type: ignore[arg-type]
            self._left -= 1
            if self._left:
                return
        if self._done is not None and self.error is None:
            self._done(self)
        self._forget()

    def abandon(self, error: BaseException) -> None:
        """End a call that the workers will not complete."""
        with self._lock:
            if self._left <= 0:
                return
            self._left = 0
            self.error = error
        self._forget()

    def _forget(self) -> None:
        """Let the caller go on, and keep nothing alive: workers keep their last call until the next one."""
        self.function = self._done = self.before = None
        self._waiting.release()

    def wait(self, timeout: float = -1) -> bool:
        """Wait until all workers have run it; return False when `timeout` seconds have passed before that."""
        if self._waiting.acquire(timeout=timeout):
            self._waiting.release()
            return True
        return False


class Engine:
    """Runs the workers of one session."""

    def __init__(self, workers: int, name: str) -> None:
        self.workers = workers
        self.patience = PATIENCE
        self.is_closing = False
        self.ended: BaseException | None = None
        """Why the workers have ended, if not because of `close`."""
        self._agreement = Agreement(workers, self.wake)
        self._sites: dict[int, Site] = {}
        self._lock = Lock()
        self._open: set[Call[Any]] = set()
        self._first: Call[Any] | None = Call(_none, 0, None)
        self._last = self._first
        self._thread = Thread(target=self._run, name=f"timely {name}", daemon=True)
        self._thread.start()
        self.call(_none)
        self._first = None  # all workers are past it, and it would keep alive all that follow

    def call(self, function: Callable[[Site], R]) -> list[R]:
        """Return what `function` returns on each worker. Raises what it raises there."""
        call = Call(function, self.workers, None)
        self.submit(call)
        call.wait()
        return self.result(call)

    def result(self, call: Call[R]) -> list[R]:
        """Return the results of a call that is over, or raise its error."""
        if call.error is not None:
            try:
                raise call.error
            finally:
                del call, self  # no cycle through the traceback
        results, call.results = call.results, []
        return results

    def submit(self, call: Call[Any]) -> None:
        """Let all workers make a call, and return without waiting. An interrupt may come when they have it already."""
        self.refuse_inside()
        with self._lock:
            self._refuse_ended()
            self._open = {each for each in self._open if not each.is_over}
            self._open.add(call)
            last = self._last
            while last.next is not None:  # an interrupt came between the two assignments
                last = last.next
            call.before = last
            last.next = call
            self._last = call
        self.wake()

    def refuse_inside(self) -> None:
        """Raise SessionError on a thread of the workers, which cannot wait for itself."""
        own = get_ident()
        if any(site.worker.activity.thread == own for site in tuple(self._sites.values())):
            raise SessionError("a definition, or a function of it, cannot use its session: the session is running it")

    def wake(self) -> None:
        """Let every worker look for calls."""
        for site in tuple(self._sites.values()):
            site.worker.call(_nothing)

    def release(self, item: Item, call: Call[Any] | None = None) -> None:
        """Wait until no worker runs a function of an item that has failed; interrupt functions that take too long."""
        self.wake()
        self._until(lambda: self._has_left(item, call))

    def _until(self, is_over: Callable[[], bool]) -> None:
        """Wait for what ends when the program's functions return; interrupt those that take too long.

        The number of attempts is bounded, and not the time, for a busy machine may let this thread wait.
        """
        end = clock.monotonic() + self.patience
        while clock.monotonic() < end and not is_over():
            clock.sleep(0.002)
        for _ in range(ATTEMPTS):
            if is_over():
                return
            self.interrupt()
            clock.sleep(self.patience / ATTEMPTS)

    def interrupt(self) -> bool:
        """Interrupt the functions of the program that workers run; return whether there are any."""
        found = False
        for site in tuple(self._sites.values()):
            site.interrupted = site.running()
            if site.interrupted is not None and site.interrupted.kind != "table":
                found = interrupt(site.worker.activity.thread) or found
        return found

    def close(self) -> None:
        """End the threads. A function of the program that does not return is interrupted. More calls do nothing."""
        self.is_closing = True
        self._agreement.abort()
        self.wake()
        if current_thread() is self._thread:
            return
        self._thread.join(self.patience / 2)
        self._until(lambda: not self._thread.is_alive())
        self._abandon(SessionError("the session was closed"))

    @property
    def is_running(self) -> bool:
        """Whether the threads run."""
        return self._thread.is_alive()

    def _has_left(self, item: Item, call: Call[Any] | None) -> bool:
        if call is not None:
            return call.is_over or not call.is_submitted
        return all(part is None for part in item.parts)

    def _refuse_ended(self) -> None:
        if self.is_closing:
            raise SessionError("the session was closed: open another one with Session()")
        if self.ended is not None:
            raise SessionError(f"the session has ended: {self.ended}") from self.ended

    def _run(self) -> None:
        try:
            execute(self._program, Config(workers=self.workers))
        except BaseException as error:
            self.ended = error
        why = "the session was closed" if self.ended is None else f"the session has ended: {self.ended}"
        for site in tuple(self._sites.values()):
            site.end(SessionError(why))
        self._abandon(SessionError(why))

    def _abandon(self, error: SessionError) -> None:
        error.__cause__ = self.ended
        with self._lock:
            self.is_closing = True if self.ended is None else self.is_closing
            calls, self._open = self._open, set()
        for call in calls:
            call.abandon(error)

    def _program(self, worker: Worker) -> None:
        """Make the calls, on one worker, until the session is closed."""
        site = Site(worker, self._agreement, lambda: self.is_closing)
        last = self._first
        assert last is not None
        self._sites[worker.index] = site
        try:
            while True:
                while last.next is None:
                    site.step()
                if self.is_closing:
                    raise Closing
                last = last.next
                function = last.function
                if function is None:  # abandoned
                    continue
                try:
                    result = function(site)
                except (DataError, SessionError, TraceError) as error:
                    last.finish(None, error)
                else:
                    last.finish(result, None)
                    del result
                del function
        except Closing:
            site.close()


def _nothing() -> None:
    pass


def _none(site: Site) -> None:
    pass
