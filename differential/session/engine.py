"""The workers of a session, and what they are asked to do.

A call is a function of a `Site`, which all workers run, in the same order. Calls are a linked list: adding one is a
single assignment, so an interrupt of the thread that adds it cannot leave some workers with it and others without. A
call whose caller no longer waits is completed all the same.

A call costs two switches of threads (to the worker, and back), three locks and, for each worker, one wake-up. Workers
in other processes (see `differential.session.cluster`) follow the same list, each by a thread that sends it the calls.

After a call, a worker has work left that nobody waits for: it merges and compacts indexes. The caller could not go on
meanwhile, because Python runs one thread at a time. So a worker without peers listens for the next call first, and does
this work when none comes for a moment, or after some calls in a row.
"""

from __future__ import annotations

import os
import time as clock
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from threading import Barrier, BrokenBarrierError, Event, Lock, Thread, current_thread, get_ident, main_thread
from types import FrameType
from typing import Any, Concatenate, ParamSpec, TypeVar

from differential.session.call import Call
from differential.session.cluster import Cluster, Control
from differential.session.interrupt import Closing, interrupt, program_frame
from differential.session.item import Item, computing, taken
from differential.session.progress import QUIET, SessionProgress
from differential.session.site import Site
from timely import Config, Worker, execute
from timely.errors import DataError, SessionError, TraceError
from timely.lowlevel import Origin, attributed, notify

R = TypeVar("R")
P = ParamSpec("P")

PATIENCE = 1.0
"""How many seconds a function that is to end may still run, unless an engine has another `patience`."""
EXIT_PATIENCE = 0.1
"""The same while Python exits."""
ATTEMPTS = 50
"""How often a function is interrupted before it is left alone: a function that waits in C cannot be interrupted."""
MOMENT = 0.001
"""For how many seconds a worker without peers listens for the next call before it does work that nobody waits for."""
GLANCE = 0.1
"""How many seconds `measure` waits for workers that compute something."""
CALLS = 16
"""After this many calls in a row, it does this work without listening first."""


class Engine:
    """Runs the workers of one session: as threads, or as one thread and others in the processes of a `cluster`.

    `origin` is the line that opens the session; `settings` has what else is configured, such as by `timely run`.
    """

    def __init__(
        self,
        workers: int,
        name: str,
        origin: Origin,
        cluster: Cluster | None = None,
        settings: Config | None = None,
        shows_progress: bool = False,
    ) -> None:
        self.progress = SessionProgress(shows_progress)
        self.workers = workers
        self._origin = origin
        self._process = os.getpid()
        self.cluster = cluster or Cluster(replace(settings or Config(), workers=workers))
        self.patience = PATIENCE
        self.is_closing = False
        self.ended: BaseException | None = None
        """Why the workers have ended, if not because of `close`."""
        self._barrier = Barrier(workers if cluster is None else 1)
        self._sites: dict[int, Site] = {}
        self.noted: set[Item] = set()
        """The items of which something is counted or kept that was not looked at yet."""
        self._lock = Lock()
        self._open: set[Call[Any]] = set()
        self._left: tuple[Call[Any], str] | None = None
        """A call that its interrupted caller no longer waits for, and a name of it for people."""
        self.interned_bytes = 0
        """The bytes of distinct texts and wide records on all workers, as of the last look."""
        self._measuring: Call[int] | None = None
        self._noted: dict[int, FrameType | None] = {}
        """What each worker ran when it was last noted."""
        self._first: Call[Any] | None = Call(_none, (), 0)
        self._last = self._first
        self._bell = Lock()
        """Released when a call is added while the worker listens."""
        self._bell.acquire()
        self._is_listening = False
        self._thread = Thread(target=self._run, name=f"timely {name}", daemon=True)
        self._thread.start()
        try:
            self.call(_none)
        except BaseException:
            self.close()
            raise
        finally:
            self._first = None  # all workers are past it, and it would keep alive all that follow

    def call(self, function: Callable[Concatenate[Site, P], R], *arguments: P.args, **_: P.kwargs) -> list[R]:
        """Return what `function(site, *arguments)` returns on each worker. Raises what it raises there."""
        call = Call(function, arguments, self.workers)
        self.submit(call)
        self.catch_up()
        call.wait()
        return self.result(call)

    def wait(self, call: Call[Any], phase: str) -> None:
        """Wait until all workers have made a call. If that takes long, show how far they are in this phase."""
        self.catch_up()
        self.progress.wait(call, phase, self._sites[min(self._sites)].worker)

    def catch_up(self) -> None:
        """Wait for a call whose caller was interrupted, because later calls follow it. Report it if that takes long."""
        if (left := self._left) is None:
            return
        call, phase = left
        if not call.wait(QUIET):
            notify(f"waiting for {phase}: {computing(self.unfinished())}")
            self.progress.wait(call, phase, self._sites[min(self._sites)].worker)
        if self._left is left:
            self._left = None

    def wait_after_interrupt(self, call: Call[Any], phase: str, stop: BaseException) -> None:
        """Wait no longer than `give_up` for a call whose caller is interrupted; add to `stop` what becomes of the call.

        A call that continues is not ended, because it may still end by itself.
        """
        self._left = call, phase
        try:
            if not call.is_over:
                self.give_up(call.wait)
        except BaseException as again:
            stop = again
            raise
        finally:
            goes_on = f"continues in the background: {computing(self.unfinished())}"
            stop.add_note(f"{phase} {'is complete' if call.is_over else goes_on}")

    def give_up(self, wait: Callable[[float], bool]) -> None:
        """Wait for something with `wait`, which takes seconds and returns whether it is over, for `patience` seconds.

        Then interrupt the functions of the program that have run all the time, and wait a little longer.
        """
        self.note_functions()
        if not wait(self.patience):
            self.interrupt(is_noted=True)
            wait(self.patience / 4)

    def unfinished(self) -> list[Item]:
        """Return what the workers of this process still compute for the last commit, or build."""
        return list(dict.fromkeys(item for site in tuple(self._sites.values()) for item in site.unfinished()))

    def measure(self) -> None:
        """Make the workers record the bytes of the indexes: at once, or later if they are computing something."""
        call = self._measuring
        if call is None or call.is_over:
            call = self._measuring = Call(Site.measure, (), self.workers)
            self.submit(call)
        while not call.wait(GLANCE):
            if self.unfinished():
                return
        if found := self.result(call):  # none if another thread, which waited for the same call, has taken them
            self.interned_bytes = sum(found)

    def publish(self, commit: int) -> None:
        """Pass on what a commit has changed."""
        for item in taken(self.noted):
            item.publish(commit)

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
        """Make all workers run a call, and return without waiting. An interrupt may come after they have it."""
        self.refuse_inside()
        self.refuse_ended()
        self.cluster.pack(call)
        with self._lock:
            self.refuse_ended()  # again: after `_abandon` has taken the open calls, nobody would end this one
            self._open = {each for each in self._open if not each.is_over}
            self._open.add(call)
            last = self._tail()
            # `before` is set first, so that the next assignment alone decides whether the call is submitted.
            call.before, call.number = last, last.number + 1
            last.next = call  # the single assignment by which all workers have the call
            self._last = call  # only a shortcut for `_tail`, so an interrupt before this line does no harm
        if not self._ring():
            self.wake()

    def _head(self) -> Call[Any]:
        """Return the first call of the list, while the workers begin."""
        assert self._first is not None
        return self._first

    def _tail(self) -> Call[Any]:
        """Return the last call of the list."""
        last = self._last
        # `_last` may be behind: another thread is adding a call, or an interrupt came before `submit` had set `_last`.
        while last.next is not None:
            last = last.next
        return last

    def refuse_inside(self) -> None:
        """Raise SessionError on a worker's thread, which cannot wait for itself, and in a forked process.

        While Python exits, only daemon threads still run beside the main thread, which ends the session. If one of them
        calls the session then, it waits: an error that it raises would be printed, and nobody could handle it.
        """
        if self._process != os.getpid():
            raise SessionError("the session belongs to the process that forked this one: open another session here")
        if self.is_closing and is_exiting() and current_thread() is not main_thread():
            Event().wait()
        own = get_ident()
        for site in tuple(self._sites.values()):
            if site.worker.activity.thread == own:
                raise SessionError(
                    "a definition, or a function of it, cannot use its session: the session is running it"
                )

    def wake(self) -> None:
        """Make every worker look for calls, and for items that have failed."""
        self._ring()
        for site in tuple(self._sites.values()):
            site.worker.call(lambda: None)
        self.cluster.wake()

    def _ring(self) -> bool:
        """End the listening of the worker; return False if it does not listen."""
        if not self._is_listening:
            return False
        self._is_listening = False
        with suppress(RuntimeError):  # another thread has released it just now
            self._bell.release()
        return True

    def _listen(self, last: Call[Any]) -> None:
        """Wait a moment for the call after the last one. A call is added before the bell rings, so none is missed."""
        self._is_listening = True
        if last.next is None:
            self._bell.acquire(timeout=MOMENT)
        self._is_listening = False

    def fail(self, item: Item, error: BaseException) -> None:
        """Make an item fail on all workers, which then drop it."""
        item.fail(error)
        self.cluster.fail(item, error)
        self.wake()

    def release(self, item: Item, call: Call[Any] | None = None) -> None:
        """Wait until no worker runs a function of an item that has failed; interrupt functions that take too long.

        A `call` that builds it, and that no worker has begun, is not waited for: workers then do not build the item.
        """
        self.wake()
        if call is None or call.is_begun:
            self._until(lambda: self._has_left(item, call), self.patience, item)

    def _until(self, is_over: Callable[[], bool], patience: float, item: Item | None = None) -> None:
        """Wait for what ends when the program's functions return; interrupt those that take too long (`interrupt`).

        The number of attempts is bounded, not the time, because a busy machine may delay this thread.
        """
        end = clock.monotonic() + patience
        while clock.monotonic() < end and not is_over():
            clock.sleep(0.002)
        for _ in range(ATTEMPTS):
            if is_over():
                return
            self.interrupt(item)
            clock.sleep(patience / ATTEMPTS)

    def note_functions(self) -> None:
        """Record which functions of the program workers run now."""
        self.cluster.note_functions()
        self._noted = {index: program_frame(site.worker.activity.thread) for index, site in self._sites.items()}

    def interrupt(self, item: Item | None = None, is_noted: bool = False) -> bool:
        """Interrupt the functions of the program that workers run; return whether there are any here.

        With `item`, interrupt only functions of this item; with `is_noted`, only those that run since `note_functions`.
        """
        found = False
        self.cluster.interrupt(item, is_noted)
        for index, site in tuple(self._sites.items()):
            thread, noted = site.worker.activity.thread, self._noted.get(index)
            if is_noted and (noted is None or program_frame(thread) is not noted):
                continue
            running = site.interrupted = site.running()
            if running is not None and running.kind != "table" and item in (None, running):
                found = interrupt(thread) or found
        self._noted = {}
        return found

    def close(self) -> None:
        """End the threads. A function of the program that does not return is interrupted. Further calls do nothing."""
        if self._process != os.getpid():
            return
        self.is_closing = True
        patience = EXIT_PATIENCE if is_exiting() else self.patience
        self._barrier.abort()  # workers that wait to agree on an item raise Closing
        self.cluster.close()
        self.wake()
        if current_thread() is self._thread:  # a function of the program closes its session: it cannot wait for itself
            return
        self._thread.join(patience / 2)
        self._until(lambda: not self._thread.is_alive(), patience)
        self.cluster.kill()
        self._abandon(SessionError("the session was closed"))

    @property
    def is_running(self) -> bool:
        """Whether the threads run."""
        return self._thread.is_alive()

    @property
    def is_over(self) -> bool:
        """Whether the session was closed, or has ended."""
        return self.is_closing or self.ended is not None

    def _has_left(self, item: Item, call: Call[Any] | None) -> bool:
        if call is not None:
            return call.is_over or not call.is_submitted
        return not item.elsewhere and all(part is None for part in item.parts)

    def refuse_ended(self) -> None:
        """Raise SessionError where the session was closed, or has ended."""
        if self.is_closing:
            raise SessionError("the session was closed: open another one with Session()")
        if self.ended is not None:
            raise SessionError(f"the session has ended: {self.ended}") from self.ended

    def _run(self) -> None:
        try:
            with self.cluster.connected(Control(self._head, self._tail, self.noted, self.fail, self._lose)) as config:
                execute(self._program, config)
        except BaseException as error:
            self.ended = self.ended or error
        why = "the session was closed" if self.ended is None else f"the session has ended: {self.ended}"
        for site in tuple(self._sites.values()):
            site.end(SessionError(why), was_closed=self.ended is None)
        self._abandon(SessionError(why))

    def _lose(self, error: BaseException) -> None:
        """End the session because another process of it has ended."""
        self.ended = self.ended or error
        self._abandon(SessionError(f"the session has ended: {self.ended}"))

    def _abandon(self, error: SessionError) -> None:
        if is_exiting():
            return
        error.__cause__ = self.ended
        with self._lock:
            self.is_closing = True if self.ended is None else self.is_closing
            calls, self._open = self._open, set()
        for call in calls:
            call.abandon(error)

    def _agree(self, item: Item) -> None:
        """Wait until all workers have reached this point: so an item is built by all of them, or by none.

        Raises Closing where the session ends meanwhile.
        """
        try:
            self._barrier.wait()
        except BrokenBarrierError:
            raise Closing from None
        self.cluster.settle(item)  # with the workers in other processes

    def _program(self, worker: Worker) -> None:
        """Make the calls, on one worker, until the session is closed."""
        with attributed(self._origin):
            site = Site(worker, self._agree, lambda: self.is_closing, self.fail, self.cluster.left, self.noted)
        last = self._head()  # before the first call is over, after which `__init__` forgets it
        self._sites[worker.index] = site
        is_alone = worker.peers == 1
        try:
            while True:
                if is_alone and last.number % CALLS:
                    self._listen(last)
                while last.next is None:
                    site.step()
                if self.is_closing:
                    raise Closing
                last = last.next
                arguments, function = last.arguments, last.function  # so a call with a function has its arguments
                if function is None:  # abandoned
                    continue
                last.is_begun = True
                try:
                    result = function(site, *arguments)
                except (DataError, SessionError, TraceError) as error:
                    last.finish(None, error)
                else:
                    last.finish(result, None)
                    del result
                del function, arguments  # the worker may wait for long, and must not keep what the call was about
        except Closing:
            site.close()


def is_exiting() -> bool:
    """Return whether Python is exiting: all non-daemon threads have ended, the main thread among them.

    >>> is_exiting()
    False
    """
    return not main_thread().is_alive()


def _none(site: Site) -> None:
    pass
