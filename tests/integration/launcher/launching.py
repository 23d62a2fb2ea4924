"""Start `timely run` for a test, read what it prints, and check that it leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time as clock
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

ROOT = Path(__file__).parents[3]
SCRIPTS = Path(__file__).parent / "scripts"
_PID = re.compile(r"pid (\d+)")
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
PROMPT = 5.0
"""Seconds within which a run ends that is to end at once, on a machine with nothing else to do."""


class Run:
    """A running `timely` command."""

    def __init__(
        self,
        *arguments: str | Path,
        environ: Mapping[str, str] | None = None,
        directory: Path = ROOT,
        command: Sequence[str] = ("-m", "timely"),
    ) -> None:
        self.started = clock.monotonic()
        self.starting = 0.0
        """How long the processes took to print their pid."""
        with signals_enabled():
            self.process = subprocess.Popen(
                [sys.executable, *command, *map(str, arguments)],
                cwd=directory,
                env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""} | dict(environ or {}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        self.lines: list[str] = []
        self.errors: list[str] = []
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._readers = [
            Thread(target=sink.extend, args=(source,), daemon=True)
            for source, sink in ((self.process.stdout, self.lines), (self.process.stderr, self.errors))
        ]
        for reader in self._readers:
            reader.start()

    @property
    def output(self) -> str:
        return "".join(self.lines)

    @property
    def error(self) -> str:
        return "".join(self.errors)

    @property
    def pids(self) -> list[int]:
        """The processes that have printed their pid."""
        return [int(pid) for pid in _PID.findall(self.output)]

    @property
    def promptly(self) -> float:
        """The seconds that an immediate end may take: more on a busy machine, in proportion to the time to start."""
        return max(PROMPT, 4 * self.starting)

    def until_started(self, count: int, seconds: float = 40) -> list[int]:
        """Wait until this many processes have printed their pid."""
        self._wait_for(lambda: len(self.pids) >= count, seconds, f"{count} processes have not printed their pid")
        self.starting = clock.monotonic() - self.started
        return self.pids

    def until_gone(self, seconds: float = 30) -> None:
        """Wait until none of the processes that printed their pid is left."""
        self._wait_for(lambda: not any(map(is_alive, self.pids)), seconds, f"{self.pids} are not all gone")

    def send(self, signum: int) -> None:
        """Send a signal to the launcher alone."""
        self.process.send_signal(signum)

    def end(self, seconds: float = 40) -> int:
        """Wait until the command ends and none of its processes is left; return its status."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(self._report(f"the command has not ended after {seconds} s")) from None
        for reader in self._readers:
            reader.join(5)
        self.until_gone()
        return status

    def close(self) -> None:
        """Kill what a failed test left behind: the command and everything in its session."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def _wait_for(self, condition: object, seconds: float, complaint: str) -> None:
        end = clock.monotonic() + seconds
        while not condition():  # type: ignore[operator]
            assert clock.monotonic() < end, self._report(f"{complaint} after {seconds} s")
            clock.sleep(0.01)

    def _report(self, complaint: str) -> str:
        return f"{complaint}\n--- output\n{self.output}\n--- errors\n{self.error}"


@contextmanager
def signals_enabled() -> Iterator[None]:
    """Let processes started meanwhile receive signals, even if tests run in the background or by `nohup`."""
    ignored = [signum for signum in ENDING if signal.getsignal(signum) is signal.SIG_IGN]
    for signum in ignored:
        signal.signal(signum, signal.SIG_DFL)
    try:
        yield
    finally:
        for signum in ignored:
            signal.signal(signum, signal.SIG_IGN)


def is_alive(pid: int) -> bool:
    """Return whether a process runs (and is not merely waiting for its parent to take note)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
