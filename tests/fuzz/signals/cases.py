"""A run of `timely` to which signals are sent at random moments, and what must hold when it has ended.

- It ends within `PROMPT` seconds of the last signal, if a signal has killed a process or requested the end. On a busy
  machine it has more time, in proportion to the load of a core.
- Its status is 0 only if all processes have done their work, and it is 0 unless a signal requests something else.
- A process that is lost, or ended by a signal, is named on standard error by a remaining process.
- None of its processes and none of its temporary files is left; what a run leaves behind when its launcher is killed,
  the next run removes.
- No process shows a traceback.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time as clock
from pathlib import Path
from random import Random
from typing import NamedTuple
from uuid import uuid4

from tests.fuzz.signals.processes import MARK, child, marked, survives
from tests.fuzz.signals.programs import PROGRAMS
from tests.integration.launcher.launching import PROMPT, ROOT, signals_enabled
from timely.run.directory import remove_left_directories

SIGNALS = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGUSR1, signal.SIGSTOP, signal.SIGCONT, signal.SIGKILL),
)
HARMLESS = (signal.SIGUSR1, signal.SIGCONT)
LONGEST_MOMENT = 2.5
PAUSE = 0.5
"""For how long the launcher is stopped: only the sender can continue it."""
PATIENCE = 50.0


class Fault(Exception):
    """Something does not hold that must."""


class Outcome(NamedTuple):
    """Whether a run was `complete` or `ended` before, and how many seconds after its last signal."""

    name: str
    seconds: float


class Event(NamedTuple):
    """A signal at a moment after the start: to `launcher`, to all processes (`group`), or to the process `child`."""

    moment: float
    signum: signal.Signals
    target: str
    child: int

    def __str__(self) -> str:
        target = f"process {self.child}" if self.target == "child" else self.target
        return f"{self.signum.name} to {target} at {self.moment:.2f} s"


class Case(NamedTuple):
    """A run to be."""

    program: str
    processes: int
    workers: int
    events: tuple[Event, ...]

    @staticmethod
    def drawn(number: int) -> Case:
        """Return the case of this number."""
        random = Random(number)
        processes = random.randint(1, 4)

        def event() -> Event:
            signum = random.choice(SIGNALS)
            target = random.choice(["launcher", "group", "child"]) if processes > 1 else "launcher"
            return Event(random.uniform(0.0, LONGEST_MOMENT), signum, target, random.randrange(processes))

        events = sorted(event() for _ in range(random.choice([1, 1, 2])))
        return Case(random.choice(list(PROGRAMS)), processes, random.choice([1, 1, 2]), tuple(events))

    def __str__(self) -> str:
        events = ", ".join(map(str, self.events))
        return f"{self.processes} x {self.workers}, a program that {self.program}: {events}"

    def run(self, prompt: float = PROMPT) -> Outcome:
        """Run the case; raise `Fault` for the first requirement that does not hold."""
        with tempfile.TemporaryDirectory(prefix="signals-") as place:
            return _Running(self, Path(place)).watch(prompt)


def _load() -> float:
    """Return how much longer everything takes than on a machine with a core for each that wants one."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class _Running:
    """A case that runs in a directory of its own."""

    def __init__(self, case: Case, place: Path) -> None:
        self._case = case
        self._place = place
        self._mark = uuid4().hex
        self._sent: list[Event] = []
        self._temporary = place / "temporary"
        self._temporary.mkdir()
        (place / "program.py").write_text(PROGRAMS[case.program])
        environ = {"PYTHONPATH": str(ROOT), "TMPDIR": str(self._temporary), MARK: self._mark, "PYTHONUNBUFFERED": ""}
        options = ["run", "-n", str(case.processes), "-w", str(case.workers), str(place / "program.py")]
        with open(place / "out", "wb") as out, open(place / "err", "wb") as err, signals_enabled():
            self._process = subprocess.Popen(
                [sys.executable, "-m", "timely", *options],
                cwd=place,
                env=os.environ | environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        self._begun = clock.monotonic()

    @property
    def _output(self) -> str:
        return (self._place / "out").read_text(errors="replace")

    @property
    def _error(self) -> str:
        return (self._place / "err").read_text(errors="replace")

    def watch(self, prompt: float) -> Outcome:
        try:
            for event in self._case.events:
                self._send(event)
            begun = clock.monotonic()
            self._await_end(prompt)
            seconds = clock.monotonic() - begun
            self._see_that_nothing_is_left(prompt)
            return Outcome(self._check(), seconds)
        finally:
            for pid in (self._process.pid, *marked(self._mark)):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            self._process.wait()

    def _send(self, event: Event) -> None:
        """Send a signal when it is time, unless its receiver is gone."""
        while clock.monotonic() < self._begun + event.moment and self._process.poll() is None:
            clock.sleep(0.005)
        launcher = self._process.pid
        receiver: int | None = launcher
        if event.target == "child":
            receiver = child(launcher, event.child)
        elif event.signum == signal.SIGUSR1:
            # Until the interpreter has read the command's first line, nothing can prevent the signal from ending it.
            while self._process.poll() is None and not survives(launcher, event.signum):
                clock.sleep(0.005)
        if self._process.poll() is not None or receiver is None:
            return
        try:
            os.killpg(launcher, event.signum) if event.target == "group" else os.kill(receiver, event.signum)
        except ProcessLookupError:
            return
        self._sent.append(event)
        if event.signum == signal.SIGSTOP and event.target != "child":
            clock.sleep(PAUSE)
            os.killpg(launcher, signal.SIGCONT)

    def _is_lost(self, event: Event) -> bool:
        """Return whether a signal takes a process away, or asks it to end."""
        paused = event.signum == signal.SIGSTOP and event.target != "child"
        return event.signum not in HARMLESS and not paused

    def _await_end(self, prompt: float) -> None:
        seconds = min(PATIENCE, prompt * _load()) if any(map(self._is_lost, self._sent)) else PATIENCE
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise self._fault(f"it has not ended {seconds:.1f} s after the last signal") from None

    def _see_that_nothing_is_left(self, prompt: float) -> None:
        is_killed = self._process.returncode == -signal.SIGKILL
        end = clock.monotonic() + (prompt if is_killed else 0.5) * _load()
        while left := list(marked(self._mark)):
            if clock.monotonic() > end:
                raise self._fault(f"processes {left} are left")
            clock.sleep(0.02)
        if is_killed:
            remove_left_directories(str(self._temporary))
        if names := [path.name for path in self._temporary.rglob("*")]:
            raise self._fault(f"{names} are left among the temporary files")

    def _check(self) -> str:
        status, error, case = self._process.returncode, self._error, self._case
        is_complete = self._output.count("done") == case.processes
        if status == 0 and not is_complete:
            raise self._fault("its status is 0, but not all processes have done their work")
        lost = [event for event in self._sent if self._is_lost(event)]
        if status != 0 and not lost:
            raise self._fault(f"its status is {status}, but no signal requested that")
        if status != 0 and lost[0].target == "child" and len(lost) == 1 and f"process {lost[0].child}" not in error:
            raise self._fault(f"process {lost[0].child} is not named")
        if any("Traceback" in line or "Fatal Python" in line for line in error.splitlines() if line.startswith("[")):
            raise self._fault("a process shows a traceback")
        return "complete" if status == 0 else "ended"

    def _fault(self, what: str) -> Fault:
        sent = ", ".join(map(str, self._sent)) or "none"
        return Fault(
            f"{what}\n  {self._case}\n  sent: {sent}; status {self._process.poll()}\n"
            f"--- output\n{self._output}--- errors\n{self._error}"
        )
