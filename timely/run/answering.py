"""Each process answers whoever of its user looks at it (`timely top`), from a second after its first run began.

Until then a thread sleeps, so a short program pays for nothing else. Then it opens a socket in a private directory and
waits there. Only the first connection imports what looks at workers (`timely.live`). Where there can be no directory
or no thread, nobody can look, and the program does not notice.
"""

from __future__ import annotations

import atexit
import os
import sys
import time as clock
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from timely.communication.notes import REPORT_VARIABLE
from timely.config import Config
from timely.errors import TransportError
from timely.interruption import end_as_interrupted

if TYPE_CHECKING:
    import socket

    from timely.observe.presence import Presence

DELAY = 1.0
"""After how many seconds a process can be looked at."""
_PAUSE = 1.0
"""How long a process waits that can accept no connection, because it has too many files open."""
_OPENING_SECONDS = 5.0
"""How long a process that ends waits for its socket to be opened, to remove it."""

_begun: dict[int, _Answering] = {}
"""Who answers, by process: one that was forked off begins anew."""


def answer_looks(config: Config, *, at_once: bool = False) -> None:
    """Answer whoever looks at this process from now on, as a process of this run, too; or from after `DELAY` on."""
    pid = os.getpid()
    answering = _begun.get(pid)
    if answering is None:
        fresh = _Answering(pid)
        answering = _begun.setdefault(pid, fresh)
        if answering is fresh:
            answering.begin()
    if config.processes > 1:
        answering.join(config.generation.partition(".")[0], config.process)
    if at_once:
        answering.is_due.set()


def own_runs() -> Mapping[str, int]:
    """Return the index of this process in each run of several processes, by the generation of the run."""
    answering = _begun.get(os.getpid())
    return {} if answering is None else answering.runs


class _Answering:
    """The thread of one process that answers."""

    def __init__(self, pid: int) -> None:
        self.runs: dict[str, int] = {}
        self.is_due = Event()
        self._pid = pid
        self._lock = Lock()
        self._has_ended = False
        self._resources = ExitStack()
        self._thread: Thread | None = None
        self._presence: Presence | None = None
        """What others can read of this process, once it answers."""

    def begin(self) -> None:
        """Answer from after `DELAY` on until the process ends."""
        with suppress(RuntimeError):  # no more threads
            self._thread = Thread(target=self._answer, name="timely answers", daemon=True)
            self._thread.start()
            atexit.register(self._end)

    def join(self, run: str, index: int) -> None:
        """Note that the process takes part in a run."""
        if run not in self.runs:
            # A new mapping in place of the old one: other threads read it without the lock.
            self.runs = {**self.runs, run: index}
            with self._lock:
                if self._presence is not None:
                    self._note(self._presence)

    def _answer(self) -> None:
        self.is_due.wait(DELAY)
        try:
            listener = self._open()
        except (OSError, TransportError):
            return
        while listener is not None:
            try:
                connection, _ = listener.accept()
            except OSError:
                if self._has_ended:
                    return
                clock.sleep(_PAUSE)
                continue
            from timely.live.neighbours import converse

            with suppress(RuntimeError):
                Thread(target=converse, args=(connection,), name="timely live answers", daemon=True).start()

    def _open(self) -> socket.socket | None:
        """Return a socket that listens, or None if the process has ended."""
        with self._lock:
            if self._has_ended:
                return None
            import socket

            from timely.observe.presence import Presence, socket_of, withdraw
            from timely.run.directory import run_directory

            report = os.environ.get(REPORT_VARIABLE)
            directory = Path(report).parent if report else self._resources.enter_context(run_directory(1))
            listener = self._resources.enter_context(socket.socket(socket.AF_UNIX))
            path = socket_of(directory, self._pid)
            path.unlink(missing_ok=True)  # of a process that was killed, and whose number this one has
            listener.bind(str(path))
            listener.listen()
            launcher = os.getppid() if report else 0
            presence = Presence(self._pid, launcher, os.path.basename(sys.argv[0] or "") or "python", {}, path)
            self._resources.callback(withdraw, presence)
            # Last, so that whoever finds the note can connect.
            self._note(presence)
            return listener

    def _note(self, presence: Presence) -> None:
        from timely.observe.presence import note

        self._presence = presence._replace(runs=self.runs)
        with suppress(OSError):
            note(self._presence)

    def _end(self) -> None:
        # With the lock: if the thread has not opened the socket by now, it finds that the process has ended.
        if os.getpid() == self._pid and self._lock.acquire(timeout=_OPENING_SECONDS):
            self._has_ended = True
            self._lock.release()
            self.is_due.set()
            self._resources.close()
            end_as_interrupted()  # last: `_open`, which imports modules, has ended, or does not begin
