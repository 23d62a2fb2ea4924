"""Every process can be looked at from a second after it has begun, and pays for it only when somebody looks."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time as clock
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from timely.config import Config
from timely.live.jobs import RunProcesses, job_of
from timely.observe.presence import Presence, presences
from timely.run import answering
from timely.run.answering import answer_looks, own_runs

SHORT = """
import sys, threading
from timely import execute
names = lambda: sorted(thread.name for thread in threading.enumerate())
execute(lambda worker: None)
before = names()
execute(lambda worker: None)
assert before == names(), (before, names())
assert before.count("timely answers") == 1
print(*(name for name in sys.modules if name.startswith(("timely.live", "socket", "json"))))
"""
LONG = """
import os, sys, threading
from timely import execute
execute(lambda worker: None)
if "fork" in sys.argv:
    if os.fork() == 0:
        execute(lambda worker: None)
        print("child", os.getpid(), flush=True)
        sys.stdin.read()
        sys.exit()
print(os.getpid(), flush=True)
sys.stdin.read()
print(*(name for name in sys.modules if name.startswith("timely.live")))
"""

INTERRUPTED = """
import atexit, os, sys
from timely import execute
from timely.run import answering
answering.DELAY = 600
execute(lambda worker: None)
def open_at_last():
    assert "timely.observe.presence" not in sys.modules
    each = answering._begun[os.getpid()]
    each.is_due.set()
    each._thread.join(30)
    assert "timely.observe.presence" in sys.modules
atexit.register(open_at_last)
raise KeyboardInterrupt
"""


def started(script: str, place: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a script whose directory for temporary files is `place`."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        env=os.environ | {"TMPDIR": str(place)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def until(condition: Callable[[], object], what: str) -> None:
    end = clock.monotonic() + 30
    while not condition():
        assert clock.monotonic() < end, what
        clock.sleep(0.02)


def forget() -> None:
    for each in answering._begun.values():
        each._end()
    answering._begun.clear()


@pytest.fixture
def unseen() -> Iterator[None]:
    """Let nobody look at this process because of a test before, or after this one."""
    forget()
    yield
    forget()


def of(pid: int, place: Path, monkeypatch: pytest.MonkeyPatch) -> Presence:
    """Return the presence of a process as soon as there is one."""
    monkeypatch.setattr("tempfile.tempdir", str(place))
    until(lambda: pid in [each.pid for each in presences()], f"process {pid} cannot be looked at")
    (found,) = [each for each in presences() if each.pid == pid]
    return found


def test_a_short_program_opens_and_imports_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    with started(SHORT, tmp_path) as process:
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0
    assert output == "\n"
    assert list(tmp_path.iterdir()) == []


def test_a_program_answers_until_it_ends_and_imports_nothing_before_somebody_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with started(LONG, tmp_path) as process:
        assert process.stdout is not None
        presence = of(int(process.stdout.readline()), tmp_path, monkeypatch)
        assert presence.socket.parent.parent == tmp_path
        output, _ = process.communicate("", timeout=30)
        assert output == "\n", "timely.live was imported though nobody looked"
    # Not that the place is empty: this process may have begun to answer there, too.
    assert not presence.socket.parent.exists()


def test_whoever_connects_receives_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with started(LONG, tmp_path) as process:
        assert process.stdout is not None
        presence = of(int(process.stdout.readline()), tmp_path, monkeypatch)
        with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rb") as answers:
            connection.settimeout(30)
            connection.connect(str(presence.socket))
            connection.sendall(b"look\n")
            assert answers.readline() == f'[[{presence.pid}, [], [], ""], []]\n'.encode()
            run = job_of(str(presence.pid))
            assert isinstance(run, RunProcesses)
            assert run.find() == {0: presence.socket}
        process.communicate("", timeout=30)


def test_a_process_that_was_forked_off_answers_for_itself_and_removes_only_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with started(LONG, tmp_path, "fork") as process:
        assert process.stdout is not None
        lines = sorted(process.stdout.readline().split() for _ in range(2))
        parent, child = (of(int(line[-1]), tmp_path, monkeypatch) for line in lines)
        assert parent.pid == process.pid != child.pid
        assert parent.socket.parent != child.socket.parent
        process.communicate("", timeout=30)
        left = [each.socket.parent for each in (parent, child)]
        until(lambda: not any(each.exists() for each in left), "a process leaves its directory")


@pytest.mark.usefixtures("unseen")
def test_the_runs_of_a_process_are_in_its_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMELY_REPORT", str(tmp_path / "timely-run-aaaaaaaa" / "report.1"))
    (tmp_path / "timely-run-aaaaaaaa").mkdir(mode=0o700)
    addresses = ("ipc:///tmp/a", "ipc:///tmp/b")
    answer_looks(Config(processes=2, process=1, addresses=addresses, generation="g.0"), at_once=True)
    assert own_runs() == {"g": 1}
    presence = of(os.getpid(), tmp_path, monkeypatch)
    assert (presence.launcher, presence.runs) == (os.getppid(), {"g": 1})
    answer_looks(Config(processes=2, process=0, addresses=addresses, generation="h.0"))
    assert of(os.getpid(), tmp_path, monkeypatch).runs == {"g": 1, "h": 0}


@pytest.mark.usefixtures("unseen")
def test_without_a_directory_nobody_can_look_and_the_program_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIMELY_REPORT", str(tmp_path / "absent" / "report.0"))
    answer_looks(Config(), at_once=True)
    (each,) = answering._begun.values()
    until(lambda: each._thread is not None and not each._thread.is_alive(), "the thread goes on")
    each._end()


def test_an_interrupted_program_ends_by_the_signal_whatever_is_imported_to_answer_meanwhile(tmp_path: Path) -> None:
    """Python would end it with status 1 after a thread has evaluated text, as imports may do."""
    absent = {"TIMELY_REPORT": str(tmp_path / "absent" / "report.0")}  # so that the thread ends once it has imported
    ran = subprocess.run([sys.executable, "-c", INTERRUPTED], env=os.environ | absent, capture_output=True, timeout=60)
    assert ran.stderr.endswith(b"\nKeyboardInterrupt\n")
    assert ran.returncode == -signal.SIGINT


def test_an_interactive_session_in_which_something_was_interrupted_ends_without_a_signal(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-i", "-c", "from timely import execute; execute(lambda worker: None)"],
        input=b"raise KeyboardInterrupt\nprint('ready')\n",
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        timeout=60,
    )
    assert (ran.stdout, ran.returncode) == (b"ready\n", 0), ran.stderr
