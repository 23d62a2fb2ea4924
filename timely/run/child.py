"""A process that the launcher starts and supervises: its environment, its state, and a description of how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from timely.communication.notes import REPORT_VARIABLE, Notes
from timely.config import Config
from timely.run.failure import PEER_FAILED
from timely.run.launched import LIFELINE_VARIABLE, PREFIX_VARIABLE
from timely.run.memory import with_large_pages

STOPPED = "is stopped (SIGSTOP or SIGTSTP)"
_POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""The number of threads that libraries start; NumPy's linear algebra starts them when it is imported."""


class Child:
    """A process of the cluster. `status` is None while it runs; `stopped_at` is when it was found stopped."""

    def __init__(
        self, config: Config, arguments: Sequence[str], notes: Notes, lifeline: int, *, has_prefixes: bool = True
    ) -> None:
        """Start the process that `config` describes, with the given arguments for Python.

        `has_prefixes` is whether the lines that it writes to standard output get a prefix.
        """
        self.index = config.process
        self.status: int | None = None
        self.stopped_at: float | None = None
        self._notes = notes
        environ = with_share_of_cores(with_large_pages(_with_our_packages(os.environ)), config.processes)
        environ |= config.to_environ()
        environ |= {LIFELINE_VARIABLE: str(lifeline), REPORT_VARIABLE: str(notes.report(self.index))}
        if has_prefixes:
            environ |= {PREFIX_VARIABLE: "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-P", *arguments],
            env=environ | {"PYTHONUNBUFFERED": ""},
            # Several readers of one input would each get some of it.
            stdin=None if self.index == 0 else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(lifeline,),
        )

    def send(self, signum: int) -> None:
        if self.status is None:
            self.process.send_signal(signum)

    def ask_to_end(self, signum: int) -> None:
        """Continue the child if it is stopped, so that it can react, and then send a signal.

        In this order: the system delivers a signal for a stopped process to any of its threads, but one for a running
        process to the main thread, which alone can act on it.
        """
        self.send(signal.SIGCONT)
        self.send(signum)

    def has_begun_to_end(self) -> bool:
        return self._notes.has_begun_to_end(self.index)

    def is_stopped(self) -> bool:
        if self.status is not None or not hasattr(os, "waitid"):
            return False
        try:
            # WNOWAIT leaves the state as it is, so that each call returns it, and `poll` still finds the end.
            return os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return False

    def is_echo(self) -> bool:
        """Return whether the child ended because of a peer, which reports the cause."""
        return self.status == PEER_FAILED and self._notes.report(self.index).exists()

    def describe(self) -> str:
        """Return a description of how the child ended, for people."""
        assert self.status is not None
        if self.status < 0:
            return f"process {self.index} was killed by {_signal_name(-self.status)}"
        if self.is_echo():
            return f"process {self.index}: {self._notes.report(self.index).read_text()}"
        return f"process {self.index} ended with status {self.status}"


def _signal_name(signum: int) -> str:
    """Return the name of a signal; most real-time signals have none."""
    try:
        return signal.Signals(signum).name
    except ValueError:
        return f"signal {signum}"


def _with_our_packages(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which children import this package from where this process did.

    Children do not search their current directory (`python -P`), because another `timely` may be there, such as the
    sources of the installed one. `python -m timely` does search it.
    """
    root = str(Path(__file__).parents[2])
    changed = dict(environ)
    if root not in sys.path[0 if sys.flags.safe_path else 1 :]:
        changed["PYTHONPATH"] = os.pathsep.join([root, *filter(None, [environ.get("PYTHONPATH")])])
    if sys.flags.safe_path:
        changed["PYTHONSAFEPATH"] = "1"
    return changed


def with_share_of_cores(environ: Mapping[str, str], processes: int, cores: int | None = None) -> dict[str, str]:
    """Return an environment in which the libraries of all processes together start one thread per core.

    An environment that already sets the number of threads is returned unchanged.

    >>> with_share_of_cores({}, processes=4, cores=8)["OPENBLAS_NUM_THREADS"]
    '2'
    >>> with_share_of_cores({"OMP_NUM_THREADS": "8"}, processes=4, cores=8)
    {'OMP_NUM_THREADS': '8'}
    """
    if any(environ.get(name) for name in _POOLS):
        return dict(environ)
    share = max(1, (cores or _usable_cores()) // processes)
    return {**environ, **dict.fromkeys(_POOLS, str(share))}


def _usable_cores() -> int:
    """Return the number of cores that this process may run on, if the system reports it; else the number of cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
